"""The roles on recorded and on hostile answers: what is repaired, what is refused, and its name."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from sandmle.config import PolicySection, SandboxSection
from sandmle.errors import AnswerError, ModelError, UsageError
from sandmle.factory.roles.answers import Dna, Faults, Specification
from sandmle.factory.roles.blueprint import blueprint, read_data
from sandmle.factory.roles.desk import Call, Desk, Example
from sandmle.factory.roles.judge import ladder_of
from sandmle.factory.roles.strategist import extract, imagine, specify
from sandmle.factory.roles.studio import Done, Order, build, funnel
from sandmle.factory.roles.twins import Twins, structure
from sandmle.factory.roles.workshop import LIMITS, Made, Unfit, judged, make
from sandmle.factory.seeds.choose import choose_seeds
from sandmle.llm.base import LLM
from sandmle.llm.scripted import Scripted
from sandmle.llm.structured import read_answer
from sandmle.sandbox.base import Sandbox, open_sandbox

TABLE, PICTURES = "spaceship-titanic", "iwildcam-2019-fgvc6"
SECTION = PolicySection(name="replay:example")


class Saying:
    """A model that gives each role the same replies, whatever it is asked."""

    name = "saying"

    def __init__(self, **replies: Sequence[str]) -> None:
        self.replies = replies

    def open(self, call: Call) -> LLM:
        return Scripted(self.replies.get(call.role, ()))

    def close(self) -> None:
        pass


def recorded(seed: str, name: str) -> str:
    folder = Path(Example()._folder) / seed
    return (folder / f"{name}.md").read_text("utf-8")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    box = open_sandbox(SandboxSection(preload="none"))
    yield box
    box.close()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    one = Desk(tmp_path / "desk", Example(), SECTION)
    yield one
    one.close()


# --- the strategist -------------------------------------------------------------------------------


def spec_of(seed: str = TABLE) -> dict:
    return read_answer(recorded(seed, "spec-0-0.2"), Specification).model_dump(mode="json")


def changed(path: str, value: object) -> str:
    whole = spec_of()
    *parts, last = path.split(".")
    inner = whole
    for part in parts:
        inner = inner[part]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return json.dumps(whole)


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        ("I would rather not.", "no JSON object"),
        ('{"task_name": "Refused", "domain', "broken"),
        (json.dumps(spec_of())[:-40], "broken"),
        ("[" * 100_000, "no JSON object"),
        ("x" * 400_001, "characters"),
        ("<think>" + json.dumps(spec_of()), "not closed"),
        (json.dumps(spec_of()) + changed("task_name", "Another name"), "2 different"),
        (changed("final_dimensions.n_samples", "many"), "n_samples"),
        (changed("final_dimensions.n_samples", 20), "n_samples"),
        (changed("final_dimensions.n_samples", 5000), "n_samples"),
        (changed("final_dimensions.n_features", 7), "n_features"),
        (changed("evaluation_specs.direction", "min"), "better max"),
        (changed("evaluation_specs.metric", "accurcy"), "accuracy"),
        (changed("evaluation_specs.metric", "r2"), "wants number"),
        (changed("evaluation_specs.metric", "ndcg"), "cannot be used here"),
        (changed("feature_mapping.feat_0", None), "feat_0"),
        (changed("feature_mapping.feat_0.name", "route"), "share a name"),
        (changed("hidden_rule_logic", "y = x"), "hidden_rule_logic"),
        (changed("submission.n_rows", 999), "n_rows"),
        (changed("submission.row_sum", 1.0), "row_sum"),
        (changed("domain_context", "A spaceship carries its passengers between planets."), "heard"),
        (changed("mood", "fine"), "mood"),
    ],
)
def test_a_specification_that_is_none_is_refused_with_its_fault(
    reply: str, fault: str, tmp_path: Path
) -> None:
    (seed,) = choose_seeds(TABLE)
    dna = read_answer(recorded(TABLE, "dna.1"), Dna)
    faults = read_answer(recorded(TABLE, "faults-0-0.1"), Faults)
    desk = Desk(tmp_path, Saying(spec=[reply] * 3), SECTION)
    places = Desk(tmp_path / "other", Example(), SECTION)
    place = imagine(places, seed, dna)[0]
    with pytest.raises(AnswerError, match=fault):
        specify(desk, seed, dna, place, faults, (0, 0))
    desk.close()
    places.close()


# --- hostile programs -----------------------------------------------------------------------------

WRITES = "import os; os.makedirs('out'); open('out/train.csv', 'w').write('a\\n1\\n')\n"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("def f(:\n", "generator_failed"),
        ("raise SystemExit(3)", "generator_failed"),
        ("while True: pass", "generator_timeout"),
        ("import time; time.sleep(99)", "generator_timeout"),
        ("x = []\nwhile True: x.append(bytearray(10**7))", "generator_"),
        (WRITES + "open('out/big.csv', 'wb').write(bytes(10**8))", "generator_failed|wrong_files"),
        ("import os\nwhile True: os.fork()", "generator_"),
        ("pass", "wrong_files"),
        ("import shutil; shutil.rmtree('.', True)", "wrong_files"),
        (WRITES + "open('here.csv', 'w').write('x')", "wrong_files"),
        (WRITES + "os.mkdir('out/data'); open('out/data/x.csv', 'w')", "wrong_files"),
        (WRITES + "open('out/run.sh', 'w')", "wrong_files"),
        (WRITES + "os.symlink('/etc/passwd', 'out/answer.csv')", "wrong_files"),
        (WRITES + "os.link('out/train.csv', 'out/test.csv')", "wrong_files"),
        (WRITES + "os.mkfifo('out/test.csv')", "generator_failed|wrong_files"),
        (WRITES + "import signal; os.kill(os.getpid(), 9)", "generator_failed"),
    ],
)
def test_a_hostile_generator_fails_by_name(script: str, reason: str, sandbox: Sandbox) -> None:
    limits = LIMITS.model_copy(update={"wall_s": 20, "memory_mb": 512})
    if "while True: pass" in script or "sleep" in script:
        limits = limits.model_copy(update={"wall_s": 3})
    with pytest.raises(Unfit) as caught:
        make(script, sandbox, 0, 10, 10, limits=limits)
    assert caught.value.reason.startswith(tuple(reason.split("|")))
    assert str(caught.value)


def test_a_generator_sees_nothing_but_itself(sandbox: Sandbox, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "zebrafinch")
    script = (
        "import os, json\nos.makedirs('out')\n"
        "seen = [dict(os.environ), sorted(os.listdir('private')), os.listdir('input')]\n"
        "json.dump(seen, open('out/seen.json', 'w'))\n"
    )
    environ, private, public = json.loads(make(script, sandbox, 0, 1, 1).files["seen.json"])
    assert "zebrafinch" not in json.dumps(environ)
    assert (private, public) == (["generate_task_env.py"], [])
    assert (environ["PYTHONHASHSEED"], environ["OMP_NUM_THREADS"]) == ("1", "1")


def test_an_evaluator_is_run_on_each_case(sandbox: Sandbox) -> None:
    source = (
        "import sys, os\npath = sys.argv[2]\ntext = open(path).read()\n"
        "if 'fail' in text: raise ValueError(text)\n"
        "if 'leave' in text: sys.exit(4)\n"
        "if 'end' in text: os._exit(5)\n"
        "print(text + open('private/answer.csv').read())\n"
    )
    cases = {"a": b"plain", "b": b"fail", "c": b"leave", "d": b"end"}
    told = judged(source, {"answer.csv": b"!"}, cases, sandbox)
    assert told == {"a": (0, "plain!\n"), "b": (1, ""), "c": (4, ""), "d": (5, "")}


# --- data against the specification ---------------------------------------------------------------


def plan_of(n_test: int = 100):
    spec = spec_of()
    spec["final_dimensions"]["n_test"] = spec["submission"]["n_rows"] = n_test
    dna = read_answer(recorded(TABLE, "dna.1"), Dna)
    return blueprint(dna, Specification.model_validate_json(json.dumps(spec)))


def good_files(n_train: int = 8, n_test: int = 100) -> dict[str, bytes]:
    names = "compressor,route,lot_code,probe_drift,transit_hours,fill_share"
    row = "scroll,inland,K10-X,0.5,12.0,0.5"
    train = "".join(f"a{i},{row},accepted\n" for i in range(n_train))
    test = "".join(f"b{i},{row}\n" for i in range(n_test))
    truth = "".join(f"b{i},{('accepted', 'refused')[i % 2]}\n" for i in reversed(range(n_test)))
    levels = {
        f"{n}_threshold": v
        for n, v in zip(("median", "bronze", "silver", "gold"), (0.5, 0.6, 0.7, 0.8), strict=True)
    }
    return {
        "train.csv": f"pallet_id,{names},dock_state\n{train}".encode(),
        "test.csv": f"pallet_id,{names}\n{test}".encode(),
        "answer.csv": f"pallet_id,dock_state\n{truth}".encode(),
        "sample_submission.csv": f"pallet_id,dock_state\n{truth}".encode(),
        "threshold.json": json.dumps(levels).encode(),
    }


def test_answers_are_brought_into_the_order_of_the_test_rows() -> None:
    data = read_data(plan_of(), Made(good_files()), 8, 100)
    assert data.answers.ids == data.test.column("pallet_id")
    assert list(data.answers.columns["dock_state"][:3]) == ["accepted", "refused", "accepted"]


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        ("threshold.json", None, None, "wrong_files"),
        ("test.csv", b"fill_share\n", b"fill_shares\n", "wrong_columns"),
        ("train.csv", b"a0,", b"b0,", "wrong_ids"),
        ("train.csv", b"a7,scroll,inland,K10-X,0.5,12.0,0.5,accepted\n", b"", "wrong_size"),
        ("answer.csv", b"b1,", b"c1,", "wrong_ids"),
        ("answer.csv", b"b1,refused", b"b1,maybe", "wrong_answers"),
        ("sample_submission.csv", b"b1,refused", b"b1,", "wrong_sample"),
        ("threshold.json", b"0.6", b"0.9", "not_monotone"),
        ("threshold.json", b"0.6", b"0.5", "not_monotone"),
        ("threshold.json", b"0.6", b"NaN", "wrong_thresholds"),
        ("threshold.json", b"bronze_threshold", b"bronze", "wrong_thresholds"),
        ("train.csv", b"scroll", b"images/x.png", "wrong_files"),
    ],
)
def test_data_that_do_not_keep_to_it_are_sent_back(name, old, new, reason) -> None:
    files = good_files()
    if old is None:
        del files[name]
    else:
        assert old in files[name]
        files[name] = files[name].replace(old, new)
        if new == b"images/x.png":
            files["test.csv"] = files["test.csv"].replace(old, new)
    with pytest.raises(Unfit) as caught:
        read_data(plan_of(), Made(files), 8, 100)
    assert caught.value.reason == reason


def test_a_ladder_needs_all_its_sorts() -> None:
    paths = ["00-dummy", "20-linear", "40-forest", "90-reference"]
    files = {f"solutions/{path}.py": "pass" for path in paths}
    assert [s.kind for s in ladder_of(files)] == ["dummy", "generic", "generic", "reference"]
    for path in paths:
        with pytest.raises(Unfit, match="scripts of"):
            ladder_of({k: v for k, v in files.items() if path not in k})


# --- from end to end ------------------------------------------------------------------------------


def test_the_funnel_adds_up() -> None:
    ended = [("planned", "bad_answer"), ("specified", "not_monotone"), ("specified", "leak_path")]
    done = [Done(item=("a", i, 0), stage=s, reason=r) for i, (s, r) in enumerate(ended)]
    done.append(Done(item=("a", 3, 0), stage="kept", task_id="task-1"))
    counts = funnel(done)
    assert [counts[s] for s in ("planned", "specified", "developed", "kept")] == [4, 3, 1, 1]
    assert counts["ended after specified: leak_path"] == 1
    lost = sum(n for name, n in counts.items() if name.startswith("ended"))
    assert lost + counts["kept"] == counts["planned"]


def test_twins_are_found_by_structure_and_by_text() -> None:
    dna = read_answer(recorded(TABLE, "dna.1"), Dna).as_task_dna()
    text = recorded(TABLE, "writer-0-0.2")
    twins = Twins()
    assert twins.add("one", structure(dna, "Glass", ["a", "b"]), text) is None
    bigger = dna.dataset_stats.model_copy(update={"sample_count": 7})
    same = structure(dna.model_copy(update={"dataset_stats": bigger}), "glass", ["b", "a"])
    assert twins.add("two", same, "quite another text") == "duplicate_structure: one"
    other = structure(dna, "Glass", ["a", "c"])
    nearly = text.replace("grocery wholesaler", "dairy")
    assert twins.add("three", other, nearly) == "duplicate_text: one"
    assert twins.add("four", other, recorded(PICTURES, "writer-0-0.2")) is None


def test_a_model_that_says_nothing_of_use_leaves_an_empty_corpus(tmp_path: Path) -> None:
    order = Order(seeds=choose_seeds(f"{TABLE},{PICTURES}"), scenarios=2, mutation_sets=2)
    with pytest.raises(UsageError, match=r"no task is left of 8.*planned: bad_answer"):
        build(tmp_path / "out", order, Saying(dna=["no"] * 3), SECTION, sandbox="bare")
    with pytest.raises(UsageError, match="planned: model_failed"):
        build(tmp_path / "none", order, Saying(), SECTION, sandbox="bare")


def test_a_model_that_has_nothing_recorded_is_a_failure_by_name(desk: Desk) -> None:
    (seed,) = choose_seeds("AI4Code")
    with pytest.raises(ModelError, match=r"AI4Code: dna, attempt 1"):
        extract(desk, seed)
