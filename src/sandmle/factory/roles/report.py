"""`report.json` of a corpus that a model wrote: the funnel, what was lost where, what it cost."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from sandmle.files import read_lines, to_json, write_atomic
from sandmle.stats import known_sum
from sandmle.types import Record

FOLDER = ".factory"
REPORT = "report.json"
# what an item has come through; the paper's funnel is 1200, 1119, 1106, 912
Stage = Literal["planned", "specified", "developed", "evaluated", "described", "kept"]
STAGES: tuple[Stage, ...] = (
    "planned", "specified", "developed", "evaluated", "described", "kept",
)  # fmt: skip
DUPLICATES = ("duplicate_structure", "duplicate_text", "like_evaluation")


class Done(Record):
    """What became of an item: the last stage that it passed, and why it went no further."""

    item: tuple[str, int, int]
    stage: Stage
    task_id: str | None = None
    reason: str = ""
    detail: str = ""


class Spent(Record):
    """What the model took: of all calls, and for each task that was kept (None if none was).

    What a server did not say is None, and so is what it would be a part of.
    """

    calls: int
    prompt_tokens: int | None
    completion_tokens: int | None
    usd: float | None
    tokens_a_task: float | None
    usd_a_task: float | None

    def __str__(self) -> str:
        tokens = "–" if self.tokens_a_task is None else f"{self.tokens_a_task:,.0f}"
        price = "" if self.usd_a_task is None else f" and ${self.usd_a_task:.3g}"
        return f"{tokens} tokens{price}"


class Report(Record):
    """The content of `report.json`."""

    schema_version: Literal[1] = 1
    factory: str
    model: str
    funnel: dict[str, int]
    duplicates: dict[str, int]
    spent: Spent
    items: tuple[Done, ...]


def write_report(out: Path, factory: str, model: str, done: Sequence[Done]) -> Report:
    """Write the report of a run into its corpus, also of one that kept nothing."""
    kept = sum(one.task_id is not None for one in done)
    reasons = Counter(one.reason for one in done)
    report = Report(
        factory=factory,
        model=model,
        funnel=funnel(done),
        duplicates={name: reasons[name] for name in DUPLICATES},
        spent=spent(out, kept),
        items=tuple(done),
    )
    write_atomic(out / REPORT, to_json(report.model_dump(mode="json"), indent=2) + "\n")
    return report


def read_report(out: Path) -> Report:
    """Read the report of a corpus."""
    return Report.model_validate_json((out / REPORT).read_bytes())


def spent(out: Path, kept: int) -> Spent:
    """Add up what the journal says of a corpus."""
    events = [json.loads(line) for line in read_lines(out / FOLDER / "journal.jsonl")]
    replies = [event for event in events if event["event"] == "reply"]
    prompt, completion, usd = (
        known_sum([reply[name] for reply in replies])
        for name in ("prompt_tokens", "completion_tokens", "usd")
    )
    tokens = known_sum([prompt, completion])
    return Spent(
        calls=len(replies),
        prompt_tokens=None if prompt is None else int(prompt),
        completion_tokens=None if completion is None else int(completion),
        usd=usd,
        tokens_a_task=None if tokens is None or not kept else tokens / kept,
        usd_a_task=None if usd is None or not kept else usd / kept,
    )


def funnel(done: Sequence[Done]) -> dict[str, int]:
    """Return how many items came through each stage, and what the others failed by."""
    at = [STAGES.index(one.stage) for one in done]
    counts: dict[str, int] = {
        stage: sum(place >= i for place in at) for i, stage in enumerate(STAGES)
    }
    lost = Counter(f"ended after {one.stage}: {one.reason}" for one in done if one.stage != "kept")
    return {**counts, **dict(sorted(lost.items()))}
