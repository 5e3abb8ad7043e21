"""The pages in a real browser: nothing runs, nothing is fetched, filters and keys do their work."""

import json
from pathlib import Path

import pytest
from browser import Browser
from conftest import HOSTILE

from sandmle.report.view import write_view
from sandmle.tasks.corpus import Corpus

SHOWN = "[...document.querySelectorAll('#list button.row')].map(b => b.title)"
NONE = "No episode is like that."
CARDS = "[...document.querySelectorAll('.card:not([hidden])')].map(c => c.dataset.id)"


@pytest.fixture
def page(run: Path, line: dict) -> Path:
    """Return the page of a run of six episodes: fine, late, invalid, hostile."""
    timed_out = {**line["turns"][0]["result"], "status": "timeout"}
    late = [{**line["turns"][0], "result": timed_out}, line["turns"][1]]
    invalid = {"status": "invalid", "score": None, "reached": {}, "reason": HOSTILE}
    said = {
        **line["turns"][0], "completion": HOSTILE * 3, "observation": "a" * 1_000_000,
        "action": {**line["turns"][0]["action"], "code": f"x = '''{HOSTILE}'''  # {HOSTILE}"},
    }  # fmt: skip
    lines = [
        {**line, "id": "one.0", "group": "one"},
        {**line, "id": "one.1", "k": 1, "group": "one", "turns": late},
        {**line, "id": "two.0", "group": "two", "grade": invalid, "task_id": "two"},
        {**line, "id": HOSTILE, "group": HOSTILE, "task_id": HOSTILE, "policy": HOSTILE,
         "turns": [said] * 3, "flags": [HOSTILE]},
    ]  # fmt: skip
    (run / "trajectories.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    return write_view([run])


def calm(browser: Browser, page: Path) -> None:
    assert browser.problems == []
    outside = [url for url in browser.requests if not url.startswith("data:")]
    assert outside == [page.resolve().as_uri()], "no request leaves the file"
    assert browser.value("window.hacked") is None
    assert browser.value("document.querySelectorAll('main img, iframe, object').length") == 0


def test_filters(browser: Browser, page: Path) -> None:
    browser.open(page, "#filter=timeout")
    assert browser.value(SHOWN) == ["one.1"]
    browser.value("document.querySelector('[data-filter=invalid]').click()")
    browser.wait(f"{SHOWN}.join() === 'two.0'")
    assert browser.value("location.hash") == "#filter=invalid"
    browser.open(page, "#filter=flagged")
    assert len(browser.value(SHOWN)) == 1
    browser.open(page, "#task=two")
    assert browser.value(SHOWN) == ["two.0"]
    browser.open(page, "#filter=timeout&task=two")
    assert browser.value(SHOWN) == []
    assert browser.value("document.querySelector('#list').textContent") == NONE
    browser.open(page, "#q=HACKED")
    assert "one.0" in browser.value(SHOWN), "what it printed is searched, in any case of letters"
    browser.open(page, "#q=a task that nobody named so")
    assert browser.value(SHOWN) == []
    calm(browser, page)


def test_a_search_is_drawn_as_a_tree(browser: Browser, run: Path, line: dict, tmp_path) -> None:
    first = line["turns"][0]
    parents = [(), (), (0,), (2,), (1, 2), (4,)]
    turns = [
        {
            **first, "index": n,
            "node": {
                "operator": HOSTILE if n == 5 else "improve", "parents": above, "metric": 0.1 * n,
                "fault": "it failed" if n == 3 else "", "summary": "",
            },
        }
        for n, above in enumerate(parents)
    ]  # fmt: skip
    lines = [{**line, "id": "tree.0", "turns": turns}, {**line, "id": "tree.1"}]
    (run / "trajectories.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    page = write_view([run])
    browser.look(1280, 900)
    browser.open(page, "#open=tree.0")
    assert browser.value("document.querySelectorAll('.tree .node').length") == 6
    assert browser.value("document.querySelectorAll('.tree line').length") == 5
    assert browser.value("document.querySelectorAll('.tree .faulty').length") == 1
    heights = "[...document.querySelectorAll('.tree .node')].map(n => n.getAttribute('cy'))"
    assert browser.value(heights) == ["17", "17", "51", "85", "85", "119"], (
        "below what it came from"
    )
    browser.value("document.querySelectorAll('.tree .node')[5].dispatchEvent(new Event('click'))")
    browser.wait("Math.abs(document.querySelector('#turn-5').getBoundingClientRect().top) < 900")
    calm(browser, page)
    browser.open(page, "#open=tree.1")
    assert browser.value("document.querySelectorAll('.tree').length") == 0
    calm(browser, page)


def test_keys(browser: Browser, page: Path) -> None:
    opened = "document.querySelector('#list [aria-current=true]')?.title"
    browser.look(1280, 900)
    browser.open(page, "#task=small-task")
    browser.press("j")
    browser.wait(f"{opened} === 'one.0'")
    browser.press("j")
    browser.wait(f"{opened} === 'one.1'")
    browser.press("k")
    browser.wait(f"{opened} === 'one.0'")
    assert "open=one.0" in browser.value("location.hash"), "what is open can be sent"
    browser.press("?")
    browser.wait("document.querySelector('#help').open")
    browser.value("document.querySelector('#help [data-close]').click()")
    browser.press("/")
    browser.wait("document.activeElement.id === 'search'")
    browser.press("j")
    browser.wait("location.hash.includes('q=j')")
    assert browser.value("document.querySelector('#search').value") == "j"
    calm(browser, page)


def test_what_is_hostile_is_shown_and_does_nothing(browser: Browser, page: Path) -> None:
    browser.look(1280, 900)
    browser.open(page)
    browser.press("j")
    browser.wait("document.querySelector('#list button.row').ariaCurrent === 'true'")
    text = browser.value("document.querySelector('#detail').textContent")
    assert "<script>window.hacked = 1</script>" in text
    assert "⟨U+202E⟩␛[31m {{ 7 * 7 }} &amp; ]]> ⟨U+2028⟩ ␀" in text
    assert "980,000 characters left out" in text
    code = "document.querySelector('#detail pre.code')"
    assert browser.value(f"{code}.textContent").startswith("x = '''<script>")
    assert browser.value(f"[...{code}.children].map(c => c.className)") == ["s", "c"]
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert browser.value(wide), "a line of a megabyte does not widen the page"
    calm(browser, page)


def test_code_keeps_every_character_when_it_is_coloured(browser: Browser, page: Path) -> None:
    browser.open(page)
    code = Path(__file__).read_text()
    made = f"highlight({json.dumps(code)})"
    assert browser.value(f"{made}.textContent") == code
    looks = browser.value(f"[...{made}.children].map(c => [c.className, c.textContent])")
    for expected in (["k", "def"], ["d", "calm"], ["s", '"#q=HACKED"'], ["m", "1280"],
                     ["d", "@pytest.fixture"]):  # fmt: skip
        assert expected in looks


def test_on_a_phone_an_episode_takes_the_whole_screen(browser: Browser, page: Path) -> None:
    def seen(what: str) -> bool:
        return browser.value(f"document.querySelector('{what}').offsetHeight > 0")

    browser.look(390, 844, dark=True, phone=True)
    browser.open(page)
    assert (seen("#list"), seen("#detail")) == (True, False)
    browser.value("document.querySelector('#list button.row').click()")
    browser.wait("document.querySelector('#detail').offsetHeight > 0")
    assert not seen("#list")
    browser.value("document.querySelector('#detail .back').click()")
    browser.wait("document.querySelector('#list').offsetHeight > 0")
    wide = "document.documentElement.scrollWidth <= innerWidth"
    assert browser.value(wide), "nothing is wider than the screen"
    dark = "getComputedStyle(document.body).backgroundColor"
    before = browser.value(dark)
    browser.value("document.querySelector('#theme').click()")
    assert browser.value(dark) != before, "the other theme can be chosen"
    browser.look(1280, 900)
    calm(browser, page)


def test_a_corpus(browser: Browser, corpus: Corpus, tmp_path: Path) -> None:
    page = write_view([corpus.root], tmp_path / "corpus.html")
    browser.open(page)
    first, second = (task.card for task in corpus)
    assert browser.value(CARDS) == [first.id, second.id]
    browser.open(page, f"#q={second.metric.name}")
    assert browser.value(CARDS) == [c.id for c in (first, second) if c.metric == second.metric]
    browser.open(page, "#filter=image")
    assert browser.value(CARDS) == []
    browser.open(page)
    browser.press("j")
    browser.wait("document.querySelector('#dialog').open")
    text = browser.value("document.querySelector('#detail').textContent")
    assert first.title in text
    assert "What the agent is told" in text
    browser.press("j")
    title = json.dumps(second.title)
    browser.wait(f"document.querySelector('#detail h2').textContent === {title}")
    assert browser.value("location.hash") == f"#open={second.id}"
    gate = "[...document.querySelectorAll('#detail .good')].map(c => c.textContent)"
    noted = json.loads(corpus[1].read("private/verification.json"))["checks"]
    assert browser.value(gate) == ["holds" for check in noted if check["passed"]]
    browser.value("document.querySelector('#dialog [data-close]').click()")
    browser.wait("location.hash === ''")
    calm(browser, page)


def test_runs_beside_each_other(browser: Browser, run: Path, made: Path, tmp_path: Path) -> None:
    page = write_view([made, run], tmp_path / "compare.html")
    browser.open(page)
    assert "2 runs beside each other" in browser.value("document.body.innerText")
    calm(browser, page)
