"""Tiny, verified machine-learning-engineering tasks, and what one does with them.

Nothing is imported until it is asked for: `import sandmle` costs a few milliseconds, and the
numeric stack is loaded by the first call that needs it.
"""

from importlib import import_module

__version__ = "0.1.0"

# public name -> the module that defines it
_HOME = {
    "Task": "sandmle.tasks.folder",
    "open_task": "sandmle.tasks.folder",
    "Corpus": "sandmle.tasks.corpus",
    "open_corpus": "sandmle.tasks.corpus",
    "generate": "sandmle.factory.pipeline",
    "Mix": "sandmle.factory.mix",
    "Stream": "sandmle.factory.stream",
    "grade": "sandmle.grading.grader",
    "Grader": "sandmle.grading.grader",
    "reward": "sandmle.rewards",
    "metric": "sandmle.metrics.registry",
    "Workbench": "sandmle.env.workbench",
    "MLEEnv": "sandmle.env.react",
    "run_rollout": "sandmle.rollout.runner",
    "load_config": "sandmle.config",
    "Grade": "sandmle.types",
    "Reward": "sandmle.types",
    "Trajectory": "sandmle.types",
    "SandmleError": "sandmle.errors",
}
__all__ = ["__version__", *_HOME]  # noqa: PLE0604 - the keys are strings


def __getattr__(name: str) -> object:
    """Import a public name from its home the first time it is used (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'sandmle' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
