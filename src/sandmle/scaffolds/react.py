"""ReAct: think, run a program, read what it printed, until it submits (the training scaffold)."""

import time

from sandmle.env.react import MLEEnv
from sandmle.env.workbench import Outcome, Workbench
from sandmle.errors import ModelError
from sandmle.llm.base import LLM, estimate_tokens
from sandmle.scaffolds.base import SCAFFOLDS
from sandmle.types import ErrorRecord, Usage


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
        usage = Usage(
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            usd=reply.usd,
        )
        env.step(reply.text, usage, time.monotonic() - started, reply.cut_off)
    return env.close()
