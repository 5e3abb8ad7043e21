"""`seeds from-data`: a table of somebody's own becomes a TaskDNA, and stays with its owner.

Nothing of the data is in what comes out but counts, shares and ties, rounded: no value, no name of
a column and no category, unless names are asked for.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sandmle.errors import UsageError
from sandmle.factory.seeds.shape import Floats, Shape, shape_of, strength, told
from sandmle.factory.seeds.table import OwnTable, read_own
from sandmle.tasks.cells import parse_number
from sandmle.types import DatasetStats, Feature, TargetInfo, TaskDNA

_CLASSES = 20  # different whole numbers that a target may have as classes
_ROWS_A_CLASS = 5
_LONG_TEXT = 8  # words from which a text is more than a name
_IMBALANCED = 3.0  # the largest class over the smallest
_ID = re.compile(r"(.*[_ ])?id|index|unnamed: 0|", re.IGNORECASE)
_ID_CAMEL = re.compile(r".*[a-z]Id")
_MOST_COLUMNS = 400
_MOST_TIES = 60  # columns of numbers that are compared with each other


class Roles(NamedTuple):
    """Which columns are no features: names, or None."""

    target: str
    id: str | None = None
    group: str | None = None
    time: str | None = None


def profile(path: Path, roles: Roles, keep_names: bool = False) -> TaskDNA:
    """Return the structure of a table, a CSV or Parquet file or a folder with one.

    `keep_names` puts names of columns and categories in. Raises `UsageError`.
    """
    table = read_own(path)
    for option, name in roles._asdict().items():
        if name is not None:
            table.column(name, f"--{option}")
    named = [name for name in roles if name is not None]
    if len(set(named)) < len(named):
        raise UsageError("a column has two roles: target, id, group and time are different ones")
    if len(table.columns) > _MOST_COLUMNS:
        raise UsageError(f"{path}: {len(table.columns)} columns, the limit is {_MOST_COLUMNS}")
    table, n_rows = _with_target(path, table, roles.target)
    id_column = roles.id or _id_of(table, roles)
    features = {
        name: shape_of(cells, table.files)
        for name, cells in table.columns.items()
        if name not in (roles.target, id_column, roles.group)
    }
    if roles.time is not None and features[roles.time].kind not in ("time", "number", "count"):
        raise UsageError(f"--time {roles.time}: the column holds neither dates nor numbers")
    goal = _Goal.of(table.columns[roles.target], table.files)
    ties = {name: _tie(s, table.columns[name], goal) for name, s in features.items()}
    if not any(shape.kind != "constant" for shape in features.values()):
        raise UsageError(f"{path}: there is no column to predict from")
    labels = {name: f"feat_{i}" for i, name in enumerate(features)}
    shown = {name: name if keep_names else labels[name] for name in features}
    extra: dict[str, Any] = {
        "columns": {
            shown[name]: {**shape.model_dump(mode="json", exclude_none=True), "tie": ties[name]}
            for name, shape in features.items()
        },
        "correlation": _correlation(table, features),
        "gaps": _gaps(table, features, goal),
        "metric": goal.metric,
        "target": goal.facts(keep_names),
    }
    if roles.group is not None:
        extra["group"] = _groups(table.columns[roles.group], goal)
    if roles.time is not None:
        extra["time"] = {**_times(table.columns[roles.time], goal), "column": shown[roles.time]}
    if keep_names:
        extra["names"] = {k: v for k, v in roles._asdict().items() if v is not None}
    return TaskDNA(
        modality=_modality(features),
        task_type=goal.task_type,
        dataset_stats=DatasetStats(sample_count=n_rows, is_imbalanced=goal.is_imbalanced),
        target_info=TargetInfo(
            type="label" if goal.classes else "number",
            cardinality=len(goal.classes) or None,
            distribution=goal.distribution,
        ),
        features=tuple(
            Feature(name=shown[name], abstract=told(shape, ties[name]))
            for name, shape in features.items()
        ),
        extra=extra,
    )


def _with_target(path: Path, table: OwnTable, target: str) -> tuple[OwnTable, int]:
    """Leave out the rows that have no target: nothing can be learned from them."""
    there = [i for i, cell in enumerate(table.columns[target]) if cell]
    if len(there) < 10:
        raise UsageError(f"{path}: {len(there)} rows have a target; 10 are the least to go by")
    columns = {name: [cells[i] for i in there] for name, cells in table.columns.items()}
    return table._replace(columns=columns), len(there)


def _id_of(table: OwnTable, roles: Roles) -> str | None:
    """Return the first column that is called an id and is another one in each row."""
    for name, cells in table.columns.items():
        called = _ID.fullmatch(name) or _ID_CAMEL.fullmatch(name)
        file = cells[0] in table.files and Path(cells[0]).suffix
        if called and name not in roles and len(set(cells)) == len(cells) and not file:
            return name
    return None


class _Goal(NamedTuple):
    """The target: `classes` by how often, or none; `values` as numbers (n, k) for ties."""

    shape: Shape
    classes: list[tuple[str, int]]
    ordered: bool
    values: Floats

    @classmethod
    def of(cls, cells: Sequence[str], files: Mapping[str, Path]) -> "_Goal":
        shape = shape_of(cells, files)
        counts = Counter(cells).most_common()
        numbers = np.array([parse_number(cell) for cell in cells])
        if shape.kind == "constant":
            raise UsageError("--target: every row has the same target")
        few = len(counts) <= _CLASSES and len(cells) >= _ROWS_A_CLASS * len(counts)
        if shape.kind in ("flag", "category") or (shape.kind == "count" and few):
            spread = sorted(numbers[np.isfinite(numbers)])
            grades = shape.kind == "count" and len(counts) > 2
            ordered = grades and bool((np.diff(sorted(set(spread))) == 1).all())
            seen = np.array([[float(cell == name) for name, _ in counts[:50]] for cell in cells])
            return cls(shape, counts, ordered, seen)
        if shape.kind not in ("number", "count"):
            raise UsageError(
                f"--target: a {shape.kind} with {shape.distinct} different values is neither a "
                "number nor a class"
            )
        return cls(shape, [], False, _ranks(numbers)[:, None])

    @property
    def task_type(self) -> str:
        return "classification" if self.classes else "regression"

    @property
    def is_imbalanced(self) -> bool:
        counts = [count for _, count in self.classes]
        return bool(counts) and max(counts) > _IMBALANCED * min(counts)

    @property
    def distribution(self) -> str:
        if self.classes:
            return "ordered" if self.ordered else "long_tail" if self.is_imbalanced else "balanced"
        if (self.shape.zeros or 0) > 0.2:
            return "zero_inflated"
        heavy = abs(self.shape.skew or 0) > 0.5 or (self.shape.tails or 0) > 1
        return "heavy_tail" if heavy else "continuous"

    @property
    def metric(self) -> str:
        """Return a metric that suits it."""
        if self.classes:
            several = "macro_f1" if self.is_imbalanced else "accuracy"
            graded = "quadratic_kappa" if self.ordered else several
            return "roc_auc" if len(self.classes) == 2 else graded
        return "rmsle" if self.distribution == "heavy_tail" and not self.shape.negative else "rmse"

    def facts(self, keep_names: bool) -> dict[str, Any]:
        if not self.classes:
            return self.shape.model_dump(mode="json", exclude_none=True)
        total = sum(count for _, count in self.classes)
        found: dict[str, Any] = {
            "shares": [round(count / total, 3) for _, count in self.classes[:_CLASSES]]
        }
        return found | ({"classes": [name for name, _ in self.classes]} if keep_names else {})


def _modality(features: Mapping[str, Shape]) -> str:
    kinds = {shape.kind for shape in features.values()}
    texts = any(s.kind == "text" and (s.words or 0) >= _LONG_TEXT for s in features.values())
    found: list[str] = [kind for kind in ("image", "audio") if kind in kinds]
    found += ["text"] if texts or "document" in kinds else []
    plain = kinds & {"number", "count", "flag", "category", "time"}
    if len(found) > 1 or (found and len(plain) > 1):
        return "multimodal"
    return found[0] if found else "tabular"


# --- ties -----------------------------------------------------------------------------------------


def _tie(shape: Shape, cells: Sequence[str], goal: _Goal) -> float | None:
    """Return how far a column and the target go along: the largest rank correlation, 0 to 1."""
    if shape.kind in ("number", "count"):
        return _rounded(_largest(_ranks(_filled(cells))[:, None], goal.values))
    if shape.kind in ("flag", "category"):
        return _rounded(_explained(cells, goal.values))
    return None


def _explained(cells: Sequence[str], values: Floats) -> float:
    """Return the correlation ratio, less what as many groups would have by chance."""
    _, which = np.unique(cells, return_inverse=True)
    counts = np.bincount(which)
    best = 0.0
    for column in values.T:
        total = column.var() * len(column)
        means = np.bincount(which, column) / counts
        between = float((counts * (means - column.mean()) ** 2).sum())
        if total > 0 and len(column) > len(counts):
            share = between / total
            lucky = (len(counts) - 1) / (len(column) - 1)
            best = max(best, (share - lucky) / (1 - lucky))
    return float(np.sqrt(best))


def _largest(features: Floats, values: Floats) -> float:
    with np.errstate(invalid="ignore", divide="ignore"):
        both = np.atleast_2d(np.corrcoef(np.hstack([features, values]), rowvar=False))
    width = features.shape[1]
    return float(np.nan_to_num(np.abs(both[:width, width:])).max(initial=0.0))


def _correlation(table: OwnTable, features: Mapping[str, Shape]) -> dict[str, Any]:
    """Say how far the columns of numbers go along with each other."""
    names = [name for name, shape in features.items() if shape.kind in ("number", "count")]
    names = names[:_MOST_TIES]
    if len(names) < 2:
        return {"strength": "no", "mean": 0.0, "most": 0.0}
    ranks = np.column_stack([_ranks(_filled(table.columns[name])) for name in names])
    pairs = np.abs(np.atleast_2d(np.corrcoef(ranks, rowvar=False)))
    pairs = pairs[np.triu_indices(len(names), 1)]
    mean = float(np.nan_to_num(pairs).mean())
    most = float(np.nan_to_num(pairs).max())
    return {"strength": strength(mean), "mean": _rounded(mean), "most": _rounded(most)}


def _gaps(table: OwnTable, features: Mapping[str, Shape], goal: _Goal) -> dict[str, Any]:
    """Say how much is missing, whether columns miss together, and whether gaps tell the target."""
    names = [n for n, s in features.items() if s.missing and s.kind != "constant"][:_MOST_TIES]
    rate = float(np.mean([shape.missing for shape in features.values()]))
    if not names:
        return {"share": round(rate, 3), "columns": 0, "pattern": "none"}
    holes = np.array([[float(not cell) for cell in table.columns[name]] for name in names]).T
    together = _together(holes)
    telling = _largest(holes, goal.values)
    chance = 3 / len(holes) ** 0.5  # three standard errors of no correlation at all
    pattern = "at random"
    if telling > max(chance, 0.1):
        pattern = "tells of the target"
    elif together > max(chance, 0.3):
        pattern = "columns miss together"
    return {
        "share": round(rate, 3),
        "columns": len(names),
        "pattern": pattern,
        "together": _rounded(together),
        "telling": _rounded(telling),
    }


def _together(holes: Floats) -> float:
    if holes.shape[1] < 2:
        return 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        both = np.abs(np.atleast_2d(np.corrcoef(holes, rowvar=False)))
    return float(np.nan_to_num(both[np.triu_indices(len(both), 1)]).max())


def _groups(cells: Sequence[str], goal: _Goal) -> dict[str, Any]:
    counts = list(Counter(cells).values())
    return {
        "groups": len(counts),
        "rows_a_group": round(float(np.median(counts)), 1),
        "tie": _rounded(_explained(cells, goal.values)),
    }


def _times(cells: Sequence[str], goal: _Goal) -> dict[str, Any]:
    """Say whether rows come in order, evenly, and what the target does meanwhile."""
    when = _moments(cells)
    order = np.argsort(when, kind="stable")
    steps = np.diff(when[order])
    steps = steps[steps > 0]
    later = goal.values[order]
    middle = float(np.median(steps)) if len(steps) else 0.0
    even = float((np.abs(steps - middle) < 0.01 * middle).mean()) if len(steps) else 0.0
    return {
        "in_order": bool((np.diff(when) >= 0).all() or (np.diff(when) <= 0).all()),
        "even_steps": round(even, 2),
        "repeats": round(1 - len(set(when.tolist())) / len(when), 2),
        "trend": _rounded(_largest(_ranks(when[order])[:, None], later)),
        "memory": _rounded(_largest(later[:-1], later[1:])),
    }


def _moments(cells: Sequence[str]) -> Floats:
    """Return points in time as numbers, gaps at the earliest."""
    numbers = np.array([parse_number(cell) for cell in cells])
    if not np.isfinite(numbers).any():
        import pandas as pd

        moments = pd.to_datetime(pd.Series(cells), errors="coerce", format="mixed", utc=True)
        numbers = moments.astype("int64").to_numpy(dtype=float)
        numbers[moments.isna().to_numpy()] = np.nan
    if not np.isfinite(numbers).any():
        raise UsageError(
            "--time: the dates of this column cannot be read; write them as YYYY-MM-DD"
        )
    return np.where(np.isfinite(numbers), numbers, np.nanmin(numbers))


def _filled(cells: Sequence[str]) -> Floats:
    values = np.array([parse_number(cell) for cell in cells])
    there = np.isfinite(values)
    return np.where(there, values, np.median(values[there]))


def _ranks(values: Floats) -> Floats:
    from scipy.stats import rankdata

    ranks: NDArray[np.float64] = rankdata(values)
    return ranks


def _rounded(value: float) -> float:
    return round(float(value), 2)
