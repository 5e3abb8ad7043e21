"""The token ledger: what was sampled, in the order it was sampled, with its loss mask.

A trajectory is trained on the ids that the policy sampled, never on ids made again from text. The
mask is built while sampling: 1 on what the policy generated, 0 on the prompt, on observations and
on anything that we appended.
"""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sandmle.files import write_atomic


class TokenLedger:
    """Append-only record of one trajectory; ids, mask and log-probs always have one length."""

    def __init__(self, prompt_ids: Sequence[int]) -> None:
        if not prompt_ids:
            raise ValueError("a trajectory needs a prompt of at least one token")
        self.prompt_ids = list(prompt_ids)
        self.completion_ids: list[int] = []
        self.mask: list[int] = []
        self.logprobs: list[float | None] = []

    @property
    def ids(self) -> list[int]:
        """Return prompt and completion: what the policy is given to go on from."""
        return self.prompt_ids + self.completion_ids

    def add_sampled(self, ids: Sequence[int], logprobs: Sequence[float] | None = None) -> None:
        """Append ids that the policy sampled, with their log-probs if known."""
        if logprobs is not None and len(logprobs) != len(ids):
            raise ValueError(f"{len(ids)} ids but {len(logprobs)} log-probs")
        self._append(ids, 1, list(logprobs) if logprobs is not None else [None] * len(ids))

    def add_given(self, ids: Sequence[int]) -> None:
        """Append ids that the policy did not choose: observations, role headers, forced ends."""
        self._append(ids, 0, [None] * len(ids))

    def truncate(self, length: int) -> None:
        """Cut the completion to `length` tokens, every list with it."""
        del self.completion_ids[length:]
        del self.mask[length:]
        del self.logprobs[length:]

    def save(self, path: Path) -> None:
        """Write the ledger as `.npz`: prompt_ids, completion_ids, mask, logprobs (NaN: unknown)."""
        known = [float("nan") if value is None else value for value in self.logprobs]
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer,
            prompt_ids=np.array(self.prompt_ids, dtype=np.int32),
            completion_ids=np.array(self.completion_ids, dtype=np.int32),
            mask=np.array(self.mask, dtype=np.int8),
            logprobs=np.array(known, dtype=np.float32),
        )
        write_atomic(path, buffer.getvalue())

    def _append(self, ids: Sequence[int], mask: int, logprobs: list[float | None]) -> None:
        self.completion_ids += ids
        self.mask += [mask] * len(ids)
        self.logprobs += logprobs
