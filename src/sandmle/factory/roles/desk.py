"""Where the roles ask their model: every call is kept, and what was paid for is not asked again."""

from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from sandmle.config import PolicySection
from sandmle.errors import ModelError
from sandmle.files import append_line, sha256, to_json
from sandmle.llm.base import LLM, Completion, Message
from sandmle.llm.replay import Keys, Store
from sandmle.llm.structured import ask_for

V = TypeVar("V")
_EXAMPLE = "sandmle.factory.roles"


class Call(NamedTuple):
    """Who asks for what: `scenario` and `mutation` count from 0, None before there are any."""

    role: str
    seed: str
    scenario: int | None = None
    mutation: int | None = None

    @property
    def name(self) -> str:
        """Return it as one name."""
        return "-".join(
            [self.role, *(str(n) for n in (self.scenario, self.mutation) if n is not None)]
        )


class Source(Protocol):
    """A model that answers calls."""

    name: str

    def open(self, call: Call) -> LLM:
        """Return the model for one call and what follows it."""
        ...

    def close(self) -> None:
        """Free what it holds; may be called twice."""
        ...


class Example:
    """`replay:example`: answers that are shipped, by seed, role, scenario and attempt.

    They lie in `example/<seed>/<role>-<scenario>-<mutation>.<attempt>.md`, attempts from 1.
    """

    name = "replay:example"

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path(str(resources.files(_EXAMPLE).joinpath("example")))

    def seeds(self, factory: str = "llm") -> list[str]:
        """Return the seeds that there are answers for, of the roles of a factory."""
        role = "story" if factory == "hybrid" else "developer"
        return sorted({path.parent.name for path in self._folder.glob(f"*/{role}-*.md")})

    def open(self, call: Call) -> LLM:
        """Return the player of the answers to a call."""
        return _Played(self._folder / call.seed, call.name)

    def close(self) -> None:
        """Nothing is held."""


class _Played:
    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name

    def complete(self, messages: Sequence[Message]) -> Completion:
        attempt = 1 + sum(message.role == "assistant" for message in messages)
        path = self._folder / f"{self._name}.{attempt}.md"
        if not path.is_file():
            raise ModelError(
                f"no answer was recorded for {self._folder.name}: {self._name}, attempt {attempt}"
            )
        text = path.read_text("utf-8")
        asked = sum(len(message.content) for message in messages)
        return Completion(text, asked // 4, len(text) // 4, 0.0)


class Desk:
    """Asks for a corpus; its folder keeps the journal and every reply.

    A reply that is there already is taken from the folder: a run that was killed asks again only
    what was under way. Safe to use from several threads.
    """

    def __init__(self, folder: Path, source: Source, section: PolicySection) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.source = source
        self._section = section
        self._journal = folder / "journal.jsonl"
        self._store = Store(folder / "replies.sqlite", create=True)

    def session(self, call: Call) -> LLM:
        """Return the model for a call, with its replies kept."""
        return _Kept(self, call, self.source.open(call), self._keys(call))

    def ask(
        self, call: Call, messages: Sequence[Message], read: Callable[[str], V], again: str,
        tries: int = 3,
    ) -> V:  # fmt: skip
        """Ask until `read` takes the answer; raises `AnswerError` and `ModelError`."""
        return ask_for(self.session(call), messages, read, again, tries).value

    def note(self, call: Call, what: str, **facts: object) -> None:
        """Write a line into the journal."""
        append_line(self._journal, to_json({"event": what, **call._asdict(), **facts}))

    def close(self) -> None:
        """Close files and model."""
        self._store.close()
        self.source.close()

    def _keys(self, call: Call) -> Keys:
        number = int(sha256(to_json(list(call)).encode())[:8], 16)
        return Keys(self.source.name, self._section, number)

    def get(self, key: str) -> Completion | None:
        """Return a reply that was kept."""
        return self._store.get(key)

    def put(self, key: str, completion: Completion) -> None:
        """Keep a reply."""
        self._store.put(key, self.source.name, completion)


class _Kept:
    def __init__(self, desk: Desk, call: Call, llm: LLM, keys: Keys) -> None:
        self._desk, self._call, self._llm, self._keys = desk, call, llm, keys

    def complete(self, messages: Sequence[Message]) -> Completion:
        key = self._keys.next(messages)
        kept = self._desk.get(key)
        if kept is not None:
            return kept
        reply = self._llm.complete(messages)
        # half a character, which a server may well send, cannot be kept
        reply = reply._replace(text=reply.text.encode(errors="replace").decode())
        self._desk.put(key, reply)
        counts = {
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.completion_tokens,
        }
        self._desk.note(self._call, "reply", key=key, usd=reply.usd, **counts)
        return reply
