"""The recorded answers: what each first try gets wrong, and that every task is kept in the end."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from sandmle.config import PolicySection, SandboxSection
from sandmle.errors import UsageError
from sandmle.factory.deep import check_deep
from sandmle.factory.roles.desk import Call, Desk, Example
from sandmle.factory.roles.item import Order
from sandmle.factory.roles.report import read_report
from sandmle.factory.roles.strategist import extract, imagine, specify, spoil
from sandmle.factory.roles.studio import build
from sandmle.factory.seeds.catalogue import competitions
from sandmle.factory.seeds.choose import choose_seeds
from sandmle.grading.check import check_task
from sandmle.llm.base import LLM, Completion, Message
from sandmle.sandbox.base import open_sandbox
from sandmle.tasks.corpus import open_corpus

SECTION = PolicySection(name="replay:example")
TABLE = "spaceship-titanic"

# of each seed: the answer of the strategist that is refused at first, and why the others are
STORIES = {
    TABLE: (
        "tabular",
        ("places", "spec"),
        ["generator_failed", "not_monotone", "evaluator_disagrees", "description_tells"],
    ),
    "iwildcam-2019-fgvc6": (
        "image",
        ("spec",),
        ["wrong_files", "leak_path", "evaluator_disagrees", "description_lacks"],
    ),
    "learning-agency-lab-automated-essay-scoring-2": (
        "text",
        ("spec",),
        ["not_deterministic", "leak_length", "evaluator_accepts", "description_tells"],
    ),
    "tensorflow-speech-recognition-challenge": (
        "audio",
        ("dna",),
        ["wrong_columns", "solution_failed", "evaluator_exits", "description_lacks"],
    ),
    "champs-scalar-coupling": (
        "graph",
        ("places",),
        ["not_monotone", "generic_below_gold", "evaluator_prints", "description_tells"],
    ),
    "petfinder-pawpularity-score": (
        "multimodal",
        ("faults",),
        ["wrong_ids", "leak_order", "evaluator_prints", "description_tells"],
    ),
}


class Counting:
    """A source whose replies are counted, and that may end the run after some."""

    def __init__(self, most: int | None = None) -> None:
        self.name, self.asked, self.most = Example.name, 0, most

    def open(self, call: Call) -> LLM:
        inner = Example().open(call)

        class One:
            def complete(this, messages: Sequence[Message]) -> Completion:
                if self.asked == self.most:
                    raise KeyboardInterrupt
                self.asked += 1
                return inner.complete(messages)

        return One()

    def close(self) -> None:
        pass


def journal(folder: Path, event: str) -> list[dict]:
    lines = (folder / "journal.jsonl").read_text().splitlines()
    return [found for line in lines for found in [json.loads(line)] if found["event"] == event]


def sent_back(folder: Path) -> list[str]:
    """Return why work was sent back, each reason once, in order."""
    return list(dict.fromkeys(found["reason"] for found in journal(folder, "sent_back")))


def test_what_ships_is_of_six_modalities_and_of_no_test_competition() -> None:
    assert sorted(STORIES) == Example().seeds()
    assert len({modality for modality, *_ in STORIES.values()}) == len(STORIES)
    evaluation = {one.id for one in competitions() if one.split == "low"}
    assert not evaluation & STORIES.keys()


@pytest.mark.parametrize("name", STORIES)
def test_the_strategist_comes_from_a_seed_to_a_specification(name: str, tmp_path: Path) -> None:
    (seed,) = choose_seeds(name)
    desk = Desk(tmp_path, Example(), SECTION)
    dna = extract(desk, seed)
    places = imagine(desk, seed, dna)
    faults = spoil(desk, seed, dna, places[0], (0, 0), ())
    plan = specify(desk, seed, dna, places[0], faults, (0, 0))
    desk.close()
    assert dna.modality == STORIES[name][0]
    assert len({place.domain for place in places}) == 5
    assert len(faults.mutations) == 3
    assert 50 <= plan.spec.final_dimensions.n_samples <= 200
    asked = Counter(found["role"] for found in journal(tmp_path, "reply"))
    again = {role for role, n in asked.items() if n == 2}
    assert again == set(STORIES[name][1])
    assert set(asked.values()) <= {1, 2}


def built(name: str, out: Path) -> Order:
    """Build the one task of a seed and make every check of it, the deep ones too."""
    order = Order(seeds=choose_seeds(name), scenarios=1, mutation_sets=1)
    index = build(out, order, Counting(), SECTION, validation=0.0)
    assert index.funnel == dict.fromkeys(index.funnel, 1)
    (task,) = open_corpus(out)
    assert task.card.sound
    assert task.card.modality == STORIES[name][0]
    assert task.spec is not None
    assert task.spec.provenance.seed_task == name
    box = open_sandbox(SandboxSection(preload="vision,audio"))
    try:
        assert not [c for c in [*check_task(task), *check_deep(task, box)] if c.passed is False]
    finally:
        box.close()
    return order


def test_a_run_that_was_killed_goes_on_and_its_task_is_kept(tmp_path: Path) -> None:
    out, first = tmp_path / "out", Counting(most=7)
    order = Order(seeds=choose_seeds(TABLE), scenarios=1, mutation_sets=1)
    with pytest.raises(KeyboardInterrupt):
        build(out, order, first, SECTION, validation=0.0)
    assert order == built(TABLE, out)
    assert sent_back(out / ".factory") == STORIES[TABLE][2]
    replies = journal(out / ".factory", "reply")
    # what was said before is not asked again, and nothing is once the task is there
    assert len({reply["key"] for reply in replies}) == len(replies)
    spent = read_report(out).spent
    tokens = sum(reply["prompt_tokens"] + reply["completion_tokens"] for reply in replies)
    assert (spent.calls, spent.tokens_a_task, spent.usd_a_task) == (len(replies), tokens, 0.0)
    last = Counting()
    build(out, order, last, SECTION, validation=0.0)
    assert last.asked == 0
    with pytest.raises(UsageError, match="other seeds or another model"):
        build(out, order.model_copy(update={"seed": 1}), Counting(), SECTION)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in STORIES if name != TABLE])
def test_each_example_is_repaired_and_kept(name: str, tmp_path: Path) -> None:
    built(name, tmp_path / "out")
    assert sent_back(tmp_path / "out" / ".factory") == STORIES[name][2]


@pytest.mark.slow
def test_what_a_linear_model_solves_is_lost_after_five_tries(tmp_path: Path) -> None:
    order = Order(seeds=choose_seeds(TABLE), scenarios=2, mutation_sets=1)
    index = build(tmp_path, order, Counting(), SECTION, validation=0.0)
    assert index.funnel == {
        **{"planned": 2, "specified": 2, "developed": 1, "evaluated": 1, "described": 1, "kept": 1},
        "ended after specified: reference_reaches_gold": 1,
    }
    second = [e for e in journal(tmp_path / ".factory", "sent_back") if e["scenario"] == 1]
    reasons = ["no_ladder", "wrong_size", *["reference_reaches_gold"] * 3]
    assert [found["reason"] for found in second] == reasons
