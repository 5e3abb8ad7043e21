"""Through the real trainer: where the gradient is, and where it is exactly zero."""

import json
from collections import defaultdict
from pathlib import Path

import pytest
import torch
from trl import GRPOTrainer

from sandmle.config import load_config
from sandmle.errors import UsageError
from sandmle.train.collect import Sampled
from sandmle.train.grpo import _cut, make_trainer, train_grpo
from sandmle.train.tiny import tiny_model
from train.conftest import ScriptedSampler


class Probe(GRPOTrainer):
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
        self.seen.append((self._last_inputs, self.logps.grad.clone(), float(loss)))
        return loss

    def _compute_loss(self, model, inputs):
        self._last_inputs = inputs
        return super()._compute_loss(model, inputs)


def one_step(collector, corpus, tokenizer, names: list[str], out: Path, seed: int = 0) -> Probe:
    model = tiny_model(tokenizer, seed)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    sampler = ScriptedSampler(tokenizer, names)
    trainer = make_trainer(collector, corpus, model, tokenizer, out, sampler, trainer_class=Probe)
    trainer.train()
    trainer.moved = {
        name: float((p.detach() - before[name]).abs().max()) for name, p in model.named_parameters()
    }
    return trainer


def rows(trainer: Probe):
    """Yield (gradient, mask of what was sampled, advantage) for every row of the step."""
    for inputs, gradient, _ in trainer.seen:
        mask = inputs["completion_mask"] * inputs["tool_mask"]
        for i in range(len(gradient)):
            yield gradient[i], mask[i], float(inputs["advantages"][i])


def test_gradient_is_zero_off_what_was_sampled_and_not_zero_on_it(
    collector, corpus, tokenizer, tmp_path
) -> None:
    names = ["good", "half", "nop", "mute"] * 2
    trainer = one_step(collector, corpus, tokenizer, names, tmp_path / "run")
    seen = list(rows(trainer))
    assert len(seen) == 8
    for gradient, mask, advantage in seen:
        assert float((gradient.abs() * (1 - mask)).sum()) == 0.0
        assert (gradient[mask == 1] != 0).all(), advantage
    assert all(float(loss) == float(loss) for _, _, loss in trainer.seen)
    assert max(trainer.moved.values()) > 0


def test_the_mask_of_the_trainer_is_the_ledgers(collector, corpus, tokenizer, tmp_path) -> None:
    names = ["good", "half", "nop", "mute"] * 2
    trainer = one_step(collector, corpus, tokenizer, names, tmp_path / "run")
    trained = sorted(
        tuple(
            inputs["completion_ids"][i][
                (inputs["completion_mask"] * inputs["tool_mask"])[i] == 1
            ].tolist()
        )
        for inputs, _, _ in trainer.seen
        for i in range(len(inputs["completion_ids"]))
    )
    sampled = sorted(
        tuple(t for t, m in zip(r.ledger.completion_ids, r.ledger.mask, strict=True) if m)
        for r in collector.played
    )
    assert trained == sampled


def test_advantages_are_those_of_the_group_worked_by_hand(
    collector, corpus, tokenizer, tmp_path
) -> None:
    """Rewards 1, .7 and .1 with one member timed out: mean .6, spread .4583 over the three."""
    names = ["good", "half", "nop", "slow", "nop", "nop", "nop", "nop"]
    trainer = one_step(collector, corpus, tokenizer, names, tmp_path / "run")
    inputs = [i for i, _, _ in trainer.seen]
    rewards = [r.trajectory.reward.total for r in collector.played[:4]]
    assert rewards == [1.0, 0.7, 0.1, 1.0]
    found = sorted(round(float(a), 3) for i in inputs for a in i["advantages"])
    spread = torch.tensor([1.0, 0.7, 0.1]).std().item() + 1e-4
    expected = sorted([0.4 / spread, 0.1 / spread, -0.5 / spread, 0, 0, 0, 0, 0])
    assert found == pytest.approx(expected, abs=2e-3)


def test_the_recorded_groups_are_those_that_the_trainer_compares(
    collector, corpus, tokenizer, tmp_path
) -> None:
    """One task makes both groups of the step: `group` must still tell them apart."""
    names = ["good", "half", "nop", "nop", "half", "half", "nop", "nop"]
    trainer = one_step(collector, corpus.head(1), tokenizer, names, tmp_path / "run")
    groups = defaultdict(list)
    for rollout in collector.played:
        groups[rollout.trajectory.group].append(rollout.trajectory.reward.total)
    assert sorted(groups.values()) == [[0.7, 0.7, 0.1, 0.1], [1.0, 0.7, 0.1, 0.1]]
    rewards = torch.tensor(list(groups.values()))
    spread = rewards.std(dim=1, keepdim=True) + 1e-4
    expected = (rewards - rewards.mean(dim=1, keepdim=True)) / spread
    assert sorted(a for _, _, a in rows(trainer)) == pytest.approx(
        sorted(expected.flatten().tolist()), abs=1e-5
    )


def test_a_masked_trajectory_has_no_gradient_at_all(collector, corpus, tokenizer, tmp_path) -> None:
    names = ["good", "half", "nop", "slow"] * 2
    trainer = one_step(collector, corpus, tokenizer, names, tmp_path / "run")
    masked = [(g, a) for g, mask, a in rows(trainer) if mask.sum() == 0]
    assert len(masked) == 2
    for gradient, advantage in masked:
        assert float(gradient.abs().sum()) == 0.0
        assert advantage == 0.0


@pytest.mark.parametrize(("name", "masked", "flat"), [("nop", 0, 1.0), ("slow", 8, 0.0)])
def test_without_spread_or_without_a_scorable_member_nothing_moves(
    collector, corpus, tokenizer, tmp_path, name: str, masked: int, flat: float
) -> None:
    """Rewards without spread are a flat group; a group without any reward has no spread at all."""
    trainer = one_step(collector, corpus, tokenizer, [name] * 8, tmp_path / "run")
    assert all(loss == 0.0 for _, _, loss in trainer.seen), "and never NaN"
    assert max(trainer.moved.values()) == 0.0
    line = json.loads((tmp_path / "run" / "metrics.jsonl").read_text())
    assert line["masked"] == masked
    assert line["flat_groups"] == flat


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
    with pytest.raises(UsageError, match="holds a run already"):
        train_grpo(settings, out)


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


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("group=1", "use at least 2"),
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


def test_a_generated_row_is_cut_behind_its_end() -> None:
    """The sampled end of a turn is the policy's and is trained; padding behind it is not."""
    assert _cut([5, 6, 2, 0, 0], end_id=2) == Sampled([5, 6, 2], ended=True)
    assert _cut([5, 2, 7, 2, 0], end_id=2) == Sampled([5, 2], ended=True)
    assert _cut([5, 6, 7], end_id=2) == Sampled([5, 6, 7], ended=False)
