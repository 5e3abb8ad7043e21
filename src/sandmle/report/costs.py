"""What runs cost, by phase: time, processor and accelerator hours, tokens, dollars."""

from collections.abc import Sequence
from typing import NamedTuple

from sandmle.report.runs import Run, is_number
from sandmle.report.tables import Grid
from sandmle.stats import known_sum
from sandmle.types import Trajectory

_PHASES = {"generate": "sampling", "execute": "programs", "update": "updates", "other": "the rest"}


class Cost(NamedTuple):
    """What a phase of a run took; None is not known, never zero.

    `seconds` are those of the wall in training and validation; episodes of a rollout overlap, and
    theirs are added up. `tokens` are those that a model wrote.
    """

    phase: str
    seconds: float | None
    cpu_h: float | None
    gpu_h: float | None
    tokens: int | None = None
    usd: float | None = None


class Prices(NamedTuple):
    """Dollars an hour of a core and of an accelerator; None: not known."""

    cpu: float | None = None
    gpu: float | None = None


UNKNOWN = Prices()


def run_costs(run: Run, prices: Prices = UNKNOWN) -> list[Cost]:
    """Return what each phase of a run cost, in order; none for a run without anything in it."""
    found = _training(run) if run.steps else _playing(run)
    looked = sum(s for line in run.validation if is_number(s := line.get("seconds")))
    if looked:
        found.append(Cost("validation", looked, None, None))
    return [cost._replace(usd=_dollars(cost, prices)) for cost in found]


def _training(run: Run) -> list[Cost]:
    """Return the phases of the steps; CPU seconds and accelerators are those that were noted."""
    programs = sum(_cpu_s(t) for t in run.trajectories)
    tokens = known_sum(_figures(run, "tokens"))
    found = []
    for name, phase in _PHASES.items():
        wall = _figures(run, f"seconds_{name}")
        pairs = zip(_figures(run, "gpus"), wall, strict=True)
        held = [None if n is None or seconds is None else n * seconds for n, seconds in pairs]
        cpu = programs if name == "execute" else known_sum(_figures(run, f"cpu_{name}"))
        found.append(
            Cost(
                phase,
                known_sum(wall),
                _hours(cpu),
                _hours(known_sum(held)),
                int(tokens) if tokens is not None and name == "generate" else None,
            )
        )
    return found


def _playing(run: Run) -> list[Cost]:
    """Return the phases of a rollout; what the machine of a served model spends is not known."""
    if not run.trajectories:
        return []
    turns = [turn for t in run.trajectories for turn in t.turns]
    written = [t.usage.completion_tokens for t in run.trajectories]
    dollars = [t.usage.usd for t in run.trajectories]
    return [
        Cost(
            "model",
            sum(turn.seconds.model for turn in turns),
            None,
            None,
            None if (tokens := known_sum(written)) is None else int(tokens),
            known_sum(dollars),
        ),
        Cost(
            "programs",
            sum(turn.seconds.execution for turn in turns),
            _hours(sum(_cpu_s(t) for t in run.trajectories)),
            0.0,
        ),
    ]


def _dollars(cost: Cost, prices: Prices) -> float | None:
    """Return what a phase cost by what the model's owner asked and by the hours it took."""
    if cost.usd is not None:
        return cost.usd
    parts = [(cost.cpu_h, prices.cpu), (cost.gpu_h, prices.gpu)]
    total = 0.0
    for hours, price in parts:
        if hours is None or (hours and price is None):
            return None
        total += hours * (price or 0.0)
    return total


def cost_table(runs: Sequence[Run], prices: Prices = UNKNOWN) -> Grid:
    """Return a row for each phase of each run, and what it is for one trajectory."""
    rows = []
    for run in runs:
        n = len(run.trajectories)
        for cost in run_costs(run, prices):
            each = None
            if cost.seconds is not None and cost.phase != "validation" and n:
                each = cost.seconds / n
            rows.append(
                [
                    run.manifest.id,
                    cost.phase,
                    "–" if cost.seconds is None else f"{cost.seconds:.1f}",
                    *(_known(one) for one in (cost.cpu_h, cost.gpu_h)),
                    "–" if cost.tokens is None else f"{cost.tokens:,}",
                    _known(cost.usd),
                    _known(each),
                ]
            )
    header = ["Run", "Phase", "Seconds", "CPU-h", "GPU-h", "Tokens", "USD", "Seconds a trajectory"]
    return Grid(
        "costs", "Costs", header, rows,
        "Seconds of a rollout are added up over episodes, which overlap; those of training are of "
        "the wall. Tokens are those that the model wrote; a dash is not known.",
    )  # fmt: skip


def _known(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _hours(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / 3600


def _cpu_s(t: Trajectory) -> float:
    return sum(turn.result.cpu_s for turn in t.turns if turn.result is not None)


def _figures(run: Run, name: str) -> list[float | None]:
    """Return a figure of every step; None where it is not."""
    values = [line.get(name) for line in run.steps]
    return [float(value) if is_number(value) else None for value in values]
