"""Thresholds, and the checks of soundness that a task must pass.

Three anchors are measured by running the ladder's scripts: the floor (the best of all that needs no
learning), the best generic model, and the reference. `THRESHOLDS` says what follows from them.

The anchors are taken over the shipped test rows and a calibration pool of fresh rows together. The
checks then ask whether the shipped rows alone tell the milestones apart, in standard errors of a
bootstrap over rows. The paper's own check, strict order, is one of them: `paper_monotone`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from sandmle.errors import GradingError
from sandmle.factory.targets import Columns
from sandmle.factory.trial import Trial
from sandmle.grading.check import paper_gap
from sandmle.types import MILESTONES, Check, Milestones, Rung

ThresholdRule = Literal["anchors", "paper"]

# what `_levels` computes, for people; scores are turned so that higher is better
THRESHOLDS: dict[ThresholdRule, str] = {
    "anchors": "gold = max(floor + 0.8 (reference - floor), generic + 0.5 (reference - generic)); "
    "silver, bronze, median = floor + 0.75, 0.5, 0.25 (gold - floor)",
    "paper": "gold = the rule itself on noisy labels; silver = forest; bronze = linear; "
    "median = dummy",
}
BOOTSTRAPS = 60
MIN_GAP_SE = 2.0
MIN_LEAD_SE = 3.0
MIN_SPAN_SE = 8.0
MIN_BITE_SE = 2.0
MAX_SCRIPT_S = 10.0
# checks that hold of a task whose thresholds are no more than the paper asks for
SOLVABLE = ("paper_monotone", "reference_beats_dummy", "control_oracle", "scripts_too_slow")


class Anchors(NamedTuple):
    """Best scores by what they took, turned so that higher is better; over all rows."""

    floor: float
    generic: float
    reference: float
    best_generic: str
    best_reference: str

    @property
    def generic_skill(self) -> float:
        """Return how far the best generic model comes on the way from floor to reference."""
        return (self.generic - self.floor) / max(self.reference - self.floor, 1e-12)


class Verdict(NamedTuple):
    """What the gate says of a task."""

    milestones: Milestones
    ladder: tuple[Rung, ...]
    checks: tuple[Check, ...]
    generic_skill: float

    @property
    def sound(self) -> bool:
        """Return whether every check passed."""
        return all(check.passed is not False for check in self.checks)

    def failed(self, names: Sequence[str] | None = None) -> list[str]:
        """Return the names of the checks that failed, of all or of some."""
        checks = [c for c in self.checks if names is None or c.name.split(":")[0] in names]
        return [check.name for check in checks if check.passed is False]


def judge(trial: Trial, rng: np.random.Generator, rule: ThresholdRule = "anchors") -> Verdict:
    """Derive the thresholds and make every check of soundness."""
    anchors = anchors_of(trial)
    sign = 1 if trial.metric.direction == "max" else -1
    sample = trial.quality(trial.sample, trial.shipped)
    milestones = Milestones(
        direction=trial.metric.direction,
        sample_score=rounded(sign * sample),
        **{name: rounded(sign * value) for name, value in _levels(trial, anchors, rule).items()},
    )
    exact = {name: sign * getattr(milestones, name) for name in MILESTONES}
    shipped = {name: trial.quality(p, trial.shipped) for name, p in trial.predictions.items()}
    checks = (
        *_on_shipped_rows(trial, anchors, exact, shipped, sample, paper_gap(milestones)),
        *_in_standard_errors(trial, anchors, exact, shipped, rng),
        _in_time(trial.seconds),
    )
    ladder = tuple(
        Rung(
            name=name,
            kind=trial.kinds[name],
            test=rounded(sign * shipped[name]),
            pool=rounded(sign * trial.quality(predicted, trial.pool)),
        )
        for name, predicted in trial.predictions.items()
    )
    return Verdict(milestones, ladder, checks, anchors.generic_skill)


def _in_time(seconds: Mapping[str, float]) -> Check:
    """Count slow scripts: their seconds would differ from run to run, and so would the files."""
    slow = [f"{name} took {s:.1f} s" for name, s in seconds.items() if s > MAX_SCRIPT_S]
    return at_most("scripts_too_slow", len(slow), 0, "; ".join(slow))


def anchors_of(trial: Trial) -> Anchors:
    """Measure floor, best generic model and reference over all rows."""
    quality = {name: trial.quality(p, trial.everything) for name, p in trial.predictions.items()}
    best = {
        kind: max((n for n in quality if trial.kinds[n] == kind), key=lambda n: quality[n])
        for kind in ("generic", "reference")
    }
    floor = max(trial.quality(p, trial.everything) for p in _idle(trial).values())
    return Anchors(
        floor, quality[best["generic"]], quality[best["reference"]],
        best["generic"], best["reference"],
    )  # fmt: skip


def _levels(trial: Trial, anchors: Anchors, rule: ThresholdRule) -> dict[str, float]:
    if rule == "paper":
        sign = 1 if trial.metric.direction == "max" else -1
        of = {name: trial.predictions[name] for name in ("dummy", "linear", "forest")}
        scores = [trial.quality(predicted, trial.shipped) for predicted in of.values()]
        if trial.ceiling is None:
            raise GradingError("the paper's gold, the score of the rule itself, is not known")
        return dict(zip(MILESTONES, [*scores, sign * trial.ceiling], strict=True))
    floor, generic, reference = anchors[:3]
    gold = max(floor + 0.8 * (reference - floor), generic + 0.5 * (reference - generic))
    shares = {"median": 0.25, "bronze": 0.5, "silver": 0.75, "gold": 1.0}
    return {name: floor + share * (gold - floor) for name, share in shares.items()}


def _on_shipped_rows(
    trial: Trial,
    anchors: Anchors,
    exact: Mapping[str, float],
    shipped: Mapping[str, float],
    sample: float,
    gap: float,
) -> tuple[Check, ...]:
    reference = shipped[anchors.best_reference]
    generic = max(shipped[n] for n in shipped if trial.kinds[n] == "generic")
    idle = max(trial.quality(p, trial.shipped) for p in _idle(trial).values())
    sign = 1 if trial.metric.direction == "max" else -1
    return (
        at_least("paper_monotone", gap, 0.0, strict=True),
        at_least("reference_reaches_gold", reference, exact["gold"]),
        at_least("generic_below_gold", -generic, -exact["gold"], strict=True),
        at_least("dummy_below_median", -idle, -exact["median"], strict=True),
        at_least("reference_beats_generic", reference, generic, strict=True),
        at_least("reference_beats_dummy", reference, idle, strict=True),
        at_least("control_nop", -sample, -exact["median"], strict=True),
        at_least("control_oracle", sign * trial.metric.best, exact["gold"]),
    )


def _in_standard_errors(
    trial: Trial,
    anchors: Anchors,
    exact: Mapping[str, float],
    shipped: Mapping[str, float],
    rng: np.random.Generator,
) -> tuple[Check, ...]:
    of = {
        "reference": trial.predictions[anchors.best_reference],
        "generic": trial.predictions[anchors.best_generic],
        **{f"without {name}": p for name, p in trial.ablations.items()},
    }
    draws = bootstrap(trial, list(of.values()), rng)
    spread = dict(zip(of, draws.std(axis=0), strict=True))
    lead = dict(zip(of, (draws[:, [0]] - draws).std(axis=0), strict=True))
    tiny = 1e-12  # a reference without any error has none on its score either
    single = max(spread["reference"], spread["generic"], tiny)
    pair = max(lead["generic"], tiny)
    gap = float(np.diff([exact[name] for name in MILESTONES]).min())
    reference = shipped[anchors.best_reference]
    bites = [
        at_least(
            f"mutation_bites:{name}",
            (reference - trial.quality(p, trial.shipped)) / max(lead[f"without {name}"], tiny),
            MIN_BITE_SE,
        )
        for name, p in trial.ablations.items()
    ]
    return (
        at_least("milestones_apart_in_se", gap / single, MIN_GAP_SE),
        at_least("gold_above_generic_in_se", (exact["gold"] - anchors.generic) / pair, MIN_GAP_SE),
        at_least(
            "reference_leads_in_se", (anchors.reference - anchors.generic) / pair, MIN_LEAD_SE
        ),
        at_least("learnable_in_se", (anchors.reference - anchors.floor) / single, MIN_SPAN_SE),
        *bites,
    )


def bootstrap(trial: Trial, predictions: Sequence[Columns], rng: np.random.Generator) -> Any:
    """Return the scores of some predictions on resampled shipped rows, (`BOOTSTRAPS`, k)."""
    draws = []
    for _ in range(BOOTSTRAPS):
        rows, queries = trial.resampled(rng)
        try:
            draws.append([trial.quality(predicted, rows, queries) for predicted in predictions])
        except GradingError:
            continue  # a resample may lack a class
    return np.array(draws) if draws else np.full((1, len(predictions)), np.inf)


def _idle(trial: Trial) -> dict[str, Columns]:
    dummies = {n: p for n, p in trial.predictions.items() if trial.kinds[n] == "dummy"}
    return {**trial.blind, **dummies}


def at_least(name: str, value: float, limit: float, strict: bool = False) -> Check:
    """Return a check that a figure reaches its limit, or exceeds it."""
    passed = value > limit if strict else value >= limit
    return Check(name=name, passed=bool(passed), value=rounded(value), limit=rounded(limit))


def at_most(name: str, value: float, limit: float, detail: str = "") -> Check:
    """Return a check that a figure does not exceed its limit."""
    passed = bool(value <= limit)
    return Check(
        name=name, passed=passed, value=rounded(value), limit=limit, detail="" if passed else detail
    )


def rounded(value: float) -> float:
    """Round to five significant digits: what lies below depends on the linear-algebra library."""
    return float(f"{value:.5g}")
