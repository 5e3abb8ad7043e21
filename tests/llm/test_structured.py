"""Typed answers out of what models write (FR-35, FR-36)."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from sandmle.errors import AnswerError, ModelError
from sandmle.llm.base import Completion, Message
from sandmle.llm.scripted import Scripted
from sandmle.llm.structured import ask, read_answer, read_files

TALK = [Message("user", "review it")]


class MetricSpec(BaseModel):
    name: str
    direction: str


class Spec(BaseModel):
    metric: MetricSpec
    code: str
    classes: tuple[str, ...] = ()


class Review(BaseModel):
    model_config = ConfigDict(extra="forbid")
    is_bug: bool
    metric: float | None


CODE = "d = {}\nprint('}')"
# with real line breaks in the code, a brace in it, prose braces before and a comma too many
NEARLY = (
    'For {project}: {"metric": {"name": "rmse", "direction": "min"}, '
    f'"code": "{CODE}", "classes": ["a",],}}'
)


def test_fr35_the_outer_object_with_its_code_as_it_is() -> None:
    spec = read_answer(NEARLY, Spec)
    assert spec.code == CODE
    assert (spec.metric.name, spec.classes) == ("rmse", ("a",))


@pytest.mark.parametrize(
    "text",
    [
        NEARLY,
        f"```json\n{NEARLY}\n```",
        NEARLY + "\nI hope that {this} helps; see {} and " + '{"other": 1}.',
        NEARLY + "\nAgain:\n" + NEARLY,
        '{"code": "an earlier draft"}\n' + NEARLY,
        "<think>" + NEARLY.replace("rmse", "mae") + " or not</think>" + NEARLY,
        NEARLY.replace("rmse", "mae") + "</think>" + NEARLY,
    ],
)
def test_prose_fences_and_other_objects_do_not_matter(text: str) -> None:
    assert read_answer(text, Spec).code == CODE


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no JSON object"),
        ("Looks fine, validation F1 was about 0.81.", "no JSON object"),
        ("[1, 2]", "no JSON object"),
        ('<think>{"is_bug": false, "metric": 1.0}', "not closed"),
        ('{"is_bug": false, "metric": ', "line 1 near"),
        # the inner object would fit, the outer one is broken
        ('{"review":\n{"is_bug": false, "metric": 1.0}, "more": tru}', "line 2 near"),
        ('{"is_bug": false, "metric": 1.0} or {"is_bug": true, "metric": null}', "2 different"),
        ('{"is_bug": false, "metric": "0,81"}', "metric"),
        ('{"is_bug": false, "metric": "0.81"}', "metric"),
        ('{"is_bug": "no", "metric": 0.81}', "is_bug"),
        ('{"is_bug": 0, "metric": 0.81}', "is_bug"),
        ('{"is_bug": false}', "metric"),
        ('{"is_bug": false, "metric": NaN}', "NaN"),
        ('{"is_bug": false, "metric": -Infinity}', "-Infinity"),
        ('{"is_bug": false, "metric": 1e999}', "1e999"),
        ('{"is_bug": false, "metric": 0.1, "metric": 0.9}', "'metric' occurs twice"),
        ('{"a": ' * 100_000, "characters|nested|broken"),
        ('{"a":' * 50_000, "nested"),
        ('{"a": 1}' * 65, "more than 64"),
        ("x" * 400_001, "characters"),
    ],
)
def test_what_is_no_answer_says_why(text: str, fault: str) -> None:
    with pytest.raises(AnswerError, match=fault):
        read_answer(text, Review)


def test_the_fault_of_the_object_that_was_meant_is_told() -> None:
    with pytest.raises(AnswerError, match="metric"):
        read_answer('{"x": 1} and {"is_bug": false, "metric": "high"}', Review)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_what_json_writes_is_read_as_it_was(value) -> None:
    class Whole(BaseModel):
        value: object

    for indent in (None, 2):
        text = json.dumps({"value": value}, indent=indent, ensure_ascii=indent is None)
        assert read_answer(f"Here: {text} {{x}}", Whole).value == value


@given(st.text(alphabet='{}[]",:\\ \nab1.', max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_answer(text, Review)
    except AnswerError:
        return


def test_fr36_a_reviewer_that_answers_in_prose_is_asked_again() -> None:
    good = '{"is_bug": false, "metric": null}'
    answer = ask(Scripted(["Looks fine, F1 was about 0.81.", good]), TALK, Review)
    assert answer.value == Review(is_bug=False, metric=None)
    assert [reply.text for reply in answer.replies] == ["Looks fine, F1 was about 0.81.", good]


def test_fr36_a_number_in_words_is_not_promoted_and_the_failure_has_a_name() -> None:
    replies = ["about 0.81", '{"is_bug": false, "metric": "0,81"}', "it is 0.81"]
    with pytest.raises(AnswerError, match=r"3 tries.*no JSON object"):
        ask(Scripted(replies), TALK, Review)


class Listening:
    """Says what it is told to, and keeps what it was asked."""

    def __init__(self, *replies: Completion) -> None:
        self.replies, self.asked = list(replies), []

    def complete(self, messages) -> Completion:
        self.asked.append(list(messages))
        return self.replies.pop(0)


def test_the_model_is_told_what_was_wrong() -> None:
    first, good = '{"is_bug": false,}', '{"is_bug": true, "metric": 2}'
    llm = Listening(Completion(first), Completion(good, cut_off=True), Completion(good))
    assert ask(llm, TALK, Review).value.metric == 2.0
    assert llm.asked[0] == TALK
    assert llm.asked[1][:2] == [*TALK, Message("assistant", first)]
    assert "metric" in llm.asked[1][2].content
    assert "cut off" in llm.asked[2][-1].content
    assert len(TALK) == 1, "the caller's conversation is its own"


def test_a_model_that_fails_is_not_asked_again() -> None:
    with pytest.raises(ModelError, match="no more replies"):
        ask(Scripted([]), TALK, Review)


NAMES = re.compile(r"[a-z]+\.py|notes/[a-z]+\.md")
TWO = "First:\n```python one.py\nprint('a')\n```\nand\n~~~~md notes/two.md\n```\nx\n```\n~~~~\nbye"


def test_files_come_by_their_names_and_may_hold_fences() -> None:
    assert read_files(TWO, NAMES) == {"one.py": "print('a')\n", "notes/two.md": "```\nx\n```\n"}
    drafted = "<think>```python one.py\nprint('draft')\n```</think>" + TWO
    assert read_files(drafted, NAMES)["one.py"] == "print('a')\n"
    assert read_files("```\nan example\n```\n" + TWO, NAMES).keys() == {"one.py", "notes/two.md"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no fenced block"),
        ("```python\nprint(1)\n```", "no fenced block"),
        ("```python ../../one.py\n```", "not a name that was asked for"),
        ("```python /etc/passwd\n```", "not a name that was asked for"),
        ("```python one.py\nprint(1)", "is not closed"),
        ("```python one.py\nprint(1)\n````", "is not closed"),
        ("```python one.py\n```\n```python one.py\n```", "two files called 'one.py'"),
        ("x" * 400_001, "characters"),
        ("".join(f"```python {c}a.py\n```\n" for c in "abcdefghijklmnopq"), "more than 16 files"),
    ],
)
def test_what_holds_no_files_says_why(text: str, fault: str) -> None:
    with pytest.raises(AnswerError, match=fault):
        read_files(text, NAMES)
