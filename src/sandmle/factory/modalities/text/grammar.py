"""What families write texts with: an English frame that takes the nouns of a story.

A noun stands as `<3>` until a story is told. The frame avoids every noun of the skins, and no two
of its long words have the same letters or the same consonants: spoilt words can be told apart.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from sandmle.types import Record

Item = TypeVar("Item")
_BLOCK = 4096

# what can be said of a person, a thing or a paper alike; as many letters on either side
GOOD = (
    "fine", "sound", "superb", "decent", "perfect", "lovely", "splendid", "excellent", "pleasant",
    "marvellous",
)  # fmt: skip
BAD = (
    "poor", "awful", "nasty", "hopeless", "dreadful", "useless", "horrid", "shabby", "miserable",
    "disgraceful",
)  # fmt: skip

# a judgement, then the same with the words that turn it round
_PLAIN = (
    "the {noun} was {word}",
    "the {noun} looked {word}",
    "the {noun} seemed really {word}",
    "everybody found the {noun} {word}",
    "I would call the {noun} {word}",
    "all of us thought the {noun} {word}",
    "we keep saying that the {noun} is {word}",
)
_TURNED = (
    "the {noun} was not {word}",
    "the {noun} hardly looked {word}",
    "the {noun} seemed far from {word}",
    "nobody found the {noun} {word}",
    "I would never call the {noun} {word}",
    "none of us thought the {noun} {word}",
    "we deny that the {noun} is {word}",
)
_TURNED_TWICE = (
    "nobody will deny that the {noun} was {word}",
    "I would never deny that the {noun} is {word}",
    "none of us could deny that the {noun} looked {word}",
)
TURNING = ("not", "hardly", "far", "nobody", "never", "none", "deny")
_LONG_AGO = (
    "a year ago the {noun} was {word}",
    "a year ago everybody found the {noun} {word}",
    "a year ago we thought the {noun} {word}",
    "a year ago the {noun} was not {word}",
)
# a mood, bad or good: as long as each other
MOODS = ("all in all we are displeased", "all in all we feel contented")
_LINKS = (", but ", ", and ", "; ")

_WHO = (
    "somebody", "my colleague", "one of us", "the newcomer", "the office", "a neighbour",
    "the early shift", "a guest",
)  # fmt: skip
_DID = (
    "asked about", "wrote about", "walked past", "waited near", "talked about", "pointed at",
    "sat beside", "took pictures of",
)  # fmt: skip
_WHEN = (
    "on Monday", "on Tuesday", "on Wednesday", "on Thursday", "on Friday", "this morning",
    "at noon", "in the evening", "during the break", "twice",
)  # fmt: skip
_ASIDE = (
    "it was windy most of the time", "there is little else to report",
    "I will come back to it soon", "thanks for the quick answer", "please keep a copy of this",
    "more about that on the phone", "we had a full house", "the usual people were here",
    "I hope this is enough", "sorry for my handwriting",
)  # fmt: skip


class Dice:
    """Small random choices from a generator, drawn in blocks: a text takes hundreds of them."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._left: list[float] = []

    def roll(self) -> float:
        """Return a number from 0 to 1."""
        if not self._left:
            self._left = self._rng.random(_BLOCK).tolist()
        return self._left.pop()

    def chance(self, share: float) -> bool:
        """Return True as often as a share says."""
        return self.roll() < share

    def below(self, n: int) -> int:
        """Return a number from 0 to n - 1."""
        return int(self.roll() * n)

    def of(self, items: Sequence[Item]) -> Item:
        """Return one of some items."""
        return items[int(self.roll() * len(items))]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """Return items in random order."""
        return sorted(items, key=lambda _: self.roll())


def noun(number: int) -> str:
    """Return the place of a noun of the story."""
    return f"<{number}>"


class Tone(Record):
    """How a task's texts judge: words of `GOOD`, as many of `BAD`, and how directly.

    A share `turned` of clauses says the opposite with a word that turns it round, a share `twice`
    has two such words.
    """

    good: tuple[str, ...]
    bad: tuple[str, ...]
    turned: float
    twice: float

    @classmethod
    def draw(cls, rng: np.random.Generator, n: int, turned: float, twice: float) -> "Tone":
        """Choose `n` words of each sort."""
        good, bad = (tuple(all_[i] for i in rng.permutation(len(all_))[:n]) for all_ in (GOOD, BAD))
        return cls(good=good, bad=bad, turned=turned, twice=twice)

    def judgement(self, dice: Dice, number: int, good: bool) -> str:
        """Return a clause that finds something good or bad."""
        way = dice.roll()
        if way < self.turned:
            frame, good = dice.of(_TURNED), not good
        else:
            frame = dice.of(_TURNED_TWICE if way < self.turned + self.twice else _PLAIN)
        return frame.format(noun=noun(number), word=dice.of(self.good if good else self.bad))

    def long_ago(self, dice: Dice, number: int) -> str:
        """Return a clause about how something was a year ago."""
        word = dice.of((*self.good, *self.bad))
        return dice.of(_LONG_AGO).format(noun=noun(number), word=word)


def errand(dice: Dice, numbers: Sequence[int]) -> str:
    """Return a clause in which somebody does something about one of some nouns."""
    return f"{dice.of(_WHO)} {dice.of(_DID)} the {noun(dice.of(numbers))} {dice.of(_WHEN)}"


def aside(dice: Dice, numbers: Sequence[int]) -> str:
    """Return a clause that judges nothing; it may name one of some nouns."""
    return dice.of(_ASIDE) if dice.chance(0.4) else errand(dice, numbers)


def linked(dice: Dice, clauses: Sequence[str]) -> str:
    """Return clauses as sentences, some of two clauses."""
    parts: list[str] = []
    alone = False  # whether the last sentence is a single clause
    for clause in clauses:
        if alone and dice.chance(0.5):
            parts[-1] += dice.of(_LINKS) + clause
            alone = False
        else:
            parts.append(clause)
            alone = True
    return sentences(parts)


def sentences(parts: Sequence[str]) -> str:
    """Return a text of these sentences, each with a capital and a full stop."""
    return " ".join(part[0].upper() + part[1:] + "." for part in parts)


# source of `opinions(text)` for references; wants {nouns}
OPINIONS = f'''
NOUNS = "{{nouns}}".split()
GOOD = set("{" ".join(GOOD)}".split())
BAD = set("{" ".join(BAD)}".split())
TURNING = set("{" ".join(TURNING)}".split())


def opinions(text):
    """For each noun: 1 if the text finds it good, -1 if bad, 0 if it does not say."""
    found = dict.fromkeys(NOUNS, 0)
    for clause in re.split("[.,;]", text.lower()):
        words = set(re.findall("[a-z]+", clause))
        opinion = len(words & GOOD) - len(words & BAD)
        if "ago" in words or opinion == 0:
            continue
        for name in words & found.keys():
            found[name] = opinion * (-1) ** len(words & TURNING)
    return list(found.values())
'''
