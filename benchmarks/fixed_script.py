"""How far one and the same program comes: what training must beat to have learned anything.

    python benchmarks/fixed_script.py CORPUS OUT [--tasks 60]

Programs that clean the cells, take the numbers as they are and fit one kind of model play the first
training tasks; the best of them plays all held-out ones. Between classes and numbers a kind of
model has two names (logistic regression, ridge), otherwise nothing is fitted to the task.
"""

import argparse
from pathlib import Path

from sandmle.config import PolicySection, load_config
from sandmle.llm.base import LLM
from sandmle.llm.scripted import Scripted
from sandmle.rollout import snippets
from sandmle.rollout.experts import Recipe, look, program
from sandmle.rollout.policies import POLICIES
from sandmle.rollout.runner import run_rollout
from sandmle.tasks.folder import Task

RECIPE = Path(__file__).parents[1] / "recipes" / "micro-cpu.toml"
# for classes, for numbers
KINDS = {
    "linear": ("logistic", "ridge"),
    "lasso": ("lasso", "lasso"),
    "tree": ("tree", "tree"),
    "neighbours": ("neighbours", "neighbours"),
    "forest": ("forest", "forest"),
    "extra trees": ("extra trees", "extra trees"),
    "boosting": ("boosting", "boosting"),
}


class Fixed:
    """A policy that plays one program on every task."""

    def __init__(self, argument: str, section: PolicySection) -> None:
        self.name, self._kind = f"fixed:{argument}", argument

    def open(self, task: Task, seed: int, k: int) -> LLM:
        sight = look(task)
        known = snippets.CLASSIFIERS if sight.classes else snippets.REGRESSORS
        say = KINDS[self._kind][0 if sight.classes else 1]
        recipe = Recipe(
            rows=(),
            cells=next(one for one in snippets.CELLS if one.code),
            faults=(),
            features=(next(one for one in snippets.NUMBERS if one.say == "plain"),),
            model=next(one for one in known if one.say == say),
            logs=False,
            prints=False,
        )
        code = program(recipe, sight.form)
        run = f"<think>{self._kind}</think>\n```python\n{code}\n```"
        return Scripted([run, "<think>done</think>\n<submit/>"])

    def close(self) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tasks", type=int, default=60, help="to choose the program by")
    options = parser.parse_args()
    POLICIES.add("fixed", Fixed)

    def play(kind: str, split: str, limit: int | None = None) -> dict[str, float]:
        """Play a kind of program and return its figures."""
        settings = [
            f"corpus.path='{options.corpus.absolute()}'",
            f"corpus.split='{split}'",
            f"policy.name='fixed:{kind}'",
            "group=1",
        ]
        settings += [f"corpus.limit={limit}"] if limit else []
        out = options.out / f"{kind.replace(' ', '-')}-{split}"
        summary = run_rollout(load_config(RECIPE, settings), out)
        rates = {name: rate["mean"] for name, rate in summary["rates"].items()}
        found = {"reward": summary["reward"]["mean"], **rates}
        shown = "   ".join(f"{name} {value:.3f}" for name, value in found.items())
        print(f"{kind:12} {split:6} {shown}", flush=True)
        return found

    chosen = max(KINDS, key=lambda kind: play(kind, "train", options.tasks)["reward"])
    for split in ("val", "ood"):
        play(chosen, split)


if __name__ == "__main__":
    main()
