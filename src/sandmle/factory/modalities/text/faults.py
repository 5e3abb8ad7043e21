"""What faults of texts share: a column, a share of its rows.

A remedy works on the texts in the frames `train` and `test`. Faults of words come one at a time, as
each would hide the other; faults of passages are marked with signs that those leave alone.
"""

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from sandmle.factory.mutation import Setting, TaskMutation
from sandmle.factory.story import StoryColumn


class TextMutation(TaskMutation):
    """A fault of a share of the texts of one column; `shares` are those of levels 1 and 5."""

    column: str
    share: float
    shares: ClassVar[tuple[float, float]] = (0.5, 0.75)

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose the column and what else there is to choose."""
        column = cls.column_of(rng, setting)
        if column is None:
            return None
        share = setting.share(*cls.shares)
        return cls(column=column.name, share=share, **cls.chosen(rng, column))

    @classmethod
    @abstractmethod
    def column_of(cls, rng: np.random.Generator, setting: Setting) -> StoryColumn | None:
        """Return a column of texts that can have the fault."""
        ...

    @classmethod
    def chosen(cls, rng: np.random.Generator, column: StoryColumn) -> dict[str, Any]:
        """Return the drawn values of its own fields."""
        return {}
