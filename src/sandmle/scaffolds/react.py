"""ReAct: think, run a program, read what it printed, until it submits (the training scaffold)."""

import time

from sandmle.env.react import MLEEnv
from sandmle.env.workbench import Outcome, Workbench
from sandmle.errors import ModelError
from sandmle.llm.base import LLM, estimate_tokens
from sandmle.scaffolds.base import SCAFFOLDS, NoConstants, Preset
from sandmle.types import ErrorRecord


@SCAFFOLDS.register("react")
def react(workbench: Workbench, llm: LLM) -> Outcome:
    """Play one episode to its end."""
    env = MLEEnv(workbench, count=getattr(llm, "count", estimate_tokens))
    while not env.done:
        started = time.monotonic()
        try:
            reply = llm.complete(env.observe())
        except ModelError as error:
            failure = ErrorRecord(boundary="model", type=type(error).__name__, message=str(error))
            env.stop("model_error", failure)
            break
        env.step(reply.text, reply.usage, time.monotonic() - started, reply.cut_off)
    return env.close()


def _preset(workbench: Workbench, llm: LLM, constants: NoConstants) -> Outcome:
    return react(workbench, llm)


# section 5.1 of the paper
SCAFFOLDS.add(
    "react-paper",
    Preset(
        _preset,
        NoConstants(),
        {
            "env.max_turns": 20,
            "env.context": "evict_failed",
            "env.context_tokens": 32768,
            "sandbox.limits.wall_s": 90.0,
        },
    ),
)
# the defaults of the paper's released code, in its tags
SCAFFOLDS.add(
    "react-release",
    Preset(
        _preset,
        NoConstants(),
        {
            "env.max_turns": 15,
            "env.wall_s": 1200.0,
            "env.dialect": "release",
            "env.context": "evict_failed",
            "env.context_tokens": 32768,
            "policy.timeout_s": 300.0,
            "sandbox.limits.wall_s": 300.0,
        },
    ),
)
