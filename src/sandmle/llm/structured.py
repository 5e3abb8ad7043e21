"""Typed answers from a model that writes text: found, checked, and asked for again.

Forgiving in form: prose and fences around the object, trailing commas, line breaks within strings.
Strict in meaning: half an object, `NaN`, a key twice, a number written as text, or two different
objects that fit are no answer, and nothing is guessed; the model is told what is wrong and where.
"""

import json
import math
import re
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from sandmle.errors import AnswerError
from sandmle.llm.base import LLM, Completion, Message
from sandmle.types import first_fault

T = TypeVar("T", bound=BaseModel)

_MOST_CHARS = 400_000
_MOST_OBJECTS = 64
_START = re.compile(r'\{\s*(?=["}])')  # a brace of prose or code, as in {project}, begins no object
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)


class Answer(NamedTuple, Generic[T]):
    """What a model answered, and every reply that it took, the unusable ones included."""

    value: T
    replies: tuple[Completion, ...]


def ask(llm: LLM, messages: Sequence[Message], shape: type[T], tries: int = 3) -> Answer[T]:
    """Ask until the reply holds one JSON object of this shape, at most `tries` times.

    A reply that does not is answered with what is wrong. Raises `AnswerError` with the last fault,
    and the `ModelError` of the model itself.
    """
    talk, replies = list(messages), []
    for _ in range(tries):
        reply = llm.complete(talk)
        replies.append(reply)
        try:
            if reply.cut_off:
                raise AnswerError("the reply was cut off at its token limit; be shorter")
            return Answer(read_answer(reply.text, shape), tuple(replies))
        except AnswerError as error:
            fault = error
        talk += [
            Message("assistant", reply.text),
            Message("user", f"This cannot be used: {fault}. Reply with the JSON object alone."),
        ]
    raise AnswerError(f"no usable answer in {tries} tries; of the last one: {fault}")


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
