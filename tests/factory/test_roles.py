"""The roles on recorded and on hostile answers: what is repaired, what is refused, and its name."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pydantic import BaseModel

from sandmle.config import DEFAULT_SANDBOX, PolicySection, SandboxSection
from sandmle.errors import AnswerError, ModelError, UsageError
from sandmle.factory.deep import check_all
from sandmle.factory.family import FAMILIES
from sandmle.factory.mix import Stratum
from sandmle.factory.plan import member_at, plan_in
from sandmle.factory.regenerate import main
from sandmle.factory.roles.answers import Dna, Faults, Place, Specification
from sandmle.factory.roles.blueprint import blueprint, read_data
from sandmle.factory.roles.desk import Call, Desk, Example
from sandmle.factory.roles.hybrid import facts_of
from sandmle.factory.roles.item import Order
from sandmle.factory.roles.judge import ladder_of
from sandmle.factory.roles.report import Done, funnel, read_report, write_report
from sandmle.factory.roles.strategist import extract, imagine, specify
from sandmle.factory.roles.studio import build
from sandmle.factory.roles.teller import Parts, needs_of, skin_of
from sandmle.factory.roles.twins import Twins, like_evaluation, structure
from sandmle.factory.roles.workshop import LIMITS, Made, Unfit, judged, make
from sandmle.factory.roles.writer import require_complete
from sandmle.factory.seeds.catalogue import catalogue, competition, competitions
from sandmle.factory.seeds.choose import choose_seeds
from sandmle.factory.seeds.nearness import (
    MOST_ALIKE,
    alike,
    families_like,
    kinds_of,
    nearest_evaluation,
)
from sandmle.factory.skin import skins
from sandmle.grading.check import check_task
from sandmle.llm.base import LLM
from sandmle.llm.scripted import Scripted
from sandmle.llm.structured import read_answer
from sandmle.sandbox.base import Sandbox, open_sandbox
from sandmle.tasks.corpus import open_corpus
from sandmle.tasks.folder import Task
from sandmle.types import TaskDNA, TaskSpec

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


def whole(**changes: object) -> TaskSpec:
    """Return a specification as it is kept in a task."""
    dna = read_answer(recorded(TABLE, "dna.1"), Dna).as_task_dna()
    spec = Specification.model_validate_json(json.dumps(spec_of()))
    faults = read_answer(recorded(TABLE, "faults-0-0.1"), Faults)
    facts = {
        "id": "one", "task_name": spec.task_name, "domain_context": spec.domain_context,
        "dna": dna, "scenario": {"domain": "a", "scenario": "b", "justification": "c"},
        "mutations": [dict(fault) for fault in faults.mutations],
        "final_dimensions": dict(spec.final_dimensions), "feature_mapping": spec.feature_mapping,
        "hidden_rule_logic": spec.hidden_rule_logic,
        "evaluation_specs": dict(spec.evaluation_specs), "seed": (0,),
        "provenance": {"seed_task": TABLE, "source": "model x", "versions": {}},
    }  # fmt: skip
    return TaskSpec.model_validate({**facts, **changes})


def test_twins_are_found_by_structure_and_by_text() -> None:
    first, text = whole(), recorded(TABLE, "writer-0-0.2")
    twins = Twins()
    assert twins.add("one", structure(first), text) is None
    # another story, other sizes, other numbers in the rule: the same task
    told = first.hidden_rule_logic.replace("0.6", "0.85").replace("cold", "warm")
    bigger = first.dna.dataset_stats.model_copy(update={"sample_count": 7})
    again = whole(
        hidden_rule_logic=told,
        scenario={"domain": "Glass", "scenario": "x", "justification": "y"},
        dna=first.dna.model_copy(update={"dataset_stats": bigger}),
    )
    assert twins.add("two", structure(again), "another text") == ("duplicate_structure", "one")
    # one fault, the rule, or what is predicted is another: another task, unless it reads the same
    others = [
        whole(mutations=[{**dict(m), "name": f"{m.name}_x"} for m in first.mutations]),
        whole(hidden_rule_logic="The class is that of the nearest of four centres in the plane."),
        whole(dna=recorded_dna(PICTURES)),
    ]
    for i, other in enumerate(others):
        assert Twins([]).add("x", structure(other), "") is None
        assert twins.add(f"other{i}", structure(other), f"text of its own {i}" * 9) is None
        nearly = text.replace("grocery wholesaler", "dairy")
        fresh = whole(mutations=[{**dict(m), "name": f"f{i}_{m.name}"} for m in first.mutations])
        assert twins.add("z", structure(fresh), nearly) == ("duplicate_text", "one")


def recorded_dna(seed: str) -> TaskDNA:
    return read_answer(recorded(seed, "dna.1"), Dna).as_task_dna()


def test_what_has_the_structure_of_an_evaluation_task_is_found_out() -> None:
    assert like_evaluation(whole()) is None
    assert like_evaluation(whole(dna=recorded_dna(PICTURES))) is None
    for one in competitions():
        if not one.evaluation_only or one.metric is None:
            continue
        measured = {"metric": one.metric.name, "direction": one.direction, "thresholds_logic": ""}
        assert like_evaluation(whole(dna=one.dna, evaluation_specs=measured)) == one.id
        # and in other words, with the same form and columns of the same kinds, only if some remain
        other = tuple(f.model_copy(update={"abstract": "xyzzy"}) for f in one.dna.features)
        blank = one.dna.model_copy(update={"features": other})
        assert like_evaluation(whole(dna=blank, evaluation_specs=measured)) is None


def test_a_task_like_an_evaluation_task_is_dropped_before_it_is_built(tmp_path: Path) -> None:
    lite = competition("histopathologic-cancer-detection")
    dna = lite.dna.model_dump(mode="json", exclude={"extra"}) | {"difficulty": lite.hard * 2}
    why = "It is there because somebody takes it each time."
    names = ("Glass", "Paper", "Steel", "Bread", "Water")
    places = [
        {"domain": name, "scenario": f"{name} on a belt", "justification": why, "modality": why,
         "features": {"feat_0": why}}
        for name in names
    ]  # fmt: skip
    spec = spec_of()
    spec["feature_mapping"] = {"feat_0": {"name": "view", "generation_logic": "noise"}}
    spec["final_dimensions"]["n_features"] = 1
    spec["evaluation_specs"]["metric"] = lite.metric.name
    column = {"name": "chance", "kind": "number", "minimum": None, "maximum": None}
    spec["submission"]["columns"] = [column]
    source = Saying(
        dna=[json.dumps(dna)],
        places=[json.dumps({"scenarios": places})],
        faults=[recorded(TABLE, "faults-0-0.1")],
        spec=[json.dumps(spec)],
    )
    out = tmp_path / "out"
    order = Order(seeds=choose_seeds(TABLE), scenarios=1, mutation_sets=1)
    with pytest.raises(UsageError, match="specified: like_evaluation"):
        build(out, order, source, SECTION, sandbox="bare")
    report = read_report(out)
    assert report.duplicates["like_evaluation"] == 1
    assert report.funnel["ended after specified: like_evaluation"] == 1
    assert report.items[0].detail == lite.id


def test_duplicates_are_counted_by_sort(tmp_path: Path) -> None:
    reasons = ["duplicate_text", "duplicate_text", "duplicate_structure", "bad_answer"]
    done = [Done(item=("a", i, 0), stage="described", reason=r) for i, r in enumerate(reasons)]
    report = write_report(tmp_path, "llm", "x", done)
    assert report == read_report(tmp_path)
    assert report.duplicates == {
        "duplicate_structure": 1, "duplicate_text": 2, "like_evaluation": 0,
    }  # fmt: skip
    assert (report.spent.calls, report.spent.tokens_a_task) == (0, None)


def test_of_the_seeds_those_that_are_like_an_evaluation_task_are_few() -> None:
    scores = {one.id: nearest_evaluation(one.dna) for one in competitions()}
    like = {k: name for k, (name, how) in scores.items() if round(how, 6) > MOST_ALIKE}
    seeds = {one.id for one in catalogue()}
    assert {k: v for k, v in like.items() if k in seeds} == {
        "plant-pathology-2021-fgvc8": "plant-pathology-2020-fgvc7"
    }
    assert all(like[one.id] == one.id for one in competitions() if one.evaluation_only)


def test_a_profile_is_like_the_families_that_have_its_columns() -> None:
    (seed,) = choose_seeds(TABLE)
    assert families_like(seed.dna)[0] == "structured_code"
    assert kinds_of(seed.dna) == {"category": 0.2, "code": 0.2, "number": 0.6}
    assert alike(seed.dna, seed.dna).whole == 1.0


def test_a_model_that_says_nothing_of_use_leaves_an_empty_corpus(tmp_path: Path) -> None:
    order = Order(seeds=choose_seeds(f"{TABLE},{PICTURES}"), scenarios=2, mutation_sets=2)
    with pytest.raises(UsageError, match=r"no task is left of 8.*planned: bad_answer"):
        build(tmp_path / "out", order, Saying(dna=["no"] * 3), SECTION, sandbox="bare")
    with pytest.raises(UsageError, match="planned: model_failed"):
        build(tmp_path / "none", order, Saying(), SECTION, sandbox="bare")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": ()}, "--seeds"),
        ({"seed": -1}, "--seed -1"),
        ({"scenarios": 6}, "--per-seed"),
        ({"seeds": choose_seeds("AI4Code"), "factory": "hybrid"}, "no family imitates"),
    ],
)
def test_an_order_that_cannot_be_is_refused(changes: dict, message: str, tmp_path: Path) -> None:
    order = Order(seeds=choose_seeds(TABLE)).model_copy(update=changes)
    with pytest.raises(UsageError, match=message):
        build(tmp_path / "out", order, Saying(), SECTION, sandbox="bare")
    assert not (tmp_path / "out").exists()


def test_a_model_that_has_nothing_recorded_is_a_failure_by_name(desk: Desk) -> None:
    (seed,) = choose_seeds("AI4Code")
    with pytest.raises(ModelError, match=r"AI4Code: dna, attempt 1"):
        extract(desk, seed)


# --- hybrid ---------------------------------------------------------------------------------------


def test_a_hybrid_task_is_told_by_the_model_and_made_by_a_family(tmp_path: Path) -> None:
    out = tmp_path / "out"
    order = Order(seeds=choose_seeds(TABLE), scenarios=1, mutation_sets=1, factory="hybrid")
    index = build(out, order, Example(), SECTION, validation=0.0)
    assert index.funnel == dict.fromkeys(index.funnel, 1)
    lines = (out / ".factory" / "journal.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    assert [e["reason"] for e in events if e["event"] == "sent_back"] == ["description_tells"]
    assert read_report(out).spent.calls == sum(e["event"] == "reply" for e in events) == 7
    (task,) = open_corpus(out)
    assert task.spec is not None
    assert task.spec.provenance.source == (
        "family structured_code, level 1; told by replay:example"
    )
    assert task.spec.scenario.domain == "Cold-chain logistics"
    columns = task.read("public/train.csv").decode().splitlines()[0].split(",")
    assert {"pallet_id", "lot_code", "core_temp", "dock_state"} <= set(columns)
    assert "cold dock" in task.description.lower()
    assert not [c for c in check_task(task) if c.passed is False]
    (found,) = check_all([task], 1, DEFAULT_SANDBOX)
    assert not [c for c in found if c.passed is False]
    assert {"description", "rebuilt", "ladder_again"} <= {c.name for c in found}
    main(task.private / "spec.json", ["--out", str(tmp_path / "again")])
    for path in task.public.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()
    # a description that is changed later is found out, in the card and by what it says
    assert build(out, order, Example(), SECTION, validation=0.0) == index
    bad = require_fault(task.description.replace("`lot_code`", "`lot`"), task)
    assert bad == "description_lacks"
    assert require_fault(task.description + "\nSee evaluator.py.", task) == "description_tells"


def require_fault(text: str, task: Task) -> str:
    assert task.spec is not None
    files = {f"public/{path.name}": path.read_bytes() for path in task.public.iterdir()}
    with pytest.raises(Unfit) as caught:
        require_complete(text, facts_of(task.spec, files))
    return caught.value.reason


@pytest.mark.parametrize("name", FAMILIES.names())
def test_what_a_family_needs_is_enough_to_tell_it(name: str) -> None:
    """Parts cut from a shipped skin to just what is asked for tell every family's story."""
    skin = skins()[0]
    for level in range(1, 6):
        for metric in FAMILIES.get(name).metrics[:2]:
            where, chosen = (0, 3, level), Stratum(name, metric, level, None)
            needs = {need.field: need for need in needs_of(member_at(where, chosen))}
            always = ("story", "verified", "justification", "id", "recorder", "revision", "version")
            given: dict[str, object] = {field: getattr(skin, field) for field in (*always, *needs)}
            for field in ("measures", "levels", "categories"):
                given[field] = (
                    given.get(field, ())[: needs[field].entries] if field in needs else ()
                )
            parts = Parts.model_validate_json(json.dumps({k: dumped(v) for k, v in given.items()}))
            place = Place.model_construct(domain="here")
            drawn = plan_in(skin_of(parts, place), "t", where, chosen, "adaptive")
            assert drawn.recipe.story.domain == "here"
            assert len(drawn.recipe.mutations) >= 1


def dumped(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return [dumped(one) for one in value] if isinstance(value, tuple) else value
