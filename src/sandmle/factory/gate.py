"""Thresholds, and the checks that a task must pass.

Three anchors are measured by running the ladder's scripts: the floor (the best of all that needs no
learning), the best generic model, and the reference. `THRESHOLDS` says what follows from them.

The anchors are taken over the shipped test rows and a calibration pool of fresh rows together. The
checks then ask whether the shipped rows alone tell the milestones apart, in standard errors of a
bootstrap over rows. The paper's own check, strict order, is one of them: `paper_monotone`.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sandmle.errors import GradingError
from sandmle.grading.check import paper_gap
from sandmle.metrics.registry import Metric
from sandmle.types import MILESTONES, Check, Milestones, Rung

Columns = Mapping[str, NDArray[Any]]
Kind = Literal["dummy", "generic", "reference"]

# what `_levels` computes, for people; scores are turned so that higher is better
THRESHOLDS = (
    "gold = max(floor + 0.8 (reference - floor), generic + 0.5 (reference - generic)); "
    "silver, bronze, median = floor + 0.75, 0.5, 0.25 (gold - floor)"
)
_BOOTSTRAPS = 100
_MIN_GAP_SE = 2.0
_MIN_LEAD_SE = 3.0


class Trial(NamedTuple):
    """Everything that was predicted for one task.

    Rows are the `n_test` shipped ones, then those of the pool. `predictions` has one entry for each
    script of the ladder (its kind in `kinds`); `constants` are the submissions that need no data.
    `sample` is the sample submission, for the shipped rows only.
    """

    metric: Metric
    schema: Mapping[str, Any]
    n_test: int
    answers: Columns
    predictions: Mapping[str, Columns]
    kinds: Mapping[str, Kind]
    constants: Mapping[str, Columns]
    sample: Columns

    def quality(self, predicted: Columns, rows: NDArray[np.int64]) -> float:
        """Return the score on some rows, negated where lower is better."""
        answers = {name: values[rows] for name, values in self.answers.items()}
        chosen = {name: values[rows] for name, values in predicted.items()}
        value = self.metric(*self.metric.kind.arrays(answers, chosen, self.schema))
        return value if self.metric.direction == "max" else -value

    @property
    def shipped(self) -> NDArray[np.int64]:
        """Return the positions of the shipped rows."""
        return np.arange(self.n_test)

    @property
    def everything(self) -> NDArray[np.int64]:
        """Return the positions of all rows."""
        return np.arange(len(next(iter(self.answers.values()))))


class Verdict(NamedTuple):
    """What the gate says of a task."""

    milestones: Milestones
    ladder: tuple[Rung, ...]
    checks: tuple[Check, ...]

    @property
    def accepted(self) -> bool:
        """Return whether every check passed."""
        return all(check.passed for check in self.checks)


def judge(trial: Trial, rng: np.random.Generator) -> Verdict:
    """Derive the thresholds and make every check."""
    quality = {name: trial.quality(p, trial.everything) for name, p in trial.predictions.items()}
    shipped = {name: trial.quality(p, trial.shipped) for name, p in trial.predictions.items()}
    best = {kind: _best(trial, quality, kind) for kind in ("generic", "reference")}
    idle = {**trial.constants, **_of_kind(trial, "dummy")}
    floor = max(trial.quality(p, trial.everything) for p in idle.values())
    generic, reference = quality[best["generic"]], quality[best["reference"]]
    levels = _levels(floor, generic, reference)
    errors = _errors(trial, best["reference"], best["generic"], rng)
    sample = trial.quality(trial.sample, trial.shipped)
    sign = 1 if trial.metric.direction == "max" else -1
    milestones = Milestones(
        direction=trial.metric.direction,
        sample_score=_round(sign * sample),
        **{name: _round(sign * value) for name, value in levels.items()},
    )
    exact = {name: sign * getattr(milestones, name) for name in MILESTONES}
    gaps = np.diff([exact[name] for name in MILESTONES])
    top_generic = max(shipped[name] for name in _of_kind(trial, "generic"))
    top_idle = max(trial.quality(p, trial.shipped) for p in idle.values())
    span = errors.single
    checks = (
        _at_least("paper_monotone", paper_gap(milestones), 0.0, strict=True),
        _at_least("reference_reaches_gold", shipped[best["reference"]], exact["gold"]),
        _at_least("generic_below_gold", -top_generic, -exact["gold"], strict=True),
        _at_least("dummy_below_median", -top_idle, -exact["median"], strict=True),
        _at_least("milestones_apart_in_se", float(gaps.min()) / span, _MIN_GAP_SE),
        _at_least("gold_above_generic_in_se", (exact["gold"] - generic) / errors.pair, _MIN_GAP_SE),
        _at_least("reference_leads_in_se", (reference - generic) / errors.pair, _MIN_LEAD_SE),
        _at_least("sample_worth_nothing", -sample, -exact["median"], strict=True),
    )
    ladder = tuple(
        Rung(
            name=name,
            kind=trial.kinds[name],
            test=_round(sign * shipped[name]),
            pool=_round(sign * trial.quality(predicted, trial.everything[trial.n_test :])),
        )
        for name, predicted in trial.predictions.items()
    )
    return Verdict(milestones, ladder, checks)


def _levels(floor: float, generic: float, reference: float) -> dict[str, float]:
    gold = max(floor + 0.8 * (reference - floor), generic + 0.5 * (reference - generic))
    shares = {"median": 0.25, "bronze": 0.5, "silver": 0.75, "gold": 1.0}
    return {name: floor + share * (gold - floor) for name, share in shares.items()}


class _Errors(NamedTuple):
    """Standard errors on the shipped rows: of one score, and of a difference of two."""

    single: float
    pair: float


def _errors(trial: Trial, reference: str, generic: str, rng: np.random.Generator) -> _Errors:
    pairs = []
    for _ in range(_BOOTSTRAPS):
        rows = rng.integers(0, trial.n_test, trial.n_test)
        try:
            pairs.append(
                [trial.quality(trial.predictions[name], rows) for name in (reference, generic)]
            )
        except GradingError:
            continue  # a resample may lack a class
    draws = np.array(pairs)
    tiny = 1e-12  # a reference without any error has none on its score either
    single = max(float(draws[:, 0].std()), float(draws[:, 1].std()), tiny)
    return _Errors(single, max(float((draws[:, 0] - draws[:, 1]).std()), tiny))


def _of_kind(trial: Trial, kind: Kind) -> dict[str, Columns]:
    return {name: p for name, p in trial.predictions.items() if trial.kinds[name] == kind}


def _best(trial: Trial, quality: Mapping[str, float], kind: Any) -> str:
    return max(_of_kind(trial, kind), key=lambda name: quality[name])


def _at_least(name: str, value: float, limit: float, strict: bool = False) -> Check:
    passed = value > limit if strict else value >= limit
    return Check(name=name, passed=passed, value=_round(value), limit=_round(limit))


def _round(value: float) -> float:
    """Round to five significant digits: what lies below depends on the linear-algebra library."""
    return float(f"{value:.5g}")
