"""A transformers model in this process: episodes wait, one thread answers them in batches."""

import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

from sandmle.config import PolicySection
from sandmle.errors import ContextError, ModelError, UsageError
from sandmle.llm.base import Completion, Message
from sandmle.llm.pretrained import chat_ids, first_line, load_pretrained, require_extra

_LINGER_S = 0.02  # episodes that start together should meet in one batch
_DIALOGUE = [Message("system", "rules"), Message("user", "question"), Message("assistant", "reply")]


class _Request:
    """One reply in the making: the prompt's ids, and what was sampled so far."""

    def __init__(self, prompt: list[int], limit: int, generator: Any) -> None:
        self.prompt = prompt
        self.limit = limit
        self.generator = generator
        self.ids: list[int] = []
        self.logprobs: list[float] = []
        self.done: Future[Completion] = Future()


class LocalModel:
    """A model and its tokenizer, shared by every episode of a run; `complete` may be called by any
    thread.

    The model runs on CUDA in bfloat16 if there is CUDA, else on the CPU in float32. Up to
    `section.requests` replies are made side by side. Every reply draws from a generator of its
    own, so the same seed gives the same tokens whatever else is in the batch, up to floating-point
    noise: padding changes the last bits of the logits, and a draw that falls between two tokens to
    within these bits may go either way.
    """

    def __init__(self, path: str, section: PolicySection) -> None:
        """Load `hf:PATH`; raises `UsageError` for what cannot be loaded or cannot chat, and
        `MissingExtraError` without the packages of `sandmle[train]`.
        """
        self.name = f"hf:{path}"
        require_extra(self.name, "torch", "transformers")
        self._section = section
        self._tokenizer, model = load_pretrained(path, _dtype())
        self._tokenizing = threading.Lock()  # one tokenizer cannot serve two threads at once
        self._check_template()
        self._model = model.to(_device()).eval()
        self._ends = self._end_ids()
        self._context: int | None = getattr(
            model.config.get_text_config(), "max_position_embeddings", None
        )
        self._used = 0  # tokens, for section.max_tokens
        self._closed = False
        self._waiting: deque[_Request] = deque()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._serve, name=self.name, daemon=True)
        self._thread.start()

    def complete(self, messages: Sequence[Message], seed: int) -> Completion:
        """Return a reply of at most `turn_tokens` tokens; `seed` (64 bits) decides what is drawn.

        `ids` ends with the token that ended the reply, if one did. `logprobs` are those of the
        model itself, at temperature 1, whatever temperature was sampled with. A thought that the
        prompt opens is part of the text, so that it reads the same when it is sent back.

        Raises `ContextError` if the prompt leaves no room for a reply, and `ModelError` if the
        generation failed, the model was closed, or `max_tokens` are used.
        """
        import torch

        try:
            prompt = self._render(messages)
        except Exception as error:  # a template is a program of its author's
            raise ModelError(f"{self.name}: the chat template: {first_line(error)}") from None
        room = self._section.turn_tokens
        if self._context is not None:
            room = min(room, self._context - len(prompt))
            if room < 1:
                raise ContextError(
                    f"{self.name}: a prompt of {len(prompt)} tokens; the model takes "
                    f"{self._context - 1}"
                )
        request = _Request(prompt, room, torch.Generator().manual_seed(seed))
        with self._changed:
            budget = self._section.max_tokens
            if budget is not None and self._used >= budget:
                raise ModelError(f"{self.name}: policy.max_tokens = {budget} are used")
            if self._closed:
                raise self._closed_error()
            self._waiting.append(request)
            self._changed.notify()
        return request.done.result()

    def count(self, text: str | Sequence[Message]) -> int:
        """Return how many tokens a text has, or a conversation as a prompt."""
        if isinstance(text, str):
            with self._tokenizing:
                return len(self._tokenizer.encode(text, add_special_tokens=False))
        return len(self._render(text))

    def close(self) -> None:
        """End the thread; replies in the making fail with `ModelError`. May be called twice."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _serve(self) -> None:
        """Answer what waits until the model is closed; a batch that fails takes no other along."""
        while batch := self._next_batch():
            try:
                self._generate(batch)
            except Exception as error:
                _fail(batch, f"{self.name}: {type(error).__name__}: {first_line(error)}")
        _fail(self._waiting, str(self._closed_error()))

    def _next_batch(self) -> list[_Request]:
        """Wait for requests and take as many as may be served at once; none when closed."""
        size = self._section.requests
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            self._changed.wait_for(lambda: len(self._waiting) >= size or self._closed, _LINGER_S)
            if self._closed:
                return []
            return [self._waiting.popleft() for _ in range(min(size, len(self._waiting)))]

    def _generate(self, batch: list[_Request]) -> None:
        """Sample the replies of a batch token by token; each is handed out when it is whole."""
        import torch

        with torch.inference_mode():
            ids, mask = self._pad([request.prompt for request in batch])
            cache = None
            while True:
                if self._closed:
                    return _fail(batch, str(self._closed_error()))
                output = self._model(
                    input_ids=ids,
                    attention_mask=mask,
                    position_ids=(mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :],
                    cache=cache,
                    use_cache=True,
                    logits_to_keep=1,  # a long prompt's logits would not fit into memory
                )
                cache = output.cache
                tokens = self._pick(output.logits[:, -1].float(), batch)
                self._finish(batch)
                open_rows = [i for i, request in enumerate(batch) if not request.done.done()]
                if not open_rows:
                    return
                if len(open_rows) < len(batch):
                    cache.batch_select_indices(torch.tensor(open_rows, device=mask.device))
                batch = [batch[i] for i in open_rows]
                ids = tokens[open_rows, None]
                mask = torch.cat([mask[open_rows], mask.new_ones(len(batch), 1)], dim=1)

    def _pad(self, prompts: list[list[int]]) -> tuple[Any, Any]:
        """Return ids and attention mask, both [prompts, longest prompt], padded on the left."""
        import torch

        width = max(map(len, prompts))
        rows = [[0] * (width - len(prompt)) + prompt for prompt in prompts]
        mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
        device = self._model.device
        return torch.tensor(rows, device=device), torch.tensor(mask, device=device)

    def _pick(self, logits: Any, batch: Sequence[_Request]) -> Any:
        """Draw a token for each row of `logits`, and note it; returns [requests]."""
        tokens, logprobs = draw(logits, [r.generator for r in batch], self._section.temperature)
        for request, token, logprob in zip(batch, tokens.tolist(), logprobs.tolist(), strict=True):
            request.ids.append(token)
            request.logprobs.append(logprob)
        return tokens

    def _finish(self, batch: Sequence[_Request]) -> None:
        """Hand out the replies that are whole."""
        for request in batch:
            ended = request.ids[-1] in self._ends
            if not ended and len(request.ids) < request.limit:
                continue
            with self._changed:
                self._used += len(request.prompt) + len(request.ids)
            request.done.set_result(
                Completion(
                    text=self._opening(request.prompt) + self._decode(request.ids, plain=True),
                    prompt_tokens=len(request.prompt),
                    completion_tokens=len(request.ids),
                    cut_off=not ended,
                    ids=tuple(request.ids),
                    logprobs=tuple(request.logprobs),
                )
            )

    def _opening(self, prompt: Sequence[int]) -> str:
        """Return the thinking tag if the prompt opened one, as some chat templates do."""
        return "<think>\n" if self._decode(prompt[-8:]).rstrip().endswith("<think>") else ""

    def _render(self, messages: Sequence[Message]) -> list[int]:
        with self._tokenizing:
            return chat_ids(self._tokenizer, messages)

    def _decode(self, ids: Sequence[int], plain: bool = False) -> str:
        """Return the text of ids; `plain` leaves special tokens out."""
        with self._tokenizing:
            return str(self._tokenizer.decode(ids, skip_special_tokens=plain))

    def _check_template(self) -> None:
        """Raise `UsageError` unless the tokenizer can render a conversation."""
        if not self._tokenizer.chat_template:
            raise UsageError(
                f"policy {self.name}: its tokenizer has no chat template; use a model that chats"
            )
        try:
            chat_ids(self._tokenizer, _DIALOGUE)
        except Exception as error:
            raise UsageError(
                f"policy {self.name}: its chat template cannot render a system, a user and an "
                f"assistant message: {first_line(error)}"
            ) from None

    def _end_ids(self) -> set[int]:
        """Return the ids that end a reply: end of text, and what the template ends a turn with."""
        configured = self._model.generation_config.eos_token_id
        listed = configured if isinstance(configured, list) else [configured]
        opened = chat_ids(self._tokenizer, _DIALOGUE[:-1])
        reply = chat_ids(self._tokenizer, _DIALOGUE, add_generation_prompt=False)[len(opened) :]
        added = self._tokenizer.added_tokens_decoder
        turn_ends = {token for token in reply if token in added and added[token].special}
        return ({self._tokenizer.eos_token_id, *listed} - {None}) | turn_ends

    def _closed_error(self) -> ModelError:
        return ModelError(f"{self.name}: the model was closed")


def draw(logits: Any, generators: Sequence[Any], temperature: float) -> tuple[Any, Any]:
    """Draw a token for each row of `logits` [rows, vocabulary] and return tokens and log-probs.

    Both are [rows]; the log-probs are those at temperature 1. One number in [0, 1) of the row's
    generator is looked up in its cumulative distribution, so what a row draws depends on its own
    logits only. Temperature 0 takes the likeliest token.
    """
    import torch

    if temperature == 0:
        tokens = logits.argmax(-1)
    else:
        upto = torch.softmax(logits.double() / temperature, -1).cumsum(-1)
        draws = [torch.rand((), generator=g, dtype=torch.float64) for g in generators]
        # scaled by the sum, which rounding keeps from being exactly 1
        aims = torch.stack(draws).to(upto.device)[:, None] * upto[:, -1:]
        tokens = torch.searchsorted(upto, aims, right=True)[:, 0].clamp(max=upto.shape[1] - 1)
    logprobs = torch.log_softmax(logits, -1).gather(-1, tokens[:, None])[:, 0]
    return tokens, logprobs


def request_seed(episode_seed: int, turn: int) -> int:
    """Return the seed of one reply of an episode: 64 bits, independent for every turn."""
    return int(np.random.SeedSequence([episode_seed, turn]).generate_state(1, np.uint64)[0])


def _fail(requests: Sequence[_Request], reason: str) -> None:
    for request in requests:
        if not request.done.done():
            request.done.set_exception(ModelError(reason))


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _dtype() -> str:
    return "bfloat16" if _device() == "cuda" else "float32"
