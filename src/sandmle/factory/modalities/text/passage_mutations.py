"""Faults of passages of texts: of other rows, struck out, in codes, in reverse order."""

import re
from typing import Any, ClassVar

import numpy as np

from sandmle.factory.family import Split
from sandmle.factory.modalities.text.faults import TextMutation
from sandmle.factory.mutation import MUTATIONS, Draft, Setting
from sandmle.factory.story import TEXTS, StoryColumn


class PassageFault(TextMutation):
    """A fault of whole passages."""

    @property
    def touched(self) -> tuple[str, ...]:
        """Return nothing: it leaves words as they are."""
        return ()

    @classmethod
    def column_of(cls, rng: np.random.Generator, setting: Setting) -> StoryColumn | None:
        """Return any column of texts."""
        return setting._replace(free=setting.story.columns).choose(rng, TEXTS)


@MUTATIONS.register("quoted_entry")
class QuotedEntry(PassageFault):
    """Some texts have that of another row below them, behind a sign."""

    name: ClassVar[str] = "quoted_entry"
    sign: str

    @classmethod
    def chosen(cls, rng: np.random.Generator, column: StoryColumn) -> dict[str, Any]:
        """Choose the sign."""
        return {"sign": (" >> ", " || ", " == ")[int(rng.integers(3))]}

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Append the texts of other rows."""
        cells = draft.cells[self.column]
        rows = draft.some(rng, self.share)
        others = rng.integers(0, draft.n, len(rows))
        quoted = [cells[i] for i in others]
        for row, other in zip(rows, quoted, strict=True):
            cells[row] = cells[row] + self.sign + other

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"what comes after {self.sign.strip()!r} in {self.column} belongs to another row"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return (
            "for frame in (train, test):\n"
            f'    frame["{self.column}"] = frame["{self.column}"].str.split("{self.sign}",'
            " regex=False).str[0]"
        )


@MUTATIONS.register("struck_words")
class StruckWords(PassageFault):
    """Sentences have words in them that were struck out, between two waves."""

    name: ClassVar[str] = "struck_words"
    every: int

    @classmethod
    def chosen(cls, rng: np.random.Generator, column: StoryColumn) -> dict[str, Any]:
        """Choose after how many words, on average."""
        every = int(rng.integers(5, 9))
        return {"every": 3 * every if column.kind == "document" else every}

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Put words of another row's text between those of a share of the rows."""
        cells = draft.cells[self.column]
        known = [cell.split(" ") for cell in cells]
        for row in draft.some(rng, self.share):
            words, others = known[row], known[int(rng.integers(draft.n))]
            where = rng.integers(0, len(words), max(1, len(words) // self.every))
            which = rng.integers(0, len(others), len(where))
            spoilt = list(words)
            for i, k in zip(where, which, strict=True):
                struck = " ".join(others[k : k + 2]).replace("~", "")
                spoilt[i] = f"~{struck}~ {spoilt[i]}"
            cells[row] = " ".join(spoilt)

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"what stands between two waves in {self.column} was struck out"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return (
            "for frame in (train, test):\n"
            f'    frame["{self.column}"] = frame["{self.column}"].str.replace('
            '"~[^~]*~ ", "", regex=True)'
        )


@MUTATIONS.register("part_codes")
class PartCodes(PassageFault):
    """Some texts have codes for the nouns of the story, others have them behind the nouns."""

    name: ClassVar[str] = "part_codes"
    codes: dict[str, str]
    told: float = 0.25

    @classmethod
    def chosen(cls, rng: np.random.Generator, column: StoryColumn) -> dict[str, Any]:
        """Choose a code for each noun."""
        letter = "BDFGKMRVWX"[int(rng.integers(10))]
        numbers = rng.permutation(9000)[: len(column.values)] + 1000
        codes = [f"{letter}{number}" for number in numbers]
        return {"codes": dict(zip(column.values, codes, strict=True))}

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Write codes in a share of the rows, and noun and code in some of the others."""
        cells = draft.cells[self.column]
        pattern = re.compile(rf"\b({'|'.join(self.codes)})\b")
        order = rng.permutation(draft.n)
        coded = round(self.share * draft.n)
        for row in order[:coded]:
            cells[row] = pattern.sub(lambda found: self.codes[found[0]], cells[row])
        for row in order[coded : coded + max(1, round(self.told * draft.n))]:
            cells[row] = pattern.sub(
                lambda found: f"{found[0]} ({self.codes[found[0]]})", cells[row]
            )

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"a code in {self.column} stands for the word that it follows in other rows"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return rf"""
told = train["{self.column}"].str.findall(r"(\w+) \(([A-Z][0-9]{{4}})\)").explode().dropna()
word_of = {{code: word for word, code in told}}
for frame in (train, test):
    texts = frame["{self.column}"].str.replace(r" \([A-Z][0-9]{{4}}\)", "", regex=True)
    frame["{self.column}"] = texts.str.replace(
        r"\b[A-Z][0-9]{{4}}\b", lambda code: word_of.get(code[0], code[0]), regex=True
    )""".strip()


@MUTATIONS.register("newest_first")
class NewestFirst(PassageFault):
    """Some texts have their sentences in reverse order; a column says so."""

    name: ClassVar[str] = "newest_first"
    order: StoryColumn

    @classmethod
    def column_of(cls, rng: np.random.Generator, setting: Setting) -> StoryColumn | None:
        """Return a column of notes: documents have more order than that of their sentences."""
        return setting._replace(free=setting.story.columns).choose(rng, ("note",))

    @classmethod
    def chosen(cls, rng: np.random.Generator, column: StoryColumn) -> dict[str, Any]:
        """Describe the column."""
        order = StoryColumn(
            name="sentence_order",
            variable=None,
            kind="category",
            relevant=False,
            description=f"which sentence of {column.name} comes first",
            values=("oldest first", "newest first"),
        )
        return {"order": order}

    @property
    def added(self) -> tuple[StoryColumn, ...]:
        """Return the column that says how texts are ordered."""
        return (self.order,)

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Turn a share of the texts round."""
        cells = draft.cells[self.column]
        told = [self.order.values[0]] * draft.n
        for row in draft.some(rng, self.share):
            cells[row] = ". ".join(reversed(cells[row].removesuffix(".").split(". "))) + "."
            told[row] = self.order.values[1]
        draft.cells[self.order.name] = told

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"sentences of {self.column} are put in order by {self.order.name}"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return (
            "for frame in (train, test):\n"
            f'    newest = frame["{self.order.name}"] == "{self.order.values[1]}"\n'
            f'    texts = frame.loc[newest, "{self.column}"].str.removesuffix(".")\n'
            '    reverse = texts.str.split(". ", regex=False).str[::-1]\n'
            f'    frame.loc[newest, "{self.column}"] = reverse.str.join(". ") + "."'
        )
