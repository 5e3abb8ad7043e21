"""The paper's tables and figures from run folders, against files that were looked at.

After a change that is meant, `SANDMLE_GOLDEN=1` writes them anew: look at the difference.
"""

import json
import os
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from build import build_task
from small import write_run

from sandmle.errors import TaskError, UsageError
from sandmle.report.paper import write_report
from sandmle.report.plots import can_draw_pdf
from sandmle.report.runs import read_run
from sandmle.report.tables import latex, markdown, paper_tables, task_table

GOLDEN = Path(__file__).parent / "golden"
NAMES = [
    *(f"table{n}.{suffix}" for n in (1, 2, 3, 4) for suffix in ("md", "tex")),
    *(f"{name}.{suffix}" for name in ("tasks", "runs", "episodes") for suffix in ("md", "tex")),
    *(f"figure{n}.svg" for n in (4, 6, 7, 8)),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Three runs: a base model, a trained one with our failures, and another scaffold."""
    folder = tmp_path_factory.mktemp("runs")
    outcomes = {f"t{n}": [0.1 * n, 0.1 * n + 0.05] for n in range(10)}
    base = write_run(
        folder / "base", outcomes, {"t9": [0.3, 0.95]}, policy="openai:base", preset="sparse"
    )
    better = {**{k: [v + 0.1 for v in vs] for k, vs in outcomes.items()}, "t0": [None, "infra"]}
    write_run(folder / "sandmle", better, {"t9": [1.0]}, policy="openai:sandmle_8b")
    write_run(folder / "aide", outcomes, policy="openai:base", scaffold="aide")
    ranks = {
        f"t{n}.{k}": {"code": 0.1 * n, "paper": 0.1 * n - 0.05}
        for n in range(1, 10)
        for k in range(2)
    }
    (folder / "aide" / "human_rank.json").write_text(json.dumps(ranks))
    lines = [{"step": n, "reward": 0.1 * n} for n in range(1, 6)]
    (base / "metrics.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    roots = [folder / name for name in ("base", "sandmle", "aide")]
    return write_report(roots, folder / "report"), folder


@pytest.mark.parametrize("name", NAMES)
def test_every_table_and_figure_is_as_it_was(report, name) -> None:
    written, folder = report
    assert folder / "report" / name in written.paths
    require_golden(folder / "report" / name)


@pytest.fixture(scope="module")
def composed(tmp_path_factory):
    """A run on tasks that are still there: of three modalities, and of different sizes."""
    folder = tmp_path_factory.mktemp("composed")
    sorts = {"t0": ("image", 3), "t1": ("image", 12), "t2": ("tabular", 3), "t3": ("audio", 5)}
    for name, (modality, rows) in sorts.items():
        answers = "id,label\n" + "".join(f"r{n},{n % 2}\n" for n in range(rows))
        build_task(folder / "c", answers, classes=("0", "1"), task_id=name, modality=modality)
    outcomes = {name: [0.5] for name in sorts}
    run = write_run(folder / "run", outcomes, corpus=folder / "c")
    return write_report([run], folder / "report"), folder


@pytest.mark.parametrize("name", ["figure3.svg", "figure5.svg"])
def test_figures_of_the_tasks_are_as_they_were(composed, name) -> None:
    written, folder = composed
    assert folder / "report" / name in written.paths
    require_golden(folder / "report" / name)


def require_golden(path: Path) -> None:
    if os.environ.get("SANDMLE_GOLDEN"):
        (GOLDEN / path.name).write_text(path.read_text())
    assert path.read_text() == (GOLDEN / path.name).read_text()


def test_figures_are_svg_and_pdf(report) -> None:
    written, _ = report
    for path in written.paths:
        if path.suffix == ".svg":
            ElementTree.fromstring(path.read_text())  # our own file
        if path.suffix == ".pdf":
            assert path.read_bytes().startswith(b"%PDF")
    kinds = {path.suffix for path in written.paths}
    assert kinds == {".md", ".tex", ".svg"} | ({".pdf"} if can_draw_pdf() else set())
    assert set(written.left_out) == {"figure3", "figure5"}, "no task lies where a run found it"


def test_medals_exclude_each_other_and_add_up(tmp_path) -> None:
    scores = [0.1, 0.3, 0.5, 0.5, 0.7, 0.9, 0.9, None]
    run = read_run(write_run(tmp_path / "r", {f"t{n}": [s] for n, s in enumerate(scores)}))
    (grid,) = paper_tables([run])
    row = {
        name: float(re.match(r"[\d.]+", cell)[0])
        for name, cell in zip(grid.header[1:7], grid.rows[0][1:7], strict=True)
    }
    assert row == {
        "Valid": 87.5, "Above median": 75.0, "Bronze": 25.0, "Silver": 12.5, "Gold": 25.0,
        "Any medal": 62.5,
    }  # fmt: skip


def test_a_killed_run_that_was_resumed_gives_the_same_tables(tmp_path) -> None:
    outcomes = {f"t{n}": [0.1 * n] for n in range(8)}
    whole = write_run(tmp_path / "a" / "r", outcomes)
    resumed = tmp_path / "b" / "r"
    shutil.copytree(whole, resumed)
    lines = (whole / "trajectories.jsonl").read_text().splitlines(keepends=True)
    failed = json.loads(lines[3])
    failed |= {"stop_reason": "infra_error", "reward": None}
    failed["grade"] = {"status": "missing", "score": None, "reached": {}, "reason": "killed"}
    # one failed and was played again, another was played in another order, a last line was torn
    text = [json.dumps(failed) + "\n", *lines[4:], *lines[:4], lines[0][:50]]
    (resumed / "trajectories.jsonl").write_text("".join(text))
    runs = [read_run(whole), read_run(resumed)]
    for make in (paper_tables, lambda x: [task_table(x)]):
        first, second = (make([run]) for run in runs)
        assert [markdown(g) + latex(g) for g in first] == [markdown(g) + latex(g) for g in second]


def test_what_is_no_run_is_refused(tmp_path) -> None:
    with pytest.raises(UsageError, match="is no run folder"):
        write_report([tmp_path], tmp_path / "out")
    run = write_run(tmp_path / "r", {"t": [0.5]})
    (run / "human_rank.json").write_text("[1]")
    with pytest.raises(TaskError, match=r"human_rank\.json"):
        write_report([run], tmp_path / "out")
    (run / "trajectories.jsonl").write_text("")
    with pytest.raises(UsageError, match="no finished episode"):
        write_report([run], tmp_path / "out")
