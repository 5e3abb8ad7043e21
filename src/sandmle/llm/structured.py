"""Typed answers from a model that writes text: found, checked, and asked for again.

Forgiving in form: prose and fences around the object, trailing commas, line breaks within strings.
Strict in meaning: half an object, `NaN`, a key twice, a number written as text, or two different
objects that fit are no answer, and nothing is guessed; the model is told what is wrong and where.
"""

import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from sandmle.errors import AnswerError
from sandmle.llm.base import LLM, Completion, Message
from sandmle.types import first_fault

T = TypeVar("T", bound=BaseModel)
V = TypeVar("V")

_MOST_CHARS = 400_000
_MOST_OBJECTS = 64
_START = re.compile(r'\{\s*(?=["}])')  # a brace of prose or code, as in {project}, begins no object
_FENCE = re.compile(r"\s*(?P<marks>`{3,}|~{3,})[^\S\n]*\w*[^\S\n]*(?P<name>[^\s`]*)\s*")
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)


class Answer(NamedTuple, Generic[V]):
    """What a model answered, and every reply that it took, the unusable ones included."""

    value: V
    replies: tuple[Completion, ...]


def ask(llm: LLM, messages: Sequence[Message], shape: type[T], tries: int = 3) -> Answer[T]:
    """Ask until the reply holds one JSON object of this shape, at most `tries` times.

    A reply that does not is answered with what is wrong. Raises `AnswerError` with the last fault,
    and the `ModelError` of the model itself.
    """
    again = "Reply with the JSON object alone."
    return ask_for(llm, messages, lambda text: read_answer(text, shape), again, tries)


def ask_for(
    llm: LLM, messages: Sequence[Message], read: Callable[[str], V], again: str, tries: int = 3
) -> Answer[V]:
    """Ask until `read` takes the reply; its `AnswerError` is told to the model, with `again`."""
    talk, replies = list(messages), []
    for _ in range(tries):
        reply = llm.complete(talk)
        replies.append(reply)
        try:
            if reply.cut_off:
                raise AnswerError("the reply was cut off at its token limit; be shorter")
            return Answer(read(reply.text), tuple(replies))
        except AnswerError as error:
            fault = error
        talk += [
            Message("assistant", reply.text),
            Message("user", f"This cannot be used: {fault}. {again}"),
        ]
    raise AnswerError(f"no usable answer in {tries} tries; of the last one: {fault}")


def read_files(text: str, wanted: re.Pattern[str], most: int = 16) -> dict[str, str]:
    """Return the files in a reply: each a fenced block whose first line ends in the file's name.

    A fence closes with as many marks as it opened with, so that a block may hold shorter ones.
    Blocks without a name are examples and do not count. Raises `AnswerError`, also for a name that
    `wanted` does not match whole.
    """
    if len(text) > _MOST_CHARS:
        raise AnswerError(f"the reply has {len(text):,} characters, more than {_MOST_CHARS:,}")
    found: dict[str, str] = {}
    lines = iter(text.rpartition("</think>")[2].splitlines())
    for line in lines:
        opened = _FENCE.fullmatch(line)
        if opened is None:
            continue
        body = []
        for inside in lines:
            if inside.strip() == opened["marks"]:
                break
            body.append(inside)
        else:
            raise AnswerError(f"the block {opened['name'] or 'that is last'!r} is not closed")
        name = opened["name"]
        if not name:
            continue
        if not wanted.fullmatch(name):
            raise AnswerError(f"{name!r} is not a name that was asked for")
        if name in found:
            raise AnswerError(f"there are two files called {name!r}")
        found[name] = "\n".join(body) + "\n"
        if len(found) > most:
            raise AnswerError(f"there are more than {most} files in the reply")
    if not found:
        raise AnswerError("there is no fenced block with the name of a file in its first line")
    return found


def read_answer(text: str, shape: type[T]) -> T:
    """Return the one object in `text` that has this shape; `AnswerError` says why there is none.

    What is drafted in a thought before the answer does not count.
    """
    _, closed, answer = text.partition("</think>")
    if not closed and text.lstrip().startswith("<think>"):
        raise AnswerError("the thought was not closed with </think>")
    values: list[T] = []
    faults: list[tuple[int, str]] = []
    for found in _objects(answer if closed else text):
        try:
            # as JSON, where strict still takes a list for a tuple and a whole number for a float
            value = shape.model_validate_json(json.dumps(found.value), strict=True)
        except ValidationError as error:
            faults.append((found.length, first_fault(error)))
            continue
        if value not in values:
            values.append(value)
    if len(values) == 1:
        return values[0]
    if values:
        raise AnswerError(f"there are {len(values)} different objects that fit; give one")
    if faults:
        raise AnswerError(max(faults)[1])  # of the longest, which is the one that was meant
    raise AnswerError("there is no JSON object in the reply")


class _Object(NamedTuple):
    value: dict[str, Any]
    length: int


def _objects(text: str) -> list[_Object]:
    """Return the outermost JSON objects of a text.

    One that is broken is the end of it: what stands inside must not be taken for the whole.
    """
    if len(text) > _MOST_CHARS:
        raise AnswerError(f"the reply has {len(text):,} characters, more than {_MOST_CHARS:,}")
    found: list[_Object] = []
    position = 0
    while start := _START.search(text, position):
        if len(found) == _MOST_OBJECTS:
            raise AnswerError(f"there are more than {_MOST_OBJECTS} objects in the reply")
        # from its brace on, the quotes are those of JSON; a comma becomes a space, so that places
        # in what is parsed are places in the text
        rest = _STRING_OR_COMMA.sub(_without_comma, text[start.start() :])
        try:
            value, end = _DECODER.raw_decode(rest)
        except json.JSONDecodeError as error:
            line = text.count("\n", 0, start.start() + error.pos) + 1
            near = rest[max(0, error.pos - 20) : error.pos + 20]
            raise AnswerError(
                f"the JSON object is broken in line {line} near {near!r}: {error.msg.lower()}"
            ) from None
        except RecursionError:
            raise AnswerError("the JSON object is nested too deeply") from None
        found.append(_Object(value, end))
        position = start.start() + end
    return found


def _without_comma(match: re.Match[str]) -> str:
    return " " if match[0] == "," else match[0]


def _no_constant(name: str) -> None:
    raise AnswerError(f"{name} is no number that JSON can hold")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen = dict(pairs)
    if len(seen) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise AnswerError(f"the key {twice!r} occurs twice in one object")
    return seen


def _finite(digits: str) -> float:
    if math.isinf(value := float(digits)):
        _no_constant(digits)
    return value


_DECODER = json.JSONDecoder(
    strict=False,  # a line break within a string is one
    parse_float=_finite,
    parse_constant=_no_constant,
    object_pairs_hook=_once,
)
