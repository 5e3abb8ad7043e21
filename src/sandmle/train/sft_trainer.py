"""TRL's `SFTTrainer` with our checkpoints and our lines of metrics.

Needs torch and trl, so it is imported where training begins.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import PrinterCallback, TrainerCallback
from trl import SFTConfig, SFTTrainer

from sandmle.config import Config
from sandmle.train.checkpoints import Checkpoints
from sandmle.train.precision import in_bfloat16
from sandmle.train.saving import Saving


class ReplyTrainer(Saving, SFTTrainer):  # type: ignore[misc]
    """The trainer of one run; its data has `labels` already, -100 on all that is not learned."""

    def __init__(self, *arguments: Any, checkpoints: Checkpoints, **options: Any) -> None:
        self.checkpoints = checkpoints
        super().__init__(*arguments, **options)

    def quieten(self) -> None:
        """Keep the library's own lines off stdout, which is for results."""
        self.remove_callback(PrinterCallback)


class Updates(TrainerCallback):  # type: ignore[misc]
    """What happens around each update: checkpoints, the line of metrics, the wish to stop."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        save_every: int,
        tell: Callable[[dict[str, Any]], None],
        stopping: Callable[[], bool],
    ) -> None:
        self._checkpoints = checkpoints
        self._save_every = save_every
        self._tell = tell
        self._stopping = stopping
        self._started = 0.0

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Start the clock."""
        self._started = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Save when it is time, and before stopping."""
        if (
            state.global_step % self._save_every == 0
            or state.global_step == state.max_steps
            or self._stopping()
        ):
            control.should_save = True
        control.should_training_stop |= self._stopping()

    def on_save(self, *_: Any, **__: Any) -> None:
        """Keep the last checkpoint only."""
        self._checkpoints.settle(1)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Write the line of an update."""
        if not logs or "loss" not in logs:
            return
        names = {"loss": "loss", "mean_token_accuracy": "accuracy", "grad_norm": "grad_norm"}
        self._tell(
            {
                "step": int(state.global_step),
                **{ours: float(logs[theirs]) for theirs, ours in names.items() if theirs in logs},
                "learning_rate": float(logs["learning_rate"]),
                "seconds": time.perf_counter() - self._started,
            }
        )


def arguments(config: Config, out: Path, on_cpu: bool) -> Any:
    """Return the trainer's configuration."""
    sft = config.sft
    micro = sft.micro_batch or sft.batch
    if sft.report_to == "tensorboard":
        os.environ.setdefault("TENSORBOARD_LOGGING_DIR", str(out / "tensorboard"))
    return SFTConfig(
        output_dir=str(out / "checkpoints"),
        run_name=out.name,
        seed=config.seed,
        num_train_epochs=sft.epochs,
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=sft.batch // micro,
        # similar lengths together: else half of a batch is padding
        train_sampling_strategy="group_by_length",
        max_length=None,  # what is too long was left out
        learning_rate=sft.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=sft.warmup_steps,
        adam_beta1=sft.adam_betas[0],
        adam_beta2=sft.adam_betas[1],
        weight_decay=sft.weight_decay,
        max_grad_norm=sft.max_grad_norm,
        use_cpu=on_cpu,
        bf16=in_bfloat16(sft.precision, on_cpu),
        gradient_checkpointing=sft.gradient_checkpointing,
        report_to=sft.report_to,
        save_strategy="no",  # `Updates` says when
        logging_steps=1,
        disable_tqdm=True,
    )
