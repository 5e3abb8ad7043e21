"""Samples from a transformers model token by token, for many episodes at once.

A reply that is whole leaves the batch at once, so its program runs while others are sampled, and
the episode joins again with its observation. What the model has read of an episode is kept (its
keys and values), so a turn reads the observation only; the members of a group share one reading of
their prompt. Only full attention can be cut and joined like this: a model with other layers reads
every context from its beginning, and its batches are not joined.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch.nn.functional import pad
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from sandmle.llm.local import draw
from sandmle.train.sampling import Request, Sampled

_ROOM = 64  # tokens that a cache can grow by before it is copied


class _Kept(NamedTuple):
    """What a model has read: ids, and for each layer keys and values [heads, ids, dimension]."""

    ids: list[int]
    layers: list[tuple[Any, Any]]


class _Row:
    """One reply in the making."""

    def __init__(self, key: int, request: Request) -> None:
        self.key = key
        self.request = request
        self.generator = torch.Generator().manual_seed(request.seed)
        self.ids: list[int] = []
        self.logprobs: list[float] = []


class _Roomy(DynamicLayer):  # type: ignore[misc]
    """Keys and values [rows, heads, length, dimension] with room to grow in place.

    The library's layer copies all it holds for every token.
    """

    _seen: Any = None  # the keys as this class left them; others may have put new ones in place
    _buffers: tuple[Any, Any]

    def update(self, keys: Any, values: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Append along the length and return all of both."""
        if not self.is_initialized:
            self.lazy_initialization(keys, values)
            self.keys, self.values = keys, values
            return keys, values
        have, more = self.keys.shape[-2], keys.shape[-2]
        if self.keys is not self._seen or have + more > self._buffers[0].shape[-2]:
            room = (0, 0, 0, max(more, _ROOM))
            self._buffers = (pad(self.keys, room), pad(self.values, room))
        for buffer, tensor in zip(self._buffers, (keys, values), strict=True):
            buffer[..., have : have + more, :] = tensor
        return self._show(have + more)

    def batch_select_indices(self, indices: Any) -> None:
        """Keep these rows, with their room."""
        if self.keys is not self._seen:
            super().batch_select_indices(indices)
            return
        self._buffers = (self._buffers[0][indices], self._buffers[1][indices])
        self._show(self.keys.shape[-2])

    def _show(self, length: int) -> tuple[Any, Any]:
        self.keys, self.values = (buffer[..., :length, :] for buffer in self._buffers)
        self._seen = self.keys
        return self.keys, self.values


class Decoder:
    """An engine on a model in this process. Every reply draws from a generator of its own seed."""

    def __init__(self, model: Any, end_id: int, temperature: float, bfloat16: bool = False) -> None:
        self._model = model
        self._end_id = end_id
        self._temperature = temperature
        self._bfloat16 = bfloat16
        self._queue: list[_Row] = []
        self._rows: list[_Row] = []
        self._kept: dict[int, _Kept] = {}
        # of the rows in the batch: keys and values, mask [rows, length], logits [rows, vocabulary]
        self._cache: Any = None
        self._mask: Any = None
        self._logits: Any = None
        self._joins = _full_attention(model)

    @contextmanager
    def sampling(self) -> Iterator["Decoder"]:
        """Set the model up for sampling, and back for training afterwards.

        The outer autocast keeps the weights that the model casts until it is left; a model that a
        trainer has prepared casts them anew in every call otherwise.
        """
        training = self._model.training
        self._model.eval()
        device = next(self._model.parameters()).device.type
        try:
            with (
                torch.no_grad(),
                torch.autocast(device, torch.bfloat16, enabled=self._bfloat16),
            ):
                yield self
        finally:
            self._model.train(training)

    def due(self, waiting: int, away: int) -> bool:
        """Return whether the batch is empty, or joining it makes it at least twice as large."""
        return not self._rows or (self._joins and waiting >= len(self._rows))

    def submit(self, key: int, request: Request) -> None:
        """Add a request to those that join the batch with the next token."""
        self._queue.append(_Row(key, request))

    def forget(self, key: int) -> None:
        """Free what was read of an episode."""
        self._kept.pop(key, None)

    def advance(self) -> list[tuple[int, Sampled]]:
        """Draw one token for every row and return the replies that end with it."""
        self._admit()
        if not self._rows:
            return []
        tokens, logprobs = draw(
            self._logits, [row.generator for row in self._rows], self._temperature
        )
        for row, token, logprob in zip(self._rows, tokens.tolist(), logprobs.tolist(), strict=True):
            row.ids.append(token)
            row.logprobs.append(logprob)
        whole = self._take_whole()
        if self._rows:
            left = [i for i in range(len(tokens)) if i not in whole]
            self._mask = torch.cat([self._mask, self._mask.new_ones(len(left), 1)], dim=1)
            self._logits = self._forward(tokens[left, None], self._mask, self._cache)
        return list(whole.values())

    def _take_whole(self) -> dict[int, tuple[int, Sampled]]:
        """Take the replies that are whole out of the batch; returns them by their old row."""
        whole, left = {}, []
        for i, row in enumerate(self._rows):
            ended = row.ids[-1] == self._end_id
            if not ended and len(row.ids) < row.request.limit:
                left.append(i)
                continue
            whole[i] = (row.key, Sampled(row.ids, ended, row.logprobs))
            if ended and self._joins:  # a reply that was cut off ends its episode
                self._kept[row.key] = self._keep(i, row)
        if whole:
            self._rows = [self._rows[i] for i in left]
            self._mask = self._mask[left]
            if left:
                self._cache.batch_select_indices(torch.tensor(left, device=self._mask.device))
        return whole

    def _keep(self, i: int, row: _Row) -> _Kept:
        """Cut what was read of row `i` out of the batch: all but its last token, no padding."""
        read = self._mask[i].bool()
        layers = [(one.keys[i][:, read], one.values[i][:, read]) for one in self._cache.layers]
        return _Kept([*row.request.ids, *row.ids[:-1]], layers)

    def _admit(self) -> None:
        """Read what the queue goes on from and let it join the batch."""
        queue, self._queue = self._queue, []
        known = {row.key: self._past(row) for row in queue}
        fresh = [row for row in queue if known[row.key] is None]
        if fresh:
            # equal contexts, as those of a group at its beginning, are read once
            contexts = list(dict.fromkeys(tuple(row.request.ids) for row in fresh))
            place = {ids: i for i, ids in enumerate(contexts)}
            self._join(
                fresh,
                self._read([list(ids) for ids in contexts], None),
                [place[tuple(row.request.ids)] for row in fresh],
            )
        going_on = [(row, past) for row in queue if (past := known[row.key]) is not None]
        if going_on:
            rest = [row.request.ids[len(past.ids) :] for row, past in going_on]
            read = self._read(rest, [past for _, past in going_on])
            self._join([row for row, _ in going_on], read, list(range(len(rest))))

    def _past(self, row: _Row) -> _Kept | None:
        """Return what was read of an episode if its context goes on from that."""
        past, ids = self._kept.pop(row.key, None), row.request.ids
        if past is None or len(past.ids) >= len(ids) or ids[: len(past.ids)] != past.ids:
            return None
        return past

    def _read(self, rows: list[list[int]], pasts: Sequence[_Kept] | None) -> tuple[Any, Any, Any]:
        """Read ids behind what was read before; returns cache, mask and the last logits.

        Both parts are padded on their left, so a row may have a hole, which its mask leaves out.
        """
        device = next(self._model.parameters()).device
        cache = DynamicCache(config=self._model.config)
        if self._joins:
            cache.layers = [_Roomy() for _ in cache.layers]
        width = max(map(len, rows))
        ids = torch.tensor([[0] * (width - len(row)) + row for row in rows], device=device)
        mask = torch.tensor(
            [[0] * (width - len(row)) + [1] * len(row) for row in rows], device=device
        )
        if pasts is not None:
            length = max(len(past.ids) for past in pasts)
            for number, layer in enumerate(cache.layers):
                keys = torch.stack([_wide(past.layers[number][0], length) for past in pasts])
                values = torch.stack([_wide(past.layers[number][1], length) for past in pasts])
                layer.update(keys, values)
            before = [[0] * (length - len(p.ids)) + [1] * len(p.ids) for p in pasts]
            mask = torch.cat([torch.tensor(before, device=device), mask], dim=1)
        return cache, mask, self._forward(ids, mask, cache)

    def _join(self, rows: list[_Row], read: tuple[Any, Any, Any], places: list[int]) -> None:
        """Put rows into the batch; row j goes on from what was read at `places[j]`."""
        cache, mask, logits = read
        if places != list(range(mask.shape[0])):
            index = torch.tensor(places, device=mask.device)
            cache.batch_select_indices(index)
            mask, logits = mask[index], logits[index]
        if self._rows:
            length = max(mask.shape[1], self._mask.shape[1])
            for layer, more in zip(self._cache.layers, cache.layers, strict=True):
                layer.keys = torch.cat([_wide(layer.keys, length), _wide(more.keys, length)])
                layer.values = torch.cat([_wide(layer.values, length), _wide(more.values, length)])
            mask = torch.cat([_wide(self._mask, length, -1), _wide(mask, length, -1)])
            logits = torch.cat([self._logits, logits])
            cache = self._cache
        self._rows += rows
        self._cache, self._mask, self._logits = cache, mask, logits

    def _forward(self, ids: Any, mask: Any, cache: Any) -> Any:
        """Read ids [rows, n] behind the cache and return the last logits [rows, vocabulary]."""
        output = self._model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=(mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :],
            cache=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return output.logits[:, -1].float()


def _wide(tensor: Any, length: int, axis: int = -2) -> Any:
    """Pad a tensor with zeros on the left of an axis, up to `length`."""
    missing = length - tensor.shape[axis]
    return pad(tensor, (0, 0) * (-axis - 1) + (missing, 0)) if missing else tensor


def _full_attention(model: Any) -> bool:
    """Return whether all layers keep plain keys and values, which can be cut and joined."""
    return all(type(layer) is DynamicLayer for layer in DynamicCache(config=model.config).layers)
