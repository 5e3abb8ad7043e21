"""Faults of the training labels: a recorder who had it backwards, entries that were corrected."""

from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.family import OutcomeKind, Split
from sandmle.factory.mutation import (
    MUTATIONS,
    Draft,
    Setting,
    TaskMutation,
    write,
)
from sandmle.factory.story import AMOUNT_SPREAD, StoryColumn, StoryTarget

_OFFSET = 2.5  # spreads by which a wrong quantity is off
_MISCOUNT = 3  # by how much a wrong count is


class Wrong(TaskMutation):
    """A mutation that makes training labels wrong in one way, which can be turned back.

    Classes move to the next one (the last to the first), quantities up by `_OFFSET` spreads.
    """

    sort: ClassVar[Literal["cells", "labels"]] = "labels"
    column: StoryColumn
    outcome: OutcomeKind
    classes: tuple[str, ...]
    offset: float

    @property
    def touched(self) -> tuple[str, ...]:
        """Return its column."""
        return (self.column.name,)

    @property
    def added(self) -> tuple[StoryColumn, ...]:
        """Return its column."""
        return (self.column,)

    def spoil(self, observed: NDArray[Any]) -> NDArray[Any]:
        """Return the wrong targets for right ones."""
        if self.classes:
            return (observed + 1) % len(self.classes)
        return observed + (_MISCOUNT if self.outcome == "count" else _OFFSET)

    def turned_back(self, column: str) -> str:
        """Return the expression for the right target in a frame `rows` with wrong ones."""
        if self.classes:
            labels: list[Any] = [int(c) if c in ("0", "1") else c for c in self.classes]
            back = dict(zip([*labels[1:], labels[0]], labels, strict=True))
            return f'rows["{column}"].map({back})'
        if self.outcome == "amount":
            return f'rows["{column}"] / {self.offset:.6g}'
        return f'rows["{column}"] - {self.offset:.6g}'


def _facts(target: StoryTarget) -> dict[str, Any]:
    offsets = {"amount": float(np.exp(_OFFSET * AMOUNT_SPREAD)), "count": float(_MISCOUNT)}
    return {
        "outcome": target.kind,
        "classes": target.classes,
        "offset": offsets.get(target.kind, _OFFSET * target.spread),
    }


@MUTATIONS.register("biased_recorder")
class BiasedRecorder(Wrong):
    """One of those who note the result is wrong in all of their training rows."""

    name: ClassVar[str] = "biased_recorder"
    share: float

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose four recorders, the first of whom is wrong."""
        recorder = setting.skin.recorder
        order = rng.permutation(len(recorder.values))[:4]
        column = StoryColumn(
            name=recorder.name,
            description=recorder.description,
            kind="category",
            variable=None,
            relevant=False,
            values=tuple(recorder.values[i] for i in order),
        )
        share = setting.share(0.28, 0.4)
        return cls(column=column, share=share, **_facts(setting.story.target))

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Name a recorder for each row; in train the first one's targets are wrong."""
        first, *others = self.column.values
        names = [others[i] for i in rng.integers(0, len(others), draft.n)]
        rows = draft.some(rng, self.share)
        write(names, rows, [first] * len(rows))
        draft.cells[self.column.name] = names
        if split == "train":
            draft.observed[rows] = self.spoil(draft.observed[rows])

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        who = f"{self.column.name} {self.column.values[0]!r}"
        if self.classes:
            return f"training rows of {who} have the class after the true one"
        by = "times" if self.outcome == "amount" else "more than"
        return f"training rows of {who} have {self.offset:.4g} {by} the true target"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        # a column of whole numbers takes no others
        as_float = "" if self.classes else f'train["{target}"] = train["{target}"].astype(float)\n'
        return (
            f'wrong = train["{self.column.name}"] == "{self.column.values[0]}"\n'
            f"{as_float}"
            "rows = train[wrong]\n"
            f'train.loc[wrong, "{target}"] = {self.turned_back(target)}'
        )


@MUTATIONS.register("double_entry")
class DoubleEntry(Wrong):
    """Some training rows are there twice: first with a wrong target, then corrected."""

    name: ClassVar[str] = "double_entry"
    share: float

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Name the column that numbers the entries."""
        revision = setting.skin.revision
        column = StoryColumn(
            name=revision.name,
            description=revision.description,
            kind="category",
            variable=None,
            relevant=False,
            values=("1", "2"),
        )
        share = setting.share(0.28, 0.36)
        return cls(column=column, share=share, **_facts(setting.story.target))

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Turn some rows into earlier, wrong entries of others; in test number rows at random."""
        order = rng.permutation(draft.n)
        k = round(self.share * draft.n)
        wrong, right = order[:k], order[k : 2 * k]
        entries = ["1"] * draft.n
        write(entries, right, ["2"] * k)
        if split == "train":
            for cells in draft.cells.values():
                write(cells, wrong, [cells[i] for i in right])
            draft.observed[wrong] = self.spoil(draft.observed[right])
        draft.cells[self.column.name] = entries

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return (
            f"of rows that agree in all but target and {self.column.name}, the last entry is right"
        )

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return (
            f'same = [c for c in test.columns if c not in (ID, "{self.column.name}")]\n'
            f'train = train.sort_values("{self.column.name}", kind="stable")\n'
            "key = train[same].map(lambda v: v.tobytes() if hasattr(v, 'tobytes') else str(v))\n"
            'train = train[~key.duplicated(keep="last")]'
        )
