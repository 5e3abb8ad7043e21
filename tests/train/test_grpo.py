"""Through the real trainer: where the gradient is, and where it is exactly zero."""

import copy
import json
import logging
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch

from sandmle.config import load_config
from sandmle.errors import UsageError
from sandmle.llm.weights import weights_folder
from sandmle.train.figures import flat_groups
from sandmle.train.grpo import make_trainer, task_order, to_batch, train_grpo
from sandmle.train.sampling import InBatches
from sandmle.train.tiny import tiny_model
from sandmle.train.trainer import EpisodeTrainer, trimmed
from train.conftest import Acts, ScriptedSampler


class Probe(EpisodeTrainer):
    """The trainer itself, with the gradient of every token's log-prob and the batch kept."""

    def _get_per_token_logps_and_entropies(self, *arguments, **options):
        output = super()._get_per_token_logps_and_entropies(*arguments, **options)
        if output[0].requires_grad:
            output[0].retain_grad()
            self.logps = output[0]
        return output

    def training_step(self, model, inputs, num_items_in_batch=None):
        loss = super().training_step(model, inputs, num_items_in_batch)
        if not hasattr(self, "seen"):
            self.seen = []
        self.seen.append((trimmed(self._last_inputs), self.logps.grad.clone(), float(loss)))
        return loss

    def _compute_loss(self, model, inputs):
        self._last_inputs = inputs
        return super()._compute_loss(model, inputs)


def one_step(collector, corpus, tokenizer, names: list[str], seed: int = 0) -> Probe:
    """Make one step with scripted replies; the weights that moved, and by how much, in `moved`."""
    model = tiny_model(tokenizer, seed)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    sampler = ScriptedSampler(tokenizer, names)
    trainer = make_trainer(collector, corpus, model, tokenizer, sampler, trainer_class=Probe)
    trainer.train()
    trainer.moved = {
        name: float((p.detach() - before[name]).abs().max()) for name, p in model.named_parameters()
    }
    return trainer


def with_grpo(config, **changes):
    """Return a configuration with other settings of `[grpo]`."""
    return config.model_copy(update={"grpo": config.grpo.model_copy(update=changes)})


def rows(trainer: Probe):
    """Yield (gradient, mask of what was sampled, advantage) for every row of the step."""
    for inputs, gradient, _ in trainer.seen:
        mask = inputs["completion_mask"] * inputs["tool_mask"]
        for i in range(len(gradient)):
            yield gradient[i], mask[i], float(inputs["advantages"][i])


def test_gradient_is_zero_off_what_was_sampled_and_not_zero_on_it(
    collector, corpus, tokenizer
) -> None:
    names = ["good", "half", "nop", "mute"] * 2
    trainer = one_step(collector, corpus, tokenizer, names)
    seen = list(rows(trainer))
    assert len(seen) == 8
    for gradient, mask, advantage in seen:
        assert float((gradient.abs() * (1 - mask)).sum()) == 0.0
        assert (gradient[mask == 1] != 0).all(), advantage
    assert all(float(loss) == float(loss) for _, _, loss in trainer.seen)
    assert max(trainer.moved.values()) > 0


def test_fr46_the_mask_of_the_trainer_is_the_ledgers(collector, corpus, tokenizer) -> None:
    """Also where the padding is the end of a turn: lengths make the mask, never ids."""
    same = copy.deepcopy(tokenizer)
    same.pad_token = same.eos_token
    trainer = one_step(collector, corpus, same, ["good", "half", "nop", "mute"] * 2)
    for _, mask, advantage in rows(trainer):
        assert mask.sum() > 0, advantage
    trained = sorted(
        tuple(
            inputs["completion_ids"][i][
                (inputs["completion_mask"] * inputs["tool_mask"])[i] == 1
            ].tolist()
        )
        for inputs, _, _ in trainer.seen
        for i in range(len(inputs["completion_ids"]))
    )
    saved = [np.load(path) for path in (collector.folder.root / "tokens").iterdir()]
    assert trained == sorted(tuple(one["completion_ids"][one["mask"] == 1]) for one in saved)


def test_what_a_masked_agent_wrote_is_not_logged(collector, corpus, tokenizer) -> None:
    """TRL warns of rows without a reward and shows what they hold; the mask is on purpose."""
    heard: list[str] = []

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    handler = Listening()
    logger = logging.getLogger("trl.trainer.grpo_trainer")
    logger.addHandler(handler)
    try:
        one_step(collector, corpus, tokenizer, ["good", "slow", "nop", "nop"] * 2)
    finally:
        logger.removeHandler(handler)
    assert collector.folder.trajectories()[1].mask.masked
    assert not [text for text in heard if "submission.csv" in text]


def test_fr47_advantages_are_those_of_each_task_alone_worked_by_hand(
    collector, corpus, tokenizer
) -> None:
    """Rewards .1, .1, 1 of one task with a member timed out, and 1, 1, 1, .1 of the other."""
    names = ["nop", "nop", "good", "slow", "good", "good", "good", "nop"]
    trainer = one_step(collector, corpus, tokenizer, names)
    played = collector.folder.trajectories()
    assert [t.reward.total for t in played] == [0.1, 0.1, 1.0, 1.0, 1.0, 1.0, 1.0, 0.1]
    assert len({t.task_id for t in played[:4]}) == len({t.task_id for t in played[4:]}) == 1
    first, second = 0.9 / math.sqrt(3) + 1e-4, 0.45 + 1e-4  # the spreads, and TRL's constant
    by_hand = [-0.3 / first, -0.3 / first, 0.6 / first, 0.0]
    by_hand += [0.225 / second] * 3 + [-0.675 / second]
    found = sorted(advantage for _, _, advantage in rows(trainer))
    assert found == pytest.approx(sorted(by_hand), abs=1e-5)
    # a batch's spread instead, and none
    for scale, spread in (("batch", None), ("none", 1.0)):
        own = with_grpo(collector.config, scale_rewards=scale)
        inner = collector.beside(own, collector.folder)
        found = sorted(a for _, _, a in rows(one_step(inner, corpus, tokenizer, names)))
        rewards = torch.tensor([0.1, 0.1, 1.0, 1.0, 1.0, 1.0, 0.1])
        divisor = spread or float(rewards.std()) + 1e-4
        by_hand = [x / divisor for x in (-0.3, -0.3, 0.6, 0.0, 0.225, 0.225, 0.225, -0.675)]
        assert found == pytest.approx(sorted(by_hand), abs=1e-5)


def test_fr45_the_gradient_of_each_token_is_that_of_the_documented_mean(
    collector, corpus, tokenizer
) -> None:
    """Loss: mean over the tokens of a trajectory, then over all of the step, masked ones too."""
    trainer = one_step(collector, corpus, tokenizer, ["good", "slow", "nop", "slow"] + ["nop"] * 4)
    learned = 0
    for gradient, mask, advantage in rows(trainer):
        if mask.sum() and advantage:
            expected = -advantage / (8 * float(mask.sum()))
            assert gradient[mask == 1].tolist() == pytest.approx([expected] * int(mask.sum()))
            learned += 1
        else:
            assert float(gradient.abs().sum()) == 0.0
    assert learned == 2


def test_the_recorded_groups_are_those_that_the_trainer_compares(
    collector, corpus, tokenizer
) -> None:
    """One task makes both groups of the step: `group` must still tell them apart."""
    names = ["good", "half", "nop", "nop", "half", "half", "nop", "nop"]
    trainer = one_step(collector, corpus.head(1), tokenizer, names)
    groups = defaultdict(list)
    for trajectory in collector.folder.trajectories():
        groups[trajectory.group].append(trajectory.reward.total)
    assert sorted(groups.values()) == [[0.7, 0.7, 0.1, 0.1], [1.0, 0.7, 0.1, 0.1]]
    rewards = torch.tensor(list(groups.values()))
    spread = rewards.std(dim=1, keepdim=True) + 1e-4
    expected = (rewards - rewards.mean(dim=1, keepdim=True)) / spread
    assert sorted(a for _, _, a in rows(trainer)) == pytest.approx(
        sorted(expected.flatten().tolist()), abs=1e-5
    )


def test_fr48_a_masked_trajectory_has_no_gradient_at_all(collector, corpus, tokenizer) -> None:
    names = ["good", "half", "nop", "slow"] * 2
    trainer = one_step(collector, corpus, tokenizer, names)
    masked = [(g, a) for g, mask, a in rows(trainer) if mask.sum() == 0]
    assert len(masked) == 2
    for gradient, advantage in masked:
        assert float(gradient.abs().sum()) == 0.0
        assert advantage == 0.0


@pytest.mark.parametrize(("name", "masked"), [("nop", 0), ("slow", 8)])
def test_fr44_fr45_without_spread_or_a_scorable_member_nothing_moves(
    collector, corpus, tokenizer, name: str, masked: int
) -> None:
    trainer = one_step(collector, corpus, tokenizer, [name] * 8)
    assert all(loss == 0.0 for _, _, loss in trainer.seen), "and never NaN"
    assert max(trainer.moved.values()) == 0.0
    line = json.loads((collector.folder.root / "metrics.jsonl").read_text())
    assert (line["masked"], line["flat_groups"], line["groups"]) == (masked, 2, 2)
    assert line["masked_why"] == ({"execution_timeout": 8} if masked else {})
    assert line["updated"] is False


def test_two_real_steps_write_the_run_folder(config, tmp_path: Path) -> None:
    settings = config.model_copy(
        update={
            "grpo": config.grpo.model_copy(update={"steps": 2, "completion_tokens": 200}),
            "policy": config.policy.model_copy(update={"turn_tokens": 16}),
            "group": 2,
        }
    )
    out = tmp_path / "trained"
    lines: list[dict] = []
    summary = train_grpo(settings, out, "sandmle train grpo", lines.append)
    assert summary["trajectories"] == summary["expected"] == 2 * 2 * 2
    assert [line["step"] for line in lines] == [1, 2]
    written = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert written == lines
    assert all(line["episodes"] == 4 for line in lines)
    assert (out / "checkpoints" / "step-000002" / "model.safetensors").exists()
    assert load_config(out / "config.toml") == settings
    ids = [json.loads(line)["id"] for line in (out / "trajectories.jsonl").read_text().splitlines()]
    assert len(set(ids)) == 8
    assert {name[:6] for name in ids} == {"000000", "000001"}
    assert train_grpo(settings, out) == summary, "and there is nothing left to do"
    assert (out / "trajectories.jsonl").read_text().count("\n") == 8


def test_a_checkpoint_can_be_trained_further(config, tmp_path: Path) -> None:
    small = config.model_copy(
        update={
            "grpo": config.grpo.model_copy(update={"completion_tokens": 100}),
            "policy": config.policy.model_copy(update={"turn_tokens": 8}),
            "group": 2,
        }
    )
    train_grpo(small, tmp_path / "first")
    path = tmp_path / "first" / "checkpoints" / "step-000001"
    again = small.model_copy(
        update={"policy": small.policy.model_copy(update={"name": f"hf:{path}"})}
    )
    assert train_grpo(again, tmp_path / "second")["complete"]


def test_a_folder_that_is_no_model_is_told_before_any_work(config, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    policy = config.policy.model_copy(update={"name": f"hf:{tmp_path / 'empty'}"})
    with pytest.raises(UsageError, match="cannot be loaded"):
        train_grpo(config.model_copy(update={"policy": policy}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_fr45_a_step_without_anything_to_learn_makes_no_update(
    collector, corpus, tokenizer
) -> None:
    """After a step that moved the weights, momentum would move them on."""
    collector.config = with_grpo(collector.config, steps=2, weight_decay=0.1)
    model = tiny_model(tokenizer, 0)
    acts = Acts(tokenizer, ["good", "half", "nop", "mute"] * 2, ["nop"] * 8)
    kept: list[torch.Tensor] = []

    def remember(line) -> None:
        kept.append(model.model.embed_tokens.weight.detach().clone())

    make_trainer(collector, corpus, model, tokenizer, acts, progress=remember).train()
    first, second = kept
    assert torch.equal(first, second)
    assert not torch.equal(first, tiny_model(tokenizer, 0).model.embed_tokens.weight)


def test_odd_policies_train_on(collector, corpus, tokenizer) -> None:
    trainer = one_step(collector, corpus, tokenizer, ["mute", "blank", "forger", "endless"] * 2)
    assert all(math.isfinite(loss) for _, _, loss in trainer.seen)
    assert all(math.isfinite(value) for value in trainer.moved.values())


def test_a_reward_that_is_no_number_never_reaches_the_loss(collector, corpus, tokenizer) -> None:
    sampler = InBatches(ScriptedSampler(tokenizer, ["good", "half"]))
    first, second = collector.play([corpus[0]] * 2, sampler, step=0)
    broken = first.trajectory.reward.model_copy(update={"total": float("nan")})
    first = first._replace(trajectory=first.trajectory.model_copy(update={"reward": broken}))
    batch = to_batch([first, second])
    assert batch["episode_reward"] == [None, 0.7]
    assert set(batch["env_mask"][0]) == {0}
    assert flat_groups(batch["episode_reward"], 2) == [True]


def test_flat_groups_are_replaced_by_other_tasks_if_that_is_asked_for(
    collector, corpus, tokenizer
) -> None:
    collector.config = with_grpo(collector.config, resample_flat=1)
    acts = Acts(
        tokenizer,
        [*["nop"] * 4, "good", "half", "nop", "nop"],
        ["good", "good", "nop", "nop"],
    )
    make_trainer(collector, corpus, tiny_model(tokenizer), tokenizer, acts).train()
    line = json.loads((collector.folder.root / "metrics.jsonl").read_text())
    assert (line["groups"], line["flat_groups"], line["resampled"]) == (2, 0, 1)
    assert line["reward"] == pytest.approx((1 + 1 + 0.1 + 0.1 + 1 + 0.7 + 0.1 + 0.1) / 8)
    groups = [t.group for t in collector.folder.trajectories()]
    assert len(groups) == 12, "what was replaced is recorded too"
    assert {name[:10] for name in groups} == {"000000-000", "000000-001", "000000-002"}


def test_columns_of_padding_are_left_out_of_a_micro_batch() -> None:
    ids = torch.arange(20).reshape(2, 10)
    inputs = {
        "prompt_ids": ids[:, :4],
        "prompt_mask": torch.tensor([[0, 0, 1, 1], [0, 1, 1, 1]]),
        "completion_ids": ids,
        "completion_mask": torch.tensor([[1] * 5 + [0] * 5, [1] * 7 + [0] * 3]),
        "tool_mask": ids,
        "advantages": torch.tensor([1.0, 2.0]),
        "importance_sampling_ratio": torch.ones(2, 1),
    }
    cut = trimmed(inputs)
    assert cut["prompt_ids"].tolist() == [[1, 2, 3], [11, 12, 13]]
    assert cut["completion_ids"].tolist() == cut["tool_mask"].tolist() == ids[:, :7].tolist()
    assert cut["importance_sampling_ratio"].shape == (2, 1)


def test_adapters_are_trained_and_the_weights_below_them_are_not(
    collector, corpus, tokenizer
) -> None:
    pytest.importorskip("peft")
    lora = collector.config.grpo.lora.model_copy(update={"rank": 2})
    collector.config = with_grpo(collector.config, lora=lora)
    sampler = ScriptedSampler(tokenizer, ["good", "half", "nop", "mute"] * 2)
    trainer = make_trainer(collector, corpus, tiny_model(tokenizer), tokenizer, sampler)
    trainer.train()
    below = trainer.model.get_base_model().model.embed_tokens.weight
    assert torch.equal(below, tiny_model(tokenizer).model.embed_tokens.weight)
    saved = collector.folder.root / "checkpoints" / "step-000001"
    assert (saved / "adapter_model.safetensors").exists()
    with pytest.raises(UsageError, match="merge it into its model first"):
        weights_folder(saved)


def test_the_order_of_tasks_is_a_permutation_each_round() -> None:
    order = task_order(5, 12, seed=1)
    assert sorted(order[:5]) == sorted(order[5:10]) == list(range(5))
    assert order[:5] != order[5:10]
    assert order[:7] == task_order(5, 7, seed=1)
    assert order != task_order(5, 12, seed=2)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("group=1", "use at least 2"),
        ("grpo.micro_batch=5", "5 does not divide the 64 episodes of a step"),
        ("grpo.completion_tokens=100", "no room for one reply"),
        ("grpo.vllm.mode=server", "give the address"),
        ("grpo.report_to=trackio", "trackio is not installed; pip install trackio"),
        ("eval.every=1", "set corpus.split = 'train'"),
        ("policy.name=scripted:nop", "give --policy tiny:SEED or hf:PATH"),
        ("policy.name=hf:/nothing", "there is no folder /nothing"),
        ("policy.name=tiny:x", "must be a number"),
        ("policy.name=tiny:99999999999", "must be a number below"),
        ("policy.temperature=0", "must be above 0"),
        ("env.scaffold=aide", "training plays react"),
        ("reward.preset=papers", "did you mean 'paper'"),
        ("sandbox.backend=cool", "did you mean 'cold'"),
    ],
)
def test_what_cannot_be_trained_is_refused(corpus, tmp_path, override: str, message: str) -> None:
    settings = load_config(
        None,
        [
            f"corpus.path='{corpus.root}'",
            *(["policy.name=tiny:0"] if "policy.name" not in override else []),
            override,
        ],
    )
    with pytest.raises(UsageError, match=message):
        train_grpo(settings, tmp_path / "run")
    assert not (tmp_path / "run").exists()
