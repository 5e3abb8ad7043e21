"""Geo join: what counts is how far away the hub is that serves a row, and what it can do.

The distance is a great circle to a hub from a side table, whose capacity multiplies some numbers
of the row; a hub that is not the nearest counts extra. Whoever joins the table, computes the
distances and crosses the capacity with the numbers sees a plain linear rule.
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
    OutcomeKind,
    Sample,
    Scale,
    SideTable,
    Solution,
    Split,
    Variable,
    quantity,
    spell,
)
from sandmle.types import Record

_REACH = 200.0  # km that count as one unit of distance
_AMOUNT = 0.6  # spread of the logarithm of an amount
# hubs, numbers that the capacity multiplies, others that count, others that do not, weight of what
# the capacity does not multiply, noise; by level
_LEVELS = (
    (4, 1, 2, 0, 1.0, 0.15),
    (4, 1, 2, 0, 0.75, 0.2),
    (5, 2, 1, 1, 0.6, 0.2),
    (6, 2, 1, 1, 0.45, 0.25),
    (6, 3, 1, 1, 0.3, 0.3),
)


class GeoColumn(Record):
    """A number or the logarithm of an amount: its weight, and that of it times the capacity."""

    kind: Literal["number", "amount"]
    weight: float
    crossed: float


class GeoJoinConfig(Record):
    """The drawn parameters.

    Rows lie in a region from south west to north east; a share `near` of them is served by the
    nearest of the hubs (latitude, longitude, capacity), the others by any.
    """

    region: tuple[float, float, float, float]
    hubs: tuple[tuple[float, float, float], ...]
    near: float
    distance: float
    excess: float
    columns: tuple[GeoColumn, ...]
    noise: float
    scale: Scale = Scale(center=0, spread=1)


@FAMILIES.register("geo_join")
class GeoJoin(FamilyOf[GeoJoinConfig]):
    """See the module's text."""

    name: ClassVar[str] = "geo_join"
    task_type: ClassVar[str] = "regression"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("number",)
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["number"]
    mutations: ClassVar[tuple[str, ...]] = (
        "sentinel", "unit_mixup", "spikes", "decimal_comma", "unit_text", "swapped_fields",
        "recalibrated", "double_entry", "biased_recorder",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (80, 200)
    config_type = GeoJoinConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw a region with its hubs, what they can do, and what counts how much."""
        n_hubs, n_crossed, n_plain, n_idle, plain, noise = _LEVELS[level - 1]
        south, west, size = rng.uniform((-50, -150, 5), (45, 130, 8))
        # as many km from west to east as from south to north
        north, east = south + size, west + size / np.cos(np.radians(south + size / 2))
        capacities = rng.permutation(np.linspace(-1.4, 1.4, n_hubs))
        hubs = (rng.uniform(south, north, n_hubs), rng.uniform(west, east, n_hubs), capacities)

        def some(low: float, high: float) -> float:
            return round(float(rng.uniform(low, high) * rng.choice([-1.0, 1.0])), 3)

        columns = [
            GeoColumn(kind="number", weight=some(0.3 * plain, 0.6 * plain), crossed=some(0.8, 1.2))
            for _ in range(n_crossed)
        ]
        for weight in [plain] * n_plain + [0.0] * n_idle:
            kind: Literal["number", "amount"] = "amount" if rng.random() < 0.5 else "number"
            columns.append(GeoColumn(kind=kind, weight=some(weight, 1.5 * weight), crossed=0))
        config = GeoJoinConfig(
            region=tuple(np.round((south, west, north, east), 2).tolist()),
            hubs=tuple(tuple(hub) for hub in np.round(hubs, 3).T.tolist()),
            near=round(float(rng.uniform(0.1, 0.4)), 2),
            distance=some(0.8, 1.2),
            excess=some(0.6, 1.0),
            columns=tuple(columns[i] for i in rng.permutation(len(columns))),
            noise=noise,
        )
        scale = Scale.of(cls(config)._rows(rng, 4000)[1])
        return cls(config.model_copy(update={"scale": scale}))

    def variables(self) -> tuple[Variable, ...]:
        """Return the place of a row, its hub, and the numbers and amounts."""
        hubs, text = len(self.config.hubs), "continuous, bell-shaped, in logarithms if an amount"
        return (
            Variable(name="feat_0", kind="latitude", abstract="latitude"),
            Variable(name="feat_1", kind="longitude", abstract="longitude"),
            Variable(name="feat_2", kind="category", abstract="key of a table", size=hubs),
            *(
                Variable(name=f"feat_{i}", kind=c.kind, abstract=text, relevant=c.weight != 0)
                for i, c in enumerate(self.config.columns, 3)
            ),
        )

    def outcome(self) -> Outcome:
        """Return a quantity."""
        return Outcome("number")

    def side_table(self) -> SideTable:
        """Return where the hubs are, and their capacity."""
        latitude, longitude, capacity = np.array(self.config.hubs).T
        columns = {"latitude": latitude, "longitude": longitude, "capacity": capacity}
        return SideTable("feat_2", columns)

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw places in the box and a hub for each row; the target has normal noise."""
        features, latent = self._rows(rng, n)
        observed, clean = quantity(rng, self.config.scale(latent), self.config.noise)
        return Sample(features, observed, clean)

    def _rows(
        self, rng: np.random.Generator, n: int
    ) -> tuple[dict[str, NDArray[Any]], NDArray[np.float64]]:
        config = self.config
        south, west, north, east = config.region
        lat, lon = rng.uniform(south, north, n), rng.uniform(west, east, n)
        away = np.array([_distance(lat, lon, *hub[:2]) for hub in config.hubs]) / _REACH
        near = rng.random(n) < config.near
        hub = np.where(near, away.argmin(axis=0), rng.integers(0, len(away), n))
        mine = away[hub, np.arange(n)]
        latent = config.distance * mine + config.excess * (mine - away.min(axis=0))
        features: dict[str, NDArray[Any]] = {"feat_0": lat, "feat_1": lon, "feat_2": hub}
        capacity = np.array([capacity for *_, capacity in config.hubs])[hub]
        for i, column in enumerate(config.columns, 3):
            z = rng.normal(size=n)
            latent += (column.weight + column.crossed * capacity) * z
            features[f"feat_{i}"] = _AMOUNT * z if column.kind == "amount" else z
        return features, latent

    def rule(self) -> str:
        """Return the formula."""
        config = self.config
        terms = [spell(config.distance, "d"), spell(config.excess, "(d - m)")]
        for i, column in enumerate(config.columns, 3):
            z = f"z(feat_{i})" if column.kind == "number" else f"z(log feat_{i})"
            terms += [spell(column.weight, z)] if column.weight else []
            terms += [spell(column.crossed, f"c * {z}")] if column.crossed else []
        return (
            f"({' '.join(terms)} - {config.scale.center:g}) / {config.scale.spread:g} in spreads "
            "of the target from its center; d is the great-circle distance from (feat_0, feat_1) "
            f"to the hub feat_2 of the side table, m that to the nearest hub, in units of "
            f"{_REACH:g} km; c is the hub's capacity in spreads from its center, z() a feature "
            f"standardised; in train plus normal noise of {config.noise:g} spreads"
        )

    def solution(self, names: Names) -> Solution:
        """Return distances and the numbers crossed with the capacity, and a linear model."""
        numbers, amounts = (
            [names[v.name] for v in self.variables() if v.kind == kind]
            for kind in ("number", "amount")
        )
        return Solution(_FEATURES.format(numbers=numbers, amounts=amounts, **names), "linear")


def _distance(
    lat: NDArray[np.float64], lon: NDArray[np.float64], north: float, east: float
) -> NDArray[np.float64]:
    """Return the distance in km of points from one place, by haversine."""
    a, b, turn = np.radians(lat), np.radians(north), np.radians(lon - east)
    h = np.sin((a - b) / 2) ** 2 + np.cos(a) * np.cos(b) * np.sin(turn / 2) ** 2
    return np.asarray(2 * 6371 * np.arcsin(np.sqrt(h)))


_FEATURES = """\
sites = pd.read_csv("input/{side_table}").set_index("{feat_2}")

def distance(frame, site):
    a, b = np.radians(frame["{feat_0}"]), np.radians(site["{side_latitude}"])
    turn = np.radians(frame["{feat_1}"] - site["{side_longitude}"])
    h = np.sin((a - b) / 2) ** 2 + np.cos(a) * np.cos(b) * np.sin(turn / 2) ** 2
    return 2 * 6371 * np.arcsin(np.sqrt(h))

def wide(frame):
    return pd.concat([frame[{numbers}], np.log(frame[{amounts}].clip(lower=0.01))], axis=1)

def features(frame):
    mine = sites.loc[frame["{feat_2}"]].set_index(frame.index)
    every = pd.concat([distance(frame, site) for _, site in sites.iterrows()], axis=1)
    capacity = mine["{side_capacity}"] - sites["{side_capacity}"].mean()
    z = (wide(frame) - wide(train).mean()) / wide(train).std()
    crossed = z.mul(capacity, axis=0)
    return np.column_stack([distance(frame, mine), every.min(axis=1), capacity, z, crossed])
"""
