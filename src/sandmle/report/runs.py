"""A run folder read for a page, with what can be found of its tasks and its learning curves."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard, TypeVar

from pydantic import ValidationError

from sandmle.errors import SandmleError, TaskError, UsageError
from sandmle.files import read_lines
from sandmle.report.episodes import step_of
from sandmle.report.svg import Point, Series
from sandmle.stats import mean_interval
from sandmle.tasks.folder import open_task
from sandmle.types import RunManifest, TaskCard, Trajectory, first_fault

T = TypeVar("T")
_SMOOTHED = 40  # steps from which on a curve is drawn as the mean of its neighbours


class Run(NamedTuple):
    """What a run folder holds; `cards` has the tasks that still lie where the run found them."""

    root: Path
    manifest: RunManifest
    trajectories: list[Trajectory]
    summary: dict[str, Any] | None
    steps: list[dict[str, Any]]
    validation: list[dict[str, Any]]
    cards: dict[str, TaskCard]


def is_run(path: Path) -> bool:
    """Return whether a folder is a run."""
    return (path / "run.json").is_file()


def read_run(root: Path) -> Run:
    """Read a run folder; `TaskError` names the file that is damaged."""
    manifest = _parse(root / "run.json", RunManifest.model_validate_json)[0]
    played = _parse(root / "trajectories.jsonl", Trajectory.model_validate_json)
    latest = {trajectory.id: trajectory for trajectory in played}
    summary = _parse(root / "summary.json", _object)
    return Run(
        root,
        manifest,
        [latest[name] for name in sorted(latest)],
        summary[0] if summary else None,
        _parse(root / "metrics.jsonl", _object),
        _parse(root / "validation.jsonl", _object),
        _cards(manifest, latest.values()),
    )


def is_complete(run: Run) -> bool:
    """Return whether a run has every episode that it was to have, and none that failed by us."""
    return bool((run.summary or {}).get("complete", False))


def strict_json(text: str) -> Any:
    """Parse JSON; a bare NaN or Infinity, which no other tool can read, is a `ValueError`."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON; what does not exist is null")


def _object(text: str) -> dict[str, Any]:
    value = strict_json(text)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def _parse(path: Path, parse: Callable[[str], T]) -> list[T]:
    """Parse each line of a `.jsonl` file, another file as a whole; nothing if it is not there."""
    if not path.exists():
        return []
    number = 0
    found = []
    try:
        lines = path.suffix == ".jsonl"
        for text in read_lines(path) if lines else [path.read_text(encoding="utf-8")]:
            number += 1
            found.append(parse(text))
    except ValueError as error:
        reason = first_fault(error) if isinstance(error, ValidationError) else str(error)
        where = f"{path}, line {number}" if path.suffix == ".jsonl" else str(path)
        raise TaskError(f"{where}: {reason}") from None
    return found


def _cards(manifest: RunManifest, trajectories: Iterable[Trajectory]) -> dict[str, TaskCard]:
    """Return the cards of the tasks that are still there unchanged; a run is whole without them."""
    corpus = manifest.config.get("corpus")
    place = corpus.get("path") if isinstance(corpus, dict) else None
    if not isinstance(place, str):
        return {}
    found = {}
    for name, content in {t.task_id: t.task_hash for t in trajectories}.items():
        root = Path(place)
        try:
            task = open_task(root if root.name == name else root / name)
        except (SandmleError, OSError):
            continue
        if task.content_hash == content:
            found[name] = task.card
    return found


# --- learning curves ------------------------------------------------------------------------------


def learning(run: Run) -> list[Series]:
    """Return reward over steps, in training and on each split that was looked at besides."""
    found = [
        Series(f"reward, {split}", f"look{n % 4 + 1}", points)
        for n, (split, points) in enumerate(_validation(run.validation).items())
    ]
    spread = _spread(run.trajectories)
    training = [
        Point(float(step), float(reward), *_bounds(line, spread.get(int(step))))
        for line in run.steps
        if is_number(step := line.get("step")) and is_number(reward := line.get("reward"))
    ]
    if not training:
        return found
    if len(training) < _SMOOTHED:
        return [Series("reward, training", "look0", training), *found]
    bare = [Point(p.x, p.y) for p in training]
    return [
        Series("reward of each training step", "faint", bare),
        Series("mean of 11 steps", "look0", _smooth(bare)),
        *found,
    ]


def curve_of(path: Path, look: str) -> Series:
    """Return the curve of a training run: its folder, or a file of metrics that was kept of it.

    A long curve is smoothed. `UsageError` if nothing is there that can be drawn.
    """
    source = path / "metrics.jsonl" if path.is_dir() else path
    lines = _parse(source, _object) if source.suffix == ".jsonl" else []
    points = [
        Point(float(step), float(reward))
        for line in lines
        if is_number(step := line.get("step")) and is_number(reward := line.get("reward"))
    ]
    if not points:
        raise UsageError(f"{path}: holds no steps; give a training run or its metrics.jsonl")
    drawn = _smooth(points) if len(points) >= _SMOOTHED else points
    what = "training" if path.is_dir() else "recorded earlier"
    return Series(f"{what}: {path.stem}, {len(points)} steps", look, drawn)


def _validation(lines: Sequence[Mapping[str, Any]]) -> dict[str, list[Point]]:
    found: dict[str, list[Point]] = defaultdict(list)
    for line in lines:
        step, splits = line.get("step"), line.get("splits")
        for name, figures in splits.items() if isinstance(splits, dict) else ():
            reward = figures.get("reward") if isinstance(figures, dict) else None
            if is_number(step) and is_number(reward):
                found[name].append(Point(float(step), float(reward), *_bounds(figures, None)))
    return found


def _bounds(
    line: Mapping[str, Any], otherwise: tuple[float | None, float | None] | None
) -> tuple[float | None, float | None]:
    low, high = line.get("low"), line.get("high")
    return (low, high) if is_number(low) and is_number(high) else otherwise or (None, None)


def _spread(trajectories: Sequence[Trajectory]) -> dict[int, tuple[float | None, float | None]]:
    """Return the interval of the reward of each training step, from its episodes."""
    by_step: dict[int, list[Trajectory]] = defaultdict(list)
    for t in trajectories:
        if t.reward and (step := step_of(t)) is not None:
            by_step[step].append(t)
    found = {}
    for step, members in by_step.items():
        rewards = [t.reward.total for t in members if t.reward]
        _, low, high, *_ = mean_interval(rewards, [t.task_id for t in members])
        found[step] = (low, high)
    return found


def _smooth(points: Sequence[Point], reach: int = 5) -> list[Point]:
    means = []
    for n, point in enumerate(points):
        near = points[max(0, n - reach) : n + reach + 1]
        means.append(Point(point.x, sum(p.y for p in near) / len(near)))
    return means


def other_curves(run: Run) -> list[Series]:
    """Return every other figure of `metrics.jsonl` that changes over the steps."""
    names = dict.fromkeys(name for line in run.steps for name in line)
    found = []
    for name in names:
        if name in ("step", "reward", "low", "high"):
            continue
        points = [
            Point(float(step), float(value))
            for line in run.steps
            if is_number(step := line.get("step")) and is_number(value := line.get(name))
        ]
        if len({point.y for point in points}) > 1:
            found.append(Series(name.replace("_", " "), "look0", points))
    return found


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value of a file is a number that can be drawn and added."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
