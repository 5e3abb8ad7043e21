"""What `sandmle view` writes, by what it is given: a run, several runs, a corpus or one task."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sandmle.errors import UsageError
from sandmle.report.compare import write_comparison
from sandmle.report.corpus_page import write_corpus_page
from sandmle.report.run_page import write_run_page
from sandmle.report.runs import curve_of, is_run
from sandmle.tasks.corpus import PAGE, open_corpus
from sandmle.tasks.folder import CARD


def write_view(
    paths: Sequence[Path],
    out: Path | None = None,
    about: Callable[[], Mapping[str, str]] = dict,
    beside: Sequence[Path] = (),
    compared: Sequence[Path] = (),
) -> Path:
    """Write the page and return its path; `about` is asked what the families of a corpus are.

    The learning curves of `beside`, training runs or their `metrics.jsonl`, are drawn with those
    of the runs; the page of a single run also tables `compared`, runs of other policies.

    Without `out` a run or a corpus gets a `page.html` of its own; the page of a single task goes
    beside its folder, which holds what its card lists and nothing else; a comparison is
    `compare.html` in the working directory.
    """
    others = [curve_of(one, f"look{4 - n % 5}") for n, one in enumerate(beside)]
    if len(paths) > 1:
        if compared:
            raise UsageError("--compare is for the page of one run; name all runs without it")
        _require_runs(paths)
        return write_comparison(paths, out or Path("compare.html"), others)
    (path,) = paths
    if is_run(path):
        _require_runs(compared)
        return write_run_page(path, out, others, compared)
    if others or compared:
        raise UsageError(f"--beside and --compare: {path} is no run; only a run's page has those")
    try:
        corpus = open_corpus(path)
    except UsageError:
        raise UsageError(
            f"{path}: holds no run and no task; `sandmle rollout` and `sandmle train` make runs, "
            "`sandmle generate` makes tasks"
        ) from None
    alone = (path / CARD).exists()
    place = path.resolve().with_suffix(".html") if alone else path / PAGE
    return write_corpus_page(corpus, out or place, about())


def _require_runs(paths: Sequence[Path]) -> None:
    for path in paths:
        if not is_run(path):
            raise UsageError(f"{path}: holds no run; only runs can be compared")
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError("a run is named twice; a comparison needs different runs")
