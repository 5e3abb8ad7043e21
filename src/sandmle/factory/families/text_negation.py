"""Negation: what a note truly finds of a few things decides, single words do not.

A note judges several things, often by the opposite word and a negation. Some things count by
themselves, two count by whether they are judged alike. Counting words shows next to nothing of
that; whoever reads the notes clause by clause has a few numbers and an easy rule.
"""

from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.family import (
    FAMILIES,
    METRICS_OF,
    FamilyOf,
    Names,
    Outcome,
    Sample,
    Solution,
    Split,
    Variable,
    binary,
    spell,
)
from sandmle.factory.modalities.text.grammar import (
    MOODS,
    OPINIONS,
    Dice,
    Tone,
    aside,
    linked,
    sentences,
)
from sandmle.types import Record

# things that are judged, how many of them count by themselves, shares of clauses turned round once
# and twice, clauses about the past, clauses without a judgement, notes whose mood tells the class,
# steepness of the noise; by level
_LEVELS = (
    (5, 3, 0.15, 0.0, 0, 1, 0.75, 7.0), (5, 3, 0.2, 0.0, 0, 2, 0.72, 6.5),
    (6, 3, 0.25, 0.1, 1, 2, 0.7, 6.0), (6, 2, 0.3, 0.1, 1, 3, 0.66, 5.5),
    (7, 2, 0.35, 0.15, 2, 4, 0.62, 5.0),
)  # fmt: skip
_OTHERS = 3  # nouns that come up but are never judged
_WEAK = 0.15  # things that do not matter have at most this weight


class TextNegationConfig(Record):
    """The drawn parameters.

    `weights` has one for each thing that is judged; the product of the two in `pair` has `product`.
    Each is judged with chance `judged`; in a share `mood` the closing words agree with the class.
    """

    weights: tuple[float, ...]
    pair: tuple[int, int]
    product: float
    judged: float
    tone: Tone
    past: int
    asides: int
    mood: float
    steepness: float


@FAMILIES.register("text_negation")
class TextNegation(FamilyOf[TextNegationConfig]):
    """See the module's text."""

    name: ClassVar[str] = "text_negation"
    modality: ClassVar[str] = "text"
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["binary"]
    mutations: ClassVar[tuple[str, ...]] = (
        "swapped_letters", "dropped_vowels", "misread_letters", "broken_words", "quoted_entry",
        "struck_words", "part_codes", "biased_recorder", "double_entry",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (110, 200)
    n_pool: ClassVar[int] = 1000
    config_type = TextNegationConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw what counts, what meets, and how indirectly it is said."""
        things, alone, turned, twice, past, asides, mood, steepness = _LEVELS[level - 1]
        order = rng.permutation(things)
        weights = rng.uniform(-_WEAK, _WEAK, things)
        weights[order[:alone]] = rng.uniform(0.5, 1.0, alone) * rng.choice([-1.0, 1.0], alone)
        return cls(
            TextNegationConfig(
                weights=tuple(weights.round(3).tolist()),
                pair=(int(order[-1]), int(order[-2])),
                product=round(float(rng.uniform(0.8, 1.2) * rng.choice([-1.0, 1.0])), 3),
                judged=0.9,
                tone=Tone.draw(rng, 4, turned, twice),
                past=past,
                asides=asides,
                mood=mood,
                steepness=steepness,
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return the note."""
        size = len(self.config.weights) + _OTHERS
        text = "a text of some sentences that find things good or bad"
        return (Variable(name="feat_0", kind="note", abstract=text, size=size),)

    def outcome(self) -> Outcome:
        """Return two classes."""
        return Outcome("binary", 2)

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw opinions, write them down; the observed class has logistic noise."""
        config = self.config
        shape = (n, len(config.weights))
        opinions = rng.choice([-1, 1], shape) * (rng.random(shape) < config.judged)
        latent = np.zeros(n)  # summed term by term: the same bits on every machine
        for i, weight in enumerate(config.weights):
            latent += weight * opinions[:, i]
        first, second = config.pair
        latent += config.product * opinions[:, first] * opinions[:, second]
        observed, clean = binary(rng, latent / self._scale, config.steepness)
        dice = Dice(rng)
        moods = np.where(rng.random(n) < config.mood, clean, 1 - clean)
        written = [self._text(dice, row, mood) for row, mood in zip(opinions, moods, strict=True)]
        texts = np.array(written, dtype=object)
        return Sample({"feat_0": texts}, observed, clean)

    @property
    def _scale(self) -> float:
        squares = [weight**2 for weight in (*self.config.weights, self.config.product)]
        return float(np.sqrt(sum(squares)))

    def _text(self, dice: Dice, opinions: NDArray[np.int64], mood: int) -> str:
        config = self.config
        things = len(opinions)
        every = range(things + _OTHERS)
        tone = config.tone
        clauses = [tone.judgement(dice, i, bool(o > 0)) for i, o in enumerate(opinions) if o]
        clauses += [tone.long_ago(dice, dice.below(things)) for _ in range(config.past)]
        clauses += [aside(dice, every) for _ in range(config.asides + dice.below(3))]
        text = linked(dice, dice.shuffled(clauses))
        return f"{text} {sentences([MOODS[mood]])}"

    def rule(self) -> str:
        """Return the formula."""
        config = self.config
        terms = [spell(weight, f"o({i})") for i, weight in enumerate(config.weights)]
        first, second = config.pair
        terms.append(spell(config.product, f"o({first}) * o({second})"))
        return (
            f"class 1 iff {' '.join(terms)} > 0, o(i) being 1 if feat_0 finds noun <i> good, -1 if "
            "bad, 0 if it does not say; a negation turns a judgement round, two do not, and what "
            "was a year ago does not count; the closing mood agrees with the class in "
            f"{config.mood:.0%} of the rows; in train the class is drawn with probability "
            f"logistic({config.steepness:g} * that sum / {self._scale:.4g})"
        )

    def solution(self, names: Names) -> Solution:
        """Return opinions read clause by clause, with their products, and a sparse linear model."""
        return Solution((OPINIONS + _FEATURES).format(**names), "sparse")


_FEATURES = """

def features(frame):
    each = np.array([opinions(text) for text in frame["{feat_0}"]])
    first, second = np.triu_indices(len(NOUNS), 1)
    return np.hstack([each, each[:, first] * each[:, second]])
"""
