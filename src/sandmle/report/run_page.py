"""The page of one run: its result with intervals, its curves, and every episode turn by turn."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sandmle.outcome import UNSCORABLE
from sandmle.report.compare import results
from sandmle.report.costs import cost_table
from sandmle.report.episodes import EXPLAINED, MARKS, cut_for, detail, rows
from sandmle.report.graded import graded_text
from sandmle.report.page import render, span, write
from sandmle.report.runs import Run, learning, other_curves, read_run
from sandmle.report.svg import Series, chart, figure
from sandmle.types import MILESTONES, REWARD_PARTS

_GROUPS = 300  # lines of the map of groups


def write_run_page(
    root: Path,
    out: Path | None = None,
    beside: Sequence[Series] = (),
    compared: Sequence[Path] = (),
) -> Path:
    """Write the page of a run folder and return its path.

    `beside` are curves of others, `compared` runs whose rates it lays beside each other.
    """
    run = read_run(root)
    listed = rows(run.trajectories, run.cards)
    cut = cut_for(run.trajectories)
    summary = run.summary or {}
    curves = [*learning(run), *beside]
    groups = _groups(run, listed)
    page = render(
        "run.html.j2",
        ["highlight.js", "run.js"],
        run=run,
        facts=_facts(run),
        alarms=_alarms(run, cut),
        headline=_headline(summary),
        apart=bool(summary.get("failures")),
        reward_parts=_reward_parts(run),
        endings={
            name.replace("_", " "): n
            for name, n in Counter(t.stop_reason for t in run.trajectories).most_common()
        },
        costs=_costs(summary),
        phases=cost_table([run]) if run.steps else None,
        curve=chart("reward over steps", curves),
        learning=curves,
        others=[(one.name, chart(one.name, [one], (250, 120))) for one in other_curves(run)],
        compared=results([read_run(one) for one in compared]) if compared else None,
        groups=groups[:_GROUPS],
        more_groups=max(len(groups) - _GROUPS, 0),
        rows=listed,
        filters=_filters(listed),
        tasks=sorted({(row["task"], row["title"]) for row in listed}, key=lambda pair: pair[::-1]),
        details=(
            detail(t, run.cards.get(t.task_id), cut, graded_text(run.root, t))
            for t in run.trajectories
        ),
    )
    return write(out or root / "page.html", page)


def _facts(run: Run) -> list[str]:
    """Return what was run in a few words; a configuration may come from another version."""
    config = run.manifest.config

    def of(section: str, *names: str) -> str:
        part = config.get(section)
        known = [part.get(name) for name in names] if isinstance(part, dict) else []
        return str(next((value for value in known if value), "?"))

    return [
        f"policy {of('policy', 'name')}",
        f"scaffold {of('env', 'scaffold')}",
        f"reward {of('reward', 'mode', 'preset')}",
        f"sandbox {of('sandbox', 'backend')}",
        f"seed {config.get('seed', '?')}",
        f"started {run.manifest.started}",
        f"sandmle {run.manifest.versions.get('sandmle', '?')}",
    ]


def _alarms(run: Run, cut: int) -> list[str]:
    found = []
    if run.summary is None:
        found.append("This run has not finished: what follows is what it has so far.")
    elif not run.summary.get("complete", True):
        played, expected = run.summary.get("trajectories"), run.summary.get("expected")
        failed = Counter(t.stop_reason for t in run.trajectories if t.stop_reason in UNSCORABLE)
        kinds = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in failed.items())
        found.append(
            f"Incomplete: {played} of {expected} episodes"
            + (f", of which {kinds}" if kinds else "")
            + "; failures count as not reached."
        )
    found += run.summary.get("broken", []) if run.summary else []
    longest = max(
        (len(text) for t in run.trajectories for u in t.turns for text in (u.completion,)),
        default=0,
    )
    if cut < 20_000 and longest > cut:
        found.append(
            f"So many episodes make a large page: of each text it keeps {cut:,} characters. "
            "trajectories.jsonl has them whole."
        )
    return found


def _headline(summary: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any], str]]:
    """Return name, figures, and the same without failures of ours, of each line of the table."""
    if not {"rates", "reward", "trajectories"} <= set(summary):
        return []
    rates, without = summary["rates"], summary.get("without_failures", {})
    lines = [("mean reward", summary["reward"], "")]
    for name in ("valid", *MILESTONES, "any_medal"):
        if name in rates:
            shown = span(without[name]) if name in without else "–"
            lines.append((name.replace("_", " "), rates[name], shown))
    for k, figures in summary.get("pass_at_k", {}).get("any_medal", {}).items():
        if k != "1":
            lines.append((f"any medal in {k} tries", figures, ""))
    reverted = summary.get("reverted", {})
    if reverted.get("mean") is not None:
        lines.append(("ended worse than it had been", reverted, ""))
    return lines


def _reward_parts(run: Run) -> list[tuple[str, float, float]]:
    """Return name, mean contribution and weight of each part of the reward."""
    rewards = [t.reward for t in run.trajectories if t.reward]
    if not rewards:
        return []
    weights = rewards[0].weights
    return [
        (
            name,
            sum(r.parts.get(name, 0.0) * r.weights.get(name, 0.0) for r in rewards) / len(rewards),
            weights[name],
        )
        for name in REWARD_PARTS
        if weights.get(name)
    ]


def _costs(summary: Mapping[str, Any]) -> dict[str, str]:
    """Return time and tokens; what is not known is a dash, never zero."""
    if not summary:
        return {}
    usage = summary.get("usage", {})
    known = {name: usage.get(name) for name in ("prompt_tokens", "completion_tokens", "usd")}
    seconds, per_turn = summary.get("seconds_per_episode", {}), summary.get("seconds_per_turn", {})
    found = {"turns": span(summary["turns"])} if "turns" in summary else {}
    for part in ("model", "execution"):
        if part in seconds and part in per_turn:
            each, turn = _seconds(seconds[part]["mean"]), _seconds(per_turn[part]["mean"])
            found[part] = f"{each} an episode, {turn} a turn"
    for name, label in (("prompt_tokens", "tokens read"), ("completion_tokens", "tokens written")):
        found[label] = "not known" if known[name] is None else f"{known[name]:,}"
    found["dollars"] = "not known" if known["usd"] is None else f"{known['usd']:.4f}"
    found["executions timed out"] = f"in {summary.get('timed_out', 0)} episodes"
    for what in ("masked", "flags"):
        for name, n in summary.get(what, {}).items():
            label = "masked" if what == "masked" else "flagged"
            found[f"{label}, {str(name).replace('_', ' ')}"] = str(n)
    return found


def _seconds(value: float | None) -> str:
    return "–" if value is None else "under 0.01 s" if value < 0.01 else f"{figure(value)} s"


def _groups(
    run: Run, listed: Sequence[Mapping[str, Any]]
) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """Return the groups that have several members, each under a name for people."""
    found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for t, row in zip(run.trajectories, listed, strict=True):
        found[t.group].append(row)
    several = {name: members for name, members in found.items() if len(members) > 1}
    return [
        (members[0]["title"] if name == members[0]["task"] else name, members)
        for name, members in several.items()
    ]


def _filters(listed: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, int, str]]:
    counts = Counter(mark for row in listed for mark in row["marks"])
    return [(name, MARKS[name], counts[name], EXPLAINED[name]) for name in MARKS if counts[name]]
