"""The checkpoints of a run: `step-NNNNNN`, each written beside its place and renamed into it."""

import json
import shutil
from pathlib import Path
from typing import Any

from sandmle.files import read_lines, write_atomic
from sandmle.llm.weights import BEST, checkpoint_path, checkpoint_steps


class Checkpoints:
    """A folder of checkpoints, and the records of steps that must agree with the last of them."""

    def __init__(self, run: Path) -> None:
        self.root = run / "checkpoints"
        self.draft = self.root / ".draft"
        self.metrics = run / "metrics.jsonl"
        self.validation = run / "validation.jsonl"

    def path(self, step: int) -> Path:
        """Return where the checkpoint after a step lies."""
        return checkpoint_path(self.root, step)

    def steps(self) -> list[int]:
        """Return the steps of the checkpoints that are whole, in order."""
        return checkpoint_steps(self.root)

    def adopt(self, folder: Path, step: int) -> None:
        """Put a checkpoint that is written in its place; the draft goes."""
        if not self.path(step).exists():
            folder.rename(self.path(step))
        self.clear_draft()

    def clear_draft(self) -> None:
        """Remove what a run that was killed while it wrote a checkpoint has left."""
        shutil.rmtree(self.draft, ignore_errors=True)

    def rewind(self) -> int | None:
        """Take the run back to its last checkpoint and return its step; None if there is none.

        What was recorded of later steps goes: they are made again.
        """
        self.clear_draft()
        last = max(self.steps(), default=None)
        for path in (self.metrics, self.validation):
            lines = list(read_lines(path))
            kept = [line for line in lines if json.loads(line)["step"] <= (last or 0)]
            if len(kept) < len(lines):
                write_atomic(path, "".join(f"{line}\n" for line in kept))
        return last

    def validated(self) -> list[dict[str, Any]]:
        """Return the lines of `validation.jsonl`."""
        return [json.loads(line) for line in read_lines(self.validation)]

    def best(self) -> int | None:
        """Return the step with the highest validation reward among the checkpoints; the first of
        equals; None without any.
        """
        there = set(self.steps())
        scored = [
            (line["reward"], -line["step"])
            for line in self.validated()
            if line["step"] in there and line["reward"] is not None
        ]
        return -max(scored)[1] if scored else None

    def settle(self, keep: int) -> None:
        """Note which checkpoint is the best; remove all but it and the last `keep`."""
        best = self.best()
        if best is not None:
            write_atomic(self.root / BEST, f"{self.path(best).name}\n")
        for step in self.steps()[:-keep]:
            if step != best:
                # out of its place first: half a checkpoint must not look like a whole one
                self.clear_draft()
                self.path(step).rename(self.draft)
        self.clear_draft()
