"""What a warm sandbox imports beforehand: lists of modules, found by running typical scripts.

`profiles.toml` is written by `benchmarks/profiles.py`. A name that is not installed is passed over.
"""

import tomllib
from functools import cache
from importlib import resources

from sandmle.errors import UsageError

_BASE = "tabular"  # the others hold only what they add to it


@cache
def _profiles() -> dict[str, list[str]]:
    text = resources.files("sandmle.sandbox").joinpath("profiles.toml").read_text(encoding="utf-8")
    found: dict[str, list[str]] = tomllib.loads(text)
    return found


def modules(preload: str) -> tuple[str, ...]:
    """Return the modules that `sandbox.preload` stands for, in the order to import them.

    It is `none`, or a list with commas of `full` (all profiles), profiles and modules of one's own.
    """
    profiles = _profiles()
    found: dict[str, None] = {}
    for name in filter(None, (part.strip() for part in preload.split(","))):
        if name == "full":
            found |= dict.fromkeys(module for listed in profiles.values() for module in listed)
        elif name in profiles:
            found |= dict.fromkeys([*profiles[_BASE], *profiles[name]])
        elif name != "none":
            if not all(part.isidentifier() for part in name.split(".")):
                known = ", ".join(("none", "full", *profiles))
                raise UsageError(f"sandbox.preload: {name!r} is no module; profiles are {known}")
            found[name] = None
    return tuple(found)
