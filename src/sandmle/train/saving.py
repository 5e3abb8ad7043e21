"""What our trainers have in common: checkpoints that are whole or not there."""

from typing import Any

from sandmle.train.checkpoints import Checkpoints


class Saving:
    """A mixin before a Trainer of transformers; checkpoints are written beside their place."""

    checkpoints: Checkpoints

    @property
    def step(self) -> int:
        """Return how many steps were finished; with GRPO one is a batch of episodes."""
        updates = getattr(self.args, "num_iterations", 1)  # type: ignore[attr-defined]
        return int(self.state.global_step) // int(updates)  # type: ignore[attr-defined]

    def save_now(self) -> None:
        """Write a checkpoint unless there is one of this step, or nothing was trained."""
        if self.step and self.step not in self.checkpoints.steps():
            self._save_checkpoint(self.model, None)  # type: ignore[attr-defined]

    def create_model_card(self, *_: Any, **__: Any) -> None:
        """Write none: the run folder says what the model is."""

    def _get_output_dir(self, trial: Any) -> str:
        return str(self.checkpoints.draft)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        self.checkpoints.clear_draft()
        super()._save_checkpoint(model, trial)  # type: ignore[misc]
        updates = self.state.global_step  # type: ignore[attr-defined]
        self.checkpoints.adopt(self.checkpoints.draft / f"checkpoint-{updates}", self.step)
