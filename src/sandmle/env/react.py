"""The ReAct state machine on top of a workbench; trainers and the ReAct scaffold drive it.

env = MLEEnv(workbench)
messages = env.observe()
while not env.done:
    observation = env.step(reply)       # None when the episode has ended
outcome = env.close()
"""

from typing import Any

from sandmle.env.protocol import observe, parse
from sandmle.env.workbench import Outcome, Workbench
from sandmle.files import render
from sandmle.llm.base import Message
from sandmle.types import Action, ErrorRecord, ExecResult, Seconds, StopReason, Turn, Usage

_HOW_TO_ACT = (
    "Reply with <think>...</think> and then one ```python block, or <submit/> when you are done."
)


class MLEEnv:
    """One episode: single use, ends by itself, never raises for anything a policy does."""

    def __init__(self, workbench: Workbench, think_opened: bool = False) -> None:
        self.workbench = workbench
        self._think_opened = think_opened
        self._messages = [
            Message("system", render("sandmle.env", "prompts/system.md.j2", **self._limits())),
            Message(
                "user",
                render(
                    "sandmle.env",
                    "prompts/task.md.j2",
                    description=workbench.task.description.strip(),
                    preview=workbench.preview(),
                ),
            ),
        ]
        self._stopped: tuple[StopReason, ErrorRecord | None] | None = None
        workbench.journal.event("start", task=workbench.task.id, messages=self._messages)

    @property
    def done(self) -> bool:
        """Return whether the episode has ended."""
        return self._stopped is not None

    def observe(self) -> list[Message]:
        """Return the conversation so far."""
        return list(self._messages)

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
        action = parse(completion, self._think_opened)
        if cut_off:
            action = Action(kind="none", think=action.think, error="the reply was cut off")
        result = self.workbench.run_code(action.code) if action.code is not None else None
        reason = self._end(action, result, cut_off)
        observation = None if reason else self._observation(action, result)
        snapshot = self.workbench.snapshot
        self.workbench.record(
            Turn(
                index=len(self.workbench.turns),
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
        self._messages.append(Message("assistant", completion))
        if reason:
            self.stop(reason, _failure(result))
            return None
        assert observation is not None
        self._messages.append(Message("user", observation))
        return observation

    def stop(self, reason: StopReason, error: ErrorRecord | None = None) -> None:
        """End the episode from outside: the model failed, or a limit of the caller was reached."""
        if self._stopped is None:
            self._stopped = (reason, error)

    def close(self) -> Outcome:
        """Return the outcome and free the workspace; the episode must have ended."""
        if self._stopped is None:
            raise RuntimeError("the episode is still open; end it with stop(reason)")
        return self.workbench.finish(*self._stopped)

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
            text = f"Nothing was run: {action.error}. {_HOW_TO_ACT}"
        else:
            text = observe(result, self.workbench.validity(), config.observation_chars)
        return f"{text}\nreplies left: {left}"

    def _limits(self) -> dict[str, Any]:
        config = self.workbench.config
        return {
            "limits": self.workbench.limits,
            "max_turns": config.max_turns,
            "finalize": config.finalize,
        }


def _failure(result: ExecResult | None) -> ErrorRecord | None:
    if result is None or result.status != "infra":
        return None
    return ErrorRecord(boundary="sandbox", type="SandboxError", message=result.stderr)
