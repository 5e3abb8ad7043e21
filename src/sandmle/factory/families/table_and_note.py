"""A table with a note: what the note truly finds of a few things turns effects in the table round.

The target is a sum of numbers, each times an opinion of the note: 1 where it finds a thing good, -1
where bad. Neither numbers nor words alone show much; whoever reads the opinions, negations and all,
and crosses them with the numbers sees a linear rule.
"""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.family import (
    FAMILIES,
    METRICS_OF,
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
from sandmle.factory.modalities.text.grammar import OPINIONS, Dice, Tone, aside, linked
from sandmle.types import Record

# numbers, things that are judged, numbers that meet an opinion, weight of each number by itself,
# shares of clauses turned round once and twice, clauses without a judgement, noise; by level
_LEVELS = (
    (3, 3, 2, 1.3, 0.2, 0.0, 1, 0.15), (4, 3, 2, 1.1, 0.25, 0.0, 2, 0.2),
    (4, 4, 2, 0.9, 0.3, 0.1, 2, 0.2), (5, 4, 3, 0.8, 0.35, 0.1, 3, 0.25),
    (5, 5, 3, 0.6, 0.4, 0.15, 4, 0.3),
)  # fmt: skip
_OTHERS = 2  # nouns that come up but are never judged


class Crossing(Record):
    """One term of the rule: `weight` times a number times the opinion of a thing."""

    number: int
    thing: int
    weight: float


class TableAndNoteConfig(Record):
    """The drawn parameters; `alone` has a weight for each number, `opinion` one for each thing."""

    alone: tuple[float, ...]
    opinion: tuple[float, ...]
    crossings: tuple[Crossing, ...]
    tone: Tone
    asides: int
    noise: float
    scale: Scale = Scale(center=0, spread=1)


@FAMILIES.register("table_and_note")
class TableAndNote(FamilyOf[TableAndNoteConfig]):
    """See the module's text."""

    name: ClassVar[str] = "table_and_note"
    modality: ClassVar[str] = "multimodal"
    task_type: ClassVar[str] = "regression"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("number",)
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["number"]
    mutations: ClassVar[tuple[str, ...]] = (
        "swapped_letters", "dropped_vowels", "misread_letters", "broken_words", "quoted_entry",
        "struck_words", "part_codes", "unit_mixup", "spikes", "decimal_comma", "unit_text",
        "recalibrated", "biased_recorder", "double_entry",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (90, 200)
    n_pool: ClassVar[int] = 1000
    config_type = TableAndNoteConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw which opinion meets which number, and what counts by itself."""
        numbers, things, n_crossed, alone, turned, twice, asides, noise = _LEVELS[level - 1]

        def some(low: float, high: float) -> float:
            return round(float(rng.uniform(low, high) * rng.choice([-1.0, 1.0])), 3)

        which = rng.permutation(numbers)[:n_crossed].tolist()
        crossings = [
            Crossing(number=number, thing=int(rng.integers(things)), weight=some(0.9, 1.3))
            for number in which
        ]
        config = TableAndNoteConfig(
            alone=tuple(some(0.5 * alone, alone) for _ in range(numbers)),
            opinion=tuple(some(0.1, 0.4) for _ in range(things)),
            crossings=tuple(crossings),
            tone=Tone.draw(rng, 4, turned, twice),
            asides=asides,
            noise=noise,
        )
        scale = Scale.of(cls(config)._rows(rng, 4000)[2])
        return cls(config.model_copy(update={"scale": scale}))

    def variables(self) -> tuple[Variable, ...]:
        """Return the note and the numbers."""
        size = len(self.config.opinion) + _OTHERS
        text = "a text of some sentences that find things good or bad"
        return (
            Variable(name="feat_0", kind="note", abstract=text, size=size),
            *(
                Variable(name=f"feat_{i}", kind="number", abstract="continuous, bell-shaped")
                for i in range(1, len(self.config.alone) + 1)
            ),
        )

    def outcome(self) -> Outcome:
        """Return a quantity."""
        return Outcome("number")

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw numbers and opinions, and write the opinions down; the target has normal noise."""
        z, opinions, latent = self._rows(rng, n)
        observed, clean = quantity(rng, self.config.scale(latent), self.config.noise)
        dice = Dice(rng)
        texts = np.array([self._text(dice, row) for row in opinions], dtype=object)
        features: dict[str, NDArray[Any]] = {"feat_0": texts}
        features.update({f"feat_{i + 1}": z[:, i] for i in range(z.shape[1])})
        return Sample(features, observed, clean)

    def _rows(
        self, rng: np.random.Generator, n: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
        """Return the numbers, the opinions and the rule's sum."""
        config = self.config
        z = rng.normal(size=(n, len(config.alone)))
        opinions = rng.choice([-1, 1], (n, len(config.opinion)))
        latent = np.zeros(n)  # summed term by term: the same bits on every machine
        for i, weight in enumerate(config.alone):
            latent += weight * z[:, i]
        for i, weight in enumerate(config.opinion):
            latent += weight * opinions[:, i]
        for c in config.crossings:
            latent += c.weight * z[:, c.number] * opinions[:, c.thing]
        return z, opinions, latent

    def _text(self, dice: Dice, opinions: NDArray[np.int64]) -> str:
        every = range(len(opinions) + _OTHERS)
        clauses = [self.config.tone.judgement(dice, i, bool(o > 0)) for i, o in enumerate(opinions)]
        clauses += [aside(dice, every) for _ in range(self.config.asides + dice.below(3))]
        return linked(dice, dice.shuffled(clauses))

    def rule(self) -> str:
        """Return the formula."""
        config = self.config
        terms = [spell(weight, f"z(feat_{i})") for i, weight in enumerate(config.alone, 1)]
        terms += [spell(weight, f"o({i})") for i, weight in enumerate(config.opinion)]
        terms += [
            spell(c.weight, f"z(feat_{c.number + 1}) * o({c.thing})") for c in config.crossings
        ]
        return (
            f"({' '.join(terms)} - {config.scale.center:g}) / {config.scale.spread:g} in spreads "
            "of the target from its center; z() is a feature standardised, o(i) 1 if feat_0 finds "
            "noun <i> good and -1 if bad; a negation turns a judgement round, two do not; in train "
            f"plus normal noise of {config.noise:g} spreads"
        )

    def solution(self, names: Names) -> Solution:
        """Return numbers, opinions and their products, and a sparse linear model."""
        numbers = [names[v.name] for v in self.variables() if v.kind == "number"]
        return Solution((OPINIONS + _FEATURES).format(numbers=numbers, **names), "sparse")


_FEATURES = """

def features(frame):
    said = np.array([opinions(text) for text in frame["{feat_0}"]])
    z = ((frame[{numbers}] - train[{numbers}].mean()) / train[{numbers}].std()).to_numpy()
    crossed = (z[:, :, None] * said[:, None, :]).reshape(len(z), -1)
    return np.hstack([z, said, crossed])
"""
