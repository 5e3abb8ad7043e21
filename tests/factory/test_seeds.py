"""The catalogue of seeds, what may be chosen from it, and structures of people's own tables."""

import json
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sandmle.errors import UsageError
from sandmle.factory.build import draw
from sandmle.factory.family import FAMILIES
from sandmle.factory.mix import Mix, Seed, read_seeds, stratum
from sandmle.factory.plan import plan
from sandmle.factory.seeds.catalogue import as_seed, catalogue, competitions
from sandmle.factory.seeds.choose import add_seed, choose_seeds, seed_of_folder, words_of
from sandmle.factory.seeds.nearness import alike, families_like, kinds_of, shared
from sandmle.factory.seeds.profile import Roles, profile
from sandmle.factory.seeds.words import content_words, surviving
from sandmle.files import to_json
from sandmle.types import TaskDNA

LITE = "aerial-cactus-identification"


def text_of(dna: TaskDNA) -> str:
    return to_json(dna.model_dump(mode="json"))


def test_the_60_seeds_and_the_22_that_results_are_reported_on() -> None:
    splits = [one.split for one in competitions()]
    counts = {split: splits.count(split) for split in ("medium", "high", "dev", "low")}
    assert counts == {"medium": 38, "high": 15, "dev": 7, "low": 22}
    assert len({one.id for one in competitions()}) == 82
    assert len(catalogue()) == 60
    assert not any(one.evaluation_only for one in catalogue())


def test_every_seed_but_one_has_a_metric_of_ours() -> None:
    without = [one.id for one in competitions() if one.metric is None]
    assert without == ["3d-object-detection-for-autonomous-vehicles"]
    facts = {one.id: (one.metric.name, one.direction) for one in competitions() if one.metric}
    assert facts["iwildcam-2019-fgvc6"] == ("macro_f1", "max")
    assert facts["inaturalist-2019-fgvc6"] == ("error_rate", "min")
    assert facts["ventilator-pressure-prediction"] == ("masked_mae", "min")


@pytest.mark.parametrize("one", competitions(), ids=lambda one: one.id)
def test_no_structure_tells_what_it_is_about(one) -> None:
    assert one.words, "there is nothing to look for"
    assert surviving(one.words, text_of(one.dna)) == []
    assert surviving(one.words, one.title), "the title itself must be found out"


def test_words_are_found_in_names_and_in_the_plural() -> None:
    words = content_words(["iWildCam 2019 - FGVC6", "volcanic_ash_level", "toxicity"])
    assert surviving(words, "a Volcanic thing; ToxicityScore; wild-life") == [
        "toxicity", "volcanic", "wild",
    ]  # fmt: skip
    assert surviving(content_words(["species of plants"]), "a plant, one species") == [
        "plant", "specy",
    ]  # fmt: skip
    assert surviving(content_words(["the image label and target class"]), "an image label") == []


def test_those_for_evaluation_are_refused_unless_forced() -> None:
    with pytest.raises(UsageError, match="one of the 22 competitions"):
        choose_seeds(LITE)
    assert choose_seeds(LITE, force=True)[0].name == LITE
    assert LITE not in {seed.name for seed in choose_seeds("mle-bench")}
    with pytest.raises(UsageError, match="did you mean 'spaceship-titanic'"):
        as_seed("spaceship-titanik")


def test_a_seed_chooses_families_that_are_like_it() -> None:
    mix = Mix(seeds=choose_seeds("iwildcam-2019-fgvc6,spaceship-titanic")).resolve()
    for slot in range(8):
        found = stratum(mix, 0, slot)
        assert found.seed is not None
        assert FAMILIES.get(found.family).modality == found.seed.dna.modality
    able = [one for one in catalogue() if any(f.supports(one.dna) for f in FAMILIES)]
    assert len(able) == 45
    everything = Mix(seeds=tuple(one.seed for one in able)).resolve()
    for slot, one in enumerate(able):
        found = stratum(everything, 0, slot)
        assert found.seed == one.seed
        sort = FAMILIES.get(found.family)
        assert (sort.modality, sort.task_type) == (one.modality, one.task_type)


def test_a_folder_becomes_a_seed(tmp_path: Path) -> None:
    known = tmp_path / "spaceship-titanic"
    known.mkdir()
    assert seed_of_folder(known, None).dna == as_seed("spaceship-titanic").dna
    (tmp_path / LITE).mkdir()
    with pytest.raises(UsageError, match="--force"):
        seed_of_folder(tmp_path / LITE, None)
    own = tmp_path / "pumps"
    (own / "public").mkdir(parents=True)
    with pytest.raises(UsageError, match="has no description"):
        seed_of_folder(own, None)
    (own / "public" / "description.md").write_text("About pumps.")
    with pytest.raises(UsageError, match=r"no train\.csv"):
        seed_of_folder(own, None)
    rows = "".join(f"r{i},{i * i % 17},{'ab'[i % 2]}\n" for i in range(40))
    (own / "public" / "train.csv").write_text(f"row,flow,state\n{rows}")
    with pytest.raises(UsageError, match="not clear"):
        seed_of_folder(own, None)
    (own / "public" / "sample_submission.csv").write_text("row,state\nr1,a\n")
    seed = seed_of_folder(own, None)
    assert (seed.name, seed.dna.target_info.cardinality, len(seed.dna.features)) == ("pumps", 2, 1)
    assert words_of(seed) == {"pump"}
    assert add_seed(seed, tmp_path / "seeds.json") == 1
    assert read_seeds(tmp_path / "seeds.json") == (seed,)
    with pytest.raises(UsageError, match="has a seed 'pumps' already"):
        add_seed(seed, tmp_path / "seeds.json")


# --- from data ------------------------------------------------------------------------------------


CANARIES = ("zebrafinch", "qxcolumnq", "Wolverhampton", "31337", "271828", "hush hush")


def canary_table(path: Path) -> Path:
    """Write a table whose every name, category and odd value can be recognised."""
    rng = np.random.default_rng(0)
    n = 200
    frame = pd.DataFrame(
        {
            "qxcolumnq_id": [f"zebrafinch-{i}" for i in range(n)],
            "qxcolumnq_amount": rng.lognormal(size=n).round(3),
            "qxcolumnq_town": rng.choice(["Wolverhampton", "zebrafinch town", "x"], n),
            "qxcolumnq_text": [
                f"hush hush says zebrafinch {i} to all the others" for i in range(n)
            ],
            "qxcolumnq_when": pd.date_range("2021-03-01", periods=n).strftime("%Y-%m-%d"),
            "qxcolumnq_group": rng.choice(["zebrafinch a", "zebrafinch b"], n),
            "qxcolumnq_target": rng.choice(["zebrafinch yes", "zebrafinch no"], n, p=[0.8, 0.2]),
        }
    )
    frame.loc[7, "qxcolumnq_amount"] = 31337.271828
    frame.loc[rng.random(n) < 0.3, "qxcolumnq_town"] = None
    frame.to_csv(path, index=False)
    return path


def test_nothing_of_the_data_is_in_its_structure(tmp_path: Path) -> None:
    path = canary_table(tmp_path / "qxcolumnq.csv")
    roles = Roles("qxcolumnq_target", "qxcolumnq_id", "qxcolumnq_group", "qxcolumnq_when")
    dna = profile(path, roles)
    said = text_of(dna)
    assert not [c for c in CANARIES if c in said]
    assert "2021" not in said
    shown = text_of(profile(path, roles, keep_names=True))
    assert "qxcolumnq_town" in shown
    assert "zebrafinch yes" in shown
    assert dna.dataset_stats.is_imbalanced
    assert {"group", "time", "gaps"} <= dna.extra.keys()
    assert abs(dna.extra["columns"]["feat_1"]["missing"] - 0.3) < 0.07
    assert dna.extra["time"]["even_steps"] == 1.0
    assert [c["kind"] for c in dna.extra["columns"].values()] == [
        "number", "category", "text", "time",
    ]  # fmt: skip


def test_one_secret_number_moves_no_figure(tmp_path: Path) -> None:
    """A value that one row has must not be read off the structure by comparing two tables."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.normal(size=300).round(4), "y": rng.normal(size=300).round(4)})
    told = []
    for secret in (5.0, 31337.25, 9e9):
        frame.loc[3, "a"] = secret
        frame.to_csv(tmp_path / "t.csv", index=False)
        told.append(profile(tmp_path / "t.csv", Roles("y")))
    assert told[0] == told[1] == told[2]


def test_gaps_that_tell_are_told(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    a, b, y = rng.normal(size=400), rng.normal(size=400), rng.integers(0, 2, 400)
    patterns = {
        "none": np.zeros((400, 2), bool),
        "at random": rng.random((400, 2)) < 0.2,
        "columns miss together": np.repeat(rng.random((400, 1)) < 0.2, 2, axis=1),
        "tells of the target": np.repeat((y == 1)[:, None], 2, axis=1)
        & (rng.random((400, 2)) < 0.4),
    }
    for pattern, holes in patterns.items():
        frame = pd.DataFrame({"a": np.where(holes[:, 0], np.nan, a), "b": b, "y": y})
        frame.loc[holes[:, 1], "b"] = np.nan
        frame.to_csv(tmp_path / "t.csv", index=False)
        assert profile(tmp_path / "t.csv", Roles("y")).extra["gaps"]["pattern"] == pattern


def test_pictures_and_sounds_beside_a_table(tmp_path: Path) -> None:
    import wave

    from PIL import Image

    for i in range(12):
        Image.new("RGB", (48, 32)).save(tmp_path / f"zebra{i}.png")
        with wave.open(str(tmp_path / f"zebra{i}.wav"), "wb") as file:
            file.setparams((1, 2, 8000, 0, "NONE", "NONE"))
            file.writeframes(bytes(2 * 4000))
    names = "".join(f"zebra{i}.png,{'uv'[i % 2]}\n" for i in range(12))
    (tmp_path / "labels.csv").write_text(f"picture,kind\n{names}")
    dna = profile(tmp_path, Roles("kind"))
    assert dna.modality == "image"
    assert dna.features[0].abstract == "colour picture, 48 by 32 pixels"
    assert "zebra" not in text_of(dna)
    sounds = "".join(f"zebra{i}.wav,{i}.5\n" for i in range(12))
    (tmp_path / "labels.csv").write_text(f"clip,loudness\n{sounds}")
    dna = profile(tmp_path, Roles("loudness"))
    assert (dna.modality, dna.task_type) == ("audio", "regression")
    assert dna.features[0].abstract == "recording of about 0.5 seconds at 8000 Hz"


@pytest.mark.parametrize(
    ("text", "roles", "message"),
    [
        ("", Roles("y"), "the file is empty"),
        ("a,y\n", Roles("y"), "no rows"),
        ("a,y\n" + "1,2\n" * 20, Roles("y"), "every row has the same target"),
        ("a,y\n" + "1,\n" * 20, Roles("y"), "0 rows have a target"),
        ("a,why\n" + "1,2\n" * 20, Roles("y"), "--target y: no such column"),
        ("a,y\n1,2\n" * 20, Roles("y", "a", "a"), "two roles"),
        ("a,y\n1,2,3\n", Roles("y"), "3 fields"),
    ],
)
def test_what_cannot_be_profiled_says_why(
    tmp_path: Path, text: str, roles: Roles, message: str
) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(UsageError, match=message):
        profile(tmp_path / "t.csv", roles)


def shipped(name: str, folder: Path) -> Path:
    """Write a real data set that a package ships as CSV, and return the file."""
    from sklearn import datasets

    path = folder / f"{name}.csv"
    if name in ("msft", "Stocks"):
        import matplotlib

        text = Path(matplotlib.get_data_path(), "sample_data", f"{name}.csv").read_text()
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        path.write_text("\n".join(lines) + "\n")
    elif name in ("titanic", "census"):
        number, file = {"titanic": (40945, "16826755"), "census": (1119, "54002")}[name]
        where = resources.files(f"sklearn.datasets.tests.data.openml.id_{number}")
        with resources.as_file(where.joinpath(f"data-v1-dl-{file}.arff.gz")) as arff:
            arff_to_csv(arff, path)
    else:
        getattr(datasets, f"load_{name}")(as_frame=True).frame.to_csv(path, index=False)
    return path


def arff_to_csv(source: Path, path: Path) -> None:
    import gzip

    lines = gzip.decompress(source.read_bytes()).decode().splitlines()
    start = next(i for i, line in enumerate(lines) if line.lower().startswith("@data"))
    names = [n.split()[1].strip("'\"") for n in lines[:start] if n.lower().startswith("@attribute")]
    rows = [line for line in lines[start + 1 :] if line and not line.startswith("%")]
    frame = pd.read_csv(
        pd.io.common.StringIO("\n".join(rows)),
        names=names, na_values="?", quotechar="'" if "'" in rows[0] else '"',
        escapechar="\\", skipinitialspace=True,
    )  # fmt: skip
    frame.to_csv(path, index=False)


# name: target, rows, features, type of task, classes, kinds that must be there
REAL = {
    "iris": ("target", 150, 4, "classification", 3, {"number"}),
    "wine": ("target", 178, 13, "classification", 3, {"number", "count"}),
    "breast_cancer": ("target", 569, 30, "classification", 2, {"number"}),
    "digits": ("target", 1797, 64, "classification", 10, {"count", "constant"}),
    "diabetes": ("target", 442, 10, "regression", None, {"number", "flag"}),
    "msft": ("Close", None, 6, "regression", None, {"time", "count"}),
    "Stocks": ("IBM", None, 10, "regression", None, {"time", "number"}),
    "linnerud": ("Weight", 20, 5, "regression", None, {"count"}),
    "titanic": ("survived", None, 13, "classification", 2, {"number", "category", "flag"}),
    "census": ("class", None, None, "classification", 2, {"count", "category"}),
}


@pytest.mark.parametrize("name", REAL)
def test_real_data(name: str, tmp_path: Path) -> None:
    target, rows, features, task_type, classes, kinds = REAL[name]
    path = shipped(name, tmp_path)
    header = path.read_text().splitlines()[0].split(",")
    target = next((n for n in header if n.lower() == target.lower()), target)
    dna = profile(path, Roles(target))
    assert (dna.task_type, dna.target_info.cardinality) == (task_type, classes)
    assert rows in (None, dna.dataset_stats.sample_count)
    assert features in (None, len(dna.features))
    assert kinds <= {column["kind"] for column in dna.extra["columns"].values()}
    said = json.dumps(dna.model_dump(mode="json"))
    names = [n for n in header if len(n) > 5 and n not in ("target", "number")]
    assert not [n for n in names if n in said], "a name of a column is told"
    assert any(FAMILIES.get(f).supports(dna) for f in FAMILIES.names())


@pytest.mark.parametrize("name", ["breast_cancer", "titanic", "diabetes"])
def test_tables_drawn_after_a_real_one_have_its_classes_and_kinds(
    name: str, tmp_path: Path
) -> None:
    path = shipped(name, tmp_path)
    header = path.read_text().splitlines()[0].split(",")
    target = next(n for n in header if n.lower() == REAL[name][0])
    dna = profile(path, Roles(target))
    mix = Mix(seeds=(Seed(name=name, dna=dna),)).resolve()
    overlaps = []
    for slot in range(6):
        one = plan(0, slot, 0, stratum(mix, 0, slot))
        story = one.recipe.story
        table = tmp_path / f"{slot}.csv"
        table.write_bytes(draw(one.recipe, one.seed, one.n_train, 1).train)
        made = profile(table, Roles(story.target.name, story.id_column))
        assert (made.task_type, made.modality) == (dna.task_type, dna.modality)
        assert made.target_info.cardinality == dna.target_info.cardinality
        overlaps.append(shared(kinds_of(dna), kinds_of(made)))
    assert np.mean(overlaps) > 0.5  # the bound of docs/seeds.md, in the mean as there


@pytest.mark.parametrize("name", ["iris", "titanic", "msft"])
def test_the_nearest_families_come_first(name: str, tmp_path: Path) -> None:
    path = shipped(name, tmp_path)
    header = path.read_text().splitlines()[0].split(",")
    target = next(n for n in header if n.lower() == REAL[name][0].lower())
    dna = profile(path, Roles(target))
    names = families_like(dna)
    assert set(names) == {n for n in FAMILIES.names() if FAMILIES.get(n).supports(dna)}
    assert names == families_like(dna.model_copy(update={"extra": dict(dna.extra)}))
    assert sum(kinds_of(dna).values()) == pytest.approx(1.0)
    assert alike(dna, dna).whole == 1.0
