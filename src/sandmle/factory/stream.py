"""An endless source of tasks for a trainer."""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from sandmle.config import DEFAULT_SANDBOX
from sandmle.factory.crew import Crew
from sandmle.factory.mix import Mix
from sandmle.factory.plan import TestPolicy
from sandmle.factory.slot import Job
from sandmle.tasks.folder import Task, open_task


class Stream:
    """Tasks without end, in a fixed order for a seed and mix: a `TaskSource`.

    Task i is that of slot i of the corpus that `generate` would write. Folders are written below
    `root`, and found there by the next stream of the same seed and mix; without `root` to a
    temporary folder that lasts as long as the iteration. `workers` work ahead.
    """

    def __init__(
        self,
        seed: int = 0,
        mix: Mix | None = None,
        root: Path | None = None,
        workers: int = 1,
        policy: TestPolicy = "adaptive",
        sandbox: str = DEFAULT_SANDBOX,
    ) -> None:
        self._job = Job(seed=seed, mix=(mix or Mix()).resolve(), policy=policy)
        self._root, self._workers, self._sandbox = root, workers, sandbox

    def __iter__(self) -> Iterator[Task]:
        """Yield tasks; ends only with an error, or when the caller stops."""
        if self._root is not None:
            self._root.mkdir(parents=True, exist_ok=True)
            yield from self._tasks(self._root)
            return
        with tempfile.TemporaryDirectory(prefix="sandmle-stream-") as folder:
            yield from self._tasks(Path(folder))

    def _tasks(self, root: Path) -> Iterator[Task]:
        with closing(Crew(root, self._job, self._workers, self._sandbox)) as crew:
            for filled in crew.fill(ordered=True):
                yield open_task(root / filled.task_id)
