import json
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from build import build_task

from sandmle.config import load_config
from sandmle.errors import TaskError, UsageError
from sandmle.report.page import write_page
from sandmle.rollout.runner import run_rollout

ANSWERS = "id,label\na,1\nb,0\n"
HOSTILE = """<script>alert(1)</script>"><img src=x onerror=alert(1)> \u202e\x1b[31m {{ 7 * 7 }}"""


class Tags(HTMLParser):
    """Collects the tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp_path = tmp_path_factory.mktemp("made")
    code = f"print({HOSTILE!r})\nopen('submission.csv', 'w').write({ANSWERS!r})\n"
    build_task(tmp_path / "c", ANSWERS, classes=("0", "1"), solutions={"90-reference": code})
    settings = load_config(None, [f"corpus.path='{tmp_path / 'c'}'", "group=1"])
    run_rollout(settings, tmp_path / "run", f"sandmle {HOSTILE}")
    return tmp_path / "run"


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "run")


def test_a_page_shows_the_run(run: Path) -> None:
    path = write_page(run)
    text = path.read_text()
    assert path == run / "page.html"
    assert "small-task.0" in text
    assert "reward 1" in text
    assert "gold" in text
    assert "submission.csv" in text


def test_nothing_an_agent_wrote_is_markup(run: Path) -> None:
    page = write_page(run).read_text()
    tags = Tags()
    tags.feed(page)
    names = {tag for tag, _ in tags.found}
    assert not names & {"script", "img", "iframe", "object", "link", "form"}
    for _, attributes in tags.found:
        assert not any(name.startswith("on") for name in attributes)
        assert not {"src", "href", "srcset"} & set(attributes), "the page asks for nothing"
    assert "{{ 7 * 7 }}" in page
    assert "default-src 'none'" in page


def test_training_steps_are_a_table(run: Path) -> None:
    (run / "metrics.jsonl").write_text(json.dumps({"step": 1, "reward": 0.25, "loss": None}) + "\n")
    page = write_page(run).read_text()
    assert "Training steps" in page
    assert "<td>0.25</td>" in page


def test_no_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no run"):
        write_page(tmp_path)


def test_a_damaged_run_is_told(run: Path) -> None:
    (run / "run.json").write_text("{}")
    with pytest.raises(TaskError):
        write_page(run)


@pytest.mark.parametrize("name", ["summary.json", "metrics.jsonl", "trajectories.jsonl"])
@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"{}\n{\n"])
def test_a_damaged_file_is_named(run: Path, name: str, content: bytes) -> None:
    (run / name).write_bytes(content + b"\n")
    with pytest.raises(TaskError, match=name):
        write_page(run)


def test_a_run_that_has_not_finished_says_so(run: Path) -> None:
    assert "has not finished" not in write_page(run).read_text()
    (run / "summary.json").unlink()
    page = write_page(run).read_text()
    assert "has not finished" in page
    assert "scripted:ladder" in page


def test_a_place_that_cannot_be_written_is_told(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        write_page(run, tmp_path / "nothing" / "page.html")
