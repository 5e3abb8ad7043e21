"""Structured code: a part number hides three parts of the rule.

The letter at one place is of a good or a bad kind, the digit at one place is high or low, and the
suffix decides how the numbers count. As words the codes are all different and say nothing; whoever
takes them apart by place, and crosses the suffix with the numbers, sees the whole rule.
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
    Scale,
    Solution,
    Split,
    Variable,
    binary,
    spell,
)
from sandmle.types import Record

_ALPHABET = list("ABCDEFGHJKLMNPRSTUVWXYZ")  # without letters that look like digits
# L is a letter, D a digit, S the suffix
_FORMS = ("LL-DDDD-S", "LLDDDD-S", "L-DDDD-LS", "DDDD-LL/S", "LDDD.L.S", "LDD-LDD.S")
_USED = 3  # numbers in the rule
# letters, suffixes, idle numbers, part of a number's effect that no suffix changes, steepness of
# the logistic noise; by level
_LEVELS = (
    (4, 2, 0, 0.75, 9.0),
    (5, 2, 0, 0.6, 8.0),
    (6, 2, 1, 0.4, 8.0),
    (6, 3, 1, 0.25, 8.0),
    (7, 3, 1, 0.05, 8.0),
)


class StructuredCodeConfig(Record):
    """The drawn parameters; places in the code count from 0, `numbers` has a weight by suffix."""

    form: str
    letters: str
    good: str
    letter_place: int
    letter_weight: float
    digit_place: int
    digit_weight: float
    suffixes: str
    numbers: tuple[tuple[float, ...], ...]
    steepness: float
    scale: Scale = Scale(center=0, spread=1)


@FAMILIES.register("structured_code")
class StructuredCode(FamilyOf[StructuredCodeConfig]):
    """See the module's text."""

    name: ClassVar[str] = "structured_code"
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["binary"]
    mutations: ClassVar[tuple[str, ...]] = (
        "sentinel", "unit_mixup", "spikes", "decimal_comma", "unit_text", "swapped_fields",
        "recalibrated", "double_entry", "biased_recorder",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (120, 200)
    config_type = StructuredCodeConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw how a code is made up, which places count, and what each suffix does."""
        n_letters, n_suffixes, n_idle, common, steepness = _LEVELS[level - 1]
        form = str(rng.choice(_FORMS))
        letters = rng.permutation(_ALPHABET)[:n_letters].tolist()
        n_good = int(rng.integers(n_letters // 2, (n_letters + 1) // 2 + 1))
        places = [[i for i, sort in enumerate(form) if sort == wanted] for wanted in "LD"]
        sizes = rng.uniform(0.8, 1.05, _USED + 2).round(3).tolist()
        signs = rng.choice([-1.0, 1.0], _USED + 1).tolist()
        numbers = []
        for size, sign in zip(sizes[2:], signs[1:], strict=True):
            # a wave over the suffixes: its mean is 0
            turning = np.cos(2 * np.pi * (rng.random() + np.arange(n_suffixes) / n_suffixes))
            turning /= np.sqrt((turning**2).mean())
            weights = size * (np.sqrt(1 - common) * turning + np.sqrt(common) * sign)
            numbers.append(tuple(weights.round(3).tolist()))
        config = StructuredCodeConfig(
            form=form,
            letters="".join(letters),
            good="".join(sorted(letters[:n_good])),
            letter_place=int(rng.choice(places[0])),
            letter_weight=sizes[0],
            digit_place=int(rng.choice(places[1])),
            digit_weight=sizes[1] * signs[0],
            suffixes="".join(rng.permutation(_ALPHABET)[:n_suffixes]),
            numbers=(*numbers, *[(0.0,) * n_suffixes] * n_idle),
            steepness=steepness,
        )
        scale = Scale.of(cls(config)._rows(rng, 4000)[2])
        return cls(config.model_copy(update={"scale": scale}))

    def variables(self) -> tuple[Variable, ...]:
        """Return the code and the numbers."""
        text = "continuous, symmetric, bell-shaped"
        numbers = [
            Variable(name=f"feat_{i}", kind="number", abstract=text, relevant=any(weights))
            for i, weights in enumerate(self.config.numbers, 1)
        ]
        return (Variable(name="feat_0", kind="code", abstract="code of fixed form"), *numbers)

    def outcome(self) -> Outcome:
        """Return two balanced classes."""
        return Outcome("binary", 2)

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw every place of the code evenly; the observed class has logistic noise."""
        places, x, latent = self._rows(rng, n)
        observed, clean = binary(rng, self.config.scale(latent), self.config.steepness)
        codes = np.array(["".join(code) for code in places.T])
        numbers = {f"feat_{i}": column for i, column in enumerate(x, 1)}
        return Sample({"feat_0": codes, **numbers}, observed, clean)

    def _rows(
        self, rng: np.random.Generator, n: int
    ) -> tuple[NDArray[np.str_], NDArray[np.float64], NDArray[np.float64]]:
        """Return the characters of the codes (places, n), the numbers (k, n), the latent score."""
        config = self.config
        sets = {"L": config.letters, "D": "0123456789", "S": config.suffixes}
        places = np.array([rng.choice(list(sets.get(sort, sort)), n) for sort in config.form])
        x = rng.normal(size=(len(config.numbers), n))
        is_good = np.isin(places[config.letter_place], list(config.good))
        latent = config.letter_weight * np.where(is_good, 1.0, -1.0)
        latent += config.digit_weight * np.where(places[config.digit_place] >= "5", 1.0, -1.0)
        for column, weights in zip(x, config.numbers, strict=True):
            for suffix, weight in zip(config.suffixes, weights, strict=True):
                latent += np.where(places[-1] == suffix, weight * column, 0.0)
        return places, x, latent

    def rule(self) -> str:
        """Return the formula."""
        config = self.config
        center, spread = config.scale.center, config.scale.spread
        slopes = "; ".join(
            f"{suffix}: "
            + " ".join(spell(w[k], f"z(feat_{i})") for i, w in enumerate(config.numbers, 1) if w[k])
            for k, suffix in enumerate(config.suffixes)
        )
        return (
            f"feat_0 has the form {config.form}; class 1 iff {config.letter_weight:g} * a "
            f"{spell(config.digit_weight, 'b')} + c > {center:g}; a is 1 if character "
            f"{config.letter_place + 1} is one of {config.good}, else -1; b is 1 if character "
            f"{config.digit_place + 1} is at least 5, else -1; c by the last character, with z() a "
            f"feature standardised, is {slopes}; in train the class is drawn with probability "
            f"logistic({config.steepness:g} * (that sum - {center:g}) / {spread:g})"
        )

    def solution(self, names: Names) -> Solution:
        """Return the code by places, and the numbers by suffix, and a sparse linear model."""
        columns = [names[v.name] for v in self.variables() if v.kind == "number"]
        return Solution(_FEATURES.format(columns=columns, code=names["feat_0"]), "sparse")


_FEATURES = """\
columns = {columns}
codes = train["{code}"]

def features(frame):
    code = frame["{code}"]
    z = ((frame[columns] - train[columns].mean()) / train[columns].std()).to_numpy()
    found = [z]
    for place in range(len(codes.iloc[0])):
        seen = sorted(codes.str[place].unique())
        if all(character.isdigit() for character in seen):
            found.append((code.str[place].astype(int) >= 5).to_numpy()[:, None])
        elif len(seen) > 1:
            found += [(code.str[place] == one).to_numpy()[:, None] for one in seen]
    # the last place is the suffix: each has its own slopes
    found += [z * (code.str[-1] == one).to_numpy()[:, None] for one in seen]
    return np.hstack(found).astype(float)
"""
