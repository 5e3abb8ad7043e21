"""The conversations of a run, for supervised fine-tuning.

One is a segment: what the policy saw without a break. An episode from whose conversation exchanges
were left out has several, each with the messages as they were shown. Of a search each program is
one, with what was asked when it was written.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sandmle.env.context import with_note
from sandmle.errors import TaskError, UsageError
from sandmle.files import read_lines
from sandmle.llm.base import Message
from sandmle.rollout.folder import RunFolder
from sandmle.types import Trajectory, Turn


class Segment(NamedTuple):
    """A conversation; `trained` are the places of the replies that were given in it."""

    messages: list[Message]
    trained: list[int]


def conversations(run: Path) -> Iterator[dict[str, Any]]:
    """Yield the conversations of a run's finished episodes; `UsageError` if `run` is no run.

    Masked episodes and those that could not be scored are left out.
    """
    folder = RunFolder(run)
    if not (run / "run.json").exists():
        raise UsageError(f"{run}: holds no run")
    for trajectory in folder.trajectories():
        if not trajectory.mask.masked and trajectory.reward is not None:
            yield from _rows(trajectory, _segments(folder.journal_path(trajectory.id), trajectory))


def segments(opening: Sequence[Message], turns: Sequence[Turn]) -> Iterator[Segment]:
    """Yield what the policy saw, and which replies it gave; `opening` is system and task."""
    shown: list[Turn] = []
    left_out = 0
    first = 0
    for turn in turns:
        if turn.evicted:
            yield _segment(opening, left_out, shown, first)
            left_out += len(turn.evicted)
            shown = [one for one in shown if one.index not in turn.evicted]
            first = turn.index
        shown.append(turn)
    if shown:
        yield _segment(opening, left_out, shown, first)


def _segment(opening: Sequence[Message], left_out: int, shown: list[Turn], first: int) -> Segment:
    system, task = opening
    messages, trained = [system, with_note(task, left_out)], []
    for turn in shown:
        if turn.index >= first:
            trained.append(len(messages))
        messages.append(Message("assistant", turn.completion))
        if turn.observation is not None:
            messages.append(Message("user", turn.observation))
    if messages[-1].role == "user":
        messages.pop()  # nobody answered it here
    return Segment(messages, trained)


def _segments(path: Path, trajectory: Trajectory) -> Iterator[Segment]:
    """Yield the segments of an episode: of a conversation, or of a search, which has no opening."""
    first = _events(path, "start")
    if first and "messages" not in first[0]:
        yield from _programs(path, trajectory.turns)
    else:
        yield from segments(_opening(path), trajectory.turns)


def _programs(path: Path, turns: Sequence[Turn]) -> Iterator[Segment]:
    """Yield what was asked for each program of a search that could be used, and the reply."""
    said = {(event["turn"], event["reply"]): event for event in _events(path, "llm")}
    for turn in turns:
        event = said.get((turn.index, turn.completion)) if turn.format_ok else None
        if event is not None:
            messages = [Message(*message) for message in event["messages"]]
            yield Segment([*messages, Message("assistant", turn.completion)], [len(messages)])


def _events(path: Path, kind: str) -> list[dict[str, Any]]:
    """Return the events of one kind; `TaskError` if the journal cannot be read."""
    try:
        events = [json.loads(line) for line in read_lines(path)]
    except (OSError, ValueError) as error:
        raise TaskError(f"{path}: cannot be read ({error})") from None
    return [event for event in events if event.get("event") == kind]


def _rows(trajectory: Trajectory, found: Iterator[Segment]) -> Iterator[dict[str, Any]]:
    assert trajectory.reward is not None
    for number, segment in enumerate(found):
        yield {
            "id": trajectory.id,
            "segment": number,
            "task_id": trajectory.task_id,
            "group": trajectory.group,
            "valid": trajectory.grade.status == "ok",
            "reward": trajectory.reward.total,
            "messages": [message._asdict() for message in segment.messages],
            "trained": segment.trained,
        }


def _opening(path: Path) -> list[Message]:
    """Return the messages that an episode began with, from its journal."""
    try:
        event = next(iter(read_lines(path)))
        found = [Message(*message) for message in json.loads(event)["messages"]]
    except (OSError, StopIteration, ValueError, KeyError, TypeError) as error:
        raise TaskError(f"{path}: does not begin with an episode's start ({error})") from None
    if [message.role for message in found] != ["system", "user"]:
        raise TaskError(f"{path}: does not begin with a system message and a task")
    return found
