"""The page of a run: what it shows, and that nothing an agent wrote is more than text on it."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from conftest import HOSTILE

from sandmle.errors import TaskError, UsageError
from sandmle.report.view import write_view


class Tags(HTMLParser):
    """Collects the tags of a page with their attributes, and what stands in scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.feed(page)

    def handle_starttag(self, tag, attrs) -> None:
        self.found.append((tag, dict(attrs)))
        if tag in self.raw:
            self.raw[tag].append("")

    def handle_data(self, data) -> None:
        if self.found and self.found[-1][0] in self.raw and self.cdata_elem:
            self.raw[self.cdata_elem][-1] += data


def episodes(page: str) -> list[dict]:
    found = Tags(page)
    return [json.loads(text) for text in found.raw["script"][1:-1]]


def write(run: Path, *lines: dict) -> str:
    (run / "trajectories.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    return write_view([run]).read_text()


def test_a_page_shows_the_run(run: Path) -> None:
    path = write_view([run])
    page = path.read_text()
    assert path == run / "page.html"
    (row,) = json.loads(Tags(page).raw["script"][0])
    assert (row["id"], row["title"], row["medal"]) == ("small-task.0", "A small task", "gold")
    assert (row["reward"], row["marks"], row["turns"]) == (1.0, ["best"], 2)
    (one,) = episodes(page)
    assert one["facts"]["metric"] == "accuracy, higher is better"
    assert one["graded"].startswith("Graded: the file that turn 1 wrote (SHA-256 ")
    assert sum(part["value"] * part["weight"] for part in one["parts"]) == pytest.approx(1)
    assert one["turns"][0]["score"] == 1.0
    assert "submission.csv" in one["turns"][0]["code"]


def test_nothing_an_agent_wrote_is_markup(run: Path) -> None:
    page = write_view([run]).read_text()
    tags = Tags(page)
    kinds = [attributes.get("type") for tag, attributes in tags.found if tag == "script"]
    assert kinds == ["application/json", "application/json", None], "one script, the last"
    assert not {tag for tag, _ in tags.found} & {"img", "iframe", "object", "link", "form", "base"}
    for _, attributes in tags.found:
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        assert not {"src", "srcset", "action"} & set(attributes), "the page asks for nothing"
        assert (attributes.get("href") or "#").startswith("#")
    assert "window.hacked" not in tags.raw["script"][-1]
    (one,) = episodes(page)
    seen = one["turns"][0]["seen"] + one["turns"][0]["stdout"]
    for shown in ("<script>window.hacked", "</script><!--", "⟨U+202E⟩", "␛[31m", "{{ 7 * 7 }}"):
        assert shown in seen.replace("\u200b", ""), "it is there, and can be seen"
    assert "invalid: \ufffd\ufffd" in seen
    assert "{{ 7 * 7 }}" in page.partition("<main>")[0], "in the command too"
    assert page.isascii() or not re.search("[\u202a-\u202e\u2028\x00-\x08\x1b]", page)


def test_the_browser_is_told_which_script_and_style_are_ours(run: Path) -> None:
    tags = Tags(write_view([run]).read_text())
    (policy,) = [a["content"] for t, a in tags.found if t == "meta" and "http-equiv" in a]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    for text in (tags.raw["script"][-1], *tags.raw["style"]):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_the_filters(run: Path, line: dict) -> None:
    timed_out = {**line["turns"][0]["result"], "status": "timeout"}
    late = [{**line["turns"][0], "result": timed_out}, line["turns"][1]]
    invalid = {"status": "invalid", "score": None, "reached": {}, "reason": "row 3"}
    nothing = {**line["reward"], "total": 0.1}
    failed = {"boundary": "model", "type": "ModelError", "message": HOSTILE}
    none = {"status": "missing", "score": None, "reached": {}, "reason": ""}
    lines = [
        {**line, "id": "a.0", "group": "a"},  # not better than a.1, but than b.1
        {**line, "id": "a.1", "k": 1, "group": "a", "flags": ["survivors"]},
        {**line, "id": "b.0", "group": "b", "turns": late, "mask": {"masked": True, "why": "late"}},
        {**line, "id": "b.1", "k": 1, "group": "b", "grade": invalid, "reward": nothing},
        {
            **line, "id": "b.2", "k": 2, "group": "b", "grade": none, "reward": None, "turns": [],
            "stop_reason": "model_error", "error": failed,
        },
    ]  # fmt: skip
    page = write(run, *lines)
    rows = json.loads(Tags(page).raw["script"][0])
    assert {row["id"]: row["marks"] for row in rows} == {
        "a.0": ["best", "flat"],
        "a.1": ["best", "flat", "flagged"],
        "b.0": ["timeout", "best", "masked"],
        "b.1": ["invalid", "reverted"],
        "b.2": ["failed"],
    }
    buttons = {a["data-filter"] for t, a in Tags(page).found if "data-filter" in a}
    assert buttons == {"", "timeout", "invalid", "best", "flat", "reverted", "flagged", "masked",
                       "failed"}  # fmt: skip
    lost = episodes(page)[3]
    assert lost["graded"] == "A valid submission was there after turn 2, but not at the end."
    assert lost["reason"] == "row 3"


def test_an_earlier_better_submission_is_noticed_in_the_metrics_direction(
    run: Path, line: dict
) -> None:
    def scored(score: float) -> dict:
        return {**line["grade"], "score": score}

    first, last = line["turns"]
    for early, marks in ((0.9, ["best", "reverted"]), (0.1, ["best"])):
        turns = [{**first, "hidden_grade": scored(early)}, {**last, "hidden_grade": scored(0.5)}]
        page = write(run, {**line, "turns": turns, "grade": scored(0.5)})
        assert json.loads(Tags(page).raw["script"][0])[0]["marks"] == marks


def test_a_run_whose_tasks_are_gone_is_shown_all_the_same(run: Path, line: dict) -> None:
    page = write(run, {**line, "task_hash": "0" * 64})
    (row,) = json.loads(Tags(page).raw["script"][0])
    assert row["title"] == "small-task"
    assert episodes(page)[0]["line"] is None


def test_a_long_text_keeps_its_beginning_and_its_end(run: Path, line: dict) -> None:
    endless = "begin" + "<" * 1_000_000 + "end"
    turn = {**line["turns"][0], "completion": endless, "observation": endless, "format_ok": False}
    page = write(run, {**line, "turns": [turn]})
    (one,) = episodes(page)
    assert one["turns"][0]["seen"].startswith("begin<<")
    assert one["turns"][0]["seen"].endswith("<<end")
    assert "980,008 characters left out" in one["turns"][0]["seen"]
    assert len(page) < 1_000_000


def test_very_many_episodes_make_no_endless_page(run: Path, line: dict) -> None:
    turn = {**line["turns"][0], "completion": "x" * 19_000, "observation": "y" * 19_000}
    lines = [{**line, "id": f"t.{n}", "k": n, "turns": [turn]} for n in range(1500)]
    page = write(run, *lines)
    assert len(page) < 40_000_000
    assert "of each text it keeps 5,000 characters" in page
    assert "trajectories.jsonl has them whole" in page


def test_learning_curves(run: Path, line: dict) -> None:
    steps = [
        {"step": n, "reward": n / 10, "loss": None if n == 2 else 0.5 / n} for n in range(1, 5)
    ]
    (run / "metrics.jsonl").write_text("".join(json.dumps(one) + "\n" for one in steps))
    looked = [
        {"step": 0, "splits": {"val": {"reward": 0.1, "low": 0.05, "high": 0.2}}},
        {"step": 4, "splits": {"val": {"reward": 0.3, "low": 0.2, "high": 0.4},
                               "ood": {"reward": 0.2}, "none": {"reward": None}}},
        {"step": 5, "splits": {"val": {}}},
        {"splits": {"val": {"reward": 1.0}}},
        {"note": "no step"},
    ]  # fmt: skip
    (run / "validation.jsonl").write_text("".join(json.dumps(one) + "\n" for one in looked))
    members = [
        {**line, "id": f"000001-00{n}-t{n}.0", "group": f"000001-00{n}-t{n}", "task_id": f"t{n}",
         "reward": {**line["reward"], "total": n / 4}}
        for n in range(5)
    ]  # fmt: skip
    page = write(run, *members)
    places = [row["place"] for row in json.loads(Tags(page).raw["script"][0])]
    assert places == ["step 2, number 0"] * 5
    for name in ("reward, training", "reward, val", "reward, ood"):
        assert f"{name}</span>" in page
    assert "reward, training, 1: 0.1</title>" in page
    assert re.search(r"reward, training, 2: 0\.2 \(0\.\d+ to 0\.\d+\)</title>", page), (
        "the interval of step 2 is over the tasks of its episodes"
    )
    assert "reward, val, 4: 0.3 (0.2 to 0.4)</title>" in page
    assert page.count('class="band ') == 1
    assert "<h4>loss</h4>" in page


def test_long_curves_are_smoothed(run: Path) -> None:
    steps = [{"step": n, "reward": n % 2} for n in range(1, 101)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(one) + "\n" for one in steps))
    page = write_view([run]).read_text()
    assert "reward of each training step" in page
    assert "mean of 11 steps" in page


def test_no_run_and_no_task_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no run and no task"):
        write_view([tmp_path])


def test_a_damaged_run_is_told(run: Path) -> None:
    (run / "run.json").write_text("{}")
    with pytest.raises(TaskError):
        write_view([run])


@pytest.mark.parametrize(
    "name", ["summary.json", "metrics.jsonl", "validation.jsonl", "trajectories.jsonl"]
)
@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"{}\n{\n", b"3"])
def test_a_damaged_file_is_named(run: Path, name: str, content: bytes) -> None:
    (run / name).write_bytes(content + b"\n")
    with pytest.raises(TaskError, match=name):
        write_view([run])


def test_a_run_that_has_not_finished_says_so(run: Path) -> None:
    assert "has not finished" not in write_view([run]).read_text()
    (run / "summary.json").unlink()
    page = write_view([run]).read_text()
    assert "has not finished" in page
    assert "scripted:ladder" in page


def test_fr53_failed_episodes_stay_in_the_denominator(run: Path, line: dict) -> None:
    from sandmle.files import to_json
    from sandmle.rollout.summary import summarise
    from sandmle.types import Trajectory

    none = {"status": "missing", "score": None, "reached": {}, "reason": ""}
    broken = {**line, "grade": none, "reward": None, "stop_reason": "model_error", "turns": []}
    lines = [{**line, "id": f"t{n}.0", "task_id": f"t{n}"} for n in range(2)]
    lines += [{**broken, "id": f"t{n}.0", "task_id": f"t{n}"} for n in (2, 3)]
    summary = summarise([Trajectory.model_validate(one) for one in lines], 4)
    (run / "summary.json").write_text(to_json(summary))
    page = write(run, *lines)
    assert "Incomplete: 4 of 4 episodes, of which 2 model error" in page
    assert "without our failures" in page
    gold = re.search(r"<td>gold</td>.*?</tr>", page, re.DOTALL)
    assert gold is not None
    assert ">0.5</td>" in gold[0]
    assert ">1 (1 to 1)</td>" in gold[0]


def test_a_place_that_cannot_be_written_is_told(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        write_view([run], tmp_path / "nothing" / "page.html")
