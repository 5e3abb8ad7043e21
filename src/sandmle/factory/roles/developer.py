"""The ML Developer: the program that makes the data, and the ladder that measures it."""

import re
from typing import NamedTuple

from sandmle.factory.gate import Verdict
from sandmle.factory.ladder import Script
from sandmle.factory.roles.answers import Faults
from sandmle.factory.roles.attempts import worked
from sandmle.factory.roles.blueprint import PRIVATE, Blueprint, Data, read_data
from sandmle.factory.roles.desk import Call, Desk
from sandmle.factory.roles.judge import SOLUTION, examine, ladder_of
from sandmle.factory.roles.strategist import prompt
from sandmle.factory.roles.workshop import GENERATOR, LIMITS, Unfit, make
from sandmle.files import to_json
from sandmle.llm.structured import read_files
from sandmle.sandbox.base import Sandbox
from sandmle.types import Limits

ATTEMPTS = 5  # as in the paper
_NAMES = re.compile(f"{re.escape(GENERATOR)}|{SOLUTION.pattern}")
_AGAIN = (
    "Reply with all files again, whole, each in a fenced block that begins with ```python NAME."
)
_POOL_ROWS = 1000
_OTHER = 1_000_003  # added to the seed of the shipped draw


class Developed(NamedTuple):
    """Programs that do what they should, the files that they make, and what the gate says."""

    generator: str
    scripts: list[Script]
    shipped: Data
    verdict: Verdict


def develop(
    desk: Desk, call: Call, plan: Blueprint, faults: Faults, sandbox: Sandbox, seed: int,
    limits: Limits = LIMITS,
) -> Developed:  # fmt: skip
    """Ask for the programs until they pass the gate; `Unfit` with the last fault if none do."""

    def build(text: str) -> Developed:
        return _built(read_files(text, _NAMES), plan, faults, sandbox, seed, limits)

    return worked(desk, call, _brief(plan, faults), build, _AGAIN, ATTEMPTS)


def _brief(plan: Blueprint, faults: Faults) -> str:
    size = plan.spec.final_dimensions
    return prompt(
        "developer",
        spec=to_json(plan.spec.model_dump(mode="json"), indent=1),
        faults=to_json(faults.model_dump(mode="json"), indent=1),
        id_column=plan.id_column,
        features=", ".join(one.name for one in plan.spec.feature_mapping.values()),
        targets=", ".join(plan.targets),
        limits=f"It is called with {size.n_samples} and {size.n_test} rows, and with more.",
    )


def _built(
    files: dict[str, str], plan: Blueprint, faults: Faults, sandbox: Sandbox, seed: int,
    limits: Limits,
) -> Developed:  # fmt: skip
    """Run what was written and make every check; `Unfit` with the first that fails."""
    if GENERATOR not in files:
        raise Unfit("no_files", f"there is no {GENERATOR} in the reply")
    script, scripts, size = files[GENERATOR], ladder_of(files), plan.spec.final_dimensions
    made = make(script, sandbox, seed, size.n_samples, size.n_test, limits=limits)
    shipped = read_data(plan, made, size.n_samples, size.n_test)
    again = make(script, sandbox, seed, size.n_samples, size.n_test, hash_seed=2, threads=2)
    names = made.files.keys() | again.files.keys()
    other = sorted(n for n in names if made.files.get(n) != again.files.get(n))
    if other:
        raise Unfit(
            "not_deterministic",
            f"run twice with the same flags it writes another {other[0]} "
            f"({len(other)} of {len(names)} files differ)",
        )
    fresh = make(script, sandbox, seed + _OTHER, size.n_samples, _pool_rows(shipped))
    pool = read_data(plan, fresh, size.n_samples, _pool_rows(shipped))
    verdict = examine(plan, faults, scripts, shipped, pool, sandbox, seed)
    failed = [c for c in verdict.checks if c.passed is False]
    if failed:
        raise Unfit(
            failed[0].name.split(":")[0],
            "; ".join(f"{c.name} is {c.value}, limit {c.limit} {c.detail}" for c in failed[:4])
            + "; the ladder scored "
            + ", ".join(f"{r.name} {r.test:g} (fresh rows {r.pool:g})" for r in verdict.ladder),
        )
    return Developed(script, scripts, shipped, verdict)


def _pool_rows(shipped: Data) -> int:
    return min(_POOL_ROWS, 300) if shipped.assets else _POOL_ROWS


def public_names(data: Data) -> list[str]:
    """Return the files that agents will see, folders with a slash for all that is in them."""
    folders = {path.partition("/")[0] + "/" for path in data.assets}
    tables = [name for name in data.made.files if "/" not in name and name not in PRIVATE]
    return sorted([*tables, *folders])
