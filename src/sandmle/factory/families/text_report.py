"""Reports of many pages: a few sentences count, by the section they stand in or by coming last.

Sections come in any order. How often a thing fails counts in one section only, and of all that is
said about whether a thing is open or closed only the last word does. Words of a whole report show
little of that; whoever splits it into sections and reads it in order has a linear rule.
"""

from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.family import (
    FAMILIES,
    FamilyOf,
    Names,
    Outcome,
    OutcomeKind,
    Sample,
    Scale,
    Solution,
    Split,
    Variable,
    quantity,
    spell,
)
from sandmle.factory.modalities.text.grammar import Dice, aside, errand, noun, sentences
from sandmle.types import Record

# sections, things whose failures count, things whose state counts, others, how alike sections are
# in what fails, most sentences in a section about no failure of a thing, noise; by level
_LEVELS = (
    (4, 1, 1, 1, 1.0, 0, 0.15), (4, 1, 1, 2, 0.9, 1, 0.2), (5, 2, 1, 1, 0.8, 2, 0.2),
    (6, 2, 2, 1, 0.7, 3, 0.25), (7, 2, 2, 2, 0.6, 4, 0.3),
)  # fmt: skip
_MOST = 4  # failures of a thing in a section
_OTHERS = 3  # nouns that come up but have neither failures nor states
_WORDS = 2000  # of a report, at least
_STOCK = 300  # different sentences without meaning in one draw of rows
_PARAGRAPH = 8  # sentences

_TITLES = (
    "Opening remarks", "First round", "Second round", "Third round", "Small works",
    "Calls received", "Late hours", "Money spent",
)  # fmt: skip
_FAILED = ("the {0} failed again", "the {0} gave trouble", "we lost an hour over the {0}")
_FINE = ("the {0} never failed", "the {0} gave no trouble", "we lost no time over the {0}")
_STATES = ("from here on the {0} is closed", "from here on the {0} is open")
_MORE = (
    "as agreed", "in passing", "for the third time", "without much ado", "and made no secret of it",
    "to be on the safe side", "for reasons best known to them", "as they do every month",
)  # fmt: skip


class TextReportConfig(Record):
    """The drawn parameters.

    `titles` are the sections; the more `alike`, the more it is the same things that fail in all of
    them. `spared` is the most sentences in a section about no failure of a thing. The first things
    are those in `failures`, which has a weight for each and the section that counts; then come
    those in `states`, which has a weight for each.
    """

    titles: tuple[str, ...]
    failures: tuple[tuple[float, int], ...]
    states: tuple[float, ...]
    others: int
    alike: float
    spared: int
    noise: float
    scale: Scale = Scale(center=0, spread=1)

    @property
    def things(self) -> int:
        """Return how many things a report is about."""
        return len(self.failures) + len(self.states) + self.others


@FAMILIES.register("text_report")
class TextReport(FamilyOf[TextReportConfig]):
    """See the module's text."""

    name: ClassVar[str] = "text_report"
    modality: ClassVar[str] = "text"
    task_type: ClassVar[str] = "regression"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("number",)
    metrics: ClassVar[tuple[str, ...]] = ("rmse", "mae", "spearman")
    mutations: ClassVar[tuple[str, ...]] = (
        "dropped_vowels", "misread_letters", "broken_words", "struck_words", "part_codes",
        "biased_recorder",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (60, 120)
    n_test: ClassVar[int] = 250
    n_pool: ClassVar[int] = 150
    config_type = TextReportConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw the sections, which of them count for what, and how much."""
        sections, failing, stated, others, alike, spared, noise = _LEVELS[level - 1]

        def some(low: float, high: float) -> float:
            return round(float(rng.uniform(low, high) * rng.choice([-1.0, 1.0])), 3)

        config = TextReportConfig(
            titles=tuple(_TITLES[i] for i in rng.permutation(len(_TITLES))[:sections]),
            failures=tuple((some(0.8, 1.2), int(rng.integers(sections))) for _ in range(failing)),
            states=tuple(some(0.9, 1.4) for _ in range(stated)),
            others=others,
            alike=alike,
            spared=spared,
            noise=noise,
        )
        scale = Scale.of(cls(config)._rows(rng, 4000)[2])
        return cls(config.model_copy(update={"scale": scale}))

    def variables(self) -> tuple[Variable, ...]:
        """Return the report."""
        text = f"a text of {_WORDS} words or more in sections with headings"
        return (
            Variable(
                name="feat_0", kind="document", abstract=text, size=self.config.things + _OTHERS
            ),
        )

    def outcome(self) -> Outcome:
        """Return a quantity."""
        return Outcome("number")

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw what happened, and write it down amid much else; the target has normal noise."""
        counts, states, latent = self._rows(rng, n)
        observed, clean = quantity(rng, self.config.scale(latent), self.config.noise)
        dice = Dice(rng)
        stock = [_stock(dice, self.config.things + _OTHERS) for _ in range(_STOCK)]
        texts = np.empty(n, dtype=object)
        for i in range(n):
            texts[i] = self._text(dice, stock, counts[i], states[i])
        return Sample({"feat_0": texts}, observed, clean)

    def _rows(
        self, rng: np.random.Generator, n: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return failures by thing and section, final states by thing, and the rule's sum."""
        config = self.config
        often = 0.5 + config.alike * (rng.random((n, config.things, 1, 1)) - 0.5)
        dice = rng.random((n, config.things, len(config.titles), _MOST))
        counts = (dice < often).sum(axis=3)
        states = rng.integers(0, 2, (n, config.things))
        latent = np.zeros(n)  # summed term by term: the same bits on every machine
        for thing, (weight, section) in enumerate(config.failures):
            latent += weight * counts[:, thing, section]
        for thing, weight in enumerate(config.states, len(config.failures)):
            latent += weight * (2 * states[:, thing] - 1)
        return counts, states, latent

    def _text(
        self, dice: Dice, stock: list[str], counts: NDArray[np.int64], states: NDArray[np.int64]
    ) -> str:
        """Return a report: its sections in random order, each filled up from the stock."""
        titles = self.config.titles
        told = self._states(dice, states)
        pieces = []
        for place, section in enumerate(dice.shuffled(range(len(titles)))):
            lines = self._failures(dice, counts[:, section])
            lines = [sentences([line]) for line in dice.shuffled(lines)]
            words = sum(line.count(" ") + 1 for line in lines)
            while words < _WORDS / len(titles):
                line = dice.of(stock)
                lines.append(line)
                words += line.count(" ") + 1
            lines = dice.shuffled(lines)
            # what is said of states keeps its order
            at = sorted((dice.below(len(lines)) for _ in told[place]), reverse=True)
            for i, line in zip(at, reversed(told[place]), strict=True):
                lines.insert(i, sentences([line]))
            starts = range(0, len(lines), _PARAGRAPH)
            pieces += [
                f"# {titles[section]}",
                *(" ".join(lines[k : k + _PARAGRAPH]) for k in starts),
            ]
        return "\n\n".join(pieces) + "\n"

    def _failures(self, dice: Dice, counts: NDArray[np.int64]) -> list[str]:
        """Return a sentence for each failure in a section, and some about none."""
        lines = []
        for thing, count in enumerate(counts):
            spared = dice.below(self.config.spared + 1)
            lines += [dice.of(_FAILED).format(noun(thing)) for _ in range(count)]
            lines += [dice.of(_FINE).format(noun(thing)) for _ in range(spared)]
        return lines

    def _states(self, dice: Dice, states: NDArray[np.int64]) -> list[list[str]]:
        """Return what is said of states in each section; the last word on a thing is true."""
        told: list[list[str]] = [[] for _ in self.config.titles]
        for thing, state in enumerate(states):
            places = sorted(dice.below(len(told)) for _ in range(3 + dice.below(3)))
            for i, place in enumerate(places, 1):
                said = int(state) if i == len(places) else dice.below(2)
                told[place].append(_STATES[said].format(noun(thing)))
        return told

    def rule(self) -> str:
        """Return the formula."""
        config = self.config
        terms = [
            spell(weight, f"n({i}, {config.titles[section]!r})")
            for i, (weight, section) in enumerate(config.failures)
        ]
        terms += [spell(w, f"s({i})") for i, w in enumerate(config.states, len(config.failures))]
        return (
            f"({' '.join(terms)} - {config.scale.center:g}) / {config.scale.spread:g} in spreads "
            "of the target from its center; n(i, t) is how many sentences of feat_0 below the "
            "heading t say that noun <i> failed, gave trouble or cost an hour, s(i) 1 if the last "
            "word on noun <i> is that it is open and -1 if it is closed; in train plus normal "
            f"noise of {config.noise:g} spreads"
        )

    def solution(self, names: Names) -> Solution:
        """Return failures by thing and section and the last word on each, and a sparse model."""
        return Solution(_FEATURES.format(**names), "sparse")


def _stock(dice: Dice, things: int) -> str:
    """Return a sentence without meaning."""
    if dice.chance(0.25):
        return sentences([aside(dice, range(things))])
    return sentences([f"{errand(dice, range(things))}, {dice.of(_MORE)}"])


_FEATURES = r'''
NOUNS = "{nouns}".split()
FAILED = re.compile(r"the (\w+) (?:failed again|gave trouble)|lost an hour over the (\w+)")
STATE = re.compile(r"from here on the (\w+) is (open|closed)")
titles = train["{feat_0}"].str.lower().str.findall("(?m)^# (.*)").explode().value_counts()
TITLES = sorted(titles.index[titles > len(train) / 4])


def row(text):
    text = text.lower()
    sections = re.split("(?m)^# (.*)", text)
    count = {{(title, name): 0 for title in TITLES for name in NOUNS}}
    for title, section in zip(sections[1::2], sections[2::2]):
        for found in FAILED.finditer(section):
            if (title, found[1] or found[2]) in count:
                count[title, found[1] or found[2]] += 1
    last = dict(STATE.findall(text))  # of several words on a thing the last one stays
    state = {{"open": 1, "closed": -1}}
    return [*count.values(), *(state.get(last.get(name), 0) for name in NOUNS)]


def features(frame):
    """Failures by section and thing, and the last word on each thing."""
    return np.array([row(text) for text in frame["{feat_0}"]], dtype=float)
'''
