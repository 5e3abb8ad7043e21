"""MLE-Dojo's layout: competitions on disk, their boards, and HumanRank of submissions to them.

A competition is a folder with `public/` (description.txt, sample_submission.csv and the data) and
`private/` (test_answer.csv, and what boards there are: `private_leaderboard.csv` and
`public_leaderboard.csv`, whose second column is the score). MLE-Dojo's preparation puts the two
into `<data-dir>/<name>/data/`; `<data-dir>/<name>/` is taken too.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sandmle.bench.boards import read_board
from sandmle.bench.facts import competitions, dojo_lists, dojo_metrics
from sandmle.bench.humanrank import Variant, human_rank, mean_human_rank, require_direction
from sandmle.bench.strict import as_read
from sandmle.errors import GradingError, UsageError
from sandmle.grading.grader import read_answers, score
from sandmle.metrics.registry import METRICS, Metric
from sandmle.tasks.cells import Invalid
from sandmle.tasks.submission import read_table, to_csv
from sandmle.types import Direction, MetricRef, SubmissionSchema

BOARDS = ("private", "public")
VARIANTS: tuple[Variant, ...] = ("code", "paper")
LISTS = ("all", "evaluation", "training", "own")
_SCORE = 1  # boards are read by position


class DojoCompetition(NamedTuple):
    """A competition of MLE-Dojo on disk; `root` holds `public/` and `private/`."""

    root: Path
    name: str

    @property
    def answers(self) -> Path:
        """Return the hidden answers."""
        return self.root / "private" / "test_answer.csv"

    def boards(self) -> dict[str, list[float]]:
        """Return the boards that there are."""
        found = {which: self.root / "private" / f"{which}_leaderboard.csv" for which in BOARDS}
        return {
            which: read_board(path, column=_SCORE)
            for which, path in found.items()
            if path.is_file()
        }


class DojoGrade(NamedTuple):
    """A score with its position scores by board, their mean, or why there is none."""

    score: float | None
    positions: dict[str, float]
    human_rank: float | None
    reason: str = ""


class Form(NamedTuple):
    """How submissions to a competition are read and scored, and its answers in that form."""

    metric: Metric
    params: Mapping[str, Any]
    schema: SubmissionSchema
    answers: bytes


def open_competition(root: Path) -> DojoCompetition:
    """Open a folder; `UsageError` names what is missing."""
    inner = root / "data" if (root / "data" / "private").is_dir() else root
    for part in (
        "public/description.txt",
        "public/sample_submission.csv",
        "private/test_answer.csv",
    ):
        if not (inner / part).is_file():
            raise UsageError(f"{inner / part}: missing; this is no prepared MLE-Dojo competition")
    return DojoCompetition(inner, root.name)


def names_of(data_dir: Path, chosen: str, only: Sequence[str] = ()) -> list[str]:
    """Return the competitions of one of `LISTS`, or those that are named.

    `all` are those that the data directory has; `UsageError` if it has none.
    """
    if chosen not in LISTS:
        raise UsageError(f"MLE-Dojo has no list {chosen!r}; there are: {', '.join(LISTS)}")
    if not data_dir.is_dir():
        raise UsageError(f"{data_dir}: no such folder")
    if only or chosen != "all":
        return list(only or dojo_lists()[chosen])
    found = [
        folder.name
        for folder in sorted(data_dir.iterdir())
        if any(
            (folder / part / "test_answer.csv").is_file() for part in ("private", "data/private")
        )
    ]
    if not found:
        raise UsageError(f"{data_dir}: holds no prepared MLE-Dojo competition")
    return found


def metric_of(name: str, given: Mapping[str, str] | None = None) -> MetricRef:
    """Return the metric of a competition: the one that is given, else the one that is known.

    Known are those that were held against MLE-Dojo's own, and those of the same competitions in
    MLE-bench. Raises `UsageError` where there is none.
    """
    if given and name in given:
        METRICS.get(given[name])
        return MetricRef(name=given[name])
    known = dojo_metrics().get(name)
    if known is not None:
        return known
    shared = competitions().get(name)
    if shared is None or shared.metric is None:
        raise UsageError(f"{name}: its metric is not known here; name it: --metric {name}=rmse")
    return MetricRef(name=shared.metric, params=shared.params)


def form_of(one: DojoCompetition, ref: MetricRef) -> Form:
    """Return how a competition is scored: ids in the first column, targets in all others, as there.

    Raises `GradingError` for answers that are no table, `UsageError` for a metric that wants other
    columns.
    """
    metric = METRICS.get(ref.name)
    metric.check_params(ref.params)
    try:
        table = read_table(one.answers.read_bytes())
    except (Invalid, OSError) as error:
        raise GradingError(f"{one.answers}: {error}") from None
    key, *names = table.header
    if not names or (len(names) > 1 and not metric.kind.several):
        raise UsageError(
            f"{one.name}: {metric.name} scores one column, the answers have "
            f"{', '.join(names) or 'none'}"
        )
    cells = {name: table.column(name) for name in names}
    label = metric.kind.name == "label"
    classes = tuple(sorted({*cells[names[0]]})) if label else ()
    if metric.kind.several:
        classes = tuple(names)
    schema = metric.schema(key, names[0], classes, len(table.rows), ref.params)
    answers = to_csv({key: table.column(key), **as_read(cells, schema)})
    return Form(metric, {**metric.params, **ref.params}, schema, answers)


def rank_score(
    value: float | None, one: DojoCompetition, direction: Direction, variant: Variant = "code"
) -> DojoGrade:
    """Return the HumanRank of a score; a metric that disagrees with its board is refused.

    No score, or NaN, is behind everybody: 0.
    """
    boards = one.boards()
    for which, board in boards.items():
        require_direction(board, direction, f"{one.name}, {which} leaderboard")
    ranks = {which: human_rank(value, board, direction, variant) for which, board in boards.items()}
    mean = mean_human_rank(value, list(boards.values()), direction, variant)
    return DojoGrade(value, ranks, mean)


def grade_dojo(
    data: bytes | None,
    one: DojoCompetition,
    metric: str | MetricRef,
    variant: Variant = "code",
) -> DojoGrade:
    """Check and score a submission with one of our metrics, and rank it.

    What MLE-Dojo lets through (a row left empty, probabilities that do not add up) is invalid here.
    """
    ref = MetricRef(name=metric) if isinstance(metric, str) else metric
    form = form_of(one, ref)
    direction = form.metric.direction
    if data is None:
        return rank_score(None, one, direction, variant)._replace(reason="no submission")
    schema = form.schema.model_dump()
    hidden = read_answers(form.answers, one.answers.name, schema, None)
    try:
        value = score(
            data, schema, hidden, form.metric.kind.arrays, form.metric.function, form.params
        )
    except Invalid as error:
        return rank_score(None, one, direction, variant)._replace(reason=str(error))
    return rank_score(value, one, direction, variant)
