"""Options that several commands share, and how they become a configuration."""

from pathlib import Path
from typing import Annotated, Any

import typer

from sandmle.config import Config, load_config

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
    import json

    given = [
        f"{key.replace('__', '.')}={json.dumps(str(v) if isinstance(v, Path) else v)}"
        for key, v in options.items()
        if v is not None
    ]
    return load_config(path, [*given, *(overrides or [])])
