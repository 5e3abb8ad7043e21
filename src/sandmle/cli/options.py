"""Options that several commands share, and how they become a configuration."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from sandmle.cli.output import emit, say
from sandmle.config import Config, dump_config, load_config

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", "-c", help="A TOML file; options come on top.")
]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", help="section.key=value, several times.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print the resolved configuration and stop.")
]


def configure(path: Path | None, overrides: list[str] | None, **options: Any) -> Config:
    """Load a configuration; `options` are keys with __ for the dot, None where not given."""
    given = [
        f"{key.replace('__', '.')}={json.dumps(str(v) if isinstance(v, Path) else v)}"
        for key, v in options.items()
        if v is not None
    ]
    return load_config(path, [*given, *(overrides or [])])


def show_config(config: Config, as_json: bool) -> None:
    """Print a configuration on stdout, as TOML that can be fed back or as JSON."""
    if as_json:
        emit(config.model_dump(mode="json"))
    else:
        print(dump_config(config), end="")


@contextmanager
def resumable() -> Iterator[None]:
    """Say, when a person interrupts a long job, that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        say("interrupted; the same command goes on from here")
        raise typer.Exit(130) from None
