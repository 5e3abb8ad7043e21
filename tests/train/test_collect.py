"""Episodes in tokens: what was sampled is what is trained."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
import trl

from sandmle.env.workbench import Workbench
from sandmle.errors import UsageError
from sandmle.train.codec import Codec, keep_history
from sandmle.train.collect import Collector
from sandmle.train.grpo import to_batch
from sandmle.train.sampling import InBatches, Sampled
from train.conftest import HALF, SUBMIT, ScriptedSampler, script

TEMPLATE_FOLDER = Path(trl.__file__).parent / "chat_templates"


def play(collector: Collector, tokenizer, corpus, names: list[str]):
    sampler = ScriptedSampler(tokenizer, names)
    return sampler, collector.play([corpus[0]] * len(names), InBatches(sampler), step=3)


TEMPLATES = {
    "ours": None,
    "qwen3, thoughts kept": "qwen3_training.jinja",
    "qwen2.5": "qwen2_5.jinja",
    "llama3": "llama3.jinja",
}


def spoken(tokenizer, template: str | None):
    """Return the tokenizer with one of TRL's chat templates, and the special tokens of that."""
    changed = copy.deepcopy(tokenizer)
    if template is not None:
        changed.chat_template = (TEMPLATE_FOLDER / template).read_text()
    if template == "llama3.jinja":
        special = ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
        changed.add_special_tokens({"additional_special_tokens": special})
        changed.bos_token, changed.eos_token = special[0], special[-1]
    return changed


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_fr39_sampled_ids_are_trained_ids_turn_by_turn(
    collector, tokenizer, corpus, template: str | None
) -> None:
    tokenizer = spoken(tokenizer, template)
    collector._codec = Codec(tokenizer)
    sampler, (rollout,) = play(collector, tokenizer, corpus, ["half"])
    ledger, trajectory = rollout
    assert [i for i, m in zip(ledger.completion_ids, ledger.mask, strict=True) if m] == [
        i for ids in sampler.given for i in ids
    ]
    # the second context is the first, its reply, and the observation: nothing was rewritten
    first, second = sampler.contexts
    assert second[: len(first)] == first
    assert second[len(first) :][: len(sampler.given[0])] == sampler.given[0]
    assert ledger.ids == second + sampler.given[1]
    assert [turn.usage.completion_tokens for turn in trajectory.turns] == [
        len(ids) for ids in sampler.given
    ]
    observation = tokenizer.decode(
        [i for i, m in zip(ledger.completion_ids, ledger.mask, strict=True) if not m]
    )
    assert "submission.csv: valid" in observation
    # and the whole is what the template makes of the conversation, thoughts included
    seen = trajectory.turns
    opening = json.loads(collector.folder.journal_path(trajectory.id).read_text().split("\n")[0])
    rendered = tokenizer.apply_chat_template(
        [
            *({"role": role, "content": content} for role, content in opening["messages"]),
            {"role": "assistant", "content": seen[0].completion},
            {"role": "user", "content": seen[0].observation},
            {"role": "assistant", "content": seen[1].completion},
        ],
        return_dict=False,
    )
    # (Qwen3's would put a blank line behind a thought: another reason not to render replies again)
    whole, trained = (
        tokenizer.decode(ids).replace("</think>\n\n", "</think>\n")
        for ids in (rendered, ledger.ids)
    )
    assert whole.startswith(trained)


def test_qwen3s_own_template_is_refused_and_changed_into_the_one_that_keeps_thoughts(
    tokenizer,
) -> None:
    own = spoken(tokenizer, "qwen3.jinja")
    with pytest.raises(UsageError, match="rewrites earlier messages"):
        Codec(own)
    keep_history(own)
    assert own.chat_template == spoken(tokenizer, "qwen3_training.jinja").chat_template
    Codec(own)
    same = spoken(tokenizer, None)
    keep_history(same)
    assert same.chat_template == tokenizer.chat_template


def test_programs_run_while_other_episodes_are_sampled(collector, tokenizer, corpus) -> None:
    """An engine that hands out a reply only when another episode has come back from its program."""
    reply = tokenizer.encode(script(HALF), add_special_tokens=False)
    done = tokenizer.encode(SUBMIT, add_special_tokens=False)

    class OneByOne:
        def __init__(self) -> None:
            self.waiting: list[int] = []
            self.turns: dict[int, int] = {}
            self.order: list[int] = []

        def due(self, waiting: int, away: int) -> bool:
            return True

        def submit(self, key: int, request) -> None:
            self.waiting.append(key)

        def advance(self):
            # the last that asked goes first: the first waits until all others have ended
            key = self.waiting.pop()
            turn = self.turns.get(key, 0)
            self.turns[key] = turn + 1
            self.order.append(key)
            return [(key, Sampled([*(done if turn else reply), tokenizer.eos_token_id], True))]

        def forget(self, key: int) -> None:
            self.turns.pop(key)

    engine = OneByOne()
    rollouts = collector.play([corpus[0]] * 4, engine, step=0)
    assert [r.trajectory.reward.total for r in rollouts] == [0.7] * 4
    assert sorted(engine.order) == sorted([*range(4)] * 2)
    assert engine.turns == {}, "what has ended is forgotten"


def test_a_fault_of_ours_ends_its_episode_only(collector, tokenizer, corpus, monkeypatch) -> None:
    real = Workbench.record

    def fail(self, turn) -> None:
        if turn.result is None:
            raise OSError("the disk is full")
        real(self, turn)

    monkeypatch.setattr(Workbench, "record", fail)
    collector.config = collector.config.model_copy(
        update={"env": collector.config.env.model_copy(update={"max_turns": 1})}
    )
    _, rollouts = play(collector, tokenizer, corpus, ["nop", "good"])
    first, second = (rollout.trajectory for rollout in rollouts)
    assert (first.stop_reason, first.error.message) == ("infra_error", "the disk is full")
    assert first.mask.masked
    assert second.reward.total == 1.0


def test_fr38_two_ways_to_spell_a_text_are_not_mixed_up(collector, tokenizer, corpus) -> None:
    """Ids that no tokenizer would give for the text they say are trained as they were sampled."""
    pieces = [tokenizer.encode(c, add_special_tokens=False) for c in "<submit/>"]
    ids = [i for piece in pieces for i in piece]
    whole = tokenizer.encode("<submit/>", add_special_tokens=False)
    assert len(whole) < len(ids)
    reply = Sampled([*ids, tokenizer.eos_token_id], True)
    (rollout,) = collector.play([corpus[0]], InBatches(lambda requests: [reply]), step=0)
    assert rollout.ledger.completion_ids == [*ids, tokenizer.eos_token_id]
    assert rollout.trajectory.turns[0].completion == "<submit/>"
    assert rollout.trajectory.stop_reason == "submitted"
    assert rollout.trajectory.turns[0].usage.completion_tokens == sum(rollout.ledger.mask)


def test_a_group_is_played_side_by_side_with_its_rewards(collector, tokenizer, corpus) -> None:
    _, rollouts = play(collector, tokenizer, corpus, ["good", "half", "nop", "mute"])
    totals = [rollout.trajectory.reward.total for rollout in rollouts]
    assert totals == [1.0, 0.7, 0.1, pytest.approx(0.1 * 1 / 2)]
    assert [rollout.trajectory.id for rollout in rollouts] == [
        f"000003-000-one.{k}" for k in range(4)
    ]


def test_a_task_drawn_twice_in_one_step_makes_two_groups(collector, tokenizer, corpus) -> None:
    one, two = corpus
    sampler = InBatches(ScriptedSampler(tokenizer, ["nop"] * 12))
    rollouts = collector.play([one] * 4 + [two] * 4 + [one] * 4, sampler, step=3)
    played = [rollout.trajectory for rollout in rollouts]
    groups = ["000003-000-one", "000003-001-two", "000003-002-one"]
    assert [(t.group, t.k) for t in played] == [(g, k) for g in groups for k in range(4)]
    assert len({t.id for t in played}) == 12
    assert len({(t.task_hash, str(t.sampling), t.seed) for t in played}) == 12, "keys differ too"


def test_a_group_of_several_tasks_is_refused(collector, tokenizer, corpus) -> None:
    """Their rewards would be compared with each other."""
    with pytest.raises(ValueError, match="one task, 4 times"):
        collector.play([*corpus] * 2, InBatches(ScriptedSampler(tokenizer, [])), step=0)


def test_the_run_folder_gets_everything(collector, tokenizer, corpus, tmp_path) -> None:
    _, rollouts = play(collector, tokenizer, corpus, ["good", "nop"])
    for rollout in rollouts:
        with np.load(tmp_path / "run" / "tokens" / f"{rollout.trajectory.id}.npz") as saved:
            assert saved["completion_ids"].tolist() == rollout.ledger.completion_ids
            assert saved["mask"].tolist() == rollout.ledger.mask
    lines = (tmp_path / "run" / "trajectories.jsonl").read_text().splitlines()
    assert len(lines) == 2


@pytest.mark.parametrize("name", ["mute", "blank", "forger", "endless"])
def test_odd_policies_play_on(collector, tokenizer, corpus, name: str) -> None:
    _, (rollout,) = play(collector, tokenizer, corpus, [name])
    assert rollout.trajectory.reward is not None
    assert rollout.trajectory.grade.status == "missing"
    assert rollout.ledger.completion_ids
    assert len(rollout.ledger.mask) == len(rollout.ledger.completion_ids)


def test_a_policy_that_samples_nothing_at_all(collector, corpus) -> None:
    nothing = InBatches(lambda requests: [Sampled([], False)] * len(requests))
    (rollout,) = collector.play([corpus[0]], nothing, step=0)
    assert rollout.trajectory.stop_reason == "length"
    assert rollout.ledger.mask == [0]


def test_a_reply_at_its_limit_ends_the_episode(collector, tokenizer, corpus) -> None:
    _, (rollout,) = play(collector, tokenizer, corpus, ["endless"])
    assert rollout.trajectory.stop_reason == "length"


def test_a_full_context_ends_the_episode(collector, tokenizer, corpus) -> None:
    grpo = collector.config.grpo.model_copy(update={"completion_tokens": 310})
    collector.config = collector.config.model_copy(update={"grpo": grpo})
    _, (rollout,) = play(collector, tokenizer, corpus, ["good"])
    assert rollout.trajectory.stop_reason == "context_limit"
    assert len(rollout.ledger.completion_ids) <= 310
    assert rollout.trajectory.grade.score == 1.0


def test_a_timeout_is_masked_whole_and_has_no_reward(collector, tokenizer, corpus) -> None:
    _, rollouts = play(collector, tokenizer, corpus, ["slow", "half"])
    assert rollouts[0].trajectory.mask.why == "execution_timeout"
    assert rollouts[0].trajectory.grade.score == 1.0, "for evaluation it is still graded"
    batch = to_batch(rollouts)
    assert set(batch["env_mask"][0]) == {0}
    assert sum(batch["env_mask"][1]) > 0
    assert batch["episode_reward"] == [None, 0.7]
    assert batch["logprobs"] is None
    assert [len(m) for m in batch["env_mask"]] == [len(c) for c in batch["completion_ids"]]


def test_an_infrastructure_failure_is_masked_like_a_timeout(
    collector, tokenizer, corpus, monkeypatch
) -> None:
    monkeypatch.setattr("sandmle.sandbox.worker.GRACE_S", -100.0)  # too late before it began
    _, rollouts = play(collector, tokenizer, corpus, ["good"])
    assert rollouts[0].trajectory.stop_reason == "infra_error"
    batch = to_batch(rollouts)
    assert batch["episode_reward"] == [None]
    assert set(batch["env_mask"][0]) == {0}
