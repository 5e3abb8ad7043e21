"""Sorts of targets: how each is spelled, what a submission without knowledge is, what to explain.

A family has targets in the abstract (`Outcome`); everything that depends on what a target is, and
not on the family, stands here. `form` is the kind of submission that the metric wants.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.family import OutcomeKind
from sandmle.factory.story import StoryTarget, fixed, in_nouns, target_values
from sandmle.tasks.cells import encode_mask, parse_number
from sandmle.tasks.submission import Table

Texts = dict[str, list[str]]
Columns = Mapping[str, NDArray[Any]]
Floats = NDArray[np.float64]


class Sort(Protocol):
    """What all targets of a sort share."""

    def spelled(self, target: StoryTarget, values: NDArray[Any]) -> Texts:
        """Return the cells of train.csv for abstract values (n, ...)."""
        ...

    def answers(self, target: StoryTarget, form: str, values: NDArray[Any]) -> Texts:
        """Return the cells of answer.csv."""
        ...

    def ignorant(self, target: StoryTarget, form: str, guesses: NDArray[Any]) -> Texts:
        """Return a submission in the right form; `guesses` are targets of other rows."""
        ...

    def blind(self, target: StoryTarget, form: str, answers: Columns, n: int) -> dict[str, Columns]:
        """Return submissions of `n` rows that look at no row: all the same, or guessed.

        The best constants are taken from the answers themselves: the training rows may be biased,
        and whoever mends that has learned nothing yet about a single row.
        """
        ...

    def goal(self, target: StoryTarget, table: Table) -> Floats:
        """Return the targets in a table as something to explain (n, k)."""
        ...

    def guess(
        self, target: StoryTarget, form: str, goal: Floats, known: NDArray[Any] | None
    ) -> Columns | None:
        """Return the submission that a predicted goal makes; None if it makes none.

        A predicted rank becomes the value that has this rank among the targets in `known`.
        """
        ...


class Labels:
    """A class a row."""

    def spelled(self, target: StoryTarget, values: NDArray[Any]) -> Texts:
        """Spell the classes."""
        return {target.name: [target.classes[int(i)] for i in values]}

    def answers(self, target: StoryTarget, form: str, values: NDArray[Any]) -> Texts:
        """Spell the classes, or a 1 in the column of each where probabilities are asked for."""
        if form != "probabilities":
            return self.spelled(target, values)
        return {c: ["1" if v == i else "0" for v in values] for i, c in enumerate(target.classes)}

    def ignorant(self, target: StoryTarget, form: str, guesses: NDArray[Any]) -> Texts:
        """Return guesses, or even chances."""
        if form == "probabilities":
            even = fixed(np.full(len(guesses), 1 / len(target.classes)), 4)
            return dict.fromkeys(target.classes, even)
        if form == "probability":
            return {target.name: ["0.5"] * len(guesses)}
        return self.spelled(target, guesses)

    def blind(self, target: StoryTarget, form: str, answers: Columns, n: int) -> dict[str, Columns]:
        """Return every constant, guesses, or even chances."""
        name = target.name
        if form == "label":
            guesses = np.random.default_rng(0).permutation(answers[name])
            same: dict[str, Columns] = {
                f"all {c}": {name: np.full(n, c, dtype=object)} for c in target.classes
            }
            return {**same, "guesses": {name: guesses}}
        if form == "probabilities":
            share = 1 / len(target.classes)
            return {"all classes alike": {c: np.full(n, share) for c in target.classes}}
        return {"all 0.5": {name: np.full(n, 0.5)}}

    def goal(self, target: StoryTarget, table: Table) -> Floats:
        """Return an indicator of each class."""
        if target.name not in table.header:
            return _numbers(table, target.classes)
        cells = table.column(target.name)
        return np.array([[float(cell == c) for c in target.classes] for cell in cells])

    def guess(
        self, target: StoryTarget, form: str, goal: Floats, known: NDArray[Any] | None
    ) -> Columns | None:
        """Return the likeliest class, or the chances."""
        if form == "probabilities":
            shares = goal.clip(1e-6) / goal.clip(1e-6).sum(axis=1, keepdims=True)
            return {name: shares[:, i] for i, name in enumerate(target.classes)}
        if form == "label":
            return {target.name: np.array(target.classes, dtype=object)[goal.argmax(axis=1)]}
        return {target.name: goal[:, 1].clip(0.001, 0.999)}


class Quantity:
    """A number a row."""

    def spelled(self, target: StoryTarget, values: NDArray[Any]) -> Texts:
        """Spell the values in the units of the story."""
        return {target.name: fixed(target_values(target, values), target.decimals)}

    def answers(self, target: StoryTarget, form: str, values: NDArray[Any]) -> Texts:
        """Spell the values."""
        return self.spelled(target, values)

    def ignorant(self, target: StoryTarget, form: str, guesses: NDArray[Any]) -> Texts:
        """Return guesses."""
        return self.spelled(target, guesses)

    def blind(self, target: StoryTarget, form: str, answers: Columns, n: int) -> dict[str, Columns]:
        """Return the means there are."""
        values = answers[target.name]
        middle = {"mean": values.mean(), "median": np.median(values)}
        if values.min() >= 0:
            middle["geometric mean"] = np.expm1(np.log1p(values).mean())
        return {f"the {how}": {target.name: np.full(n, float(v))} for how, v in middle.items()}

    def goal(self, target: StoryTarget, table: Table) -> Floats:
        """Return the rank of each value, equal ones the same: no order of rows may show in it."""
        values = _numbers(table, (target.name,))[:, 0]
        _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
        ranks: Floats = (np.cumsum(counts) - (counts + 1) / 2)[which] / len(values)
        return ranks[:, None]

    def guess(
        self, target: StoryTarget, form: str, goal: Floats, known: NDArray[Any] | None
    ) -> Columns | None:
        """Return the values that have the ranks."""
        ranks = goal[:, 0].clip(0, 1)
        return {target.name: ranks if known is None else np.quantile(known, ranks)}


class Several:
    """A number in each of several columns: whether a tag holds, or the share of a class."""

    def spelled(self, target: StoryTarget, values: NDArray[Any]) -> Texts:
        """Spell a column for each."""
        decimals = 0 if target.kind == "tags" else 4
        if target.kind == "shares":
            values = values / values.sum(axis=1, keepdims=True)
        return {c: fixed(values[:, i], decimals) for i, c in enumerate(target.classes)}

    def answers(self, target: StoryTarget, form: str, values: NDArray[Any]) -> Texts:
        """Spell a column for each."""
        return self.spelled(target, values)

    def ignorant(self, target: StoryTarget, form: str, guesses: NDArray[Any]) -> Texts:
        """Return even chances."""
        even = 0.5 if target.kind == "tags" else 1 / len(target.classes)
        return dict.fromkeys(target.classes, fixed(np.full(len(guesses), even), 4))

    def blind(self, target: StoryTarget, form: str, answers: Columns, n: int) -> dict[str, Columns]:
        """Return the mean of each column."""
        means = {c: np.full(n, answers[c].mean()) for c in target.classes}
        return {"the means": means}

    def goal(self, target: StoryTarget, table: Table) -> Floats:
        """Return the columns."""
        return _numbers(table, target.classes)

    def guess(
        self, target: StoryTarget, form: str, goal: Floats, known: NDArray[Any] | None
    ) -> Columns | None:
        """Return the predicted columns, within bounds."""
        chances = goal.clip(0.001, 0.999)
        if target.kind == "shares":
            chances = chances / chances.sum(axis=1, keepdims=True)
        return {c: chances[:, i] for i, c in enumerate(target.classes)}


class Masks:
    """A region of a picture."""

    def spelled(self, target: StoryTarget, values: NDArray[Any]) -> Texts:
        """Write run lengths."""
        return {target.name: [encode_mask(mask) for mask in values]}

    def answers(self, target: StoryTarget, form: str, values: NDArray[Any]) -> Texts:
        """Write run lengths."""
        return self.spelled(target, values)

    def ignorant(self, target: StoryTarget, form: str, guesses: NDArray[Any]) -> Texts:
        """Return regions of other pictures."""
        return self.spelled(target, guesses)

    def blind(self, target: StoryTarget, form: str, answers: Columns, n: int) -> dict[str, Columns]:
        """Return everything, nothing, and the pixels that are more often inside than a share."""
        height, width = target.shape or (0, 0)
        inside = np.zeros(height * width + 1)
        for runs in answers[target.name]:
            np.add.at(inside, runs[:, 0], 1)
            np.add.at(inside, runs[:, 1], -1)
        often = np.cumsum(inside)[:-1] / len(answers[target.name])
        regions = {"everything": np.array([[0, height * width]]), "nothing": np.zeros((0, 2), int)}
        for share in (0.3, 0.5):
            edges = np.diff(np.r_[0, (often > share).astype(int), 0])
            regions[f"above {share}"] = np.column_stack(
                [np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)]
            )
        return {how: {target.name: _repeated(runs, n)} for how, runs in regions.items()}

    def goal(self, target: StoryTarget, table: Table) -> Floats:
        """Return the area and the middle of each region, standardised."""
        height = target.shape[0] if target.shape else 1
        facts = []
        for cell in table.column(target.name):
            numbers = np.array(cell.split(), dtype=float).reshape(-1, 2)
            start, length = numbers[:, 0] - 1, numbers[:, 1]
            area = max(length.sum(), 1e-9)
            middle = (start + (length - 1) / 2) * length
            down = ((start % height + (length - 1) / 2) * length).sum() / area
            facts.append((area, middle.sum() / area // height, down))
        return _standardised(facts)

    def guess(
        self, target: StoryTarget, form: str, goal: Floats, known: NDArray[Any] | None
    ) -> Columns | None:
        """Return None: area and middle make no region."""
        return None


class Boxes:
    """Some boxes in a picture."""

    def spelled(self, target: StoryTarget, values: NDArray[Any]) -> Texts:
        """Write each box after its confidence, which is 1."""
        cells = [" ".join(f"1 {x:g} {y:g} {w:g} {h:g}" for x, y, w, h in row) for row in values]
        return {target.name: cells}

    def answers(self, target: StoryTarget, form: str, values: NDArray[Any]) -> Texts:
        """Write the boxes."""
        return self.spelled(target, values)

    def ignorant(self, target: StoryTarget, form: str, guesses: NDArray[Any]) -> Texts:
        """Return boxes of other pictures."""
        return self.spelled(target, guesses)

    def blind(self, target: StoryTarget, form: str, answers: Columns, n: int) -> dict[str, Columns]:
        """Return one box around everything, and boxes of other pictures."""
        height, width = target.shape or (0, 0)
        whole = np.array([[1.0, 0.0, 0.0, width, height]])
        others = np.random.default_rng(0).permutation(len(answers[target.name]))
        return {
            "everything": {target.name: _repeated(whole, n)},
            "boxes of others": {target.name: answers[target.name][others]},
        }

    def goal(self, target: StoryTarget, table: Table) -> Floats:
        """Return number and mean place of the boxes, standardised."""
        facts = []
        for cell in table.column(target.name):
            boxes = np.array(cell.split(), dtype=float).reshape(-1, 5)
            middle = (boxes[:, 1:3] + boxes[:, 3:] / 2).mean(axis=0) if len(boxes) else (0, 0)
            facts.append((len(boxes), *middle))
        return _standardised(facts)

    def guess(
        self, target: StoryTarget, form: str, goal: Floats, known: NDArray[Any] | None
    ) -> Columns | None:
        """Return None: number and place make no boxes."""
        return None


class Spans:
    """A few words of a text."""

    def spelled(self, target: StoryTarget, values: NDArray[Any]) -> Texts:
        """Write the words with the nouns of the story."""
        return {target.name: [in_nouns(words, target.nouns) for words in values]}

    def answers(self, target: StoryTarget, form: str, values: NDArray[Any]) -> Texts:
        """Write the words."""
        return self.spelled(target, values)

    def ignorant(self, target: StoryTarget, form: str, guesses: NDArray[Any]) -> Texts:
        """Return words of other rows."""
        return self.spelled(target, guesses)

    def blind(self, target: StoryTarget, form: str, answers: Columns, n: int) -> dict[str, Columns]:
        """Return no word, the commonest answers, and all words that are in many answers."""
        values = answers[target.name]
        texts, counts = np.unique(values.astype(str), return_counts=True)
        words, often = np.unique(
            [word for text in values for word in {*text.lower().split()}], return_counts=True
        )
        same = {"nothing": "", **{f"answer {i}": texts[i] for i in np.argsort(-counts)[:5]}}
        for share in (0.2, 0.4):
            same[f"words in {share:.0%}"] = " ".join(words[often > share * len(values)])
        return {how: {target.name: np.full(n, text, object)} for how, text in same.items()}

    def goal(self, target: StoryTarget, table: Table) -> Floats:
        """Return numbers of words and letters, standardised."""
        return _standardised([(len(c.split()), len(c)) for c in table.column(target.name)])

    def guess(
        self, target: StoryTarget, form: str, goal: Floats, known: NDArray[Any] | None
    ) -> Columns | None:
        """Return None: lengths make no words."""
        return None


SORTS: dict[OutcomeKind, Sort] = {
    **dict.fromkeys(("binary", "link", "ordinal", "classes"), Labels()),
    **dict.fromkeys(("number", "amount", "forecast", "count", "relevance"), Quantity()),
    **dict.fromkeys(("tags", "shares"), Several()),
    "mask": Masks(),
    "boxes": Boxes(),
    "span": Spans(),
}


def _numbers(table: Table, names: tuple[str, ...]) -> Floats:
    return np.array([[parse_number(c) for c in table.column(name)] for name in names]).T


def _standardised(facts: Any) -> Floats:
    values = np.array(facts, dtype=float)
    scaled: Floats = (values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-9)
    return scaled


def _repeated(value: NDArray[Any], n: int) -> NDArray[Any]:
    """Return an object array that holds `value` in every place."""
    result = np.empty(n, dtype=object)
    for i in range(n):
        result[i] = value
    return result
