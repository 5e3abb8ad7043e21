"""Field reports on episodes, each with the smallest input that shows it.

FR-37 to FR-40 are in the tests of token ledgers and of training, FR-42 in those of the context,
FR-35 and FR-36 in those of typed answers.
"""

from contextlib import closing
from pathlib import Path

import pytest
from build import build_task
from llm.faulty_server import serving

from sandmle.config import EnvSection, PolicySection
from sandmle.env.protocol import parse
from sandmle.env.react import MLEEnv
from sandmle.env.workbench import Outcome, Workbench
from sandmle.llm.base import LLM, estimate_tokens
from sandmle.llm.scripted import Scripted
from sandmle.rollout.policies import open_policy
from sandmle.sandbox.base import Sandbox
from sandmle.scaffolds.react import react
from sandmle.tasks.folder import Task
from sandmle.types import Limits

ANSWERS = "id,label\na,1\nb,0\nc,1\n"
GOOD = f"open('submission.csv', 'w').write({ANSWERS!r})"
CONSTANT = "open('submission.csv', 'w').write('id,label\\na,1\\nb,1\\nc,1\\n')"
SUBMIT = "<think>done</think>\n<submit/>"


def say(code: str) -> str:
    return f"<think>so</think>\n```python\n{code}\n```"


@pytest.fixture
def small(tmp_path: Path) -> Task:
    return build_task(tmp_path / "c", ANSWERS, classes=("0", "1"))


@pytest.mark.parametrize(
    "block",
    [
        "``` python\nprint(1)\n```",
        "```Python\nprint(1)\n```",
        "``` Python \nprint(1)\n```",
        "```py\nprint(1)\n```",
        "```python3\nprint(1)\n```",
        "```python\r\nprint(1)\r\n```",
        "~~~python\r\nprint(1)\r\n~~~",
    ],
)
def test_fr32_a_closed_block_runs_however_it_is_fenced(block: str) -> None:
    assert parse(f"<think>so</think>\n{block}").code == "print(1)\n"


def test_fr32_what_is_cut_off_or_not_fenced_is_told_and_counts_as_a_turn(
    small: Task, sandbox: Sandbox
) -> None:
    env = MLEEnv(Workbench(small, sandbox, EnvSection(max_turns=3)))
    cut_off = env.step(f"<think>so</think>\n```python\n{GOOD}")
    assert "the code block was not closed; it was not run" in cut_off
    assert "there is no action. Reply with" in env.step(GOOD)
    assert env.step("print(1)") is None
    outcome = env.close()
    assert (outcome.stop_reason, outcome.grade.status) == ("max_turns", "missing")


def test_fr33_of_several_blocks_none_runs_and_the_agent_is_told(
    small: Task, sandbox: Sandbox
) -> None:
    env = MLEEnv(Workbench(small, sandbox))
    shell = "```bash\npip list\n```\n"
    seen = env.step(f"<think>a</think>\n{shell}```python\n{CONSTANT}\n```\n```python\n{GOOD}\n```")
    assert "there is more than one action; none was carried out" in seen
    assert env.workbench.snapshot is None, "nothing was run"
    # a block in another language is no action: beside it the one program runs
    seen = env.step(f"<think>a</think>\n{shell}```python\n{GOOD}\n```")
    assert "submission.csv: valid" in seen
    env.step(SUBMIT)
    assert env.close().grade.score == 1.0


DRAFT = "```python\nimport os; os.remove('data/train.csv')\n```"


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (
            f"<think>I could do\n{DRAFT}\nbut no</think>\n```python\nprint('ok')\n```",
            "print('ok')\n",
        ),
        (f"<think>I could do\n{DRAFT}", None),
        (f"<think>I could do\n{DRAFT}\nbut no\n```python\nprint('ok')\n```", None),
        (
            "<think>after `</think>` comes the code</think>\n```python\nprint('ok')\n```",
            "print('ok')\n",
        ),
    ],
)
def test_fr34_a_draft_in_the_thought_is_not_run(reply: str, code: str | None) -> None:
    action = parse(reply)
    assert action.code == code
    assert action.format_ok is (code is not None)


def _ends(small: Task, sandbox: Sandbox, llm: LLM, **options) -> Outcome:
    limits = options.pop("limits", Limits())
    return react(Workbench(small, sandbox, EnvSection(**options), limits), llm)


def test_fr41_every_ending_has_its_own_name(
    small: Task, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Submission, step limit, limit of a step, context, a server's failure, our grader's."""
    ended = _ends(small, sandbox, Scripted([say(GOOD), SUBMIT]))
    assert (ended.stop_reason, ended.grade.score, ended.error) == ("submitted", 1.0, None)

    ended = _ends(small, sandbox, Scripted([say("print(1)")] * 20), max_turns=20)
    assert (ended.stop_reason, len(ended.turns)) == ("max_turns", 20)

    stuck = say(GOOD + "\nwhile True: pass")
    ended = _ends(small, sandbox, Scripted([stuck, SUBMIT]), limits=Limits(wall_s=1))
    assert [t.result.status for t in ended.turns if t.result] == ["timeout"]
    assert (ended.stop_reason, ended.grade.score) == ("submitted", 1.0), "graded all the same"

    env = MLEEnv(
        Workbench(small, sandbox, EnvSection(context_tokens=1000, observation_chars=4000)),
        count=estimate_tokens,
    )
    env.step(say("print('word ' * 800)"))
    assert env.close().stop_reason == "context_limit"

    with serving((500, "down")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with closing(open_policy(PolicySection(name="openai:m", retries=0))) as policy:
            ended = _ends(small, sandbox, policy.open(small, seed=0, k=0))
    assert (ended.stop_reason, ended.error.boundary) == ("model_error", "model")

    one_class = build_task(tmp_path / "one", "id,label\na,1\nb,1\n", "roc_auc")
    write = "open('submission.csv', 'w').write('id,label\\na,1\\nb,0\\n')"
    ended = _ends(one_class, sandbox, Scripted([say(write), SUBMIT]))
    assert (ended.stop_reason, ended.error.boundary) == ("grader_error", "grading")


@pytest.mark.parametrize(
    ("reply", "opened", "counts"),
    [
        (f"plan</think>\n{SUBMIT[-9:]}", True, True),
        ("<think></think>\n<submit/>", False, False),
        ("<think>a</think><think>b</think>\n<submit/>", False, False),
        ("<submit/>\n<think>a</think>", False, False),
        ("```python\n# <think>a</think>\nprint(1)\n```", False, False),
    ],
)
def test_fr43_the_form_is_judged_with_the_end_of_the_prompt(
    reply: str, opened: bool, counts: bool
) -> None:
    assert parse(reply, think_opened=opened).format_ok is counts
