"""What runs cost, by phase: time, processor and accelerator hours, tokens, dollars."""

from collections.abc import Sequence
from typing import NamedTuple

from sandmle.report.runs import Run
from sandmle.report.tables import Grid
from sandmle.types import Trajectory

_PHASES = {"generate": "sampling", "execute": "programs", "update": "updates", "other": "the rest"}


class Cost(NamedTuple):
    """What a phase of a run took; None is not known, never zero.

    `seconds` are those of the wall in training and validation; episodes of a rollout overlap, and
    theirs are added up. `tokens` are those that a model wrote.
    """

    phase: str
    seconds: float
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
    looked = _sum([line.get("seconds") for line in run.validation])
    if looked:
        found.append(Cost("validation", looked, None, None))
    return [cost._replace(usd=_dollars(cost, prices)) for cost in found]


def _training(run: Run) -> list[Cost]:
    """Return the phases of the steps; CPU seconds and accelerators are those that were noted."""
    programs = sum(_cpu_s(t) for t in run.trajectories)
    tokens = _sum([line.get("tokens") for line in run.steps])
    found = []
    for name, phase in _PHASES.items():
        wall = [line.get(f"seconds_{name}") for line in run.steps]
        cpu = _sum([line.get(f"cpu_{name}") for line in run.steps])
        pairs = zip(run.steps, wall, strict=True)
        held = [_product(line.get("gpus"), seconds) for line, seconds in pairs]
        found.append(
            Cost(
                phase,
                _sum(wall) or 0.0,
                _hours(programs if name == "execute" else cpu),
                _hours(_sum(held)),
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
            None if (tokens := _sum(written)) is None else int(tokens),
            _sum(dollars),
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
            each = "–" if cost.phase == "validation" or not n else f"{cost.seconds / n:.3g}"
            rows.append(
                [
                    run.manifest.id,
                    cost.phase,
                    f"{cost.seconds:.1f}",
                    *(_known(one) for one in (cost.cpu_h, cost.gpu_h)),
                    "–" if cost.tokens is None else f"{cost.tokens:,}",
                    _known(cost.usd),
                    each,
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


def _sum(values: Sequence[object]) -> float | None:
    """Return a sum, or None if one of its parts is not known."""
    numbers = [float(one) for one in values if isinstance(one, int | float)]
    return sum(numbers) if len(numbers) == len(values) else None


def _product(one: object, other: object) -> float | None:
    known = isinstance(one, int | float) and isinstance(other, int | float)
    return float(one) * float(other) if known else None  # type: ignore[arg-type]
