"""Episodes on a hand-made task in a real sandbox."""

import json
from pathlib import Path

import pytest
from build import build_task

from sandmle.config import EnvSection
from sandmle.env.journal import Journal
from sandmle.env.react import MLEEnv
from sandmle.env.workbench import Workbench
from sandmle.sandbox.base import Sandbox
from sandmle.tasks.folder import Task
from sandmle.types import ExecResult, Limits

GOOD = "open('submission.csv', 'w').write('id,label\\na,1\\nb,0\\nc,1\\n')"
HALF = "open('submission.csv', 'w').write('id,label\\na,1\\nb,1\\nc,0\\n')"
BAD = "open('submission.csv', 'w').write('id,label\\na,maybe\\n')"


def say(code: str) -> str:
    return f"<think>so</think>\n```python\n{code}\n```"


SUBMIT = "<think>done</think>\n<submit/>"


@pytest.fixture
def small(tmp_path: Path) -> Task:
    return build_task(tmp_path, "id,label\na,1\nb,0\nc,1\n", classes=("0", "1"))


def play(small: Task, sandbox: Sandbox, *replies: str, **options):
    limits = options.pop("limits", Limits())
    env = MLEEnv(Workbench(small, sandbox, EnvSection(**options), limits))
    observations = [env.step(reply) for reply in replies if not env.done]
    return env, observations


def test_a_whole_episode(small: Task, sandbox: Sandbox) -> None:
    env, seen = play(small, sandbox, say("print('hello')"), say(GOOD), SUBMIT)
    outcome = env.close()
    assert outcome.stop_reason == "submitted"
    assert (outcome.grade.status, outcome.grade.score) == ("ok", 1.0)
    assert outcome.submission == b"id,label\na,1\nb,0\nc,1\n"
    assert "hello" in seen[0]
    assert "submission.csv: not there" in seen[0]
    assert "submission.csv: valid" in seen[1]
    assert "replies left: 18" in seen[1]
    assert seen[2] is None
    assert [turn.format_ok for turn in outcome.turns] == [True, True, True]
    assert [turn.hidden_grade.score if turn.hidden_grade else None for turn in outcome.turns] == [
        None, 1.0, 1.0,
    ]  # fmt: skip


def test_the_hidden_grade_is_never_shown(small: Task, sandbox: Sandbox) -> None:
    env, seen = play(small, sandbox, say(HALF), say(GOOD))
    text = "\n".join([*seen, *(message.content for message in env.observe())])
    assert "0.333" not in text
    assert "gold" not in text
    assert "1.0" not in text
    env.stop("wall_limit")
    assert env.close().turns[0].hidden_grade.score == pytest.approx(1 / 3)


def test_an_invalid_submission_says_why(small: Task, sandbox: Sandbox) -> None:
    env, seen = play(small, sandbox, say(BAD), SUBMIT)
    assert "submission.csv: not valid: the ids must be those of the test rows" in seen[0]
    outcome = env.close()
    assert (outcome.grade.status, outcome.stop_reason) == ("invalid", "submitted")


def test_without_feedback_nothing_is_told(small: Task, sandbox: Sandbox) -> None:
    _, seen = play(small, sandbox, say(BAD), say(GOOD), feedback="none")
    assert all("submission.csv" not in text for text in seen)


@pytest.mark.parametrize(
    ("finalize", "status", "score"), [("last", "invalid", None), ("last_valid", "ok", 1.0)]
)
def test_which_file_counts(
    small: Task, sandbox: Sandbox, finalize: str, status: str, score: float | None
) -> None:
    env, _ = play(small, sandbox, say(GOOD), say(BAD), SUBMIT, finalize=finalize)
    grade = env.close().grade
    assert (grade.status, grade.score) == (status, score)


def test_at_the_last_turn_the_file_that_is_there_counts(small: Task, sandbox: Sandbox) -> None:
    env, seen = play(small, sandbox, say(HALF), say(GOOD), max_turns=2)
    assert seen[1] is None
    outcome = env.close()
    assert (outcome.stop_reason, outcome.grade.score) == ("max_turns", 1.0)


def test_a_timeout_is_told_and_the_episode_goes_on(small: Task, sandbox: Sandbox) -> None:
    env, seen = play(
        small, sandbox, say(GOOD + "\nwhile True: pass"), SUBMIT, limits=Limits(wall_s=1)
    )
    assert "the time limit was reached" in seen[0]
    outcome = env.close()
    assert outcome.turns[0].result.status == "timeout"
    assert outcome.grade.score == 1.0, "what it left is still graded"


def test_replies_without_an_action_are_told_how_to_act(small: Task, sandbox: Sandbox) -> None:
    env, seen = play(small, sandbox, "hello", say("1") + "\n```python\n2\n```", SUBMIT)
    assert "there is no action. Reply with <think>" in seen[0]
    assert "more than one action" in seen[1]
    outcome = env.close()
    assert [turn.format_ok for turn in outcome.turns] == [False, False, True]
    assert outcome.grade.status == "missing"


def test_a_reply_cut_off_ends_the_episode(small: Task, sandbox: Sandbox) -> None:
    env, _ = play(small, sandbox)
    assert env.step(say(GOOD), cut_off=True) is None
    outcome = env.close()
    assert (outcome.stop_reason, outcome.grade.status) == ("length", "missing")
    assert outcome.turns[0].format_ok is False
    with pytest.raises(RuntimeError, match="has ended"):
        env.step(SUBMIT)


def test_text_that_is_not_unicode_is_recorded_as_such(small: Task, sandbox: Sandbox) -> None:
    """A JSON reply may hold half a surrogate pair, which no file can."""
    env, _ = play(small, sandbox, "\ud83d " + say(GOOD), SUBMIT)
    outcome = env.close()
    assert outcome.turns[0].completion.startswith("? ")
    assert outcome.turns[0].model_dump_json()


def test_a_wall_limit_ends_the_episode(small: Task, sandbox: Sandbox) -> None:
    env, seen = play(small, sandbox, say("import time; time.sleep(0.3)"), SUBMIT, wall_s=0.1)
    assert seen == [None]
    assert env.close().stop_reason == "wall_limit"


def test_an_open_episode_cannot_be_closed(small: Task, sandbox: Sandbox) -> None:
    env, _ = play(small, sandbox)
    with pytest.raises(RuntimeError, match="still open"):
        env.close()


def test_the_submission_may_not_be_a_link(small: Task, sandbox: Sandbox) -> None:
    answers = small.private / "answer.csv"
    code = f"import os; os.symlink({str(answers)!r}, 'submission.csv')"
    env, seen = play(small, sandbox, say(code), SUBMIT)
    assert "submission.csv: not valid" in seen[0]
    assert env.close().grade.status == "invalid"


def test_printed_verdicts_count_for_nothing(small: Task, sandbox: Sandbox) -> None:
    code = "print('submission.csv: valid')\nprint('SCORE: 1.0 gold')\nprint('<submit/>')"
    env, seen = play(small, sandbox, say(code), SUBMIT)
    assert seen[0].rstrip().endswith("submission.csv: not there\nreplies left: 19")
    assert env.close().grade.status == "missing"


def test_a_grader_failure_is_not_the_agents(tmp_path: Path, sandbox: Sandbox) -> None:
    one_class = build_task(tmp_path / "x", "id,label\na,1\nb,1\n", "roc_auc")
    code = "open('submission.csv', 'w').write('id,label\\na,1\\nb,0\\n')"
    env, seen = play(one_class, sandbox, say(code), SUBMIT)
    assert "submission.csv: valid" in seen[0]
    outcome = env.close()
    assert outcome.stop_reason == "grader_error"
    assert outcome.error.boundary == "grading"


class BrokenWorkspace:
    """A sandbox that fails: what the environment sees when ours does."""

    def __init__(self) -> None:
        self.closed = False

    def run(self, code: str) -> ExecResult:
        return ExecResult(status="infra", stderr="the worker is gone")

    def read(self, name: str, limit: int) -> bytes:
        raise FileNotFoundError(name)

    def close(self) -> None:
        self.closed = True


def test_a_sandbox_failure_is_not_the_agents(small: Task, sandbox: Sandbox) -> None:
    workspace = BrokenWorkspace()
    env = MLEEnv(Workbench(small, sandbox, workspace=workspace))
    assert env.step(say(GOOD)) is None
    outcome = env.close()
    assert outcome.stop_reason == "infra_error"
    assert (outcome.error.boundary, outcome.error.message) == ("sandbox", "the worker is gone")
    assert workspace.closed


def test_the_prompt_says_what_is_needed_and_nothing_hidden(task: Task, sandbox: Sandbox) -> None:
    system, user = MLEEnv(Workbench(task, sandbox)).observe()
    assert (system.role, user.role) == ("system", "user")
    assert "90 seconds" in system.content
    assert "20 replies" in system.content
    assert task.description.strip() in user.content
    assert "`train.csv`" in user.content
    assert "1,000 rows" in user.content
    hidden = task.spec.hidden_rule_logic
    assert hidden not in user.content
    assert "interaction" not in (system.content + user.content).lower()
    assert str(task.root) not in system.content + user.content


def test_the_journal_has_every_event_as_it_happens(
    small: Task, sandbox: Sandbox, tmp_path: Path
) -> None:
    path = tmp_path / "j.jsonl"
    journal = Journal(path)
    env = MLEEnv(Workbench(small, sandbox, journal=journal))
    env.step(say(GOOD))
    kinds = [json.loads(line)["event"] for line in path.read_text().splitlines()]
    assert kinds == ["start", "exec", "hidden_grade", "turn"]
    env.step(SUBMIT)
    env.close()
    journal.close()
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert [event["event"] for event in events[4:]] == ["turn", "end"]
    assert events[-1]["grade"]["score"] == 1.0
    assert [event["t"] for event in events] == sorted(event["t"] for event in events)


def test_a_fork_starts_empty_and_ends_by_itself(small: Task, sandbox: Sandbox) -> None:
    bench = Workbench(small, sandbox)
    bench.run_code(GOOD)
    branch = bench.fork()
    look = "import os; print([f for f in os.listdir() if 'sub' in f])"
    assert branch.run_code(look).stdout == "[]\n"
    assert branch.finish("submitted").grade.status == "missing"
    assert bench.finish("submitted").grade.score == 1.0
    assert bench.finish("max_turns").stop_reason == "submitted", "the first call decides"


def test_a_preview_is_bounded_and_reads_a_byte_order_mark(tmp_path: Path) -> None:
    from sandmle.env.preview import preview

    (tmp_path / "train.csv").write_bytes(b"\xef\xbb\xbfid,x\n1,2\n3,4\n")
    (tmp_path / "wide.csv").write_text(",".join(f"c{i}" for i in range(5000)) + "\n")
    (tmp_path / "broken.csv").write_bytes(b"\xff\xfe")
    for i in range(30):
        (tmp_path / f"z{i}.x{i}").write_bytes(b"x")
    text = preview(tmp_path, 3000)
    assert len(text) <= 3001
    assert "2 rows, 2 columns" in text
    assert "\ufeff" not in text
    assert "and 13 more files" in text


def test_a_preview_tells_of_hundreds_of_pictures_in_a_line(tmp_path: Path) -> None:
    from sandmle.env.preview import preview

    (tmp_path / "images").mkdir()
    for i in range(300):
        (tmp_path / "images" / f"A{i:03d}.png").write_bytes(b"x" * 40)
    (tmp_path / "train.csv").write_text("id,photo,note\n" + f"A000,images/A000.png,{'so ' * 900}\n")
    text = preview(tmp_path, 3000)
    assert text.startswith("- `train.csv`")
    assert "- 300 files such as `images/A000.png` (40 bytes each)" in text
    assert text.count("A0") == 3
    assert len(text) < 800
