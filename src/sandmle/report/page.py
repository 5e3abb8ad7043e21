"""One self-contained HTML page of a run. What agents wrote is text on it, never markup."""

import json
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import ValidationError

from sandmle.errors import TaskError, UsageError
from sandmle.files import read_lines, write_atomic
from sandmle.types import MILESTONES, REWARD_PARTS, RunManifest, Trajectory


def write_page(run: Path, out: Path | None = None) -> Path:
    """Write the page of a run folder and return its path; `UsageError` if there is no run."""
    if not (run / "run.json").is_file():
        raise UsageError(f"{run}: holds no run; `sandmle rollout` and `sandmle train` make one")
    try:
        manifest = RunManifest.model_validate_json((run / "run.json").read_bytes())
        lines = read_lines(run / "trajectories.jsonl")
        trajectories = {t.id: t for t in map(Trajectory.model_validate_json, lines)}
    except ValidationError as error:
        raise TaskError(f"{run}: {error.errors()[0]['msg']}") from None
    path = out or run / "page.html"
    page = (
        _environment()
        .get_template("run.html.j2")
        .render(
            manifest=manifest,
            trajectories=[trajectories[name] for name in sorted(trajectories)],
            summary=_json(run / "summary.json"),
            steps=[json.loads(line) for line in read_lines(run / "metrics.jsonl")],
            milestones=MILESTONES,
            parts=REWARD_PARTS,
        )
    )
    try:
        write_atomic(path, page)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror})") from None
    return path


def _json(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_bytes()) if path.is_file() else None


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("sandmle.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["figure"] = lambda value: "–" if value is None else f"{value:.3g}"
    return environment
