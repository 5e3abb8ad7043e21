"""Episodes in tokens: what was sampled is what is trained."""

import numpy as np
import pytest

from sandmle.train.collect import Collector, Sampled
from sandmle.train.grpo import to_batch
from train.conftest import ScriptedSampler


def play(collector: Collector, tokenizer, corpus, names: list[str]):
    sampler = ScriptedSampler(tokenizer, names)
    return sampler, collector.play([corpus[0]] * len(names), sampler, step=3)


def test_sampled_ids_are_trained_ids_turn_by_turn(collector, tokenizer, corpus) -> None:
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
    assert observation.endswith("<|im_start|>assistant\n")


def test_fr38_two_ways_to_spell_a_text_are_not_mixed_up(collector, tokenizer, corpus) -> None:
    """Ids that no tokenizer would give for the text they say are trained as they were sampled."""
    pieces = [tokenizer.encode(c, add_special_tokens=False) for c in "<submit/>"]
    ids = [i for piece in pieces for i in piece]
    whole = tokenizer.encode("<submit/>", add_special_tokens=False)
    assert len(whole) < len(ids)
    (rollout,) = collector.play(
        [corpus[0]], lambda contexts, n: [Sampled([*ids, tokenizer.eos_token_id], True)], step=0
    )
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
    sampler = ScriptedSampler(tokenizer, ["nop"] * 12)
    rollouts = collector.play([one] * 4 + [two] * 4 + [one] * 4, sampler, step=3)
    played = [rollout.trajectory for rollout in rollouts]
    groups = ["000003-000-one", "000003-001-two", "000003-002-one"]
    assert [(t.group, t.k) for t in played] == [(g, k) for g in groups for k in range(4)]
    assert len({t.id for t in played}) == 12
    assert len({(t.task_hash, str(t.sampling), t.seed) for t in played}) == 12, "keys differ too"


def test_a_group_of_several_tasks_is_refused(collector, tokenizer, corpus) -> None:
    """Their rewards would be compared with each other."""
    with pytest.raises(ValueError, match="one task, 4 times"):
        collector.play([*corpus] * 2, ScriptedSampler(tokenizer, []), step=0)


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
    (rollout,) = collector.play([corpus[0]], lambda c, n: [Sampled([], False)] * len(c), step=0)
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
