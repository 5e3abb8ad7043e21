"""A suite of real tables that needs no account: data sets that ship inside installable packages.

Each becomes a task as any table of a user's does (`sandmle.factory.real`). scikit-learn is a
dependency of ours, statsmodels is found by its files (`pip install 'sandmle[bench]'`).
"""

import csv
import io
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from sandmle.errors import MissingExtraError, TaskError
from sandmle.factory.real.build import Built, from_data
from sandmle.factory.real.table import Request
from sandmle.tasks.corpus import CorpusIndex, open_corpus, root_hash, write_index
from sandmle.tasks.folder import Task
from sandmle.tasks.submission import to_csv

VERSION = "1"
_ROWS = 1500  # of a larger table every k-th row is taken, so that models stay a matter of seconds


class Source(NamedTuple):
    """A table of a package, and what is asked of it."""

    name: str
    package: str
    load: Callable[[], bytes]
    options: dict[str, Any]


def build_suite(out: Path, names: Sequence[str] | None = None) -> list[Built]:
    """Build the tasks of the suite below `out` and write its index; those that are there are kept.

    Raises `MissingExtraError` with the install line if a package is missing, and `TaskError` if a
    task fails a check: the suite is the same for everybody or it is not there.
    """
    chosen = [one for one in SUITE if names is None or one.name in names]
    absent = sorted({one.package for one in chosen if find_spec(one.package) is None})
    if absent:
        raise MissingExtraError(f"{', '.join(absent)} not installed: pip install 'sandmle[bench]'")
    built = []
    with tempfile.TemporaryDirectory(prefix="sandmle-") as folder:
        for source in chosen:
            if any(out.glob(f"{source.name}-" + "[0-9a-f]" * 8)):
                continue
            path = Path(folder) / f"{source.name}.csv"
            path.write_bytes(source.load())
            try:
                request = Request(path, title=source.name, **source.options)
                built.append(from_data(request, out))
            except TaskError as error:
                raise TaskError(f"{source.name}: {error}") from None
    write_index(out, _index(list(open_corpus(out))))
    return built


def _index(tasks: Sequence[Task]) -> CorpusIndex:
    return CorpusIndex(
        name="real",
        version=VERSION,
        generator="sandmle bench real",
        splits={"test": tuple(sorted(task.id for task in tasks))},
        funnel={"accepted": len(tasks)},
        root_hash=root_hash((task.id, task.content_hash) for task in tasks),
    )


# --- where the tables are -------------------------------------------------------------------------


def _sklearn(name: str, labels: bool) -> Callable[[], bytes]:
    """Return a loader of a toy data set of scikit-learn; `target` is its last column."""

    def load() -> bytes:
        import sklearn.datasets

        options = {"scaled": False} if name == "diabetes" else {}
        found = getattr(sklearn.datasets, f"load_{name}")(**options)
        columns = {
            str(feature): [f"{value:.6g}" for value in values]
            for feature, values in zip(found.feature_names, found.data.T, strict=True)
        }
        goal = [str(found.target_names[t]) if labels else f"{t:.6g}" for t in found.target]
        return to_csv({**columns, "target": goal})

    return load


def _statsmodels(
    name: str, separator: str = ",", extra: Callable[[Any], None] | None = None
) -> Any:
    """Return a loader of a table of statsmodels, read from its file: nothing is imported."""

    def load() -> bytes:
        spec = find_spec("statsmodels")
        places = list(spec.submodule_search_locations or []) if spec else []
        path = Path(places[0]) / "datasets" / name / f"{name}.csv"
        text = path.read_text(encoding="latin-1").replace("'", "")
        rows = list(csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True))
        header, body = [cell.strip() for cell in rows[0]], [row for row in rows[1:] if row]
        body = body[:: -(-len(body) // _ROWS)]
        columns = {n: [row[i].strip() for row in body] for i, n in enumerate(header)}
        if extra is not None:
            extra(columns)
        return to_csv(columns)

    return load


def _lagged(name: str, lags: int) -> Callable[[dict[str, list[str]]], None]:
    """Return what adds the values of the times before as columns, which makes a forecast of it."""

    def add(columns: dict[str, list[str]]) -> None:
        values = columns[name]
        for lag in range(1, lags + 1):
            columns[f"{name}_before_{lag}"] = [""] * lag + values[:-lag]

    return add


def _had_affair(columns: dict[str, list[str]]) -> None:
    columns["affair"] = [str(int(float(cell) > 0)) for cell in columns.pop("affairs")]


SUITE: tuple[Source, ...] = (
    Source("iris", "sklearn", _sklearn("iris", True),
           {"target": "target", "metric": "log_loss_multiclass"}),
    Source("wine", "sklearn", _sklearn("wine", True),
           {"target": "target", "metric": "log_loss_multiclass"}),
    Source("breast-cancer", "sklearn", _sklearn("breast_cancer", True),
           {"target": "target", "metric": "log_loss"}),
    Source("digits", "sklearn", _sklearn("digits", False), {"target": "target"}),
    Source("diabetes", "sklearn", _sklearn("diabetes", False), {"target": "target"}),
    Source("wine-proline", "sklearn", _sklearn("wine", True),
           {"target": "proline", "metric": "mae", "drop": ("target",)}),
    Source("affairs", "statsmodels", _statsmodels("fair", extra=_had_affair), {"target": "affair"}),
    Source("vote", "statsmodels", _statsmodels("anes96", "\t"),
           {"target": "vote", "drop": ("PID",)}),
    Source("party", "statsmodels", _statsmodels("anes96", "\t"),
           {"target": "PID", "metric": "rmse", "drop": ("vote",)}),
    Source("doctor-visits", "statsmodels", _statsmodels("randhie"),
           {"target": "mdvis", "metric": "rmsle"}),
    Source("travel", "statsmodels", _statsmodels("modechoice", ";"),
           {"target": "choice", "group": "individual"}),
    Source("firms", "statsmodels", _statsmodels("grunfeld"),
           {"target": "invest", "group": "firm", "metric": "mae"}),
    Source("schools", "statsmodels", _statsmodels("star98"), {"target": "MATHTOT"}),
    Source("food", "statsmodels", _statsmodels("engel"), {"target": "foodexp", "metric": "mae"}),
    Source("sunspots", "statsmodels", _statsmodels("sunspots", extra=_lagged("SUNACTIVITY", 3)),
           {"target": "SUNACTIVITY", "time": "YEAR", "metric": "mae"}),
)  # fmt: skip
