"""How near generated tables come to real ones that only their structure is known of.

    python benchmarks/seeds_from_data.py [--tables 6] [--json FILE]

Profiles ten real data sets that ship inside scikit-learn and matplotlib (`seeds from-data`), draws
tables from each structure, and profiles these in turn, by the same code. Two ways are compared:
`procedural` takes the families in turn, as `generate --seeds` does, `nearest` those that are most
like the structure, as `--factory hybrid` does. Tables are taken as they are drawn: the gate, which
comes after, looks at none of these figures.
"""

import argparse
import gzip
import io
import tempfile
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from sandmle.factory.build import draw, member
from sandmle.factory.family import FAMILIES
from sandmle.factory.mix import Mix, Seed, Stratum, stratum
from sandmle.factory.plan import plan
from sandmle.factory.seeds.nearness import families_like, kinds_of, shared
from sandmle.factory.seeds.profile import Roles, profile
from sandmle.files import to_json, write_atomic
from sandmle.types import TaskDNA

REAL = {
    "iris": "target", "wine": "target", "breast_cancer": "target", "digits": "target",
    "diabetes": "target", "linnerud": "Weight", "msft": "Close", "Stocks": "IBM",
    "titanic": "survived", "census": "class",
}  # fmt: skip
_OPENML = {"titanic": ("40945", "16826755"), "census": ("1119", "54002")}
_WIDE = 3  # as many families as a hybrid corpus takes in turn

# within these a figure counts as met
LEAST_KINDS = 0.5  # the share of columns whose kind both have
MOST_RATIO = 2.0  # of two numbers of classes, or of values of a category
MOST_MISSING = 0.1  # difference in the share of empty cells
MOST_LARGEST = 0.15  # difference in the share of the largest class


class Facts(NamedTuple):
    """A table in figures; None where there are no classes, or no categories."""

    kinds: dict[str, float]
    classes: float | None
    values: float | None
    missing: float
    largest: float | None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=6, help="drawn from each structure")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    print(
        f"{'data':<14}{'way':<12}{'kinds':>7}{'classes':>12}{'values':>12}{'missing':>14}", end=""
    )
    print(f"{'largest':>14}   missed")
    for name, target in REAL.items():
        with tempfile.TemporaryDirectory() as folder:
            path = shipped(name, Path(folder))
            header = path.read_text("utf-8").splitlines()[0].split(",")
            column = next((n for n in header if n.lower() == target.lower()), target)
            dna = profile(path, Roles(column))
        real = facts_of(dna)
        for way in ("procedural", "nearest"):
            made = [drawn(Seed(name=name, dna=dna), slot, way) for slot in range(options.tables)]
            rows.append(compared(name, way, real, made))
            print(line(rows[-1]), flush=True)
    for way in ("procedural", "nearest"):
        told = [row["met"] for row in rows if row["way"] == way]
        names = ("kinds", "classes", "values", "missing", "largest")
        counts = {n: [met[n] for met in told if met[n] is not None] for n in names}
        print(way, {name: f"{sum(found)} of {len(found)}" for name, found in counts.items()})
    if options.json:
        write_atomic(options.json, to_json(rows, indent=2) + "\n")


def drawn(seed: Seed, slot: int, way: str) -> Facts:
    """Draw one table after a seed, and profile it."""
    where = stratum(Mix(seeds=(seed,)).resolve(), 0, slot)
    if way == "nearest":
        names = families_like(seed.dna)[:_WIDE]
        family = names[slot % len(names)]
        metrics = FAMILIES.get(family).metrics
        where = Stratum(family, metrics[slot % len(metrics)], where.level, seed)
    one = plan(0, slot, 0, where)
    story = one.recipe.story
    rows = draw(one.recipe, one.seed, one.n_train, 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "train.csv")
        path.write_bytes(rows.train)
        for name, content in rows.assets.items():
            file = Path(folder, name)
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(content)
        dna = profile(path, Roles(story.target.columns[0], story.id_column))
    assert member(one.recipe).modality == seed.dna.modality
    return facts_of(dna)


def facts_of(dna: TaskDNA) -> Facts:
    """Return what is compared of a structure."""
    columns = list(dna.extra["columns"].values())
    values = [c["distinct"] for c in columns if c["kind"] == "category"]
    shares = dna.extra["target"].get("shares")
    return Facts(
        kinds=kinds_of(dna),
        classes=dna.target_info.cardinality,
        values=float(np.median(values)) if values else None,
        missing=float(np.mean([c["missing"] for c in columns])),
        largest=shares[0] if shares else None,
    )


def compared(name: str, way: str, real: Facts, made: list[Facts]) -> dict:
    """Return real figures, the means of the drawn ones, and which bounds are met."""
    kinds = float(np.mean([shared(real.kinds, one.kinds) for one in made]))
    mean = {
        field: mean_of([getattr(one, field) for one in made])
        for field in ("classes", "values", "missing", "largest")
    }
    met = {
        "kinds": kinds >= LEAST_KINDS,
        "classes": near(real.classes, mean["classes"]),
        "values": near(real.values, mean["values"]),
        "missing": abs(real.missing - mean["missing"]) <= MOST_MISSING,
        "largest": None
        if real.largest is None
        else mean["largest"] is not None and abs(real.largest - mean["largest"]) <= MOST_LARGEST,
    }
    facts = real._asdict() | {"kinds": {k: round(v, 3) for k, v in real.kinds.items()}}
    return {"data": name, "way": way, "kinds": kinds, "real": facts, "made": mean, "met": met}


def near(real: float | None, made: float | None) -> bool | None:
    """Return whether two counts are about as large; None where the real table has none."""
    if real is None:
        return None
    return made is not None and max(real, made) <= MOST_RATIO * min(real, made)


def mean_of(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(float(np.mean(known)), 3) if known else None


def line(row: dict) -> str:
    cells = [
        f"{told(row['real'][n])} {told(row['made'][n])}"
        for n in ("classes", "values", "missing", "largest")
    ]
    missed = ", ".join(name for name, met in row["met"].items() if met is False) or "none"
    widths = (12, 12, 14, 14)
    shown = "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
    return f"{row['data']:<14}{row['way']:<12}{row['kinds']:>7.2f}{shown}   {missed}"


def told(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def shipped(name: str, folder: Path) -> Path:
    """Write a real data set that a package ships as CSV, and return the file."""
    from sklearn import datasets

    path = folder / f"{name}.csv"
    if name in ("msft", "Stocks"):
        import matplotlib

        text = Path(matplotlib.get_data_path(), "sample_data", f"{name}.csv").read_text("utf-8")
        lines = [one for one in text.splitlines() if one and not one.startswith("#")]
        path.write_text("\n".join(lines) + "\n", "utf-8")
    elif name in _OPENML:
        number, file = _OPENML[name]
        place = resources.files(f"sklearn.datasets.tests.data.openml.id_{number}")
        arff = place.joinpath(f"data-v1-dl-{file}.arff.gz").read_bytes()
        read_arff(gzip.decompress(arff).decode()).to_csv(path, index=False)
    else:
        getattr(datasets, f"load_{name}")(as_frame=True).frame.to_csv(path, index=False)
    return path


def read_arff(text: str) -> pd.DataFrame:
    """Read the rows of an ARFF file as a frame."""
    lines = text.splitlines()
    start = next(i for i, one in enumerate(lines) if one.lower().startswith("@data"))
    heads = [one for one in lines[:start] if one.lower().startswith("@attribute")]
    rows = [one for one in lines[start + 1 :] if one and not one.startswith("%")]
    return pd.read_csv(
        io.StringIO("\n".join(rows)),
        names=[one.split()[1].strip("'\"") for one in heads],
        na_values="?", quotechar="'" if "'" in rows[0] else '"',
        escapechar="\\", skipinitialspace=True,
    )  # fmt: skip


if __name__ == "__main__":
    main()
