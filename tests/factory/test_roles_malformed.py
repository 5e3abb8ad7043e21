"""Malformed and hostile answers of every sort: each ends as a counted failure with a name."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from sandmle.config import PolicySection, SandboxSection
from sandmle.errors import UsageError
from sandmle.factory.roles.desk import Call, Example
from sandmle.factory.roles.item import Factory, Order
from sandmle.factory.roles.report import DUPLICATES, STAGES, read_report
from sandmle.factory.roles.studio import build
from sandmle.factory.seeds.choose import choose_seeds
from sandmle.llm.base import LLM, Completion, Message
from sandmle.sandbox.base import Sandbox, open_sandbox
from sandmle.types import Limits

SEED = "spaceship-titanic"
CANARY = "zebrafinch-7351"
LIMITS = Limits(wall_s=60, memory_mb=512, disk_mb=8, processes=32)
FOLDER = Path(Example()._folder) / SEED


class Same:
    """The shipped answers, but for one role: that one says the same thing again and again."""

    name = "same"

    def __init__(self, role: str, reply: str) -> None:
        self.role, self.reply = role, reply

    def open(self, call: Call) -> LLM:
        return self if call.role == self.role else Example().open(call)

    def complete(self, messages: Sequence[Message]) -> Completion:
        return Completion(self.reply, 10, 10, 0.001)

    def close(self) -> None:
        pass


class Case(NamedTuple):
    name: str
    role: str
    reply: str
    ended: str
    told: str = ""
    factory: Factory = "llm"
    wall_s: float = 60.0


def answer(name: str) -> str:
    text = (FOLDER / f"{name}.md").read_text("utf-8")
    return text[text.index("{") : text.rindex("}") + 1]


def edited(name: str, old: str, new: str) -> str:
    text = answer(name)
    assert old in text
    return text.replace(old, new, 1)


DNA, PLACES, SPEC, STORY = "dna.1", "places.2", "spec-0-0.2", "story-0-0.2"
BAD, SPECIFIED = "planned: bad_answer", "specified: "

TEXTS = [
    Case("no_json", "dna", "I would rather talk about the weather.", BAD, "no JSON object"),
    Case("nothing", "dna", "", BAD, "no JSON object"),
    Case("json_in_prose", "dna", 'It is {"modality": "tabular"} as I said.', BAD, "task_type"),
    Case("two_objects", "dna", answer(DNA) + edited(DNA, "8693", "12"), BAD, "2 different"),
    Case("trailing_commas", "dna", '{"modality": "tabular",,}', BAD, "broken"),
    Case("nested_fences", "dna", f"````\n```json\n{answer(DNA)[:300]}\n```\n````", BAD, "broken"),
    Case("half", "dna", answer(DNA)[:-60], BAD, "broken"),
    Case("huge", "dna", answer(DNA) + " " * 400_001, BAD, "characters"),
    Case("deep", "dna", '{"modality": ' * 20_000, BAD, ""),
    Case("wrong_type", "dna", edited(DNA, "8693", '"many"'), BAD, "sample_count"),
    Case("not_a_number", "dna", edited(DNA, "8693", "NaN"), BAD, "NaN"),
    Case("key_twice", "dna", edited(DNA, '"modality"', '"modality": "text", "modality"'), BAD,
         "twice"),
    Case("thought_left_open", "dna", "<think>" + answer(DNA), BAD, "not closed"),
    Case("lone_surrogate", "dna", answer(DNA)[:99] + "\ud83d", BAD, "broken"),
    Case("nul_bytes", "dna", "\0" * 999, BAD, "no JSON object"),
    Case("other_names", "dna", edited(DNA, "feat_0", "../feat"), BAD, "feat_0"),
    Case("four_scenarios", "places", '{"scenarios": []}', BAD, "scenarios"),
    Case("domain_twice", "places", edited(PLACES, "Glass manufacturing", "cold-chain logistics"),
         BAD, "one domain"),
    Case("seed_heard", "places", edited(PLACES, "Glass manufacturing", "Passengers in space"),
         BAD, "can be heard"),
    Case("no_such_metric", "spec", edited(SPEC, '"accuracy"', '"beauty"'), BAD, "metric"),
    Case("five_thousand_rows", "spec", edited(SPEC, '"n_samples": 190', '"n_samples": 5000'),
         BAD, "n_samples"),
    Case("no_fence", "developer", "import os", SPECIFIED + "no_files", "no fenced block"),
    Case("fence_left_open", "developer", "```python generate_task_env.py\nimport os",
         SPECIFIED + "no_files", "not closed"),
    Case("path_upwards", "developer", "```python ../../generate_task_env.py\nx = 1\n```",
         SPECIFIED + "no_files", "not a name"),
    Case("path_from_the_root", "developer", "```python /etc/cron.d/x\nx = 1\n```",
         SPECIFIED + "no_files", "not a name"),
    Case("story_without_columns", "story", edited(STORY, '"measures": [', '"nouns": [], "x": ['),
         BAD, "", "hybrid"),
    Case("story_path_in_a_name", "story", edited(STORY, '"lot_code"', '"../lot"'), BAD, "name",
         "hybrid"),
    Case("story_rounded_away", "story", edited(STORY, '"decimals": 2', '"decimals": 0'), BAD,
         "more decimals", "hybrid"),
]  # fmt: skip

# the rest of a ladder, so that the generator is what is tried out
LADDER = "".join(
    f"```python solutions/{name}.py\npass\n```\n"
    for name in ("00-dummy", "20-linear", "40-forest", "90-reference")
)
WRITES = (
    "import os; os.makedirs('out', exist_ok=True); open('out/train.csv', 'w').write('a\\n1\\n')"
)


def program(code: str) -> str:
    return f"```python generate_task_env.py\n{code}\n```\n{LADDER}"


ANY, OTHERS = SPECIFIED + "generator_", SPECIFIED + "wrong_files"
PROGRAMS = [
    Case("fills_the_disk", "developer",
         program(WRITES + "\nopen('out/test.csv', 'wb').write(bytes(10**8))"), ANY),
    Case("reads_the_environment", "developer",
         program(WRITES + "\nimport json; json.dump(dict(os.environ), open('out/env.json', 'w'))"),
         OTHERS, "was not written"),
    Case("deletes_its_folder", "developer",
         program("import shutil\nfor p in ('out', 'private', '.'): shutil.rmtree(p, True)"),
         OTHERS, "nothing"),
    Case("writes_beside", "developer", program(WRITES + "\nopen('x.csv', 'w').write('1')"),
         OTHERS, "x.csv"),
    Case("links_outwards", "developer",
         program(WRITES + "\nos.symlink('/etc/passwd', 'out/answer.csv')"), OTHERS, "answer.csv"),
    Case("ends_silently", "developer", program("import os; os._exit(7)"), ANY + "failed",
         "status 7"),
]  # fmt: skip
SLOW = [
    Case("never_ends", "developer", program("while True: pass"), ANY + "timeout", "2 seconds",
         wall_s=2),
    Case("forks", "developer", program("import os\nwhile True: os.fork()"), ANY, wall_s=5),
    Case("eats_memory", "developer", program("x = []\nwhile True: x.append(bytearray(10**7))"),
         ANY),
    Case("talks_without_end", "developer", program("while True: print('zebra' * 999)"), ANY),
]  # fmt: skip


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    box = open_sandbox(SandboxSection(preload="none"))
    yield box
    box.close()


@pytest.mark.parametrize(
    "case",
    [*TEXTS, *PROGRAMS, *(pytest.param(one, marks=pytest.mark.slow) for one in SLOW)],
    ids=lambda case: case.name,
)
def test_a_malformed_answer_is_counted_by_name(
    case: Case, tmp_path: Path, sandbox: Sandbox, monkeypatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    out = tmp_path / "out"
    order = Order(seeds=choose_seeds(SEED), scenarios=1, mutation_sets=1, factory=case.factory)
    source, limits = Same(case.role, case.reply), LIMITS.model_copy(update={"wall_s": case.wall_s})
    with pytest.raises(UsageError, match="no task is left of 1"):
        build(out, order, source, PolicySection(name="same"), sandbox=sandbox, limits=limits)
    report = read_report(out)
    lost = {name: n for name, n in report.funnel.items() if name not in STAGES}
    (name,) = lost
    assert name.startswith(f"ended after {case.ended}")
    assert lost[name] + report.funnel["kept"] == report.funnel["planned"] == 1
    stage = name.removeprefix("ended after ").partition(":")[0]
    reached = [report.funnel[one] for one in STAGES]
    assert reached == [int(i <= STAGES.index(stage)) for i in range(len(STAGES))]
    assert report.duplicates == dict.fromkeys(DUPLICATES, 0)
    (done,) = report.items
    assert case.told in done.detail
    assert done.detail
    assert report.spent.calls >= 3
    assert report.spent.usd_a_task is None
    assert not [p for p in out.rglob("*") if p.is_file() and CANARY in p.read_text("latin-1")]
    assert [p.name for p in out.iterdir() if not p.name.startswith(".")] == ["report.json"]


def test_there_are_thirty_of_them() -> None:
    cases = [*TEXTS, *PROGRAMS, *SLOW]
    assert len({case.name for case in cases}) == len(cases) >= 30
    assert len({json.dumps([case.role, case.reply]) for case in cases}) == len(cases)
