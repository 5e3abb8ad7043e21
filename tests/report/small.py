"""Small run folders written by hand: what every episode reached is known."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sandmle.config import Config
from sandmle.files import sha256, to_json
from sandmle.rewards import reward_rule
from sandmle.rollout.summary import summarise
from sandmle.tasks.corpus import open_corpus
from sandmle.types import (
    MILESTONES,
    Action,
    ExecResult,
    Grade,
    Isolation,
    Reward,
    RunManifest,
    Trajectory,
    Turn,
)

# what stands for an episode in these tests: a score, of which 0.2, 0.4, 0.6 and 0.8 are milestones;
# None for no submission; "infra", "model" or "grader" for a failure of ours
Outcome = float | str | None
LEVELS = dict(zip(MILESTONES, (0.2, 0.4, 0.6, 0.8), strict=True))


def grade_of(score: float | None) -> Grade:
    """Return the grade of a score."""
    if score is None:
        return Grade(status="missing", reason="there is no submission.csv")
    return Grade(status="ok", score=score, reached={n: score >= x for n, x in LEVELS.items()})


def content(score: float) -> bytes:
    """Return what stands for a submission with this score."""
    return f"{score:.6f}\n".encode()


def trajectory(
    task: str, outcome: Outcome, k: int = 0, turns: Sequence[float | None] = (), **fields: Any
) -> Trajectory:
    """Return an episode; `turns` are the scores of the submission as each turn left it."""
    failure = f"{outcome}_error" if isinstance(outcome, str) else None
    score = None if isinstance(outcome, str) else outcome
    grade = grade_of(score)
    steps = tuple(
        Turn(
            index=n,
            completion="",
            action=Action(kind="code", code="pass", format_ok=True),
            result=ExecResult(status="ok", exit_code=0, wall_s=2.0),
            hidden_grade=grade_of(one),
            submission_sha256=None if one is None else sha256(content(one)),
        )
        for n, one in enumerate(turns)
    )
    paid = sum(grade.reached.values()) / 4 if grade.reached else 0.0
    rule = reward_rule(Config().reward)
    reward = Reward(total=paid, parts={}, weights=rule.weights, mode=rule.mode)
    whole: dict[str, Any] = {
        "id": f"{task}.{k}", "task_id": task, "task_hash": task * 2, "group": task, "k": k,
        "scaffold": "react", "policy": "scripted:x", "seed": k, "feedback": "validity",
        "isolation": Isolation(mode="bare"), "turns": steps,
        "stop_reason": failure or "submitted", "grade": grade,
        "reward": None if failure else reward,
    }  # fmt: skip
    return Trajectory(**{**whole, **fields})


def write_run(
    root: Path,
    outcomes: Mapping[str, Sequence[Outcome]],
    turns: Mapping[str, Sequence[float | None]] | None = None,
    env: Mapping[str, Any] | None = None,
    preset: str = "paper",
    corpus: Path | None = None,
    **fields: Any,
) -> Path:
    """Write a run folder with these episodes by task, of the tasks of `corpus` if there is one."""
    config = Config().model_dump(mode="json")
    config["env"] |= {"scaffold": fields.get("scaffold", "react"), **(env or {})}
    config["reward"]["preset"] = preset
    hashes: dict[str, dict[str, str]] = {}
    if corpus is not None:
        config["corpus"]["path"] = str(corpus)
        hashes = {task.id: {"task_hash": task.content_hash} for task in open_corpus(corpus)}
    played = [
        trajectory(task, one, k, (turns or {}).get(task, ()), **hashes.get(task, {}), **fields)
        for task, members in outcomes.items()
        for k, one in enumerate(members)
    ]
    (root / "submissions").mkdir(parents=True)
    for t in played:
        if t.grade.score is not None:
            (root / "submissions" / f"{t.id}.csv").write_bytes(content(t.grade.score))
    manifest = RunManifest(
        id=root.name, command="", config=config, corpus_hash="0" * 64, versions={},
        started="2026-01-01T00:00:00+00:00", host={},
    )  # fmt: skip
    (root / "run.json").write_text(to_json(manifest.model_dump()))
    lines = [to_json(t.model_dump(mode="json")) + "\n" for t in played]
    (root / "trajectories.jsonl").write_text("".join(lines))
    summary = summarise(played, len(played), (), dict.fromkeys(outcomes, "max"))
    (root / "summary.json").write_text(to_json(summary))
    return root
