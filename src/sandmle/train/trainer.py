"""TRL's `GRPOTrainer` with our checkpoints and our measurements; the loss and the updates are its.

Needs torch and trl, so it is imported where training begins.
"""

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from sandmle.config import Config
from sandmle.files import append_line, to_json
from sandmle.train.checkpoints import Checkpoints
from sandmle.train.collect import Clock, Interrupted
from sandmle.train.figures import Spent, phases
from sandmle.train.precision import in_bfloat16
from sandmle.train.saving import Saving

Progress = Callable[[dict[str, Any]], None]

# what is written of each step beside our own figures: our name -> the trainer's
_METRICS = {
    "reward_std": "reward_std",
    "loss": "loss",
    "grad_norm": "grad_norm",
    "entropy": "entropy",
    "clip_fraction": "clip_ratio/region_mean",
    "kl": "kl",
    "learning_rate": "learning_rate",
}
_PROMPT = ("prompt_ids", "prompt_mask")
_COMPLETION = (
    "completion_ids",
    "completion_mask",
    "tool_mask",
    "old_per_token_logps",
    "sampling_per_token_logps",
    "ref_per_token_logps",
    "importance_sampling_ratio",
)


class _Expected(logging.Filter):
    """Drops the warning that an episode has no reward: masked ones have none.

    It would put on the terminal what an agent wrote.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        return "All reward functions returned None" not in record.getMessage()


logging.getLogger("trl.trainer.grpo_trainer").addFilter(_Expected())


class EpisodeTrainer(Saving, GRPOTrainer):  # type: ignore[misc]
    """The trainer of one run: `state.global_step` counts updates, `step` batches of episodes.

    `flat` says of each row of the last batch whether its group teaches nothing; its advantages are
    exactly 0 then, whatever the rounding of a mean would have left.
    """

    def __init__(self, *arguments: Any, checkpoints: Checkpoints, **options: Any) -> None:
        self.checkpoints = checkpoints
        self.flat: list[bool] = []
        self.live = False  # whether the batch has anything to learn from
        self.figures: dict[str, Any] = {}  # of the last batch's episodes
        self.batch = self.forward_only = np.zeros(2)  # seconds and CPU seconds, see `Spent`
        super().__init__(*arguments, **options)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Give the loggers our figures too."""
        numbers = {k: v for k, v in self.figures.items() if isinstance(v, (int, float))}
        super().log({**numbers, **logs} if "loss" in logs else logs, start_time)

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        started = now()
        output = super()._generate_and_score_completions(inputs)
        for row, flat in enumerate(self.flat):
            if flat:
                output["advantages"][row] = 0.0
        self.live = bool((output["advantages"] != 0).any()) or self.beta != 0
        self.batch = self.batch + now() - started
        return output

    def _get_per_token_logps_and_entropies(self, *arguments: Any, **options: Any) -> Any:
        started = now()
        output = super()._get_per_token_logps_and_entropies(*arguments, **options)
        if not output[0].requires_grad:  # before the first update: those of the policy that played
            self.forward_only = self.forward_only + now() - started
        return output

    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        return super()._compute_loss(model, trimmed(inputs))


def now() -> NDArray[np.float64]:
    """Return the clocks of the wall and of this process, in seconds."""
    return np.array([time.perf_counter(), time.process_time()])


def trimmed(inputs: dict[str, Any]) -> dict[str, Any]:
    """Return a batch without the columns that are padding in all of its rows.

    A batch was padded to the longest of all trajectories of its step. Prompts are padded on their
    left, completions on their right.
    """
    prompt = int(inputs["prompt_mask"].sum(1).max())
    completion = int(inputs["completion_mask"].sum(1).max())
    width = inputs["completion_ids"].shape[1]
    cut = dict(inputs)
    for name in _PROMPT:
        cut[name] = inputs[name][:, inputs[name].shape[1] - prompt :]
    for name in _COMPLETION:
        if name in inputs and inputs[name].shape[-1] == width:
            cut[name] = inputs[name][:, :completion]
    return cut


class Steps(TrainerCallback):  # type: ignore[misc]
    """What happens around each step: time, validation, checkpoints, the line of metrics."""

    def __init__(
        self,
        config: Config,
        clock: Clock,
        validate: Callable[[int], bool],
        stopping: Callable[[], bool],
        progress: Progress | None,
    ) -> None:
        self.trainer: Any = None  # set once it is made
        self._config = config
        self._clock = clock
        self._validate = validate
        self._stopping = stopping
        self._progress = progress
        self._started = now()

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Validate what training starts from."""
        self._validate(self.trainer.step)

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Start the clock of a step with the first of its passes."""
        if state.global_step % args.num_iterations == 0:
            self._clock.reset()
            self.trainer.batch = self.trainer.forward_only = np.zeros(2)
            self._started = now()

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        """Make no update out of nothing: momentum and decay would move the weights all the same."""
        if not self.trainer.live:
            for parameter in self.trainer.model.parameters():
                parameter.grad = None

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Stop the clock after the last pass; validate and save when it is time."""
        if state.global_step % args.num_iterations:
            return
        trainer, step = self.trainer, self.trainer.step
        whole = now() - self._started
        wall, cpu = map(Spent, whole, trainer.batch, trainer.forward_only)
        spent = phases(self._clock, wall, cpu)
        rate = trainer.figures["tokens"] / max(spent["seconds_generate"], 1e-9)
        gpus = 0 if trainer.args.use_cpu else trainer.args.n_gpu
        trainer.figures |= {"tokens_per_second": rate, **spent, "gpus": gpus}
        try:
            validated = self._validate(step)
        except Interrupted:
            validated = False
        last = step == self._config.grpo.steps
        if validated or last or step % self._config.grpo.save_every == 0 or self._stopping():
            control.should_save = True
        if self._stopping():
            control.should_training_stop = True

    def on_save(self, *_: Any, **__: Any) -> None:
        """Note the best checkpoint and remove old ones."""
        self.trainer.checkpoints.settle(self._config.grpo.keep)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Append the line of a step."""
        if not logs or "loss" not in logs:
            return
        line = {
            "step": self.trainer.step,
            **self.trainer.figures,
            **{ours: _finite(logs.get(theirs)) for ours, theirs in _METRICS.items()},
            "updated": self.trainer.live,
        }
        append_line(self.trainer.checkpoints.metrics, to_json(line))
        if self._progress is not None:
            self._progress(line)


def arguments(config: Config, out: Path, on_cpu: bool) -> Any:
    """Return the trainer's configuration."""
    grpo = config.grpo
    batch = config.group * grpo.tasks_per_step
    micro = grpo.micro_batch or config.group
    warm = "constant_with_warmup" if grpo.warmup_steps else "constant"
    vllm: dict[str, Any] = {}
    if grpo.vllm.mode != "off":
        vllm = {
            "use_vllm": True,
            "vllm_mode": grpo.vllm.mode,
            "vllm_gpu_memory_utilization": grpo.vllm.memory,
            "vllm_max_model_length": grpo.vllm.model_length,
            "vllm_server_base_url": grpo.vllm.server,
            "vllm_importance_sampling_mode": grpo.vllm.correction,
        }
    if grpo.report_to == "tensorboard":
        os.environ.setdefault("TENSORBOARD_LOGGING_DIR", str(out / "tensorboard"))
    return GRPOConfig(
        output_dir=str(out / "checkpoints"),
        run_name=out.name,
        seed=config.seed,
        shuffle_dataset=False,  # the order is ours, whatever the version of the trainer
        max_steps=grpo.steps * grpo.passes,
        num_iterations=grpo.passes,
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=batch // micro,
        num_generations=config.group,
        max_completion_length=grpo.completion_tokens,
        temperature=config.policy.temperature,
        loss_type=grpo.loss,
        scale_rewards=grpo.scale_rewards,
        epsilon=grpo.clip_low,
        epsilon_high=grpo.clip_high,
        beta=grpo.beta,
        learning_rate=grpo.learning_rate,
        lr_scheduler_type="linear" if grpo.schedule == "linear" else warm,
        warmup_steps=grpo.warmup_steps * grpo.passes,
        adam_beta1=grpo.adam_betas[0],
        adam_beta2=grpo.adam_betas[1],
        adam_epsilon=grpo.adam_epsilon,
        weight_decay=grpo.weight_decay,
        max_grad_norm=grpo.max_grad_norm,
        use_cpu=on_cpu,
        bf16=in_bfloat16(grpo.precision, on_cpu),
        activation_checkpointing=grpo.gradient_checkpointing,
        report_to=grpo.report_to,
        save_strategy="no",  # `Steps` says when
        logging_steps=grpo.passes,
        disable_tqdm=True,
        **vllm,
    )


def _finite(value: Any) -> float | None:
    number = None if value is None else float(value)
    return number if number is not None and abs(number) < float("inf") else None
