"""What a finished program amounts to, as the model reads it from the output.

The direction of the metric is the task's, never the model's opinion. A model that gives no usable
answer is not needed: the line that programs are told to print says the figure too.
"""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from sandmle.errors import AnswerError
from sandmle.llm.base import LLM, Message
from sandmle.llm.structured import ask

METRIC_LINE = "validation metric:"
_TRIES = 2
_PRINTED = re.compile(rf"^[ \t]*(?:final )?{METRIC_LINE}[ \t]*(\S+)[ \t]*$", re.I | re.MULTILINE)


class Review(NamedTuple):
    """`metric` is finite, or None if there is none; `by_model`: the model gave a usable answer."""

    is_bug: bool
    summary: str
    metric: float | None
    by_model: bool = True


class _Verdict(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False)

    is_bug: bool
    summary: str
    metric: float | None


def review(llm: LLM, messages: Sequence[Message], output: str) -> Review:
    """Ask for the review of a program that has ended well; `output` is what it printed.

    Raises the `ModelError` of a model that fails altogether, not of one that talks nonsense.
    """
    try:
        verdict = ask(llm, messages, _Verdict, _TRIES).value
    except AnswerError:
        return fallback(output)
    return Review(verdict.is_bug, verdict.summary.strip(), verdict.metric)


def fallback(output: str) -> Review:
    """Return the review that needs no model: the figure of the last line that was asked for."""
    metric = printed_metric(output)
    summary = "it ran to its end" if metric is not None else "it printed no validation metric"
    return Review(False, summary, metric, by_model=False)


def printed_metric(output: str) -> float | None:
    """Return the figure of the last `validation metric:` line; None if it is none, or not finite.

    >>> printed_metric("validation metric: 0.79\\nfold 5\\nFinal validation metric: 0.81\\n")
    0.81
    """
    found = _PRINTED.findall(output)
    try:
        value = float(found[-1]) if found else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None
