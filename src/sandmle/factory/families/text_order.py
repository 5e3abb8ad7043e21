"""Order of events: the class is which of a few things came first, whatever was told first.

A note tells of pairs of events, the earlier or the later one first, as "before" and "after" allow.
Which words it has says little; whoever reads off each sentence what came before what, and joins the
pairs to one order, knows the answer.
"""

from itertools import pairwise
from typing import ClassVar, Self

import numpy as np

from sandmle.factory.family import (
    FAMILIES,
    FamilyOf,
    Names,
    Outcome,
    OutcomeKind,
    Sample,
    Solution,
    Split,
    Variable,
)
from sandmle.factory.modalities.text.grammar import Dice, aside, noun, sentences
from sandmle.types import Record

# things that there are, events in a note, classes, clauses without an event, wrong labels; by level
_LEVELS = (
    (6, 4, 3, 1, 0.03), (6, 4, 3, 2, 0.04), (7, 5, 3, 2, 0.05), (7, 5, 4, 3, 0.06),
    (8, 6, 4, 4, 0.07),
)  # fmt: skip
_PRESENT = (0.8, 0.5)  # the chances that a thing of the first and of the last class is in a note

# the second noun of the first four came later, that of the others came earlier
_PAIRS = (
    "the {0} {2} before the {1} {3}",
    "after the {0} {2}, the {1} {3}",
    "first the {0} {2}, then the {1} {3}",
    "the {0} {2} and only later the {1} {3}",
    "the {0} {2} after the {1} {3}",
    "before the {0} {2}, the {1} {3}",
    "the {0} {2}, but not until the {1} {3}",
    "by the time the {0} {2}, the {1} {3}",
)
_FORWARD = 4
_EVENTS = (
    "was checked", "was moved", "got wet", "came back", "gave trouble", "was sent for",
    "made a noise", "was in use", "went missing", "had to wait",
)  # fmt: skip


class TextOrderConfig(Record):
    """The drawn parameters.

    `classes[i]` is the thing of class i, which is in a note with chance `present[i]`.
    """

    things: int
    events: int
    classes: tuple[int, ...]
    present: tuple[float, ...]
    asides: int
    wrong: float


@FAMILIES.register("text_order")
class TextOrder(FamilyOf[TextOrderConfig]):
    """See the module's text."""

    name: ClassVar[str] = "text_order"
    modality: ClassVar[str] = "text"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("classes",)
    metrics: ClassVar[tuple[str, ...]] = ("macro_f1", "balanced_accuracy", "mcc")
    mutations: ClassVar[tuple[str, ...]] = (
        "swapped_letters", "dropped_vowels", "misread_letters", "broken_words", "quoted_entry",
        "struck_words", "part_codes", "biased_recorder", "double_entry",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (100, 200)
    n_pool: ClassVar[int] = 1000
    config_type = TextOrderConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw what the classes are and how often each comes up."""
        things, events, size, asides, wrong = _LEVELS[level - 1]
        return cls(
            TextOrderConfig(
                things=things,
                events=events,
                classes=tuple(rng.permutation(things)[:size].tolist()),
                present=tuple(np.linspace(*_PRESENT, size).round(2).tolist()),
                asides=asides,
                wrong=wrong,
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return the note."""
        text = "a text of some sentences, each of which tells of two events"
        return (Variable(name="feat_0", kind="note", abstract=text, size=self.config.things),)

    def outcome(self) -> Outcome:
        """Return classes, the first of which is the commonest."""
        return Outcome("classes", len(self.config.classes))

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw an order of events for each row, and tell it in pairs of neighbours."""
        config = self.config
        dice = Dice(rng)
        clean, texts = np.zeros(n, dtype=np.int64), np.empty(n, dtype=object)
        for i in range(n):
            events = self._events(dice)
            clean[i] = next(config.classes.index(e) for e in events if e in config.classes)
            texts[i] = self._text(dice, events)
        wrong = rng.random(n) < config.wrong
        observed = np.where(wrong, rng.integers(0, len(config.classes), n), clean)
        return Sample({"feat_0": texts}, observed, clean)

    def _events(self, dice: Dice) -> list[int]:
        """Return what happened, the earliest first."""
        config = self.config
        chosen = [
            thing
            for thing, share in zip(config.classes, config.present, strict=True)
            if dice.chance(share)
        ] or [config.classes[0]]
        others = [i for i in range(config.things) if i not in chosen and i not in config.classes]
        absent = [i for i in config.classes if i not in chosen]
        # of the things that make a class only as many more as it takes to fill the note
        chosen += [*dice.shuffled(others), *absent][: config.events - len(chosen)]
        return dice.shuffled(chosen)

    def _text(self, dice: Dice, events: list[int]) -> str:
        told = []
        for earlier, later in pairwise(events):
            way = dice.below(len(_PAIRS))
            pair = (earlier, later) if way < _FORWARD else (later, earlier)
            happened = (dice.of(_EVENTS), dice.of(_EVENTS))
            told.append(_PAIRS[way].format(*map(noun, pair), *happened))
        told += [aside(dice, events) for _ in range(self.config.asides + dice.below(2))]
        return sentences(dice.shuffled(told))

    def rule(self) -> str:
        """Return which class is which."""
        config = self.config
        classes = "; ".join(f"class {i}: <{thing}>" for i, thing in enumerate(config.classes))
        return (
            "of these nouns, that whose event came first in feat_0 says the class "
            f"({classes}); each sentence with two nouns says which came before the other; in train "
            f"{config.wrong:.0%} of the rows have a random class"
        )

    def solution(self, names: Names) -> Solution:
        """Return what came before what, and a linear model."""
        return Solution(_FEATURES.format(**names), "linear")


_FEATURES = """
NOUNS = "{nouns}".split()
# the later of two events is told first
TURNED = re.compile("^(before|by the time) | (after|until) ")


def ranks(text):
    \"""For each noun, how many events came before it; NaN if it does not come up.\"""
    pairs = []
    for sentence in text.lower().split("."):
        names = [word for word in re.findall("[a-z]+", sentence) if word in NOUNS]
        if len(names) == 2:
            pairs.append(names[::-1] if TURNED.search(sentence.strip()) else names)
    rank = dict.fromkeys(np.ravel(pairs), 0)
    for _ in pairs:
        for earlier, later in pairs:
            rank[later] = max(rank[later], rank[earlier] + 1)
    return [rank.get(name, np.nan) for name in NOUNS]


def features(frame):
    \"""For each noun whether it is there, for each two which came first.\"""
    rank = np.array([ranks(text) for text in frame["{feat_0}"]])
    first, second = np.triu_indices(len(NOUNS), 1)
    earlier = np.nan_to_num(np.sign(rank[:, second] - rank[:, first]))
    return np.hstack([np.isfinite(rank), earlier])
"""
