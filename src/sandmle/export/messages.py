"""Conversations of a run as JSON lines, for supervised fine-tuning with any trainer."""

from pathlib import Path

from sandmle.errors import UsageError
from sandmle.files import to_json, write_atomic
from sandmle.rollout.conversations import conversations


def export_messages(run: Path, out: Path, min_reward: float | None = None) -> int:
    """Write the conversations of a run to `out`, one a line; return how many.

    With `min_reward` without those that earned less. Raises `UsageError` if `run` is no run or
    `out` cannot be written.
    """
    lines = [
        to_json(row)
        for row in conversations(run)
        if min_reward is None or row["reward"] >= min_reward
    ]
    try:
        write_atomic(out, "".join(f"{line}\n" for line in lines))
    except OSError as error:
        raise UsageError(f"{out}: cannot be written ({error.strerror})") from None
    return len(lines)
