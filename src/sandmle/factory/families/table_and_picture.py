"""Table and picture: a column decides which way the streaks in the picture count.

Streaks along one direction speak for class 1 where the switch is positive and against it where it
is negative, so that neither the picture nor the switch says anything alone. Whoever measures the
direction of the streaks and crosses it with the columns sees a plain linear rule.
"""

from typing import Any, ClassVar, Literal, Self

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
from sandmle.factory.modalities.image.pixels import fibres, swell, to_bytes
from sandmle.types import Record

_SIZE = 64
_SPREAD = 0.25  # radians by which streaks of a picture differ in direction
# numbers that count, numbers that do not, weight of the picture, contrast, grain, steepness of the
# logistic noise; by level
_LEVELS = (
    (2, 0, 1.2, 15.0, 10.0, 9.0),
    (2, 1, 1.2, 14.0, 11.0, 8.0),
    (3, 1, 1.3, 13.0, 12.0, 7.5),
    (3, 2, 1.3, 12.0, 13.0, 7.0),
    (4, 2, 1.4, 11.0, 14.0, 6.5),
)


class TableAndPictureConfig(Record):
    """The drawn parameters.

    `switch` is +1 or -1 for each value of a category, or empty where the first number is the
    switch. `direction` is the angle of the streaks, in radians down from the rows, that the picture
    counts most for, with `weight`; `numbers` are the weights of the numbers.
    """

    switch: tuple[int, ...]
    direction: float
    weight: float
    numbers: tuple[float, ...]
    contrast: float
    grain: float
    steepness: float


@FAMILIES.register("table_and_picture")
class TableAndPicture(FamilyOf[TableAndPictureConfig]):
    """See the module's text."""

    name: ClassVar[str] = "table_and_picture"
    modality: ClassVar[str] = "multimodal"
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["binary"]
    mutations: ClassVar[tuple[str, ...]] = (
        "turned_camera", "mirrored", "skewed_rows", "dead_lines", "split_fields", "unit_mixup",
        "spikes", "biased_recorder",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (100, 200)
    n_test: ClassVar[int] = 300
    n_pool: ClassVar[int] = 300
    config_type = TableAndPictureConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw what the switch is, the direction that counts, and the weights of the numbers."""
        n_relevant, n_idle, weight, contrast, grain, steepness = _LEVELS[level - 1]
        by_category = bool(rng.random() < 0.6)
        size = 2 * int(rng.integers(1, 4))
        switch = rng.permutation([1, -1] * (size // 2)).tolist() if by_category else ()
        sizes = rng.uniform(0.5, 0.8, n_relevant) * rng.choice([-1.0, 1.0], n_relevant)
        numbers = [*(sizes / np.sqrt(n_relevant / 2)), *[0.0] * n_idle]
        return cls(
            TableAndPictureConfig(
                switch=tuple(switch),
                direction=round(float(rng.uniform(0, np.pi)), 2),
                weight=round(weight * float(rng.uniform(0.95, 1.1)), 2),
                # the first one may be the switch, and then it counts
                numbers=tuple(float(round(w, 3)) for w in numbers),
                contrast=contrast,
                grain=grain,
                steepness=steepness,
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return the picture, the category if it is the switch, and the numbers."""
        config, text = self.config, "grey picture of a surface with streaks in one direction"
        found = [Variable(name="feat_0", kind="image", abstract=text)]
        if config.switch:
            kind: Literal["category"] = "category"
            text, size = "one of a few kinds, all as frequent", len(config.switch)
            found.append(Variable(name="feat_1", kind=kind, abstract=text, size=size))
        text = "continuous, symmetric, bell-shaped"
        for weight in config.numbers:
            name, relevant = f"feat_{len(found)}", weight != 0
            found.append(Variable(name=name, kind="number", abstract=text, relevant=relevant))
        return tuple(found)

    def outcome(self) -> Outcome:
        """Return two balanced classes."""
        return Outcome("binary", 2)

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw the numbers and the streaks of each row; the observed class has logistic noise."""
        config = self.config
        angle = rng.uniform(0, np.pi, n)
        z = rng.normal(size=(n, len(config.numbers)))
        kind = rng.integers(0, max(len(config.switch), 1), n)
        switch = np.array(config.switch)[kind] if config.switch else z[:, 0]
        latent = config.weight * switch * np.sqrt(2) * np.cos(2 * (angle - config.direction))
        for i, weight in enumerate(config.numbers):
            latent += weight * z[:, i]
        squares = config.weight**2 + sum(weight**2 for weight in config.numbers)
        observed, clean = binary(rng, latent / np.sqrt(squares), config.steepness)
        pictures = np.empty(n, dtype=object)
        for i in range(n):
            pictures[i] = self._picture(rng, angle[i])
        columns: list[NDArray[Any]] = [pictures, *([kind] if config.switch else []), *z.T]
        features = {v.name: c for v, c in zip(self.variables(), columns, strict=True)}
        return Sample(features, observed, clean)

    def _picture(self, rng: np.random.Generator, angle: float) -> NDArray[np.uint8]:
        config = self.config
        streaks = fibres(rng, _SIZE, angle, rng.uniform(4, 7), _SPREAD)
        light = rng.uniform(95, 160) + 14 * swell(rng, _SIZE, 40)
        grain = config.grain * rng.normal(size=(_SIZE, _SIZE))
        return to_bytes(light + config.contrast * rng.uniform(0.8, 1.2) * streaks + grain)

    def rule(self) -> str:
        """Return the formula."""
        config = self.config
        numbers = [v.name for v in self.variables() if v.kind == "number"]
        switch = f"z({numbers[0]})"
        if config.switch:
            switch = f"{list(config.switch)}[feat_1]"
        turn = f"cos(2 (a - {config.direction:g}))"
        terms = [spell(1.4142 * config.weight, f"{switch} * {turn}")]
        weights = zip(config.numbers, numbers, strict=True)
        terms += [spell(weight, f"z({name})") for weight, name in weights if weight]
        return (
            f"class 1 iff {' '.join(terms)} > 0, a being the direction of the streaks in feat_0 in "
            "radians down from the rows, z() a number standardised; in train the class is drawn "
            f"with probability logistic({config.steepness:g} * that sum in units of its spread)"
        )

    def solution(self, names: Names) -> Solution:
        """Return the direction of the streaks crossed with every column, and a linear model."""
        numbers = [names[v.name] for v in self.variables() if v.kind == "number"]
        kinds = [names[v.name] for v in self.variables() if v.kind == "category"]
        return Solution(_FEATURES.format(numbers=numbers, kinds=kinds, **names), "linear")


_FEATURES = '''
def directions(pictures):
    """Cosine and sine of twice the main direction in the spectra of pictures."""
    x = np.stack(pictures).astype(float)
    size = x.shape[1]
    window = np.hanning(size)[:, None] * np.hanning(size)
    power = np.abs(np.fft.rfft2((x - x.mean(axis=(1, 2), keepdims=True)) * window)) ** 2
    down, right = np.fft.fftfreq(size)[:, None], np.fft.rfftfreq(size)
    radius, angle = np.hypot(down, right), np.arctan2(down, right)
    power = power * ((radius > 0.1) & (radius < 0.32))
    turn = [(power * wave(2 * angle)).sum(axis=(1, 2)) for wave in (np.cos, np.sin)]
    return np.stack(turn, axis=1) / np.hypot(*turn)[:, None]


def features(frame):
    """Numbers, kinds, directions, and directions crossed with numbers and kinds."""
    z = ((frame[{numbers}] - train[{numbers}].mean()) / train[{numbers}].std()).to_numpy()
    for name in {kinds}:
        z = np.column_stack([z, *(frame[name] == kind for kind in sorted(train[name].unique()))])
    turn = directions(frame["{feat_0}"])
    return np.hstack([z, turn, z * turn[:, :1], z * turn[:, 1:]])
'''
