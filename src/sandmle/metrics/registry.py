"""What a metric is, and the table of all of them."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sandmle.errors import GradingError, UsageError
from sandmle.metrics.kinds import Kind
from sandmle.registry import Registry, nearest
from sandmle.types import Column, Direction, SubmissionSchema

MetricFunction = Callable[..., float]


@dataclass(frozen=True)
class Metric:
    """A metric function with the facts that validation, descriptions and evaluators follow from.

    `function` takes the arrays of `kind` and the parameters by name, and returns a Python float
    within [`low`, `high`]. For a degenerate prediction (constant, say) it returns the finite value
    that `degenerate` states; for hidden answers on which it is undefined it raises `GradingError`.
    """

    name: str
    function: MetricFunction
    kind: Kind
    direction: Direction
    low: float
    high: float
    title: str
    formula: str
    degenerate: str
    params: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""

    @property
    def best(self) -> float:
        """Return the value of a perfect submission."""
        return self.high if self.direction == "max" else self.low

    def __call__(self, *arrays: Any, **params: Any) -> float:
        """Compute the metric, parameters completed by defaults; `GradingError` if not finite."""
        return finite(self.function(*arrays, **{**self.params, **params}))

    def check_params(self, params: Mapping[str, Any]) -> None:
        """Refuse parameters that the metric does not have."""
        for name in params:
            if name not in self.params:
                known = nearest(name, list(self.params)) if self.params else "it has none"
                raise UsageError(f"{self.name} has no parameter {name!r}; {known}")

    def schema(
        self,
        id_column: str | None,
        target: str,
        classes: tuple[str, ...],
        n_rows: int,
        params: Mapping[str, Any] | None = None,
        shape: tuple[int, int] | None = None,
        max_items: int | None = None,
    ) -> SubmissionSchema:
        """Build the schema of a submission for this metric.

        Masks need the `shape` of the picture, boxes `max_items`, the most that a cell may hold.
        """
        columns = self.kind.columns(target, classes)
        if "k" in self.params and columns[0].kind == "labels":
            max_items = {**self.params, **(params or {})}["k"]
        form = {"mask": "shape", "boxes": "max_items", "labels": "max_items"}.get(columns[0].kind)
        if form is not None:
            value = {"shape": shape, "max_items": max_items}[form]
            if value is None:
                raise UsageError(f"{self.name}: a {columns[0].kind} column needs {form}")
            columns = tuple(Column(**{**dict(c), form: value}) for c in columns)
        return SubmissionSchema(
            id_column=id_column, columns=columns, n_rows=n_rows, row_sum=self.kind.row_sum
        )


def finite(value: float) -> float:
    """Return a score unless it is NaN or infinite, which is the grader's failure, never a score."""
    if not math.isfinite(value):
        raise GradingError(f"the metric gives {value} on these answers")
    return float(value)


METRICS: Registry[Metric] = Registry(
    "metric",
    builtins=(
        "sandmle.metrics.classification",
        "sandmle.metrics.probabilities",
        "sandmle.metrics.tags",
        "sandmle.metrics.regression",
        "sandmle.metrics.vectors",
        "sandmle.metrics.ranking",
        "sandmle.metrics.sets",
        "sandmle.metrics.segmentation",
        "sandmle.metrics.detection",
        "sandmle.metrics.text",
    ),
    group="sandmle.metrics",
)


def metric(
    name: str,
    kind: Kind,
    direction: Direction,
    low: float,
    high: float,
    formula: str,
    degenerate: str,
    title: str | None = None,
    source: str = "",
    **params: Any,
) -> Callable[[MetricFunction], MetricFunction]:
    """Register the decorated function as a metric; keyword arguments left over are its parameters.

    The function itself is returned unchanged, so that it stays importable and its source can be
    copied into an evaluator.
    """

    def register(function: MetricFunction) -> MetricFunction:
        METRICS.add(
            name,
            Metric(
                name=name,
                function=function,
                kind=kind,
                direction=direction,
                low=low,
                high=high,
                title=title or name.replace("_", " "),
                formula=formula,
                degenerate=degenerate,
                params=params,
                source=source,
            ),
        )
        return function

    return register
