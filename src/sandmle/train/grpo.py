"""Trajectory-level GRPO through TRL: the loss is `GRPOTrainer`'s, the rollouts are ours."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from sandmle.config import Config
from sandmle.files import to_json, write_atomic
from sandmle.llm.pretrained import load_pretrained, quiet
from sandmle.rollout.folder import RunFolder
from sandmle.rollout.runner import located
from sandmle.rollout.summary import summarise
from sandmle.sandbox.base import open_sandbox
from sandmle.tasks.corpus import Corpus, root_hash
from sandmle.train.aim import Aim, kinds_of
from sandmle.train.checkpoints import Checkpoints
from sandmle.train.codec import Codec, keep_history
from sandmle.train.collect import Collector, Interrupted, Rollout
from sandmle.train.figures import flat_groups, reward_of, step_figures
from sandmle.train.plan import Plan, StopWish, prepare, require_packages
from sandmle.train.sampling import Engine, InBatches, Request, Sampled, Sampler
from sandmle.train.validate import Validation

Progress = Callable[[dict[str, Any]], None]
RolloutFunction = Callable[[list[str], Any], dict[str, Any]]


def train_grpo(
    config: Config,
    out: Path,
    command: str = "",
    progress: Progress | None = None,
    sampler: Sampler | None = None,
) -> dict[str, Any]:
    """Train a policy on a corpus and return the summary of the run; the same call resumes.

    Writes the run folder: every trajectory with its tokens, a line a step in `metrics.jsonl`, one a
    validation in `validation.jsonl`, and `checkpoints/`. `sampler` speaks in place of the model.
    SIGTERM and SIGINT save a checkpoint before they take their course. Raises `UsageError` before
    any work for a bad configuration and `MissingExtraError` without the packages of
    `sandmle[train]`.
    """
    plan = prepare(config)
    require_packages(config)
    config = located(config, plan.corpus)
    checkpoints = Checkpoints(out)
    with StopWish() as stop, quiet(), ExitStack() as held:
        finished = config.grpo.steps in checkpoints.steps()
        loaded = None if finished else _load(config, plan.corpus)
        folder = RunFolder(out)
        held.enter_context(folder.writing(config, plan.corpus.root_hash, command))
        step = checkpoints.rewind()
        if loaded is not None:
            tokenizer, model = loaded
            sandbox = held.enter_context(closing(open_sandbox(config.sandbox, config.concurrency)))
            collector = Collector(
                config, plan.rule, sandbox, Codec(tokenizer), folder, lambda: stop.wished
            )
            trainer = make_trainer(
                collector,
                plan.corpus,
                model,
                tokenizer,
                sampler,
                _validation(collector, plan, config, held, command),
                progress,
            )
            try:
                trainer.train(resume_from_checkpoint=str(checkpoints.path(step)) if step else None)
            except Interrupted:
                trainer.save_now()
                checkpoints.settle(config.grpo.keep)
        summary = _summary(config, plan, folder)
        write_atomic(out / "summary.json", to_json(summary, indent=2) + "\n")
    return summary


def make_trainer(
    collector: Collector,
    corpus: Corpus,
    model: Any,
    tokenizer: Any,
    sampler: Sampler | None = None,
    validation: Validation | None = None,
    progress: Progress | None = None,
    trainer_class: Any = None,
) -> Any:
    """Build the trainer of the run that `collector` plays for.

    `sampler` speaks in place of the model if one is given; `trainer_class` may be a subclass of
    `EpisodeTrainer`.
    """
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    import torch
    from datasets import Dataset
    from transformers import PrinterCallback

    from sandmle.train.trainer import EpisodeTrainer, Steps, arguments

    config, out = collector.config, collector.folder.root
    on_cpu = not torch.cuda.is_available()
    if on_cpu:  # the sandbox needs the other half, and spinning threads slow both down
        torch.set_num_threads(config.grpo.threads or max(1, (os.cpu_count() or 1) // 2))
    checkpoints = Checkpoints(out)

    def validate(step: int) -> bool:
        known = {line["step"] for line in checkpoints.validated()}
        if validation is None or not validation.due(step) or step in known:
            return False
        with _sampling(trainer, config, sampler) as engine:
            validation.run(step, engine)
        return True

    steps = Steps(config, collector.clock, validate, collector.stopping, progress)
    order = task_order(len(corpus), config.grpo.steps * config.grpo.tasks_per_step, config.seed)
    trainer = (trainer_class or EpisodeTrainer)(
        checkpoints=checkpoints,
        model=model,
        reward_funcs=episode_reward,
        args=arguments(config, out, on_cpu),
        train_dataset=Dataset.from_list([{"prompt": corpus[i].id} for i in order]),
        processing_class=tokenizer,
        rollout_func=make_rollout_function(collector, corpus, sampler),
        callbacks=[steps],
        peft_config=_adapter(config),
    )
    steps.trainer = trainer
    trainer.remove_callback(PrinterCallback)  # stdout is for results
    return trainer


def task_order(tasks: int, count: int, seed: int) -> list[int]:
    """Return the numbers of `count` tasks in the order of training: every task once, then again.

    Each round is a permutation of its own, drawn from `default_rng([seed, round])`.
    """
    rounds = -(-count // tasks)
    order = [np.random.default_rng([seed, i]).permutation(tasks) for i in range(rounds)]
    return [int(number) for one in order for number in one][:count]


def make_rollout_function(
    collector: Collector, corpus: Corpus, sampler: Sampler | None = None
) -> RolloutFunction:
    """Return TRL's `rollout_func`: task ids in, token ids with masks and rewards out.

    With `grpo.aim` the ids say only how many tasks are wanted: which, the past decides.
    """
    config = collector.config
    size = config.group
    aim = None
    if config.grpo.aim is not None:
        past = collector.folder.trajectories()
        aim = Aim(kinds_of(corpus), config.grpo, config.seed, past)

    def rollout(prompts: list[str], trainer: Any) -> dict[str, Any]:
        step = trainer.step
        tasks = [corpus.get(name) for name in prompts]
        if aim is not None:
            tasks = [corpus[number] for number in aim.draw(step) for _ in range(size)]
        with _sampling(trainer, config, sampler) as engine:
            rollouts = collector.play(tasks, engine, step)
            played = [*rollouts, *_replace_flat(rollouts, collector, corpus, engine, step)]
        if aim is not None:
            aim.note(step, [one.trajectory for one in played])
        flat = flat_groups([reward_of(one.trajectory) for one in rollouts], size)
        trainer.flat = [is_flat for is_flat in flat for _ in range(size)]
        drawn_anew = (len(played) - len(rollouts)) // size
        trainer.figures = {**step_figures(rollouts, size), "resampled": drawn_anew}
        return to_batch(rollouts)

    return rollout


def to_batch(rollouts: Sequence[Rollout]) -> dict[str, Any]:
    """Turn episodes into what the trainer takes.

    A masked trajectory, and one whose reward is no number, has an all-zero mask, so none of its
    tokens is in the loss, and no reward, so it is not in its group's mean and spread either.
    """
    rewards = [reward_of(rollout.trajectory) for rollout in rollouts]
    hidden = [reward is None for reward in rewards]
    ledgers = [rollout.ledger for rollout in rollouts]
    known = all(
        logprob is not None
        for ledger in ledgers
        for logprob, sampled in zip(ledger.logprobs, ledger.mask, strict=True)
        if sampled
    )
    return {
        "prompt_ids": [ledger.prompt_ids for ledger in ledgers],
        "completion_ids": [ledger.completion_ids for ledger in ledgers],
        # only weighed against the trainer's own where another program samples
        "logprobs": [ledger.logprobs for ledger in ledgers] if known else None,
        "env_mask": [
            [0] * len(ledger.mask) if hide else ledger.mask
            for ledger, hide in zip(ledgers, hidden, strict=True)
        ],
        "episode_reward": rewards,
    }


def episode_reward(
    prompts: list[str], completions: list[str], episode_reward: list[float | None], **_: Any
) -> list[float | None]:
    """Hand the rewards through that the episodes already have."""
    return episode_reward


def _replace_flat(
    rollouts: list[Rollout], collector: Collector, corpus: Corpus, engine: Engine, step: int
) -> list[Rollout]:
    """Replace groups without spread by groups of other tasks, a bounded number of times.

    Which tasks depends on seed, step and round only. Returns all that was played for it.
    """
    config = collector.config
    size = config.group
    played: list[Rollout] = []
    for number in range(config.grpo.resample_flat):
        flat = flat_groups([reward_of(one.trajectory) for one in rollouts], size)
        places = [place for place, is_flat in enumerate(flat) if is_flat]
        if not places:
            break
        rng = np.random.default_rng([config.seed, step, number])
        chosen = rng.choice(len(corpus), len(places), replace=len(places) > len(corpus))
        tasks = [corpus[int(i)] for i in chosen for _ in range(size)]
        place = config.grpo.tasks_per_step + len(played) // size
        fresh = collector.play(tasks, engine, step, place)
        for i, place in enumerate(places):
            rollouts[place * size : (place + 1) * size] = fresh[i * size : (i + 1) * size]
        played += fresh
    return played


@contextmanager
def _sampling(trainer: Any, config: Config, sampler: Sampler | None) -> Iterator[Engine]:
    """Open the engine that samples: the one given, vLLM, or the model that is trained."""
    if sampler is not None:
        yield InBatches(sampler)
    elif trainer.args.use_vllm:
        yield InBatches(_vllm_sampler(trainer))
    else:
        from sandmle.train.decode import Decoder

        end_id = trainer.processing_class.eos_token_id
        decoder = Decoder(trainer.model, end_id, config.policy.temperature, trainer.args.bf16)
        with decoder.sampling():
            yield decoder


def _vllm_sampler(trainer: Any) -> Sampler:
    """Sample through TRL's vLLM, whose weights follow those of the trainer.

    It takes no seeds. Not run: there was no GPU to run it on.
    """

    def sample(requests: Sequence[Request]) -> list[Sampled]:
        vllm = trainer.vllm_generation
        if trainer.state.global_step != trainer._last_loaded_step:
            vllm.sync_weights()
            trainer._last_loaded_step = trainer.state.global_step
        vllm.max_completion_length = requests[0].limit  # the same for all: policy.turn_tokens
        _, ids, logprobs, _ = vllm.generate(
            prompts=[request.ids for request in requests], images=None, num_generations=1
        )
        end_id = trainer.processing_class.eos_token_id
        return [
            Sampled(list(row), bool(row) and row[-1] == end_id, [one[0] for one in known])
            for row, known in zip(ids, logprobs, strict=True)
        ]

    return sample


def _validation(
    collector: Collector, plan: Plan, config: Config, held: ExitStack, command: str
) -> Validation | None:
    """Return what validates, with its run folder open; None if validation is off."""
    if not plan.held_out:
        return None
    folder = RunFolder(collector.folder.root / "validation")
    tasks = [task for split in plan.held_out.values() for task in split]
    known = root_hash((task.id, task.content_hash) for task in tasks)
    held.enter_context(folder.writing(config, known, command))
    own = collector.beside(config.model_copy(update={"group": config.eval.episodes}), folder)
    path = collector.folder.root / "validation.jsonl"
    return Validation(own, plan.held_out, path, config.grpo.tasks_per_step * config.group)


def _adapter(config: Config) -> Any:
    lora = config.grpo.lora
    if not lora.rank:
        return None
    from peft import LoraConfig

    return LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=lora.targets[0] if lora.targets == ("all-linear",) else [*lora.targets],
        task_type="CAUSAL_LM",
    )


def _summary(config: Config, plan: Plan, folder: RunFolder) -> dict[str, Any]:
    """Return the tables of the run; groups that were drawn anew are expected too."""
    played = folder.trajectories()
    planned = config.grpo.tasks_per_step
    anew = sum(int(str(one.sampling["group"])) >= planned for one in played)
    expected = config.grpo.steps * planned * config.group + anew
    return summarise(played, expected, [fault.reason for fault in plan.corpus.broken])


def _load(config: Config, corpus: Corpus) -> tuple[Any, Any]:
    """Return tokenizer and model; weights are float32, so that small updates are not lost.

    With adapters the weights below them stay as they are, and as they were saved.
    """
    sort, _, argument = config.policy.name.partition(":")
    if sort == "tiny":
        from sandmle.train.tiny import tiny_model, tiny_tokenizer

        tasks = list(corpus)
        texts = [task.description for task in tasks]
        texts += [solution.code for task in tasks for solution in task.solutions()]
        tokenizer = tiny_tokenizer(texts)
        return tokenizer, tiny_model(tokenizer, int(argument))
    tokenizer, model = load_pretrained(argument, None if config.grpo.lora.rank else "float32")
    keep_history(tokenizer)
    return tokenizer, model
