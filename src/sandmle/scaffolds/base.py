"""What a scaffold is, and a preset of one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from pydantic import ValidationError

from sandmle.config import Config, EnvSection
from sandmle.env.workbench import Outcome, Workbench
from sandmle.errors import UsageError
from sandmle.llm.base import LLM
from sandmle.registry import Registry, nearest
from sandmle.types import Record, first_fault

C = TypeVar("C", bound=Record)
R = TypeVar("R", bound=Record)


class Scaffold(Protocol):
    """Plays one episode; a failure of the model ends the episode, it does not raise."""

    def __call__(self, workbench: Workbench, llm: LLM) -> Outcome:
        """Play to the end and return the outcome."""
        ...


SCAFFOLDS: Registry[Scaffold] = Registry(
    "scaffold",
    builtins=(
        "sandmle.scaffolds.react",
        "sandmle.scaffolds.aide",
        "sandmle.scaffolds.aira",
        "sandmle.scaffolds.mle_agent",
        "sandmle.scaffolds.ml_master",
    ),
    group="sandmle.scaffolds",
)


class NoConstants(Record):
    """Of a scaffold that has none of its own."""


@dataclass(frozen=True)
class Preset(Generic[C]):
    """A scaffold with its constants, and with what it sets in a configuration that does not say.

    `env.search` replaces single constants; `defaults` are keys of the configuration, as in `--set`.
    """

    play: Callable[[Workbench, LLM, C], Outcome]
    constants: C
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, workbench: Workbench, llm: LLM) -> Outcome:
        """Play one episode to its end."""
        return self.play(workbench, llm, self.tuned(workbench.config))

    def tuned(self, env: EnvSection) -> C:
        """Return the constants with those of `env.search`; `UsageError` for what it has not."""
        given, known = env.search, list(type(self.constants).model_fields)
        for name in given:
            if name not in known:
                hint = nearest(name, known) if known else f"{env.scaffold} has no constants"
                raise UsageError(f"unknown key 'env.search.{name}'; {hint}")
        try:
            return type(self.constants).model_validate(self.constants.model_dump() | given)
        except ValidationError as error:
            raise UsageError(f"env.search.{first_fault(error)}") from None


def settled(config: Config, scaffold: Scaffold) -> Config:
    """Return the configuration with the defaults of the scaffold where it does not say itself.

    What it returns says everything, so that it can be fed back. Raises `UsageError` for constants
    that the scaffold has not.
    """
    if not isinstance(scaffold, Preset):
        if config.env.search:
            raise UsageError(f"env.search: {config.env.scaffold} has no constants")
        return config
    scaffold.tuned(config.env)
    return filled(config, scaffold.defaults)


def filled(config: Config, defaults: Mapping[str, Any]) -> Config:
    """Return a configuration with these values, by key as in `--set`, where it does not say."""
    for key, value in defaults.items():
        config = _fill(config, key.split("."), value)
    return config


def _fill(record: R, path: list[str], value: Any) -> R:
    name, *rest = path
    if rest:
        value = _fill(getattr(record, name), rest, value)
    elif name in record.model_fields_set:
        return record
    return record.model_copy(update={name: value})
