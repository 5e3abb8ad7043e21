"""A small real model in every role of the factory: what it fails by, and that nothing else breaks.

    python benchmarks/small_model_roles.py [--policy hf:smollm2] [--tokens 160] [--seed-task NAME]

One role after the other is played by the model, the others by the recorded answers, so that each
role is reached. A model this small makes no task; what counts is that every item ends as one
counted failure with a name, and that the funnel adds up.
"""

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from sandmle.config import PolicySection
from sandmle.errors import UsageError
from sandmle.factory.roles.desk import Call, Example, Source
from sandmle.factory.roles.item import Order
from sandmle.factory.roles.models import open_source
from sandmle.factory.roles.report import STAGES, read_report
from sandmle.factory.roles.studio import build
from sandmle.factory.seeds.choose import choose_seeds
from sandmle.llm.base import LLM

ROLES = {
    "llm": ("dna", "places", "faults", "spec", "developer", "mlops", "writer"),
    "hybrid": ("story", "teller"),
}


class OneRole:
    """The model in one role, recorded answers in all others."""

    def __init__(self, role: str, model: Source) -> None:
        self.name = f"{model.name} as {role}"
        self._role, self._model, self._recorded = role, model, Example()

    def open(self, call: Call) -> LLM:
        return (self._model if call.role == self._role else self._recorded).open(call)

    def close(self) -> None:
        """The model is needed for the next role."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", default="hf:smollm2")
    parser.add_argument("--tokens", type=int, default=160)
    parser.add_argument("--seed-task", default="spaceship-titanic")
    options = parser.parse_args()
    section = PolicySection(name=options.policy, turn_tokens=options.tokens)
    model = open_source(section)
    broken = []
    print(
        f"{'role':<10}{'seconds':>9}  ended after: reason, and what its replies were sent back for"
    )
    for factory, roles in ROLES.items():
        for role in roles:
            started = time.monotonic()
            order = Order(
                seeds=choose_seeds(options.seed_task), scenarios=1, mutation_sets=1,
                factory=factory,
            )  # fmt: skip
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder) / "out"
                with contextlib.suppress(UsageError):  # "no task is left": as it should be
                    build(out, order, OneRole(role, model), section, validation=0.0)
                report = read_report(out)
                lines = (out / ".factory" / "journal.jsonl").read_text().splitlines()
            events = [json.loads(line) for line in lines]
            sent = Counter(e["reason"] for e in events if e["event"] == "sent_back")
            (item,) = report.items
            asked = sum(e["event"] == "reply" and e["role"] == role for e in events)
            known = f"{item.stage}: {item.reason or 'kept'}; {asked} replies, {dict(sent)}"
            print(f"{role:<10}{time.monotonic() - started:>9.1f}  {known}", flush=True)
            stages = [report.funnel[stage] for stage in STAGES]
            whole = stages == sorted(stages, reverse=True) and stages[0] == 1
            if not asked or not whole or (item.stage != "kept" and not item.reason):
                broken.append(role)
    model.close()
    print("not as it should be: " + ", ".join(broken) if broken else "every failure has a name")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
