"""Runs beside each other: over the same tasks only, and noise is not called a difference."""

import json
import re
from pathlib import Path

import pytest

from sandmle.errors import UsageError
from sandmle.report.view import write_view


def play(run: Path, line: dict, name: str, rewards: list[float]) -> Path:
    """Return a copy of the run in which task n has the n-th reward."""
    import shutil

    made = shutil.copytree(run, run.parent / name)
    manifest = json.loads((run / "run.json").read_text())
    (made / "run.json").write_text(json.dumps({**manifest, "id": name}))
    lines = [
        {
            **line, "id": f"t{n}.0", "task_id": f"t{n}", "group": f"t{n}",
            "reward": {**line["reward"], "total": reward},
        }
        for n, reward in enumerate(rewards)
    ]  # fmt: skip
    (made / "trajectories.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    return made


def verdicts(page: Path) -> list[str]:
    return re.findall(r"<td class=\"\w+\">([a-z ]+)</td></tr>", page.read_text())


def test_runs_are_held_against_the_first(run: Path, line: dict) -> None:
    first = play(run, line, "first", [0.1, 0.4, 0.4, 0.4, 0.4, 0.4])
    better = play(run, line, "better", [0.4, 0.7, 0.6, 0.9, 0.6, 0.7])
    worse = play(run, line, "worse", [0.0, 0.1, 0.2, 0.1, 0.0, 0.1])
    one_task = play(run, line, "one-task", [0.1, 0.4, 0.4, 0.4, 0.4, 1.0])
    few = play(run, line, "few", [1.0, 1.0])
    page = write_view([first, better, worse, one_task, few], run.parent / "c.html")
    assert verdicts(page) == ["higher", "lower", "no difference shown", "too few tasks to tell"]
    assert "scripted:ladder" in page.read_text()


def test_a_changed_task_is_another_task(run: Path, line: dict) -> None:
    first = play(run, line, "first", [0.1] * 6)
    other = play(run, {**line, "task_hash": "0" * 64}, "other", [0.9] * 6)
    page = write_view([first, other], run.parent / "c.html")
    assert verdicts(page) == ["too few tasks to tell"]


def test_curves_of_several_runs_are_one_figure(run: Path, line: dict) -> None:
    made = [play(run, line, name, [0.5]) for name in ("a", "b")]
    for root in made:
        (root / "metrics.jsonl").write_text('{"step": 1, "reward": 0.1}\n{"step": 2}\n')
    page = write_view(made, run.parent / "c.html").read_text()
    assert page.count('class="chart"') == 1
    assert "a: reward, training" in page
    assert "b: reward, training" in page


def test_an_unfinished_run_is_named(run: Path, line: dict) -> None:
    first, second = (play(run, line, name, [0.5]) for name in ("first", "second"))
    (second / "summary.json").unlink()
    page = write_view([first, second], run.parent / "c.html").read_text()
    assert "second has not finished" in page


def test_only_runs_can_be_compared(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="only runs can be compared"):
        write_view([run, tmp_path])
    with pytest.raises(UsageError, match="named twice"):
        write_view([run, run])


def test_the_curve_of_a_run_that_is_elsewhere_is_drawn_too(run: Path, line: dict) -> None:
    lines = [{"step": n, "reward": 0.01 * n} for n in range(1, 46)]
    recorded = run.parent / "long.jsonl"
    recorded.write_text("".join(json.dumps(one) + "\n" for one in lines))
    name = "recorded earlier: long, 45 steps"
    assert name in write_view([run], beside=[recorded]).read_text()
    first, second = play(run, line, "first", [0.1] * 6), play(run, line, "second", [0.2] * 6)
    page = write_view([first, second], run.parent / "c.html", beside=[recorded])
    assert name in page.read_text()
    (first / "metrics.jsonl").write_text(recorded.read_text())
    page = write_view([second], run.parent / "d.html", beside=[first, recorded])
    assert "training: first, 45 steps" in page.read_text()
    for nothing in (run.parent / "none.jsonl", second, run / "run.json"):
        with pytest.raises(UsageError, match="holds no steps"):
            write_view([run], beside=[nothing])


def test_a_run_s_page_tables_other_runs(run: Path, line: dict) -> None:
    first, better = (
        play(run, line, name, [0.05 * n + more for n in range(12)])
        for name, more in (("first", 0.1), ("better", 0.3))
    )
    page = write_view([run], compared=[first, better])
    assert verdicts(page) == ["higher"]
    assert "Against first" in page.read_text()
    (better / "summary.json").unlink()
    assert "better has not finished" in write_view([run], compared=[first, better]).read_text()
    assert "Against" not in write_view([run], compared=[first]).read_text()
    assert "Against first" not in write_view([run]).read_text()
    with pytest.raises(UsageError, match="only runs can be compared"):
        write_view([run], compared=[first, run.parent / "nothing"])
    with pytest.raises(UsageError, match="page of one run"):
        write_view([first, better], compared=[run])
