"""Trajectory-level GRPO through TRL: the loss is `GRPOTrainer`'s, the rollouts are ours."""

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from sandmle.config import Config
from sandmle.errors import UsageError
from sandmle.files import append_line, to_json, write_atomic
from sandmle.llm.pretrained import SMALL, load_pretrained, quiet, require_extra
from sandmle.rewards import require_floors, reward_rule
from sandmle.rollout.folder import RunFolder
from sandmle.rollout.runner import located, open_tasks
from sandmle.rollout.summary import summarise
from sandmle.sandbox.base import SANDBOXES, open_sandbox
from sandmle.tasks.corpus import Corpus
from sandmle.train.codec import Codec
from sandmle.train.collect import Collector, Rollout, Sampled, Sampler
from sandmle.types import RewardRule

Progress = Callable[[dict[str, Any]], None]
RolloutFunction = Callable[[list[str], Any], dict[str, Any]]

# what is written of each step: our name -> the trainer's
_METRICS = {
    "reward": "reward",
    "reward_std": "reward_std",
    "flat_groups": "frac_reward_zero_std",
    "loss": "loss",
    "grad_norm": "grad_norm",
    "entropy": "entropy",
    "learning_rate": "learning_rate",
    "tokens_per_reply": "completions/mean_length",
    "seconds": "step_time",
}


class Plan(NamedTuple):
    """What a training configuration names, found and checked before any work."""

    corpus: Corpus
    rule: RewardRule


def train_grpo(
    config: Config, out: Path, command: str = "", progress: Progress | None = None
) -> dict[str, Any]:
    """Train a policy on a corpus and return the summary of the run.

    Writes the run folder: every trajectory with its tokens, `metrics.jsonl` with a line a step,
    and the trained weights in `checkpoints/`. Raises `UsageError` before any work for a bad
    configuration and `MissingExtraError` without the packages of `sandmle[train]`.
    """
    corpus, rule = prepare(config)
    require_extra("training", "torch", "trl")
    config = located(config, corpus)
    if (out / "run.json").exists():
        raise UsageError(f"{out}: holds a run already; choose another --out")
    folder = RunFolder(out)
    with quiet():
        tokenizer, model = _load(config, corpus)
        codec = Codec(tokenizer)
        sandbox = open_sandbox(config.sandbox, config.concurrency)
        with folder.writing(config, corpus.root_hash, command), closing(sandbox):
            collector = Collector(config, rule, sandbox, codec, folder)
            trainer = make_trainer(collector, corpus, model, tokenizer, out, progress=progress)
            trainer.train()
            _save(trainer, tokenizer, out / "checkpoints" / f"step-{config.grpo.steps:06d}")
            episodes = config.grpo.steps * config.grpo.tasks_per_step * config.group
            broken = [fault.reason for fault in corpus.broken]
            summary = summarise(folder.trajectories(), episodes, broken)
            write_atomic(out / "summary.json", to_json(summary, indent=2) + "\n")
    return summary


def prepare(config: Config) -> Plan:
    """Check a training configuration; raises `UsageError` for what cannot work."""
    if config.group < 2:
        raise UsageError("group: GRPO compares the members of a group; use at least 2")
    if config.env.scaffold != "react":
        raise UsageError("env.scaffold: training plays react; other scaffolds are for evaluation")
    sort, _, argument = config.policy.name.partition(":")
    if sort not in ("tiny", "hf") or not argument:
        raise UsageError(
            f"policy {config.policy.name!r} cannot be trained; give --policy tiny:SEED or hf:PATH"
        )
    if sort == "hf" and argument != SMALL and not Path(argument).is_dir():
        raise UsageError(f"policy {config.policy.name}: there is no folder {argument}")
    if sort == "tiny" and not (argument.isdecimal() and int(argument) < 2**32):
        raise UsageError(f"policy {config.policy.name}: the seed must be a number below 2**32")
    if config.policy.temperature == 0:
        raise UsageError("policy.temperature: GRPO learns from differences; it must be above 0")
    SANDBOXES.get(config.sandbox.backend)
    rule = reward_rule(config.reward)
    corpus = open_tasks(config)
    require_floors(rule, [task.card for task in corpus])
    return Plan(corpus, rule)


def make_trainer(
    collector: Collector,
    corpus: Corpus,
    model: Any,
    tokenizer: Any,
    out: Path,
    sampler: Sampler | None = None,
    progress: Progress | None = None,
    trainer_class: Any = None,
) -> Any:
    """Build the trainer.

    `sampler` generates instead of the model itself if one is given; `trainer_class` may be a
    subclass of `GRPOTrainer`.
    """
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    import torch
    from datasets import Dataset
    from transformers import PrinterCallback
    from trl import GRPOConfig, GRPOTrainer

    config = collector.config
    grpo = config.grpo
    on_cpu = not torch.cuda.is_available()
    if on_cpu:  # the sandbox needs the other half, and spinning threads slow both down
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // 2))
    rows = [{"prompt": task.id} for task in corpus]
    repeats = -(-grpo.steps * grpo.tasks_per_step // len(rows))
    arguments = GRPOConfig(
        output_dir=str(out / "checkpoints"),
        seed=config.seed,
        max_steps=grpo.steps,
        per_device_train_batch_size=config.group,
        gradient_accumulation_steps=grpo.tasks_per_step,
        num_generations=config.group,
        max_completion_length=grpo.completion_tokens,
        learning_rate=grpo.learning_rate,
        epsilon=grpo.clip_low,
        epsilon_high=grpo.clip_high,
        beta=0.0,
        temperature=config.policy.temperature,
        loss_type="grpo",
        use_cpu=on_cpu,
        bf16=not on_cpu,
        activation_checkpointing=False,
        report_to="none",
        save_strategy="no",
        logging_steps=1,
        disable_tqdm=True,
    )
    trainer = (trainer_class or GRPOTrainer)(
        model=model,
        reward_funcs=episode_reward,
        args=arguments,
        train_dataset=Dataset.from_list(rows * repeats),
        processing_class=tokenizer,
        rollout_func=make_rollout_function(collector, corpus, sampler),
        callbacks=[_metrics_callback(collector, out / "metrics.jsonl", progress)],
    )
    trainer.remove_callback(PrinterCallback)  # stdout is for results
    return trainer


def make_rollout_function(
    collector: Collector, corpus: Corpus, sampler: Sampler | None = None
) -> RolloutFunction:
    """Return TRL's `rollout_func`: task ids in, token ids with masks and rewards out."""

    def rollout(prompts: list[str], trainer: Any) -> dict[str, Any]:
        tasks = [corpus.get(name) for name in prompts]
        generate = sampler or _model_sampler(trainer, collector.config.policy.temperature)
        return to_batch(collector.play(tasks, generate, trainer.state.global_step))

    return rollout


def to_batch(rollouts: Sequence[Rollout]) -> dict[str, Any]:
    """Turn episodes into what the trainer takes.

    A masked trajectory has an all-zero mask, so none of its tokens is in the loss, and no reward,
    so it is not in its group's mean and spread either.
    """
    masked = [rollout.trajectory.mask.masked for rollout in rollouts]
    rewards = [rollout.trajectory.reward for rollout in rollouts]
    ledgers = [rollout.ledger for rollout in rollouts]
    return {
        "prompt_ids": [ledger.prompt_ids for ledger in ledgers],
        "completion_ids": [ledger.completion_ids for ledger in ledgers],
        # one update a batch, sampled by the same weights: the trainer's own log-probs will do
        "logprobs": None,
        "env_mask": [
            [0] * len(ledger.mask) if hidden else ledger.mask
            for ledger, hidden in zip(ledgers, masked, strict=True)
        ],
        "episode_reward": [
            None if hidden or reward is None else reward.total
            for reward, hidden in zip(rewards, masked, strict=True)
        ],
    }


def episode_reward(
    prompts: list[str], completions: list[str], episode_reward: list[float | None], **_: Any
) -> list[float | None]:
    """Hand the rewards through that the episodes already have."""
    return episode_reward


def _model_sampler(trainer: Any, temperature: float) -> Sampler:
    """Sample from the model that is being trained, in one left-padded batch."""

    def sample(contexts: Sequence[Sequence[int]], max_new_tokens: int) -> list[Sampled]:
        import torch
        from trl.models import unwrap_model_for_generation

        tokenizer = trainer.processing_class
        batch = tokenizer.pad(
            {"input_ids": [list(ids) for ids in contexts]}, padding_side="left", return_tensors="pt"
        ).to(trainer.accelerator.device)
        options = {
            "max_new_tokens": max_new_tokens,
            "do_sample": True,
            "temperature": temperature,
            "top_k": 0,
            "top_p": 1.0,
            "pad_token_id": tokenizer.pad_token_id,
            "eos_token_id": tokenizer.eos_token_id,
        }
        wrapped = trainer.model_wrapped
        training = wrapped.training
        with unwrap_model_for_generation(wrapped, trainer.accelerator) as model, torch.no_grad():
            model.eval()
            output = model.generate(**batch, **options)[:, batch["input_ids"].shape[1] :]
        wrapped.train(training)
        return [_cut(row, tokenizer.eos_token_id) for row in output.tolist()]

    return sample


def _cut(ids: list[int], end_id: int) -> Sampled:
    """Cut a generated row behind its end-of-turn token; what follows is padding."""
    if end_id in ids:
        return Sampled(ids[: ids.index(end_id) + 1], ended=True)
    return Sampled(ids, ended=False)


def _metrics_callback(collector: Collector, path: Path, progress: Progress | None) -> Any:
    from transformers import TrainerCallback

    class WriteMetrics(TrainerCallback):  # type: ignore[misc]
        """Appends one line a step."""

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if not logs or "reward" not in logs:
                return
            played = [rollout.trajectory for rollout in collector.played]
            line = {
                "step": state.global_step,
                **{ours: _finite(logs.get(theirs)) for ours, theirs in _METRICS.items()},
                "masked": sum(t.mask.masked for t in played),
                "valid": sum(t.grade.status == "ok" for t in played) / max(1, len(played)),
                "episodes": len(played),
            }
            append_line(path, to_json(line))
            if progress is not None:
                progress(line)

    return WriteMetrics()


def _finite(value: Any) -> float | None:
    number = None if value is None else float(value)
    return number if number is not None and abs(number) < float("inf") else None


def _load(config: Config, corpus: Corpus) -> tuple[Any, Any]:
    sort, _, argument = config.policy.name.partition(":")
    if sort == "tiny":
        from sandmle.train.tiny import tiny_model, tiny_tokenizer

        tasks = list(corpus)
        texts = [task.description for task in tasks]
        texts += [solution.code for task in tasks for solution in task.solutions()]
        tokenizer = tiny_tokenizer(texts)
        return tokenizer, tiny_model(tokenizer, int(argument))
    return load_pretrained(argument)


def _save(trainer: Any, tokenizer: Any, path: Path) -> None:
    """Write the weights beside their place and rename them into it."""
    draft = path.with_name(f".{path.name}")
    trainer.accelerator.unwrap_model(trainer.model).save_pretrained(draft)
    tokenizer.save_pretrained(draft)
    draft.rename(path)
