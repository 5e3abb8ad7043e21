"""What a corpus is made of: strata by slot, quotas, and wishes that cannot be."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandmle.errors import UsageError
from sandmle.factory.family import FAMILIES, LEVELS
from sandmle.factory.mix import Mix, Seed, read_mix, read_seeds, stratum
from sandmle.factory.plan import plan, spec_of
from sandmle.types import DatasetStats, TargetInfo, TaskDNA

NAMES = FAMILIES.names()


def dna(task_type: str = "classification", classes: int | None = 2) -> TaskDNA:
    return TaskDNA(
        modality="tabular",
        task_type=task_type,
        dataset_stats=DatasetStats(sample_count=1000, is_imbalanced=False),
        target_info=TargetInfo(type="label", cardinality=classes, distribution="balanced"),
        features=(),
    )


@given(st.integers(0, 10**9), st.integers(1, 200))
def test_any_run_of_slots_is_balanced(seed: int, start: int) -> None:
    mix = Mix().resolve()
    n = len(NAMES)
    counts = Counter(stratum(mix, seed, slot).family for slot in range(start, start + 3 * n))
    assert counts == dict.fromkeys(NAMES, 3)


@given(
    st.dictionaries(st.sampled_from(NAMES), st.integers(0, 9), min_size=1),
    st.integers(0, 99),
)
def test_weights_are_kept_within_one_slot(weights: dict[str, int], seed: int) -> None:
    if not any(weights.values()):
        with pytest.raises(UsageError, match="no family is left"):
            Mix(families=weights).resolve()
        return
    mix = Mix(families=weights).resolve()
    n, total = 60, sum(weights.values())
    counts = Counter(stratum(mix, seed, slot).family for slot in range(n))
    for name, weight in weights.items():
        assert abs(counts[name] - n * weight / total) < 2


def test_the_papers_proportions_are_kept() -> None:
    """Those of its section 5.2, within what the issue allows; `other` is all the rest."""
    mix = read_mix("paper").resolve()
    found = [stratum(mix, 0, slot) for slot in range(912)]
    sorts = [FAMILIES.get(one.family) for one in found]
    usual = ("classification", "regression", "ranking")
    told = {
        "modality": (Counter(sort.modality for sort in sorts), 2, {
            "image": 48.7, "tabular": 24.8, "text": 10.4, "multimodal": 10.3, "graph": 3.5,
            "audio": 2.3,
        }),
        "task type": (
            Counter(s.task_type if s.task_type in usual else "other" for s in sorts), 2,
            {"classification": 56.2, "regression": 14.5, "ranking": 2.9, "other": 26.4},
        ),
        "domain": (Counter(one.domain for one in found), 5, {
            "healthcare": 25.0, "retail": 18.2, "manufacturing": 14.3, "IT": 13.2,
        }),
    }  # fmt: skip
    for counts, bound, shares in told.values():
        for name, share in shares.items():
            assert abs(100 * counts[name] / 912 - share) < bound, name


def test_the_mixes_that_are_shipped_have_names() -> None:
    assert read_mix("uniform") == Mix()
    with pytest.raises(UsageError, match=r"--mix papr: neither a file nor .* 'paper'"):
        read_mix("papr")


def test_options_leave_only_what_is_wanted() -> None:
    mix = Mix(task_types=("regression",), levels=(2, 5), metrics=("mae", "rmse")).resolve()
    found = [stratum(mix, 0, slot) for slot in range(60)]
    assert {one.level for one in found} == {2, 5}
    assert {one.metric for one in found} == {"mae", "rmse"}
    assert all(FAMILIES.get(one.family).task_type == "regression" for one in found)


def test_seeds_choose_families_that_support_them() -> None:
    seeds = (Seed(name="titanic", dna=dna()), Seed(name="prices", dna=dna("regression", None)))
    mix = Mix(seeds=seeds).resolve()
    found = [stratum(mix, 0, slot) for slot in range(40)]
    assert [one.seed.name for one in found[:4]] == ["titanic", "prices"] * 2
    assert all(FAMILIES.get(one.family).supports(one.seed.dna) for one in found)
    assert len({one.family for one in found}) > 3
    spec = spec_of(plan(0, 0, 0, found[0]), "")
    assert spec.provenance.seed_task == "titanic"


@pytest.mark.parametrize(
    ("mix", "message"),
    [
        (Mix(families={"interactions": 1}), "did you mean 'interaction'"),
        (Mix(families={NAMES[0]: -1}), "not a number from 0 up"),
        (Mix(modalities=("tabula",)), "did you mean 'tabular'"),
        (Mix(task_types=("regresion",)), "did you mean 'regression'"),
        (Mix(metrics=("accurcy",)), "did you mean 'accuracy'"),
        (Mix(levels=(LEVELS + 1,)), "levels go from 1 to 5"),
        (Mix(families={NAMES[0]: 1}, holdout=(NAMES[1],)), "not among those that are drawn"),
        (Mix(task_types=("regression",), metrics=("roc_auc",)), "no family is left"),
        (Mix(seeds=(Seed(name="cat", dna=dna("segmentation")),)), "seed 'cat': no family"),
    ],
)
def test_impossible_wishes_are_told(mix: Mix, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        mix.resolve()


def test_files_are_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "mix.toml"
    path.write_text(f"levels = [1, 2]\n[families]\n{NAMES[0]} = 2\n{NAMES[1]} = 1\n")
    assert read_mix(str(path)) == Mix(levels=(1, 2), families={NAMES[0]: 2, NAMES[1]: 1})
    for text, message in (
        ("families = ", "not TOML"),
        ("famlies = 3", "known: families"),
        ("levels = 'x'", "levels"),
    ):
        path.write_text(text)
        with pytest.raises(UsageError, match=message):
            read_mix(str(path))
    with pytest.raises(UsageError, match="cannot be read"):
        read_mix(str(tmp_path / "absent.toml"))
    seeds = tmp_path / "seeds.json"
    seeds.write_text(json.dumps({"seeds": [{"name": "a", "dna": dna().model_dump()}]}))
    assert read_seeds(seeds) == (Seed(name="a", dna=dna()),)
    for text in ("", "[]", '{"seeds": []}', '{"seeds": [{"name": "a"}]}'):
        seeds.write_text(text)
        with pytest.raises(UsageError, match=r"seeds\.json: "):
            read_seeds(seeds)
