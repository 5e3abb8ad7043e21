"""Text from outside as people see it, on pages and in notebooks."""

import json
from html.parser import HTMLParser
from pathlib import Path

from build import build_task
from hypothesis import given
from hypothesis import strategies as st

from sandmle.display import clip, facts_table, visible
from sandmle.tasks.corpus import open_corpus
from sandmle.types import Isolation, Trajectory

EVIL = "<script>alert(1)</script>\x1b[31m\u202e'\"&"


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs) -> None:
        self.names.add(tag)

    def handle_data(self, data) -> None:
        self.text += data


@given(st.text() | st.text(st.characters(codec=None, categories=["Cc", "Cf", "Cs", "Zl"])))
def test_whatever_it_says_can_be_seen_and_written(text: str) -> None:
    shown = visible(text)
    assert not any(ord(c) < 0x20 and c not in "\n\t" for c in shown)
    assert not set(shown) & set("\u202e\u2066\u200f\u2028\x7f\x85\ufeff")
    shown.encode()  # no half of a character is left
    assert visible(shown) == shown
    assert json.loads(json.dumps(shown)) == shown


@given(st.text(max_size=200), st.integers(3, 100))
def test_a_cut_text_keeps_both_ends(text: str, most: int) -> None:
    short = clip(text, most)
    if len(text) <= most:
        assert short == text
    else:
        assert short.startswith(text[: most * 2 // 3])
        assert short.endswith(text[-(most - most * 2 // 3) :])
        assert f"{len(text) - most:,} characters left out" in short


def test_in_a_notebook_everything_is_escaped_and_short(tmp_path: Path) -> None:
    shown = Tags(facts_table(EVIL, {EVIL: EVIL + "x" * 100_000}))
    assert shown.names == {"table", "caption", "tr", "th", "td"}
    assert "<script>alert(1)</script>␛[31m⟨U+202E⟩'\"&" in shown.text
    assert len(shown.text) < 1000
    trajectory = Trajectory(
        id=EVIL, task_id="t", task_hash="", group="t", k=0, scaffold="react", policy=EVIL, seed=0,
        feedback="none", isolation=Isolation(mode="bare"), turns=(), stop_reason="max_turns",
        grade={"status": "missing"}, reward=None, flags=(EVIL,),
    )  # fmt: skip
    assert Tags(trajectory._repr_html_()).names == shown.names
    task = build_task(tmp_path, "id,label\na,1\nb,0\n", classes=("0", "1"))
    assert "accuracy, higher is better" in Tags(task._repr_html_()).text
    assert "1 tabular" in Tags(open_corpus(tmp_path)._repr_html_()).text
