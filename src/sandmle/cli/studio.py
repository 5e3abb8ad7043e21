"""`sandmle generate --factory llm|hybrid`."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from sandmle.cli.options import resumable
from sandmle.cli.output import emit, say, table

if TYPE_CHECKING:
    from sandmle.factory.mix import Seed
    from sandmle.factory.roles.report import Done

N_SCENARIOS = 5
_REPLY_TOKENS = 16_384


def by_model(
    out: Path, factory: str, seeds: "tuple[Seed, ...]", seed: int, model: str, per_seed: int,
    concurrency: int, max_usd: float | None, price: str | None, validation: float, sandbox: str,
    as_json: bool,
) -> None:  # fmt: skip
    """Let a model write the tasks, and print the funnel."""
    from sandmle.config import PolicySection
    from sandmle.errors import UsageError
    from sandmle.factory.roles.desk import Example
    from sandmle.factory.roles.item import Order
    from sandmle.factory.roles.models import open_source
    from sandmle.factory.roles.report import REPORT, STAGES, read_report
    from sandmle.factory.roles.studio import build

    if per_seed < 1 or (per_seed > N_SCENARIOS and per_seed % N_SCENARIOS):
        raise UsageError(f"--per-seed {per_seed}: 1 to {N_SCENARIOS}, or a multiple of it")
    if concurrency < 1:
        raise UsageError(f"--concurrency {concurrency}: it takes at least one")
    section = PolicySection(
        name=model, turn_tokens=_REPLY_TOKENS, max_usd=max_usd, usd_per_million=_price(price)
    )
    if model == Example.name:
        known = Example().seeds(factory)
        seeds = tuple(one for one in seeds if one.name in known)
        if not seeds:
            raise UsageError(f"--model {model}: answers were recorded for {', '.join(known)}")
    scenarios = min(N_SCENARIOS, per_seed)
    order = Order.model_validate(
        {"seeds": seeds, "scenarios": scenarios, "mutation_sets": per_seed // scenarios,
         "seed": seed, "factory": factory}
    )  # fmt: skip
    with resumable():
        index = build(
            out, order, open_source(section), section, concurrency=concurrency, sandbox=sandbox,
            validation=validation, progress=_tell,
        )  # fmt: skip
    report = read_report(out)
    if as_json:
        facts = {"corpus": str(out), "tasks": index.funnel["kept"], "root_hash": index.root_hash}
        emit({**facts, "funnel": index.funnel, "spent": report.spent.model_dump()})
        return
    table(("stage", "tasks"), [(stage, index.funnel[stage]) for stage in STAGES])
    for reason, n in index.funnel.items():
        if reason not in STAGES:
            print(f"{n} {reason}")
    same = sum(report.duplicates.values())
    print(f"\n{index.funnel['kept']} in {shlex.quote(str(out))}, {same} dropped as duplicates")
    print(f"a kept task took {report.spent}; {REPORT} has all of it")


def _price(text: str | None) -> tuple[float, float] | None:
    from sandmle.errors import UsageError

    if text is None:
        return None
    try:
        prompt, reply = map(float, text.split(","))
    except ValueError:
        raise UsageError(f"--usd-per-million {text}: give two numbers, as 0.5,1.5") from None
    return prompt, reply


def _tell(done: "Done", count: int, total: int) -> None:
    name = "-".join(map(str, done.item))
    what = done.task_id or f"ended after {done.stage}: {done.reason}"
    say(f"[{count}/{total}] {name}   {what}")
