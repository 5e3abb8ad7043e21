"""What the documents show must work: programs run, commands exist, generated pages are current."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import metrics_page
import mutants
import pytest
import typer

from sandmle.cli.app import app
from sandmle.factory.gate import THRESHOLDS
from sandmle.metrics.registry import METRICS
from sandmle.rewards import PRESETS
from sandmle.tasks.corpus import Corpus

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(kind: str) -> list[tuple[str, str]]:
    return [
        (path.name, body)
        for path in PAGES
        for tag, body in BLOCK.findall(path.read_text())
        if tag == kind
    ]


PROGRAMS = [
    # a file of a package is run by test_change_one_thing.py
    *((page, body) for page, body in blocks("python") if not body.startswith("# my_things/")),
    *((path.name, path.read_text()) for path in sorted((ROOT / "examples").glob("*.py"))),
]


@pytest.mark.parametrize(("page", "code"), PROGRAMS, ids=[page for page, _ in PROGRAMS])
def test_programs_run(page: str, code: str, tmp_path: Path, corpus: Corpus) -> None:
    if "open_corpus" in code:
        shutil.copytree(corpus.root, tmp_path / "tasks")
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


COMMANDS = [
    (path.name, line.strip())
    for path in [*PAGES, ROOT / "Makefile", *sorted((ROOT / "recipes").glob("*.toml"))]
    for line in path.read_text().replace("\\\n", " ").splitlines()
    if re.match(r"^\s*(#\s*)?(\$\(BIN\)/)?sandmle [a-z]", line)
]


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=[c for _, c in COMMANDS])
def test_commands_exist(page: str, command: str) -> None:
    words = shlex.split(command.lstrip("# ").removeprefix("$(BIN)/"), comments=True)[1:]
    node = typer.main.get_command(app)
    while hasattr(node, "commands"):
        assert words[0] in node.commands, command
        node = node.commands[words.pop(0)]
    known = {option for parameter in node.params for option in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= known, command


def test_links_lead_somewhere() -> None:
    for path in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "README.md").read_text()
    for path in [*PAGES[1:], *(ROOT / "docs").glob("*.ipynb")]:
        assert f"](docs/{path.name})" in index, path.name


def test_the_quickstart_has_five_lines() -> None:
    quickstart = next(code for page, code in blocks("python") if page == "README.md")
    assert len(list(filter(str.strip, quickstart.splitlines()))) <= 5


def test_the_page_of_seeded_faults_is_current() -> None:
    assert (ROOT / "tests" / "mutants.md").read_text() == mutants.table()
    assert len(mutants.MUTANTS) >= 20
    for mutant in mutants.MUTANTS:
        path = ROOT / "src" / "sandmle" / mutant.module
        assert path.read_text().count(mutant.old) == 1, mutant.fault
        file, _, name = mutant.test.partition("::")
        assert f"def {name.partition('[')[0]}" in (ROOT / "tests" / file).read_text(), mutant.fault


def test_the_page_of_metrics_is_current() -> None:
    assert metrics_page.PAGE.read_text() == metrics_page.page()
    counted = f"{len(METRICS.names())} metrics"
    for page in (ROOT / "README.md", ROOT / "CHANGELOG.md"):
        assert counted in page.read_text()


def test_the_table_of_rewards_is_the_code() -> None:
    text = (ROOT / "docs" / "rewards.md").read_text()
    for name in ("paper", "sparse", "release"):
        weights = PRESETS[name].weights
        row = next(line for line in text.splitlines() if line.startswith(f"| `{name}` |"))
        shown = [float(cell) for cell in row.split("|")[3:-1]]
        parts = ("format", "execute", "median", "bronze", "silver", "gold")
        assert shown == [weights.get(part, 0.0) for part in parts]


def test_the_formula_of_the_thresholds_is_the_gates() -> None:
    shown = [body for page, body in blocks("") if page == "factory.md"]
    for formula in THRESHOLDS.values():
        assert formula.replace("; ", "\n") + "\n" in shown


def test_versions_agree() -> None:
    import sandmle

    assert f'version = "{sandmle.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert sandmle.__version__ in (ROOT / "CHANGELOG.md").read_text()
