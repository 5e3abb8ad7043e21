"""The ReAct state machine on top of a workbench; trainers and the ReAct scaffold drive it.

env = MLEEnv(workbench)
while not env.done:
    observation = env.step(reply_to(env.observe()))  # None when the episode has ended
outcome = env.close()
"""

from collections.abc import Callable, Sequence
from typing import Any

from sandmle.env.context import Exchange, open_context, with_note
from sandmle.env.dialects import DIALECTS
from sandmle.env.packages import installed
from sandmle.env.protocol import observe
from sandmle.env.workbench import Outcome, Workbench
from sandmle.files import render
from sandmle.llm.base import Message
from sandmle.types import Action, ErrorRecord, ExecResult, Seconds, StopReason, Turn, Usage


class MLEEnv:
    """One episode: single use, ends by itself, never raises for anything a policy does.

    With `count`, which gives the tokens of a conversation, exchanges are left out of it when it
    outgrows `env.context_tokens`; without, it only ever grows, as token-level training wants it.
    """

    def __init__(
        self,
        workbench: Workbench,
        think_opened: bool = False,
        count: Callable[[Sequence[Message]], int] | None = None,
    ) -> None:
        self.workbench = workbench
        self._think_opened = think_opened
        self._count = count
        self._dialect = DIALECTS.get(workbench.config.dialect)
        self._evict = open_context(workbench.config.context)
        self._opening = self._prompts()
        self._exchanges: list[Exchange] = []
        self._last: list[Message] = []  # a reply that ended the episode
        self._evicted = 0  # all, and those since the last reply
        self._evicted_now: tuple[int, ...] = ()
        self._stopped: tuple[StopReason, ErrorRecord | None] | None = None
        workbench.journal.event("start", task=workbench.task.id, messages=self._opening)

    @property
    def done(self) -> bool:
        """Return whether the episode has ended."""
        return self._stopped is not None

    def observe(self) -> list[Message]:
        """Return the conversation as the policy sees it."""
        return [*self._seen(self._exchanges), *self._last]

    def _seen(self, exchanges: Sequence[Exchange], more: int = 0) -> list[Message]:
        """Return the conversation with these exchanges, if `more` than so far were left out."""
        system, task = self._opening
        shown = [message for one in exchanges for message in (one.reply, one.observation)]
        return [system, with_note(task, self._evicted + more), *shown]

    def step(
        self,
        completion: str,
        usage: Usage | None = None,
        model_s: float = 0.0,
        cut_off: bool = False,
    ) -> str | None:
        """Carry out one reply and return the observation, or None if the episode has ended.

        `cut_off`: the reply was stopped at its token limit, which ends the episode ("length").
        """
        if self.done:
            raise RuntimeError("the episode has ended; make a new MLEEnv")
        completion = completion.encode("utf-8", "replace").decode()  # no lone surrogates
        action = self._dialect.parse(completion, self._think_opened)
        if cut_off:
            action = Action(kind="none", think=action.think, error="the reply was cut off")
        result = self.workbench.run_code(action.code) if action.code is not None else None
        reason = self._end(action, result, cut_off)
        observation = None if reason else self._observation(action, result)
        snapshot = self.workbench.snapshot
        self.workbench.record(
            Turn(
                index=len(self.workbench.turns),
                evicted=self._evicted_now,
                completion=completion,
                action=action,
                result=result,
                observation=observation,
                usage=usage or Usage(),
                format_ok=action.format_ok,
                submission_sha256=snapshot.digest if snapshot else None,
                hidden_grade=snapshot.grade if snapshot else None,
                seconds=Seconds(model=model_s, execution=result.wall_s if result else 0.0),
            )
        )
        self._evicted_now = ()
        message = Message("assistant", completion)
        if observation is None:
            self._last = [message]
            assert reason is not None
            self.stop(reason, _failure(result))
            return None
        self._exchanges.append(
            Exchange(
                turn=len(self.workbench.turns) - 1,
                reply=message,
                observation=Message("user", observation),
                failed=result is None or result.status != "ok",
                valid=result is not None and snapshot is not None and snapshot.grade.status == "ok",
            )
        )
        self._make_room()
        return None if self.done else observation

    def stop(self, reason: StopReason, error: ErrorRecord | None = None) -> None:
        """End the episode from outside: the model failed, or a limit of the caller was reached."""
        if self._stopped is None:
            self._stopped = (reason, error)

    def close(self) -> Outcome:
        """Return the outcome and free the workspace; the episode must have ended."""
        if self._stopped is None:
            raise RuntimeError("the episode is still open; end it with stop(reason)")
        return self.workbench.finish(*self._stopped)

    def _make_room(self) -> None:
        """Leave out exchanges until the conversation fits; end the episode if it cannot."""
        count = self._count
        if count is None:
            return
        limit = self.workbench.config.context_tokens
        before = self._exchanges

        def fits(exchanges: Sequence[Exchange]) -> bool:
            return count(self._seen(exchanges, len(before) - len(exchanges))) <= limit

        self._exchanges = self._evict(before, fits)
        kept = {one.turn for one in self._exchanges}
        gone = [one.turn for one in before if one.turn not in kept]
        if gone:
            self._evicted += len(gone)
            self._evicted_now = tuple(gone)
            self.workbench.journal.event(
                "evict", turns=gone, tokens=count(self.observe()), limit=limit
            )
        if count(self.observe()) > limit:
            self.stop("context_limit")

    def _end(self, action: Action, result: ExecResult | None, cut_off: bool) -> StopReason | None:
        """Return why the episode ends with this turn, or None if it goes on."""
        if cut_off:
            return "length"
        if action.kind == "submit":
            return "submitted"
        if result is not None and result.status == "infra":
            return "infra_error"
        if len(self.workbench.turns) + 1 >= self.workbench.config.max_turns:
            return "max_turns"
        left = self.workbench.seconds_left()
        return "wall_limit" if left is not None and left <= 0 else None

    def _observation(self, action: Action, result: ExecResult | None) -> str:
        config = self.workbench.config
        left = config.max_turns - len(self.workbench.turns) - 1
        if result is None:
            text = f"Nothing was run: {action.error}. {self._dialect.how_to_act}"
        else:
            text = observe(result, self.workbench.validity(), config.observation_chars)
        text = f"{text}\nreplies left: {left}"
        seconds = self.workbench.seconds_left()
        if seconds is not None and config.wall_s is not None:
            text += f"\nseconds left: {max(0.0, seconds):.0f} of {config.wall_s:.0f}"
        return self._dialect.wrap(text)

    def _prompts(self) -> list[Message]:
        """Return the system message and the task."""
        config, task = self.workbench.config, self.workbench.task
        facts: dict[str, Any] = {
            "limits": self.workbench.limits,
            "max_turns": config.max_turns,
            "finalize": config.finalize,
            "packages": installed(),
            "card": task.card,
            "description": task.description.strip(),
            "preview": self.workbench.preview(),
        }
        names = (self._dialect.system, "task.md.j2")
        if config.prompt == "compact":
            facts["header"], facts["row"] = self.workbench.head()
            facts["others"] = self.workbench.other_tables()
            names = ("compact_system.md.j2", "compact_task.md.j2")
        facts["rules"] = render("sandmle.env", "prompts/rules.md.j2", **facts)
        system, user = (render("sandmle.env", f"prompts/{name}", **facts) for name in names)
        return [Message("system", system), Message("user", user)]


def _failure(result: ExecResult | None) -> ErrorRecord | None:
    if result is None or result.status != "infra":
        return None
    return ErrorRecord(boundary="sandbox", type="SandboxError", message=result.stderr)
