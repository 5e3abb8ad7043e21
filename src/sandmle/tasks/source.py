"""Where a trainer gets its tasks from: a corpus on disk, or an endless stream."""

from collections.abc import Iterator
from typing import Protocol

from sandmle.tasks.folder import Task


class TaskSource(Protocol):
    """Anything that yields tasks; a `Corpus` is one, a generator's stream another."""

    def __iter__(self) -> Iterator[Task]:
        """Yield tasks in a fixed order."""
        ...
