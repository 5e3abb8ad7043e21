"""Extraction: which of several things a note comes down to, in the note's own words.

A note has some passages. Each begins with how the writer knows, goes on with other things, and then
names something; it may be taken back. One sort of knowledge beats another, in an order drawn for
the task, so that what to copy depends on the whole note and not on the words around it.
"""

from typing import ClassVar, Self

import numpy as np

from sandmle.factory.family import (
    FAMILIES,
    METRICS_OF,
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

# passages (from, to), share taken back, share that first denies another thing, sentences between
# source and claim (up to), wrong spans in train; by level
_LEVELS = (
    ((2, 2), 0.1, 0.15, 1, 0.04), ((2, 3), 0.15, 0.25, 1, 0.05), ((2, 4), 0.2, 0.3, 1, 0.06),
    ((3, 4), 0.3, 0.4, 2, 0.07), ((3, 4), 0.35, 0.5, 2, 0.08),
)  # fmt: skip
_NOUNS = 10

_SOURCES = {
    "the writer's own eyes": ("I had a look myself", "I watched it with my own eyes"),
    "hearsay": ("I asked around", "they tell it like this"),
    "papers": ("I went through the papers", "the list has it in writing"),
    "a guess": ("I can only guess", "this is no more than a hunch"),
}
_CLAIMS = (
    "it is the {0}", "it has to be the {0}", "all points to the {0}", "that leaves the {0}",
    "it comes down to the {0}",
)  # fmt: skip
_DENIALS = (
    "it is not the {0}", "it cannot be the {0}", "nothing points to the {0}",
    "that rules out the {0}",
)  # fmt: skip
_TAKEN_BACK = ("I take that back", "that proved wrong", "this no longer holds")
_LOOKS = (
    "old", "new", "small", "large", "spare", "left", "grey", "heavy", "narrow", "second", "blue",
    "yellow", "short", "broad", "dusty", "rented",
)  # fmt: skip
_PLACES = (
    "at the back", "at the front", "in the middle", "near the corner", "from last year",
    "in the shade", "with the dent", "on the ground", "under the stairs", "by the wall",
    "for the holidays", "to the north", "without a name", "behind the fan", "beneath the steps",
    "off the road",
)  # fmt: skip


class TextExtractConfig(Record):
    """The drawn parameters.

    `order` are the sources, the one that beats all others first; `looks` and `places` say whether
    the words before and behind a noun belong to the answer.
    """

    order: tuple[int, ...]
    looks: bool
    places: bool
    passages: tuple[int, int]
    taken_back: float
    denied: float
    between: int
    wrong: float


class _Passage(Record):
    """A source, what is claimed, what is denied before, and whether the claim is taken back."""

    source: int
    claim: tuple[str, str, str]
    denied: tuple[str, str, str] | None
    taken_back: bool


@FAMILIES.register("text_extract")
class TextExtract(FamilyOf[TextExtractConfig]):
    """See the module's text."""

    name: ClassVar[str] = "text_extract"
    modality: ClassVar[str] = "text"
    task_type: ClassVar[str] = "extraction"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("span",)
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["span"]
    mutations: ClassVar[tuple[str, ...]] = (
        "swapped_letters", "dropped_vowels", "misread_letters", "broken_words", "quoted_entry",
        "struck_words", "part_codes", "newest_first",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (100, 200)
    n_test: ClassVar[int] = 300
    n_pool: ClassVar[int] = 300
    config_type = TextExtractConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw what beats what, and how much of a phrase is the answer."""
        passages, taken_back, denied, between, wrong = _LEVELS[level - 1]
        extent = int(rng.integers(3))
        return cls(
            TextExtractConfig(
                order=tuple(rng.permutation(len(_SOURCES)).tolist()),
                looks=extent != 0,
                places=extent != 1,
                passages=passages,
                taken_back=taken_back,
                denied=denied,
                between=between,
                wrong=wrong,
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return the note."""
        text = "a text of some sentences that name several things"
        return (Variable(name="feat_0", kind="note", abstract=text, size=_NOUNS),)

    def outcome(self) -> Outcome:
        """Return words of the note."""
        return Outcome("span")

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw passages for each row; some training rows have the words of another passage."""
        dice = Dice(rng)
        texts, observed, clean = (np.empty(n, dtype=object) for _ in range(3))
        for i in range(n):
            passages = self._passages(dice)
            valid = [p for p in passages if not p.taken_back]
            best = min(valid, key=lambda p: self.config.order.index(p.source))
            clean[i] = self._span(best.claim)
            wrong = dice.chance(self.config.wrong)
            observed[i] = self._span(dice.of(passages).claim) if wrong else clean[i]
            texts[i] = self._text(dice, passages)
        return Sample({"feat_0": texts}, observed, clean)

    def _passages(self, dice: Dice) -> list[_Passage]:
        """Return passages with different sources and nouns, at least one of which holds."""
        config = self.config
        fewest, most = config.passages
        nouns, size = dice.shuffled(range(_NOUNS)), fewest + dice.below(most - fewest + 1)

        def phrase() -> tuple[str, str, str]:
            return dice.of(_LOOKS), noun(nouns.pop()), dice.of(_PLACES)

        passages = [
            _Passage(
                source=source,
                claim=phrase(),
                denied=phrase() if dice.chance(config.denied) else None,
                taken_back=dice.chance(config.taken_back),
            )
            for source in dice.shuffled(range(len(_SOURCES)))[:size]
        ]
        if all(p.taken_back for p in passages):
            passages[0] = passages[0].model_copy(update={"taken_back": False})
        return passages

    def _span(self, phrase: tuple[str, str, str]) -> str:
        look, thing, place = phrase
        words = [look] * self.config.looks + [thing] + [place] * self.config.places
        return " ".join(words)

    def _text(self, dice: Dice, passages: list[_Passage]) -> str:
        every = range(_NOUNS)
        told = []
        for passage in passages:
            told.append(dice.of(list(_SOURCES.values())[passage.source]))
            told += [aside(dice, every) for _ in range(dice.below(self.config.between + 1))]
            if passage.denied:
                told.append(dice.of(_DENIALS).format(" ".join(passage.denied)))
            told.append(dice.of(_CLAIMS).format(" ".join(passage.claim)))
            # told or not, a passage is as long
            told.append(dice.of(_TAKEN_BACK) if passage.taken_back else aside(dice, every))
        return sentences(told)

    def rule(self) -> str:
        """Return what beats what and where the answer ends."""
        names = list(_SOURCES)
        order = ", then ".join(names[i] for i in self.config.order)
        parts = ["the noun"]
        parts += ["the word before it"] if self.config.looks else []
        parts += ["the words of place behind it"] if self.config.places else []
        return (
            f"of the things that feat_0 names and does not deny or take back, the one counts that "
            f"is known from {order}, whichever of these comes first in this list; the answer is "
            f"{' and '.join(parts)}; in train {self.config.wrong:.0%} of the answers are those of "
            "any passage"
        )

    def solution(self, names: Names) -> Solution:
        """Return, for each word, its passage's source, what speaks against it, and its place."""
        return Solution(_FEATURES.format(**names), "trees")


_FEATURES = """
NOUNS = "{nouns}".split()
# words that give away how the writer knows, that deny, and that take back
SOURCES = "myself eyes", "around tell", "papers writing", "guess hunch"
DENIAL, TAKEN_BACK = {{"not", "cannot", "nothing", "rules"}}, {{"take", "wrong", "holds"}}
CLAIM = re.compile("^(it (is|has|cannot|comes)|all|nothing|that (leaves|rules))")


def told(text):
    \"""For each sentence: its words, its source, and whether it names something that holds.\"""
    found, source = [], -1
    for sentence in re.split(r"(?<=\\.) ", text.lower()):
        words = set(re.findall("[a-z]+", sentence))
        source = next((i for i, cues in enumerate(SOURCES) if words & {{*cues.split()}}), source)
        if words & TAKEN_BACK:
            found = [(one, of, holds and of != source) for one, of, holds in found]
        holds = bool(CLAIM.search(sentence)) and not words & DENIAL
        found.append((sentence.split(), source, holds))
    return found


def features(frame):
    \"""For each word: its place from a noun that holds, its source, and the sources beside it.\"""
    result = []
    for text in frame["{feat_0}"]:
        rows, sentences = [], told(text)
        holding = {{source for _, source, holds in sentences if holds}}
        for words, source, holds in sentences:
            at = [i for i, word in enumerate(words) if holds and word.strip(".") in NOUNS]
            known = [source == k for k in range(4)] + [k in holding - {{source}} for k in range(4)]
            rows += [[i - at[0] if at else -9, *known] for i in range(len(words))]
        result.append(np.array(rows, dtype=float))
    return result
"""
