"""Runs a task's scripts where agents run theirs: on the shipped rows and a calibration pool.

The pool is drawn as `generate_task_env.py` draws fresh rows, and never shipped.
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sandmle.errors import SandboxError, TaskError
from sandmle.factory.build import (
    QUERY,
    Draw,
    Recipe,
    ablations,
    blind,
    draw,
    ladder,
    member,
    metric_of,
    schema_of,
)
from sandmle.factory.ladder import Rank, Script
from sandmle.factory.targets import Columns
from sandmle.grading.grader import read_answers
from sandmle.metrics.registry import Metric
from sandmle.sandbox.base import Sandbox
from sandmle.tasks.cells import Invalid
from sandmle.tasks.submission import MAX_BYTES, check
from sandmle.types import Limits

FRESH = 2**32 - 1  # in the place of a slot number, so that no shipped task has the same stream
_POOL = 1  # the seed of the pool among the fresh draws


class Trial(NamedTuple):
    """Everything that was predicted for one task.

    Rows are the `n_test` shipped ones, then those of the pool. `predictions` has one entry for each
    script of the ladder (its rank in `kinds`), `blind` are submissions that look at no row. For the
    shipped rows only: `ablations`, one for each mutation, of the reference without its remedy, and
    the sample submission. `ceiling` is the score of the rule itself against answers as noisy as the
    training rows: the paper's gold.
    """

    metric: Metric
    schema: Mapping[str, Any]
    n_test: int
    ids: tuple[str, ...]
    answers: Columns
    predictions: Mapping[str, Columns]
    kinds: Mapping[str, Rank]
    blind: Mapping[str, Columns]
    sample: Columns
    ablations: Mapping[str, Columns] = {}
    seconds: Mapping[str, float] = {}
    ceiling: float | None = None

    def quality(
        self,
        predicted: Columns,
        rows: NDArray[np.int64],
        queries: NDArray[Any] | None = None,
    ) -> float:
        """Return the score on some rows, negated where lower is better.

        `queries` are other names of the rows' queries, in which one that comes twice is two.
        """
        truth = {name: values[rows] for name, values in self.answers.items()}
        chosen = {name: values[rows] for name, values in predicted.items()}
        if queries is not None:
            truth[QUERY] = queries
        value = self.metric(*self.metric.kind.arrays(truth, chosen, self.schema))
        return value if self.metric.direction == "max" else -value

    def resampled(self, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[Any] | None]:
        """Draw shipped rows with replacement, whole queries where there are any.

        Returns the positions of the rows, and new names of their queries.
        """
        if self.metric.kind.extra_truth is None:
            return rng.integers(0, self.n_test, self.n_test), None
        _, number = np.unique(self.answers[QUERY][: self.n_test], return_inverse=True)
        members = [np.flatnonzero(number == q) for q in range(number.max() + 1)]
        drawn = [members[i] for i in rng.integers(0, len(members), len(members))]
        names = np.repeat(np.arange(len(drawn)), [len(rows) for rows in drawn])
        return np.concatenate(drawn), names.astype(str)

    @property
    def shipped(self) -> NDArray[np.int64]:
        """Return the positions of the shipped rows."""
        return np.arange(self.n_test)

    @property
    def everything(self) -> NDArray[np.int64]:
        """Return the positions of all rows."""
        return np.arange(len(next(iter(self.answers.values()))))

    @property
    def pool(self) -> NDArray[np.int64]:
        """Return the positions of the pool's rows."""
        return self.everything[self.n_test :]


def pool_of(recipe: Recipe, seed: Sequence[int], n: int | None = None) -> Draw:
    """Draw the calibration pool of a task: as many rows as its family wants, or `n`."""
    return draw(recipe, (FRESH, _POOL, *seed), 1, n or member(recipe).n_pool, mark="p")


def new_trial(recipe: Recipe, shipped: Draw, pool: Draw, n_test: int) -> Trial:
    """Return a trial that nothing has been predicted for."""
    n_pool = pool.answer.count(b"\n") - 1
    schema = schema_of(recipe, n_test + n_pool).model_dump()
    extra = metric_of(recipe).kind.extra_truth
    answers = read_answers(_join(shipped.answer, pool.answer), "answer.csv", schema, extra)
    ids = answers.ids or []
    return Trial(
        metric=metric_of(recipe),
        schema=schema,
        n_test=n_test,
        ids=tuple(ids),
        answers=answers.columns,
        predictions={},
        kinds={},
        blind=blind(recipe, answers.columns, n_test + n_pool),
        sample=check(shipped.sample_submission, {**schema, "n_rows": n_test}, ids[:n_test]),
        ceiling=_ceiling(recipe, answers.columns, _join(shipped.noisy, pool.noisy), schema),
    )


def run_trial(recipe: Recipe, shipped: Draw, pool: Draw, n_test: int, sandbox: Sandbox) -> Trial:
    """Run every script on the shipped test rows with the pool behind them."""
    trial = new_trial(recipe, shipped, pool, n_test)
    alone = {"train.csv": shipped.train, "test.csv": shipped.test, **shipped.extra}
    joined = {path: _join(table, pool.tables[path]) for path, table in shipped.tables.items()}
    both = {**alone, "test.csv": _join(shipped.test, pool.test), **joined, **pool.assets}
    scripts = ladder(recipe)
    with Stage(both, trial.schema, trial.ids, sandbox) as stage:
        predictions = {script.name: stage.predict(script) for script in scripts}
    # what a remedy is worth is asked of the shipped rows only
    schema = {**trial.schema, "n_rows": n_test}
    with Stage(alone, schema, trial.ids[:n_test], sandbox) as second:
        ablated = {name: second.predict(script) for name, script in ablations(recipe).items()}
    return trial._replace(
        predictions=predictions,
        kinds={script.name: script.kind for script in scripts},
        ablations=ablated,
        seconds={**second.seconds, **stage.seconds},
    )


class Stage:
    """A folder with public files, in which scripts run where agents run theirs.

    Use it as a context. Submissions are checked against `schema` and come in the order of `ids`.
    """

    def __init__(
        self,
        data: Mapping[str, bytes],
        schema: Mapping[str, Any],
        ids: Sequence[str],
        sandbox: Sandbox,
    ) -> None:
        self._data, self._schema, self._ids, self._sandbox = data, schema, ids, sandbox
        self.seconds: dict[str, float] = {}

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="sandmle-")
        for name, content in self._data.items():
            path = Path(self._folder.name) / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def predict(self, script: Script) -> Columns:
        """Run a script and read its submission; `TaskError` if there is none that is valid."""
        workspace = self._sandbox.open(Path(self._folder.name), Limits())
        try:
            result = workspace.run(script.code)
            self.seconds[script.name] = result.cpu_s or result.wall_s
            if result.status == "infra":
                raise SandboxError(result.stderr)
            if result.status != "ok":
                told = result.stderr or f"it ended with {result.status}"
                raise TaskError(f"ladder script {script.name!r} failed:\n{told}")
            submission = workspace.read("submission.csv", MAX_BYTES)
            return check(submission, self._schema, self._ids)
        except (Invalid, FileNotFoundError) as error:
            raise TaskError(f"ladder script {script.name!r}: {error}") from None
        finally:
            workspace.close()


def _ceiling(recipe: Recipe, clean: Columns, noisy: bytes, schema: Any) -> float | None:
    """Score the rule itself against answers as they are observed; None if that is undefined.

    Where a probability is wanted the rule says how often its class is observed, not 0 or 1.
    """
    metric = metric_of(recipe)
    truth = read_answers(noisy, "answer.csv", schema, metric.kind.extra_truth).columns
    predicted = dict(clean)
    if metric.kind.name in ("probability", "score", "probabilities"):
        names = list(clean)
        told = np.column_stack([clean[name] for name in names])
        seen = np.column_stack([truth[name] for name in names])
        kinds, which = np.unique(told, axis=0, return_inverse=True)
        rates = np.array([seen[which == i].mean(axis=0) for i in range(len(kinds))])[which]
        predicted = {name: rates[:, i] for i, name in enumerate(names)}
    return metric(*metric.kind.arrays(truth, predicted, schema))


def _join(first: bytes, second: bytes) -> bytes:
    """Append the rows of a second CSV with the same header."""
    return first + second.split(b"\n", 1)[1]
