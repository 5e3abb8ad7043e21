"""From a real table to a task folder: `sandmle tasks from-data`.

Milestones are quantiles of what the measured models reach on the hidden rows, or, with a baseline
of the user's, that and the way from it to the best model. Checks bind: a task that fails one is
not written.
"""

import math
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sandmle.errors import GradingError, TaskError, UsageError
from sandmle.factory.gate import at_most, rounded
from sandmle.factory.ladder import Goal, generic_rungs
from sandmle.factory.real.leaks import leak_checks
from sandmle.factory.real.models import Measured, Rows, measure
from sandmle.factory.real.table import Real, Request, read_real
from sandmle.files import render, sha256, to_json
from sandmle.grading.check import check_task, paper_gap
from sandmle.grading.evaluator import render_evaluator
from sandmle.grading.grader import read_answers, threshold_keys
from sandmle.tasks.cells import Invalid, parse_number
from sandmle.tasks.folder import Task, open_task, write_task
from sandmle.tasks.submission import MAX_BYTES, check, to_csv
from sandmle.types import MILESTONES, Check, Milestones, Rung, SubmissionSchema, TaskCard

# share of the measured models that a milestone leaves behind; equal scores count once
QUANTILES = {"median": 0.5, "bronze": 0.6, "silver": 0.8, "gold": 0.95}
_WAY = {"bronze": 1 / 3, "silver": 2 / 3, "gold": 1.0}  # from a baseline to the best model
_BOOTSTRAPS = 200
_MIN_SE = 1.0


class Built(NamedTuple):
    """A task that was written, what the models reached on it, and its checks."""

    task: Task
    models: list[Measured]
    checks: list[Check]


class Judge:
    """Scores columns for rows of a table with its metric."""

    def __init__(self, real: Real) -> None:
        self.real = real
        self.schema = schema_of(real, len(real.values))
        plain = self.schema.model_dump()
        everything = range(len(real.values))
        self.truth = read_answers(_answers(real, everything), "answer.csv", plain, None).columns
        self._plain = plain

    def __call__(self, columns: Mapping[str, Any], rows: Rows) -> float:
        """Return the metric on some rows; `GradingError` where it is undefined."""
        metric = self.real.metric
        truth = {name: values[np.asarray(rows)] for name, values in self.truth.items()}
        return metric(*metric.kind.arrays(truth, columns, self._plain))


def from_data(request: Request, out: Path) -> Built:
    """Make a task of a table below `out`.

    Raises `UsageError` for a table that none can be made of, and `TaskError` if a check that binds
    fails: nothing is written then.
    """
    real = read_real(request)
    judge = Judge(real)
    models = measure(real, judge)
    milestones = _milestones(real, models, judge, request)
    files, card = _files(real, request, models, milestones)
    checks = [*_gate(real, models, milestones), *leak_checks(real), _apart(real, models, judge)]
    failed = [c for c in checks if c.passed is False and c.name != "gold_apart_in_se"]
    if failed:
        raise TaskError(f"{request.path}: no task can be made: {_told(failed)}")
    card = card.model_copy(update={"sound": all(c.passed is not False for c in checks)})
    record = {
        "checks": [one.model_dump(mode="json") for one in checks],
        "models": [_facts(one) for one in models],
        "source": {"name": request.path.name, "sha256": sha256(request.path.read_bytes())},
        "split": real.split,
    }
    files["private/verification.json"] = (to_json(record, indent=2) + "\n").encode()
    task = _write_checked(out, card, files)
    return Built(task, models, checks)


def schema_of(real: Real, n_rows: int) -> SubmissionSchema:
    """Return the schema of a submission of so many rows."""
    return real.metric.schema(real.key, real.target, real.classes, n_rows)


def _answers(real: Real, rows: Sequence[int]) -> bytes:
    ids = {real.key: [real.ids[i] for i in rows]}
    if not real.metric.kind.several:
        return to_csv({**ids, real.target: [real.values[i] for i in rows]})
    one_hot = {c: [str(int(real.values[i] == c)) for i in rows] for c in real.classes}
    return to_csv({**ids, **one_hot})


# --- thresholds -----------------------------------------------------------------------------------


def _milestones(
    real: Real, models: Sequence[Measured], judge: Judge, request: Request
) -> Milestones:
    sign = 1 if real.metric.direction == "max" else -1
    scores = sorted({rounded(sign * one.test) for one in models})
    if request.baseline is None:
        levels = {name: float(np.quantile(scores, q)) for name, q in QUANTILES.items()}
    else:
        base = sign * judge(_baseline(request.baseline, real), real.rows(True))
        best = max(scores)
        if best <= base:
            raise UsageError(
                f"{request.baseline}: no measured model beats this baseline ({sign * base:.4g}); "
                "milestones above it cannot be told apart"
            )
        levels = {"median": base, **{n: base + w * (best - base) for n, w in _WAY.items()}}
    sample = judge(_sample(real), real.rows(True))
    return Milestones(
        direction=real.metric.direction,
        sample_score=rounded(sample),
        **{name: rounded(sign * level) for name, level in levels.items()},
    )


def _baseline(path: Path, real: Real) -> Mapping[str, NDArray[Any]]:
    """Read the user's predictions for the hidden rows, which are told by their ids."""
    rows = real.rows(True)
    try:
        data = path.read_bytes()[: MAX_BYTES + 1]
        return check(data, schema_of(real, len(rows)).model_dump(), [real.ids[i] for i in rows])
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    except Invalid as error:
        raise UsageError(f"{path}: {error}") from None


def _sample(real: Real) -> dict[str, NDArray[Any]]:
    """Return a submission that says the same of every row: the commonest class, or the mean."""
    n, train = len(real.rows(True)), real.rows(False)
    form = real.metric.kind.name
    if form == "probabilities":
        return {label: np.full(n, 1 / len(real.classes)) for label in real.classes}
    if form in ("score", "probability"):
        return {real.target: np.full(n, 0.5)}
    told = [real.values[i] for i in train]
    if form == "label":
        return {real.target: np.array([max(real.classes, key=told.count)] * n, dtype=object)}
    return {real.target: np.full(n, float(f"{np.mean([parse_number(v) for v in told]):.5g}"))}


# --- checks ---------------------------------------------------------------------------------------


def _gate(real: Real, models: Sequence[Measured], milestones: Milestones) -> list[Check]:
    sign = 1 if milestones.direction == "max" else -1
    exact = {name: sign * getattr(milestones, name) for name in MILESTONES}
    idle = [sign * one.test for one in models if one.dummy]
    if milestones.sample_score is not None:
        idle.append(sign * milestones.sample_score)
    below = float(np.nextafter(exact["median"], -np.inf))
    gap = paper_gap(milestones)
    ordered = Check(name="paper_monotone", passed=gap > 0, value=rounded(gap), limit=0.0)
    return [ordered, at_most("dummy_below_median", max(idle), below, "nothing is learned here")]


def _apart(real: Real, models: Sequence[Measured], judge: Judge) -> Check:
    """Ask whether the hidden rows tell the best model from a middling one, in standard errors.

    This one does not bind, for real tables are as large as they are: it says whether the task is
    `sound`.
    """
    sign = 1 if real.metric.direction == "max" else -1
    ranked = sorted(models, key=lambda one: sign * one.test)
    middle, best = ranked[len(ranked) // 2], ranked[-1]
    rng, rows = np.random.default_rng(0), np.array(real.rows(True))
    gaps = []
    for _ in range(_BOOTSTRAPS):
        drawn = rng.integers(0, len(rows), len(rows))
        try:
            pair = [
                judge({n: v[drawn] for n, v in one.predicted.items()}, rows[drawn])
                for one in (best, middle)
            ]
        except GradingError:
            continue  # a resample may lack a class
        gaps.append(sign * (pair[0] - pair[1]))
    name = "gold_apart_in_se"
    if len(gaps) < 2 or not np.std(gaps):
        return Check(name=name, passed=None, detail="no resample has a score")
    value = sign * (best.test - middle.test) / float(np.std(gaps))
    return Check(name=name, passed=value >= _MIN_SE, value=rounded(value), limit=_MIN_SE)


def _told(failed: Sequence[Check]) -> str:
    return "; ".join(
        f"{c.name} ({c.value}, limit {c.limit})" + (f": {c.detail}" if c.detail else "")
        for c in failed
    )


def _write_checked(out: Path, card: TaskCard, files: Mapping[str, bytes]) -> Task:
    """Write a task beside its place, make every check of a folder, and only then put it there."""
    if (out / card.id).exists():
        raise UsageError(f"{out / card.id}: is there already; choose another folder or remove it")
    out.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=out, prefix=".draft-"))
    try:
        task = write_task(draft, card, files)
        failed = [one for one in check_task(task) if one.passed is False]
        if failed:
            raise TaskError(f"no task can be made: {_told(failed)}")
        task.root.rename(out / card.id)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return open_task(out / card.id)


# --- files ----------------------------------------------------------------------------------------


def _files(
    real: Real, request: Request, models: Sequence[Measured], milestones: Milestones
) -> tuple[dict[str, bytes], TaskCard]:
    train, test = real.rows(False), real.rows(True)
    schema = schema_of(real, len(test))
    sample = {real.key: [real.ids[i] for i in test]}
    sample |= {name: [_spelled(v) for v in values] for name, values in _sample(real).items()}
    written = to_csv(sample)
    columns = [(name, _what(real, name)) for name in real.features]
    title = request.title or f"{request.target} of {request.path.name.partition('.')[0]}"
    text = render(
        "sandmle.factory", "templates/real.md.j2",
        title=title, real=real, schema=schema, columns=columns, n_train=len(train),
        n_test=len(test), unit=request.group or request.time,
        head="\n".join(written.decode().splitlines()[:4]),
    )  # fmt: skip
    files = {
        "public/description.md": text.encode(),
        "public/train.csv": _table(real, train, target=True),
        "public/test.csv": _table(real, test, target=False),
        "public/sample_submission.csv": written,
        "private/answer.csv": _answers(real, test),
    }
    content = sha256(b"\0".join(files[name] for name in sorted(files)))
    best = max(models, key=lambda one: one.cv if milestones.direction == "max" else -one.cv)
    card = TaskCard(
        id=f"{_slug(title)}-{content[:8]}",
        title=title,
        modality="tabular",
        metric=real.ref,
        submission=schema,
        milestones=milestones,
        ladder=tuple(_rung(one, best) for one in models),
        files={},
    )
    files["private/threshold.json"] = (
        to_json(threshold_keys(milestones), indent=2) + "\n"
    ).encode()
    files["private/evaluator.py"] = render_evaluator(card).encode()
    for script in generic_rungs(_goal(real)):
        files[f"private/solutions/{script.order:02d}-{script.name}.py"] = script.code.encode()
    return files, card


def _rung(one: Measured, best: Measured) -> Rung:
    kind = "dummy" if one.dummy else "reference" if one is best else "generic"
    return Rung(name=one.name, kind=kind, test=rounded(one.test))


def _goal(real: Real) -> Goal:
    """Return what the scripts that come with the task must know of it."""
    return Goal(
        id_column=real.key,
        targets=(real.target,),
        outcome="classes" if real.classes else "number",
        classes=real.classes,
        form=real.metric.kind.name,
        middle=real.metric.name == "mae",
    )


def _table(real: Real, rows: Sequence[int], target: bool) -> bytes:
    """Write rows in the order of their ids: that of the source could tell something."""
    order = sorted(rows, key=lambda i: real.ids[i]) if real.split != "time" else list(rows)
    columns = {real.key: [real.ids[i] for i in order]}
    columns |= {name: real.column(name, order) for name in real.features}
    if target:
        columns[real.target] = [real.values[i] for i in order]
    return to_csv(columns)


def _what(real: Real, name: str) -> str:
    cells = [cell for cell in real.column(name, real.rows(False)) if cell]
    numbers = [n for n in map(parse_number, cells) if not math.isnan(n)]
    if cells and len(numbers) > len(cells) / 2:
        return f"a number, {min(numbers):.4g} to {max(numbers):.4g} in train.csv"
    return f"words, {len(set(cells))} different ones in train.csv"


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.5g}"


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60] or "table"


def _facts(one: Measured) -> dict[str, Any]:
    return {
        "name": one.name,
        "dummy": one.dummy,
        "cv": rounded(one.cv),
        "cv_error": rounded(one.cv_error),
        "test": rounded(one.test),
    }
