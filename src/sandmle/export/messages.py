"""Conversations of a run as JSON lines, for supervised fine-tuning with any trainer.

A line is one segment: what the policy saw without a break. An episode from whose conversation
exchanges were left out has several, each with the messages as they were shown.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sandmle.env.context import with_note
from sandmle.errors import TaskError, UsageError
from sandmle.files import read_lines, to_json, write_atomic
from sandmle.llm.base import Message
from sandmle.rollout.folder import RunFolder
from sandmle.types import Trajectory, Turn


class Segment(NamedTuple):
    """A conversation; `trained` are the places of the replies that were given in it."""

    messages: list[Message]
    trained: list[int]


def export_messages(run: Path, out: Path, min_reward: float | None = None) -> int:
    """Write the conversations of a run's finished episodes to `out`; return how many lines.

    Masked episodes and those that could not be scored are left out, and with `min_reward` those
    that earned less. Raises `UsageError` if `run` is no run or `out` cannot be written.
    """
    folder = RunFolder(run)
    if not (run / "run.json").exists():
        raise UsageError(f"{run}: holds no run")
    lines = []
    for trajectory in folder.trajectories():
        if trajectory.mask.masked or trajectory.reward is None:
            continue
        if min_reward is not None and trajectory.reward.total < min_reward:
            continue
        opening = _opening(folder.journal_path(trajectory.id))
        lines += [to_json(row) for row in _rows(trajectory, opening)]
    try:
        write_atomic(out, "".join(f"{line}\n" for line in lines))
    except OSError as error:
        raise UsageError(f"{out}: cannot be written ({error.strerror})") from None
    return len(lines)


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


def _rows(trajectory: Trajectory, opening: Sequence[Message]) -> Iterator[dict[str, Any]]:
    assert trajectory.reward is not None
    for number, segment in enumerate(segments(opening, trajectory.turns)):
        yield {
            "id": trajectory.id,
            "segment": number,
            "task_id": trajectory.task_id,
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
