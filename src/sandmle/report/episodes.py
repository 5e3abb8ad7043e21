"""Episodes as the page needs them: a short row for each, and its turns with all that was said."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sandmle.display import clip, visible
from sandmle.outcome import UNSCORABLE
from sandmle.report.svg import NumberLine
from sandmle.types import MILESTONES, TaskCard, Trajectory, Turn

MARKS = {
    "timeout": "Timed out",
    "invalid": "No valid submission",
    "best": "Best of its task",
    "flat": "Flat groups",
    "reverted": "Had better",
    "flagged": "Flagged",
    "masked": "Masked",
    "failed": "Our failure",
}
EXPLAINED = {
    "timeout": "an execution hit its time limit",
    "invalid": "nothing that could be scored was there at the end",
    "best": "the highest reward that any episode of the task has",
    "flat": "every member of the group has the same reward: nothing to learn from",
    "reverted": "an earlier submission was better than the one that counted",
    "flagged": "it tried something that no honest episode needs",
    "masked": "left out of training",
    "failed": "the model, the sandbox or the grader broke down; not the agent",
}
_CUTS = (20_000, 5_000, 1_500, 400)  # characters of one text that are kept
_BUDGET = 40_000_000  # characters of all texts together


def marks_of(
    trajectories: Sequence[Trajectory], cards: Mapping[str, TaskCard]
) -> dict[str, list[str]]:
    """Return by id which of `MARKS` hold."""
    groups: dict[str, list[float]] = defaultdict(list)
    tasks: dict[str, list[float]] = defaultdict(list)
    for t in trajectories:
        if t.reward and not t.mask.masked:
            groups[t.group].append(t.reward.total)
        if t.reward:
            tasks[t.task_id].append(t.reward.total)
    found = {}
    for t in trajectories:
        group = groups[t.group]
        holds = {
            "timeout": any(u.result is not None and u.result.status == "timeout" for u in t.turns),
            "invalid": t.grade.status in ("invalid", "missing") and t.stop_reason not in UNSCORABLE,
            "best": _best(t, tasks[t.task_id]),
            "flat": len(group) > 1 and len(set(group)) == 1 and not t.mask.masked,
            "reverted": _reverted(t, cards.get(t.task_id)),
            "flagged": bool(t.flags),
            "masked": t.mask.masked,
            "failed": t.stop_reason in UNSCORABLE,
        }
        found[t.id] = [name for name in MARKS if holds[name]]
    return found


def _best(t: Trajectory, rewards: Sequence[float]) -> bool:
    """Return whether nothing beats an episode; where all are equal, none is the best."""
    if t.reward is None or t.reward.total < max(rewards) or t.reward.total == 0:
        return False
    return len(rewards) == 1 or min(rewards) < max(rewards)


def step_of(t: Trajectory) -> int | None:
    """Return the training step of an episode as `metrics.jsonl` counts; None if it has none.

    A group of training is called `<step>-<place>-<task>`, and its first step 0.
    """
    found = re.match(r"([0-9]{6,})-[0-9]{3,}-", t.group)
    return int(found[1]) + 1 if found else None


def _reverted(t: Trajectory, card: TaskCard | None) -> bool:
    """Return whether an earlier submission beat the one that counted.

    Without the card nobody knows whether more is better; that a submission was lost shows anyway.
    """
    scores = [g.score for u in t.turns if (g := u.hidden_grade) and g.score is not None]
    if not scores or t.stop_reason in UNSCORABLE:
        return False
    if t.grade.score is None:
        return True
    if card is None:
        return False
    sign = 1 if card.milestones.direction == "max" else -1
    return max(sign * score for score in scores) > sign * t.grade.score


def rows(trajectories: Sequence[Trajectory], cards: Mapping[str, TaskCard]) -> list[dict[str, Any]]:
    """Return what the list shows of each episode."""
    marks = marks_of(trajectories, cards)
    return [
        {
            "id": visible(t.id),
            "task": visible(t.task_id),
            "title": visible(cards[t.task_id].title if t.task_id in cards else t.task_id),
            "place": str(t.k) if (step := step_of(t)) is None else f"step {step}, number {t.k}",
            "stop": t.stop_reason.replace("_", " "),
            "status": t.grade.status,
            "score": t.grade.score,
            "medal": medal(t.grade.reached),
            "reward": t.reward.total if t.reward else None,
            "marks": marks[t.id],
            "flags": [visible(flag).replace("_", " ") for flag in t.flags],
            "turns": len(t.turns),
            "seconds": round(sum(u.seconds.model + u.seconds.execution for u in t.turns), 2),
        }
        for t in trajectories
    ]


def medal(reached: Mapping[str, bool]) -> str | None:
    """Return the highest milestone that was reached."""
    return next((name for name in MILESTONES[::-1] if reached.get(name)), None)


def cut_for(trajectories: Sequence[Trajectory]) -> int:
    """Return how many characters of one text a page of these episodes can keep.

    One page must stay one that opens: with very many episodes each text is shortened.
    """
    lengths = [len(text) for t in trajectories for u in t.turns for text in _texts(u)]
    return next((cut for cut in _CUTS if sum(min(n, cut) for n in lengths) <= _BUDGET), _CUTS[-1])


def _texts(turn: Turn) -> list[str]:
    result = turn.result
    said = [turn.completion, turn.observation or ""]
    return said + ([result.stdout, result.stderr] if result else [])


def detail(t: Trajectory, card: TaskCard | None, cut: int, graded: str = "") -> dict[str, Any]:
    """Return everything about one episode; texts are cut, and nothing in them is unseen.

    `graded` says which file the grade belongs to.
    """

    def text(value: str | None) -> str:
        return visible(clip(value or "", cut))

    return {
        "facts": {name: visible(clip(str(v), 300)) for name, v in _facts(t, card).items()},
        "reason": text(t.grade.reason),
        "error": text(f"{t.error.boundary}: {t.error.message}") if t.error else "",
        "masked": text(t.mask.why or "yes") if t.mask.masked else "",
        "graded": graded,
        "line": _line(t, card) if card else None,
        "parts": _parts(t),
        "turns": [_turn(u, text) for u in t.turns],
    }


def _line(t: Trajectory, card: TaskCard) -> dict[str, Any]:
    """Return the milestones and the hidden score of each turn as places on one line, 0 to 1."""
    scores = {u.index + 1: u.hidden_grade.score for u in t.turns if u.hidden_grade}
    known = {turn: score for turn, score in scores.items() if score is not None}
    place = NumberLine(card.milestones, known.values(), 1.0)
    levels = {name: getattr(card.milestones, name) for name in MILESTONES}
    return {
        "levels": [[name, level, place(level)] for name, level in levels.items()],
        "turns": [[turn, score, place(score)] for turn, score in known.items()],
    }


def _facts(t: Trajectory, card: TaskCard | None) -> dict[str, object]:
    tokens = (t.usage.prompt_tokens, t.usage.completion_tokens)
    facts: dict[str, object] = {
        "task": t.task_id,
        "group": f"{t.group}, number {t.k}",
        "policy": t.policy,
        "scaffold": t.scaffold,
        "seed": t.seed,
    }
    if card:
        better = "higher" if card.milestones.direction == "max" else "lower"
        facts["metric"] = f"{card.metric.name}, {better} is better"
    if None not in tokens:
        facts["tokens"] = f"{tokens[0]:,} read, {tokens[1]:,} written"
    if t.usage.usd is not None:
        facts["cost"] = f"{t.usage.usd:.4f} USD"
    return facts


def _parts(t: Trajectory) -> list[dict[str, Any]]:
    if t.reward is None:
        return []
    weights = t.reward.weights
    return [
        {"name": name, "value": value, "weight": weights.get(name, 0.0)}
        for name, value in sorted(t.reward.parts.items(), key=_order)
    ]


def _order(part: tuple[str, float]) -> int:
    names = ("format", "execute", *MILESTONES, "skill")
    return names.index(part[0]) if part[0] in names else len(names)


def _turn(u: Turn, text: Any) -> dict[str, Any]:
    result, grade = u.result, u.hidden_grade
    # what a reply says beside its thought and its program is shown as it was written
    known = len(u.action.think or "") + len(u.action.code or "") + 60
    more = not u.format_ok or len(u.completion) > known
    return {
        "status": result.status if result else u.action.kind,
        "exit": result.exit_code if result else None,
        "model_s": round(u.seconds.model, 2),
        "run_s": round(u.seconds.execution, 2),
        "tokens": u.usage.completion_tokens,
        "evicted": len(u.evicted),
        "score": grade.score if grade else None,
        "grade": grade.status if grade else None,
        "medal": medal(grade.reached) if grade else None,
        "think": text((u.action.think or "").strip()),
        "code": text(u.action.code),
        "reply": text(u.completion) if more else "",
        "node": text(_place(u)),
        "parents": list(u.node.parents) if u.node else None,
        "fault": text(u.action.error or (u.node.fault if u.node else "")),
        "seen": text(u.observation),
        "stdout": _unseen(result.stdout if result else "", u, text),
        "stderr": _unseen(result.stderr if result else "", u, text),
    }


def _place(turn: Turn) -> str:
    """Say where in a search a turn stands, and what the agent itself measured."""
    node = turn.node
    if node is None:
        return ""
    parents = " and ".join(str(parent + 1) for parent in node.parents)
    parts = [node.operator.replace("_", " ") + (f" of turn {parents}" if parents else "")]
    parts += [f"validation metric {node.metric:g}"] if node.metric is not None else []
    return " · ".join([*parts, node.summary] if node.summary else parts)


def _unseen(output: str, turn: Turn, text: Any) -> str:
    """Return what a program wrote if the agent was shown less than that."""
    return "" if output.strip() in (turn.observation or "") else str(text(output))
