"""The page "change one thing" as a reader follows it: its package, installed, and its commands."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "change-one-thing.md").read_text()
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
MODULES = {
    body.splitlines()[0].removeprefix("# my_things/"): body
    for kind, body in BLOCK.findall(PAGE)
    if kind == "python"
}
COMMANDS = [
    line for kind, body in BLOCK.findall(PAGE) if not kind for line in body.splitlines() if line
]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a working folder in which the package of the page is installed."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "my_things").mkdir()
    (folder / "my_things" / "__init__.py").write_text("")
    for name, body in MODULES.items():
        (folder / "my_things" / name).write_text(body)
    project = tomllib.loads(next(body for kind, body in BLOCK.findall(PAGE) if kind == "toml"))
    groups = project["project"]["entry-points"]
    assert {f"{n}.py" for group in groups.values() for n in group} == set(MODULES)
    about = folder / "my_things-0.1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my_things\nVersion: 0.1\n")
    lines = [
        line
        for group, entries in groups.items()
        for line in (f"[{group}]", *(f"{name} = {place}" for name, place in entries.items()))
    ]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


def shell(desk: Path, line: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, (str(desk), os.environ.get("PYTHONPATH"))))
    program = f'sandmle() {{ "{sys.executable}" -m sandmle.cli.app "$@"; }}\n{line}\n'
    return subprocess.run(
        ["bash", "-c", program],
        cwd=desk,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_is_short() -> None:
    for name, body in MODULES.items():
        code = [line for line in body.splitlines() if line.strip() and not line.startswith("#")]
        assert len(code) <= 60, name


def test_the_commands_do_what_they_are_for(desk: Path) -> None:
    for line in COMMANDS:
        done = shell(desk, line)
        # the sample submission is graded too, and reaches nothing
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    (mine,) = (path.parent for path in (desk / "mine").glob("*/task.json"))
    assert json.loads((mine / "task.json").read_text())["sound"] is True
    spec = json.loads((mine / "private" / "spec.json").read_text())
    assert spec["provenance"]["source"].startswith("family saddle")
    page = (desk / "mine" / "page.html").read_text()
    assert "saddle" in page.partition('data-text="')[2].partition('"')[0]


def test_the_metric_grades_as_its_evaluator_does(desk: Path) -> None:
    (robust,) = (path.parent for path in (desk / "robust").glob("*/task.json"))
    card = json.loads((robust / "task.json").read_text())
    assert card["metric"]["name"] == "trimmed_mae"
    sample = robust / "public" / "sample_submission.csv"
    graded = json.loads(shell(desk, f"sandmle grade {robust} {sample} --json").stdout)
    alone = subprocess.run(
        [sys.executable, "-I", robust / "private" / "evaluator.py", "--submission_path", sample],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(alone.stdout)["score"] == pytest.approx(graded["score"], rel=1e-12)
    by_hand = (
        "import numpy as np; from sandmle.metrics.registry import METRICS\n"
        "errors = np.array([5.0, 1, 1, 1, 1, 1, 1, 1, 1, 3])\n"
        "print(METRICS.get('trimmed_mae')(np.zeros(10), errors))"
    )
    assert shell(desk, f'"{sys.executable}" -c "{by_hand}"').stdout == f"{11 / 9}\n"


def test_the_scaffold_submits_what_is_valid_first(desk: Path) -> None:
    (line,) = (desk / "runs" / "mine" / "trajectories.jsonl").read_text().splitlines()[:1]
    episode = json.loads(line)
    assert episode["scaffold"] == "first_valid"
    assert (episode["stop_reason"], episode["grade"]["status"]) == ("submitted", "ok")
    assert len(episode["turns"]) == 1, "react would have asked for a second reply"
