"""Models behind any server that speaks OpenAI's chat completions."""

import asyncio
import json
import os
import random
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import httpx

from sandmle.config import PolicySection
from sandmle.errors import ContextError, ModelError, UsageError
from sandmle.llm.background import Background
from sandmle.llm.base import LLM, Completion, Message
from sandmle.llm.budget import Budget, dollars

OPENAI = "https://api.openai.com/v1"

_AGAIN = {408, 429, 500, 502, 503, 504}  # what may be otherwise when it is asked again
_LONGEST_PAUSE_S = 60.0
_NEW_LIMIT = "max_completion_tokens"
_SHOWN = 240  # characters of what came back, in an error
_CONTEXT = (
    "context_length_exceeded",
    "context length",
    "context size",
    "context window",
    "maximum context",
    "too long",
)


class _Fault(NamedTuple):
    """Why a try gave no reply; `again`: whether another one may, after at least `pause_s`."""

    what: str
    again: bool = True
    pause_s: float = 0.0
    sort: type[ModelError] = ModelError


class Endpoint:
    """A model behind a URL, shared by the episodes of a run; safe to use from many threads.

    Without `url` and `key` they are `OPENAI_BASE_URL` (OpenAI's own if that is not set) and
    `OPENAI_API_KEY`, which a local server can do without. Nothing that is raised shows the key.
    `backoff_s` is how long the first pause before another try may be, in seconds; each further one
    may be twice as long. Nothing is asked before the first reply is wanted.

    Raises `UsageError` for a URL that is none, a key that cannot be sent, OpenAI's URL without a
    key, a proxy that cannot be used, and a cap in dollars without a price.
    """

    def __init__(
        self,
        model: str,
        section: PolicySection,
        url: str | None = None,
        key: str | None = None,
        backoff_s: float = 1.0,
    ) -> None:
        base = url or os.environ.get("OPENAI_BASE_URL") or OPENAI
        self._key = _checked_key(key or os.environ.get("OPENAI_API_KEY") or "")
        if not self._key and base == OPENAI:
            raise UsageError(
                "OPENAI_API_KEY is not set; OPENAI_BASE_URL names a server that needs none"
            )
        self._url = _chat_url(base)
        self._model = model
        self._section = section
        self._backoff_s = backoff_s
        self._chance = random.Random()
        self._limit = "max_tokens"
        self._slots = asyncio.Semaphore(section.requests)
        self.budget = Budget(section.max_usd, section.max_tokens, section.usd_per_million)
        self._client = _client(self._key)
        self._background = Background(self._client)
        self._told: dict[str, str] = {}

    def versions(self) -> dict[str, str]:
        """Return what the server's latest reply said it is: its model, and its fingerprint."""
        return dict(self._told)

    def session(self, seed: int | None) -> LLM:
        """Return the model for one episode, which samples with a seed of its own."""
        return _Session(self, seed)

    def complete(self, messages: Sequence[Message], seed: int | None) -> Completion:
        """Return the reply to a conversation; `ModelError` if there is none after all tries.

        `ContextError` if it is too long for the model.
        """
        return self._background.run(self._ask(messages, seed))

    def close(self) -> None:
        """End what is being asked, with `ModelError`, and close the connections."""
        self._background.close()

    async def _ask(self, messages: Sequence[Message], seed: int | None) -> Completion:
        tries = 0
        while True:
            limit = self._limit
            async with self._slots:  # held for one try only, not while it pauses
                self.budget.check()
                answer = await self._try(self._body(messages, seed, limit))
                if isinstance(answer, Completion):
                    self.budget.spend(messages, answer)
                    return answer
            if limit != _NEW_LIMIT and not answer.again and _NEW_LIMIT in answer.what:
                self._limit = _NEW_LIMIT  # the same thing by the name that this model knows
                continue
            tries += 1
            if not answer.again or tries > self._section.retries:
                raise answer.sort(self._line(answer.what, tries))
            await asyncio.sleep(self._pause(tries, answer.pause_s))

    def _body(self, messages: Sequence[Message], seed: int | None, limit: str) -> bytes:
        request: dict[str, Any] = {
            "model": self._model,
            "messages": [message._asdict() for message in messages],
            "temperature": self._section.temperature,
            limit: self._section.turn_tokens,
        }
        if seed is not None:
            request["seed"] = seed
        return json.dumps(request).encode()

    async def _try(self, body: bytes) -> Completion | _Fault:
        try:
            # over everything, a server that sends a byte now and then included
            async with asyncio.timeout(self._section.timeout_s):
                response = await self._client.post(self._url, content=body)
        except TimeoutError:
            return _Fault(f"no whole reply within {self._section.timeout_s:g} s")
        except httpx.HTTPError as error:
            return _Fault(f"{type(error).__name__} {error}".strip())
        if not response.is_success:
            return _refusal(response)
        found = _completion(response, self._section.usd_per_million)
        if found is not None:
            self._told = _identity(response.json())
        return found or _Fault(f"no chat completion came back: {response.text}")

    def _pause(self, tries: int, at_least: float) -> float:
        """Return how long to wait after so many tries: full jitter, doubling, at most a minute."""
        longest = self._backoff_s * 2.0 ** min(tries - 1, 16)
        return max(at_least, self._chance.uniform(0, min(longest, _LONGEST_PAUSE_S)))

    def _line(self, what: str, tries: int) -> str:
        """Return one line that a terminal can show, without the key if the server repeats it."""
        what = what.replace(self._key, "***") if self._key else what
        what = "".join(c if c.isprintable() else "?" for c in " ".join(what.split()))
        what = what if len(what) <= _SHOWN else f"{what[:_SHOWN]}..."
        plural = "try" if tries == 1 else "tries"
        return f"POST {_shown(self._url)} (model {self._model}): {what} ({tries} {plural})"


class _Session:
    def __init__(self, endpoint: Endpoint, seed: int | None) -> None:
        self._endpoint = endpoint
        self._seed = seed

    def complete(self, messages: Sequence[Message]) -> Completion:
        return self._endpoint.complete(messages, self._seed)


def _checked_key(key: str) -> str:
    key = key.strip()
    if not all("!" <= c <= "~" for c in key):
        raise UsageError("OPENAI_API_KEY holds blanks or characters that no key has")
    return key


def _chat_url(base: str) -> httpx.URL:
    try:
        url = httpx.URL(base)
        if url.scheme not in {"http", "https"} or not url.host:
            raise httpx.InvalidURL("scheme or host")
        return url.copy_with(path=url.path.rstrip("/") + "/chat/completions")
    except httpx.InvalidURL:
        # not shown: it may hold a password
        raise UsageError(
            "OPENAI_BASE_URL is no http or https URL; write it like http://localhost:8000/v1"
        ) from None


def _shown(url: httpx.URL) -> str:
    """Return a URL without user, password and query."""
    return f"{url.scheme}://{url.netloc.decode()}{url.path}"


def _client(key: str) -> httpx.AsyncClient:
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    try:
        # the endpoint counts requests and seconds itself
        limits = httpx.Limits(max_connections=None)
        return httpx.AsyncClient(headers=headers, timeout=None, limits=limits)
    except (ValueError, ImportError, OSError, httpx.InvalidURL) as error:
        reason = f"{type(error).__name__}; see the variables of proxies and certificates"
        raise UsageError(f"no connection to a model's server can be made: {reason}") from None


def _refusal(response: httpx.Response) -> _Fault:
    status, text = response.status_code, response.text
    what = f"HTTP {status}: {text}" if text.strip() else f"HTTP {status} without a word"
    if status == 400 and any(phrase in text.lower() for phrase in _CONTEXT):
        return _Fault(what, again=False, sort=ContextError)
    return _Fault(what, status in _AGAIN, _retry_after(response))


def _retry_after(response: httpx.Response) -> float:
    """Return the seconds that a server asks to wait, at most a minute; 0 for none, or a date."""
    value = response.headers.get("Retry-After", "").strip()
    if not re.fullmatch(r"[0-9]+(\.[0-9]*)?", value):
        return 0.0
    return min(float(value), _LONGEST_PAUSE_S)


def _completion(response: httpx.Response, price: tuple[float, float] | None) -> Completion | None:
    """Read a reply; None for anything that is no chat completion."""
    if "json" not in response.headers.get("Content-Type", ""):
        return None
    try:
        data = json.loads(response.content)
        choice = data["choices"][0]
        text = _text(choice["message"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    usage = data.get("usage")
    prompt, reply = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    usd = None
    if price is not None and prompt is not None and reply is not None:
        usd = dollars(prompt, reply, price)
    return Completion(text, prompt, reply, usd, cut_off=choice.get("finish_reason") == "length")


def _identity(reply: dict[str, Any]) -> dict[str, str]:
    """Return what a server says it is; most say no more than the name of the model."""
    told = {"model": reply.get("model"), "server": reply.get("system_fingerprint")}
    return {name: value[:_SHOWN] for name, value in told.items() if value and type(value) is str}


def _text(message: Any) -> str:
    """Return what a message says, with the thought that some servers give beside it."""
    content = message["content"] or ""
    thought = message.get("reasoning_content") or message.get("reasoning")
    if not isinstance(content, str):
        raise TypeError("not a text")
    if not isinstance(thought, str) or not thought.strip() or "<think>" in content:
        return content
    return f"<think>\n{thought.strip()}\n</think>\n{content}"


def _count(usage: Any, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if type(value) is int and value >= 0 else None
