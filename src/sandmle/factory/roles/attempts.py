"""Work that is handed in, tried out, and sent back with what is wrong."""

from collections.abc import Callable
from typing import TypeVar

from sandmle.errors import AnswerError
from sandmle.factory.roles.desk import Call, Desk
from sandmle.factory.roles.workshop import Unfit
from sandmle.llm.base import Message

V = TypeVar("V")


def worked(
    desk: Desk, call: Call, brief: str, build: Callable[[str], V], again: str, attempts: int
) -> V:
    """Ask until what comes can be built; every fault is told to the model and to the journal.

    `build` raises `Unfit`, or `AnswerError` where there is nothing to build. Raises `Unfit` with
    the last fault, and the `ModelError` of the model itself.
    """
    faults = [Unfit("no_answer", "the reply was cut off")]

    def read(text: str) -> V:
        try:
            return build(text)
        except AnswerError as error:
            faults.append(Unfit("no_files", str(error)))
        except Unfit as error:
            faults.append(error)
        last = faults[-1]
        desk.note(call, "sent_back", reason=last.reason, detail=str(last))
        raise AnswerError(f"{last.reason}: {last}")

    try:
        return desk.ask(call, [Message("user", brief)], read, again, attempts)
    except AnswerError:
        raise faults[-1] from None
