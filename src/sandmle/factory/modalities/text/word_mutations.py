"""Faults of the words of texts: letters swapped, dropped or misread, words broken in two."""

import re
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from sandmle.factory.family import Split
from sandmle.factory.modalities.text.faults import TextMutation
from sandmle.factory.mutation import MUTATIONS, Draft, Setting
from sandmle.factory.story import TEXTS, StoryColumn


class WordFault(TextMutation):
    """A fault of words."""

    @property
    def touched(self) -> tuple[str, ...]:
        """Return the column."""
        return (self.column,)

    @classmethod
    def column_of(cls, rng: np.random.Generator, setting: Setting) -> StoryColumn | None:
        """Return a column of texts whose words are still sound."""
        return setting.choose(rng, TEXTS)

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Spoil the words of a share of the rows."""
        cells = draft.cells[self.column]
        for row in draft.some(rng, self.share):
            cells[row] = self.spoil(cells[row], rng)

    @abstractmethod
    def spoil(self, text: str, rng: np.random.Generator) -> str:
        """Return a text with the fault."""
        ...


def rewriting(column: str, pattern: str, function: str, source: str) -> str:
    """Return a remedy that replaces whatever fits a pattern by what a function makes of it."""
    return (
        f"{source.strip()}\n\n\n"
        "for frame in (train, test):\n"
        f'    texts = frame["{column}"].str\n'
        f'    frame["{column}"] = texts.replace(r"{pattern}", {function}, regex=True)'
    )


@MUTATIONS.register("swapped_letters")
class SwappedLetters(WordFault):
    """Some words have two neighbouring letters swapped, neither the first nor the last."""

    name: ClassVar[str] = "swapped_letters"
    shares: ClassVar[tuple[float, float]] = (1.0, 1.0)
    amount: float

    @classmethod
    def chosen(cls, rng: np.random.Generator, column: StoryColumn) -> dict[str, Any]:
        """Choose how many of the words."""
        return {"amount": round(float(rng.uniform(0.25, 0.35)), 3)}

    def spoil(self, text: str, rng: np.random.Generator) -> str:
        """Swap letters in some words of four letters or more."""
        words = re.split(r"([A-Za-z]{4,})", text)  # every second part is such a word
        hit = rng.random(len(words)) < self.amount
        where = rng.random(len(words))
        for i in range(1, len(words), 2):
            if hit[i]:
                word = words[i]
                k = 1 + int(where[i] * (len(word) - 3))
                words[i] = word[:k] + word[k + 1] + word[k] + word[k + 2 :]
        return "".join(words)

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"words in {self.column} with the same letters are meant to be the commonest of them"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return rewriting(
            self.column,
            "[A-Za-z]{4,}",
            "in_order",
            f"""
def letters(word):
    return word[0] + "".join(sorted(word[1:-1])) + word[-1]


words = train["{self.column}"].str.lower().str.findall("[a-z]{{4,}}").explode().value_counts()
usual = {{letters(word): word for word in reversed(words.index)}}


def in_order(found):
    word = found[0].lower()
    return found[0][0] + usual.get(letters(word), word)[1:]
""",
        )


@MUTATIONS.register("dropped_vowels")
class DroppedVowels(WordFault):
    """Some texts are in shorthand: longer words have no vowels but at their beginning."""

    name: ClassVar[str] = "dropped_vowels"
    shares: ClassVar[tuple[float, float]] = (0.4, 0.55)

    def spoil(self, text: str, rng: np.random.Generator) -> str:
        """Drop the vowels of all words of five letters or more."""
        return re.sub(
            "[A-Za-z]{5,}", lambda found: found[0][0] + re.sub("[aeiou]", "", found[0][1:]), text
        )

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"words in {self.column} without vowels are short for words that have the others"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return rewriting(
            self.column,
            r"\b[A-Za-z][b-df-hj-np-tv-z]*\b",
            "in_full",
            f"""
def short(word):
    return word[0] + re.sub("[aeiou]", "", word[1:])


words = train["{self.column}"].str.lower().str.findall("[a-z]{{5,}}").explode().value_counts()
full = {{short(word): word for word in reversed(words.index) if short(word) != word}}


def in_full(found):
    return found[0][0] + full.get(found[0].lower(), found[0])[1:]
""",
        )


@MUTATIONS.register("misread_letters")
class MisreadLetters(WordFault):
    """Some texts were read by a machine that takes letters for digits."""

    name: ClassVar[str] = "misread_letters"
    digits: str

    @classmethod
    def chosen(cls, rng: np.random.Generator, column: StoryColumn) -> dict[str, Any]:
        """Choose the digits that two common vowels and two consonants are taken for."""
        return {"digits": "".join(str(d) for d in rng.permutation(10)[:4])}

    def spoil(self, text: str, rng: np.random.Generator) -> str:
        """Put digits in the place of letters."""
        return text.translate(str.maketrans(_MISREAD, self.digits))

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        pairs = zip(self.digits, _MISREAD, strict=True)
        return f"in words of {self.column}, " + ", ".join(f"{d} is {c}" for d, c in pairs)

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return f"""\
letters = str.maketrans("{self.digits}", "{_MISREAD}")


def read_again(text):
    parts = re.split(r"\\b([A-Z][0-9]{{4}})\\b", text)  # every second part is a code, and stays one
    parts[::2] = [part.translate(letters) for part in parts[::2]]
    return "".join(parts)


for frame in (train, test):
    frame["{self.column}"] = frame["{self.column}"].map(read_again)"""


_MISREAD = "oelt"


@MUTATIONS.register("broken_words")
class BrokenWords(WordFault):
    """In some texts longer words are broken, as at the end of a narrow line."""

    name: ClassVar[str] = "broken_words"

    def spoil(self, text: str, rng: np.random.Generator) -> str:
        """Break two thirds of the words of five letters or more."""
        words = re.split(r"([A-Za-z]{5,})", text)
        dice = rng.random(len(words))
        for i in range(1, len(words), 2):
            if dice[i] < 2 / 3:
                word = words[i]
                k = 2 + int(dice[i] * 1.5 * (len(word) - 3))
                words[i] = f"{word[:k]}- {word[k:]}"
        return "".join(words)

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"a hyphen before a blank in {self.column} is where a word was broken"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return (
            "for frame in (train, test):\n"
            f'    frame["{self.column}"] = frame["{self.column}"].str.replace("- ", "")'
        )
