"""The gate on made-up predictions, where every figure is known."""

import numpy as np
import pytest

from sandmle.factory.gate import anchors_of, bootstrap, judge
from sandmle.factory.trial import Trial
from sandmle.metrics.registry import METRICS

N_TEST, N = 1000, 3000


def predictions(rng: np.random.Generator, truth: np.ndarray, share: float) -> dict[str, np.ndarray]:
    """Predict a share of the rows right and guess the others."""
    guess = np.array(["0", "1"], object)[rng.integers(0, 2, len(truth))]
    return {"y": np.where(rng.random(len(truth)) < share, truth, guess)}


def make_trial(shares: dict[str, tuple[str, float]], n_test: int = N_TEST, seed: int = 0) -> Trial:
    rng = np.random.default_rng(seed)
    truth = np.array(["0", "1"], object)[rng.permutation(np.arange(N) % 2)]
    metric = METRICS.get("accuracy")
    schema = metric.schema("id", "y", ("0", "1"), N).model_dump()
    made = {name: predictions(rng, truth, share) for name, (_, share) in shares.items()}
    return Trial(
        metric=metric,
        schema=schema,
        n_test=n_test,
        ids=(),
        answers={"y": truth},
        predictions=made,
        kinds={name: kind for name, (kind, _) in shares.items()},
        blind={c: {"y": np.full(N, c, dtype=object)} for c in ("0", "1")},
        sample={"y": predictions(rng, truth, 0.0)["y"][:n_test]},
    )


SOUND = {"dummy": ("dummy", 0.0), "linear": ("generic", 0.3), "best": ("reference", 0.8)}


def verdicts(trial: Trial) -> dict[str, bool]:
    return {c.name: c.passed for c in judge(trial, np.random.default_rng(0)).checks}


def test_a_sound_task_passes_with_the_thresholds_of_the_formula() -> None:
    trial = make_trial(SOUND)
    verdict = judge(trial, np.random.default_rng(0))
    assert verdict.sound, verdict.failed()
    score = {name: trial.quality(p, trial.everything) for name, p in trial.predictions.items()}
    floor = max(score["dummy"], 0.5)
    gold = max(floor + 0.8 * (score["best"] - floor), (score["linear"] + score["best"]) / 2)
    milestones = verdict.milestones
    assert milestones.gold == pytest.approx(gold, rel=1e-4)
    for name, share in (("silver", 0.75), ("bronze", 0.5), ("median", 0.25)):
        assert getattr(milestones, name) == pytest.approx(floor + share * (gold - floor), rel=1e-4)
    assert [rung.name for rung in verdict.ladder] == list(SOUND)
    assert verdict.ladder[-1].test == pytest.approx(
        trial.quality(trial.predictions["best"], trial.shipped)
    )


@pytest.mark.parametrize(
    ("shares", "failed"),
    [
        ({**SOUND, "linear": ("generic", 0.8)}, "reference_leads_in_se"),
        ({**SOUND, "linear": ("generic", 0.95)}, "generic_below_gold"),
        (
            {**SOUND, "best": ("reference", 0.05), "linear": ("generic", 0.0)},
            "milestones_apart_in_se",
        ),
    ],
)
def test_each_fault_is_named(shares: dict[str, tuple[str, float]], failed: str) -> None:
    assert verdicts(make_trial(shares))[failed] is False


def test_a_small_test_cannot_tell_milestones_apart() -> None:
    """Thirty rows: the ladder is in perfect order, and still means nothing."""
    found = verdicts(make_trial(SOUND, n_test=30))
    assert found["paper_monotone"] is True
    assert found["milestones_apart_in_se"] is False


def test_a_sample_that_earns_something_is_refused() -> None:
    trial = make_trial(SOUND)
    leaking = trial._replace(sample={"y": trial.answers["y"][:N_TEST]})
    assert verdicts(leaking)["control_nop"] is False
    assert verdicts(leaking)["paper_monotone"] is False


def test_constants_count_for_the_floor() -> None:
    """Nine of ten rows are of one class: predicting it always is the floor, not the dummy."""
    trial = make_trial(SOUND)
    skewed = np.where(np.arange(N) % 10 == 0, "1", "0").astype(object)
    rng = np.random.default_rng(1)
    trial = trial._replace(
        answers={"y": skewed},
        predictions={n: predictions(rng, skewed, share) for n, (_, share) in SOUND.items()},
    )
    verdict = judge(trial, rng)
    assert verdict.milestones.median > 0.9 or not verdict.sound
    floor = 0.9
    reference = trial.quality(trial.predictions["best"], trial.everything)
    expected = floor + 0.25 * (verdict.milestones.gold - floor)
    assert verdict.milestones.median == pytest.approx(expected, rel=1e-4)
    assert reference == pytest.approx(0.9, abs=0.02)


def test_lower_is_better_gives_falling_thresholds() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=N)
    metric = METRICS.get("rmse")
    linear, best = ({"y": truth + rng.normal(0, spread, N)} for spread in (0.7, 0.2))
    trial = Trial(
        metric=metric,
        schema=metric.schema("id", "y", (), N).model_dump(),
        n_test=N_TEST,
        ids=(),
        answers={"y": truth},
        predictions={"dummy": {"y": np.zeros(N)}, "linear": linear, "best": best},
        kinds={"dummy": "dummy", "linear": "generic", "best": "reference"},
        blind={"zero": {"y": np.zeros(N)}},
        sample={"y": rng.permutation(truth)[:N_TEST]},
    )
    verdict = judge(trial, np.random.default_rng(0))
    assert verdict.sound, verdict.failed()
    milestones = verdict.milestones
    assert milestones.direction == "min"
    assert 1 > milestones.median > milestones.bronze > milestones.silver > milestones.gold > 0.2
    assert milestones.sample_score > milestones.median


def test_a_mutation_must_bite() -> None:
    trial = make_trial(SOUND)
    rng = np.random.default_rng(5)
    truth = trial.answers["y"]
    worse = {"y": np.where(rng.random(N) < 0.85, trial.predictions["best"]["y"], truth[::-1])}
    one_row = {"y": trial.predictions["best"]["y"].copy()}
    one_row["y"][0] = "1" if one_row["y"][0] == "0" else "0"
    found = verdicts(trial._replace(ablations={"spikes": worse, "sentinel": one_row}))
    assert found["mutation_bites:spikes"] is True
    assert found["mutation_bites:sentinel"] is False


def test_standard_errors_are_those_of_a_binomial() -> None:
    """The spread of an accuracy over resampled rows is sqrt(p (1 - p) / n)."""
    trial = make_trial(SOUND)
    predicted = trial.predictions["best"]
    draws = np.concatenate(
        [bootstrap(trial, [predicted], np.random.default_rng(k))[:, 0] for k in range(10)]
    )
    p = trial.quality(predicted, trial.shipped)
    assert draws.mean() == pytest.approx(p, abs=0.002)
    assert draws.std() == pytest.approx(np.sqrt(p * (1 - p) / N_TEST), rel=0.1)


def test_the_papers_thresholds_are_its_baselines() -> None:
    shares = {
        "dummy": ("dummy", 0.0),
        "linear": ("generic", 0.3),
        "forest": ("generic", 0.2),
        "best": ("reference", 0.8),
    }
    trial = make_trial(shares)._replace(ceiling=0.93)
    verdict = judge(trial, np.random.default_rng(0), "paper")
    for milestone, rung in (("median", "dummy"), ("bronze", "linear"), ("silver", "forest")):
        expected = trial.quality(trial.predictions[rung], trial.shipped)
        assert getattr(verdict.milestones, milestone) == pytest.approx(expected)
    assert verdict.milestones.gold == 0.93
    assert not verdict.sound
    assert "paper_monotone" in verdict.failed(), "a forest below the line breaks the order"


def test_slow_scripts_are_refused() -> None:
    found = verdicts(make_trial(SOUND)._replace(seconds={"linear": 0.2, "best": 11.0}))
    assert found["scripts_too_slow"] is False


def test_generic_skill_is_the_share_of_the_way() -> None:
    trial = make_trial(SOUND)
    anchors = anchors_of(trial)
    way = (anchors.generic - anchors.floor) / (anchors.reference - anchors.floor)
    assert anchors.generic_skill == pytest.approx(way)
    assert 0.2 < way < 0.6


def test_whole_queries_are_drawn_and_each_counts() -> None:
    """One of two queries is ranked right and one is not: resamples score one of three values."""
    relevance = np.array([0.0, 1.0, 0.0, 1.0])
    score = np.array([0.0, 1.0, 1.0, 0.0])
    metric = METRICS.get("ndcg")
    trial = Trial(
        metric=metric,
        schema=metric.schema("id", "y", (), 4).model_dump(),
        n_test=4,
        ids=(),
        answers={"y": relevance, "query": np.array(["a", "a", "b", "b"], object)},
        predictions={},
        kinds={},
        blind={},
        sample={},
    )
    worse = 1 / np.log2(3)
    found = bootstrap(trial, [{"y": score}], np.random.default_rng(0))[:, 0]
    assert set(found.round(9)) == {round(v, 9) for v in (1.0, worse, (1 + worse) / 2)}
