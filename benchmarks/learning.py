"""Whether training shows: base < SFT < SFT + GRPO on held-out tasks, on two cores.

    python benchmarks/learning.py OUT [--seed 0 1] [--only STAGE ...] [--corpus FOLDER]

Every stage is a command that a user would give; the folder resumes. All arms share one corpus of
tables: 183 tasks to train on, 97 held out (`val`), and 56 of two families that are never trained on
(`ood`). An arm is a seed: scripted experts play the training tasks, a model of random weights is
made and learns from them (SFT), then plays and learns by itself (GRPO). Base, SFT and SFT + GRPO
play every held-out task three times; differences are paired over tasks, with 95 % bootstrap
intervals. Beside it: GRPO with the sparse reward from the same start, SFT on the best episode of
each group of the policy's own (as many episodes as GRPO played). `fixed_script.py` says what one
and the same program earns on these tasks.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sandmle.files import to_json, write_atomic
from sandmle.outcome import RATES, reached
from sandmle.rollout.folder import RunFolder
from sandmle.stats import Interval, paired_difference
from sandmle.types import Trajectory

RECIPE = Path(__file__).parents[1] / "recipes" / "micro-cpu.toml"
FAMILIES = (
    "interaction,mnar,group_relative,periodic,polar_longtail,ordinal_minmax,"
    "ratio_log,regime,structured_code,units_outliers,geo_join,drift_future"
)
HELD_OUT = "regime,drift_future"
FIGURES = ("reward", *RATES)
SANDMLE = str(Path(sys.executable).with_name("sandmle"))


class Stage(NamedTuple):
    """One command of sandmle without its `--out`, which is `out`."""

    name: str
    arguments: list[str]
    out: Path


PAIRS = (("sft", "base"), ("grpo", "sft"), ("grpo", "best"), ("grpo", "sparse"))
_SIDE_BY_SIDE = ("--set", "concurrency=64", "--set", "policy.requests=64")


def stages(out: Path, corpus: Path, seed: int) -> list[Stage]:
    """Return the stages of an arm in their order."""
    arm = out / f"seed-{seed}"
    config = ("--config", RECIPE, "--seed", seed)

    def stage(name: str, *arguments: object) -> Stage:
        return Stage(name, [str(one) for one in arguments], arm / name)

    def played(policy: str) -> list[Stage]:
        """Return the rollouts of a policy on both held-out splits."""
        player = ("rollout", corpus, "--policy", f"hf:{arm / policy}", *config, *_SIDE_BY_SIDE)
        return [
            stage(f"{policy}-{split}", *player, "--group", 3, "--set", f"corpus.split={split}")
            for split in ("val", "ood")
        ]  # fmt: skip

    grpo = ("train", "grpo", corpus, "--init", arm / "sft", *config)
    own = ("rollout", corpus, "--policy", f"hf:{arm / 'sft'}", *config, *_SIDE_BY_SIDE)
    best = ("train", "sft", arm / "own", "--init", arm / "sft", *config, "--best-of-group")
    return [
        stage("experts", "rollout", corpus, "--policy", "experts:tables", *config, "--group", 6),
        stage("base", "train", "micro-init", arm / "experts", "--seed", seed),
        stage("sft", "train", "sft", arm / "experts", "--init", arm / "base", *config),
        stage("grpo", *grpo),
        *played("base"),
        *played("sft"),
        *played("grpo"),
        stage("sparse", *grpo, "--set", "reward.preset=sparse"),
        *played("sparse"),
        stage("own", *own, "--group", 16),
        stage("best", *best, "--set", "sft.learning_rate=5e-4"),
        *played("best"),
    ]


def run(stage: Stage, times: Path) -> None:
    """Run a stage unless it is finished; note what it took."""
    known = json.loads(times.read_text()) if times.exists() else {}
    if stage.name in known:
        return
    print(f"[{time.strftime('%H:%M:%S')}] {stage.out.parent.name}: {stage.name}", flush=True)
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
    log = stage.out.with_suffix(".log")
    started = time.monotonic()
    with log.open("ab") as stream:
        done = subprocess.run(
            [SANDMLE, *stage.arguments, "--out", str(stage.out)],
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=environment,
            check=False,
        )
    if done.returncode:
        sys.exit(f"{stage.name} failed; see {log}")
    # what earlier parts of an interrupted stage took is not in it
    write_atomic(times, to_json({**known, stage.name: time.monotonic() - started}, indent=2))


def values(run_folder: Path) -> dict[str, dict[str, float]]:
    """Return for each figure the mean of every task, by its id; what cannot be scored counts 0."""
    by_task: dict[str, list[Trajectory]] = {}
    for one in RunFolder(run_folder).trajectories():
        by_task.setdefault(one.task_id, []).append(one)
    return {
        name: {
            task: sum(_figure(one, name) for one in played) / len(played)
            for task, played in by_task.items()
        }
        for name in FIGURES
    }


def _figure(one: Trajectory, name: str) -> float:
    if name == "reward":
        return one.reward.total if one.reward is not None else 0.0
    return float(name in reached(one))


def report(out: Path, seeds: Sequence[int]) -> None:
    """Print the tables of all arms and write them as JSON."""
    found: dict[str, object] = {}
    for seed in seeds:
        arm = out / f"seed-{seed}"
        for split in ("val", "ood"):
            known = {
                policy: values(arm / f"{policy}-{split}")
                for policy in ("base", "sft", "best", "sparse", "grpo")
                if (arm / f"{policy}-{split}" / "summary.json").exists()
            }
            if not known:
                continue
            print(f"\nseed {seed}, {split}")
            print(f"{'':16}" + "".join(f"{name:>11}" for name in FIGURES))
            for policy, figures in known.items():
                means = [sum(figures[name].values()) / len(figures[name]) for name in FIGURES]
                print(f"{policy:16}" + "".join(f"{mean:11.3f}" for mean in means))
                found[f"{seed}/{split}/{policy}"] = dict(zip(FIGURES, means, strict=True))
            for first, second in (
                ("sft", "base"),
                ("grpo", "sft"),
                ("grpo", "best"),
                ("grpo", "sparse"),
            ):
                if first in known and second in known:
                    found |= _compare(known, first, second, f"{seed}/{split}")
    write_atomic(out / "learning.json", to_json(found, indent=2) + "\n")


def _compare(
    known: dict[str, dict[str, dict[str, float]]], first: str, second: str, where: str
) -> dict[str, object]:
    cells: dict[str, Interval] = {}
    for name in FIGURES:
        one, other = known[first][name], known[second][name]
        cells[name] = paired_difference([one[t] for t in one], [other[t] for t in one])
    shown = "   ".join(
        f"{name} {cell.estimate:+.3f} [{cell.low:.3f}, {cell.high:.3f}]"
        for name, cell in cells.items()
        if name in ("reward", "valid", "any_medal", "gold")
    )
    print(f"{first} - {second}: {shown}")
    return {f"{where}/{first}-{second}": {name: cell._asdict() for name, cell in cells.items()}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--only", nargs="+", help="names of stages")
    parser.add_argument("--corpus", type=Path, help="one that was made before")
    options = parser.parse_args()
    out, corpus = options.out, options.corpus or options.out / "tasks"
    out.mkdir(parents=True, exist_ok=True)
    if options.corpus is None:
        make = [
            SANDMLE, "generate", str(corpus), "--n", "336", "--seed", "7", "--val", "116",
            "--level", "1,2", "--family", FAMILIES, "--holdout-families", HELD_OUT,
        ]  # fmt: skip
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
    for seed in options.seed:
        arm = out / f"seed-{seed}"
        arm.mkdir(exist_ok=True)
        for stage in stages(out, corpus, seed):
            if options.only is None or stage.name in options.only:
                run(stage, arm / "times.json")
    report(out, options.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
