"""Every error that sandmle raises on purpose: one class for each boundary.

`UsageError` is the caller's to mend and is shown as one line. The others say whose fault a failure
was; inside a rollout they are caught at the boundary and recorded in the trajectory, never raised
through it. What an agent's program or submission does wrong is data (`ExecResult`, `Grade`), not an
error. Each class is also a standard exception, so callers need not import these to catch them.
"""


class SandmleError(Exception):
    """Anything sandmle raises on purpose."""


class UsageError(SandmleError, ValueError):
    """A request that cannot be carried out as written; the message says what to do instead."""


class TaskError(SandmleError, ValueError):
    """A task folder or corpus that is broken; the message names the file."""


class SandboxError(SandmleError, RuntimeError):
    """The sandbox itself failed: our fault or the machine's, never the agent's."""


class ModelError(SandmleError, RuntimeError):
    """The language model or its server failed."""


class ContextError(ModelError):
    """The conversation is longer than the model can read."""


class AnswerError(ModelError):
    """A model was asked for a typed answer, and what it wrote is none; says what is wrong."""


class GradingError(SandmleError, RuntimeError):
    """A submission could not be scored for a reason that lies in the task or in us."""


class MissingExtraError(SandmleError, ImportError):
    """A feature needs packages that are not installed; the message has the install line."""
