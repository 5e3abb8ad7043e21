"""Shortcuts in a real table: what means nothing must explain nothing, and no column everything."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.audit import MAX_EXPLAINED, explained
from sandmle.factory.gate import at_most
from sandmle.factory.probes import name_features, order_features
from sandmle.factory.real.table import Real
from sandmle.tasks.cells import parse_number
from sandmle.types import Check

MAX_SINGLE = 0.98  # share of the target's variance that one column may explain

Floats = NDArray[np.float64]


def leak_checks(real: Real) -> list[Check]:
    """Make every check for shortcuts."""
    train, test = real.rows(False), real.rows(True)
    goal = _goal(real)
    checks = [_single(real, goal, train), *_twins(real, train, test)]
    for where, rows in (("train", train), ("test", test)):
        # in the order of the file, as it is written
        order = sorted(rows, key=lambda i: real.ids[i]) if real.split != "time" else list(rows)
        names = name_features([real.ids[i] for i in order])
        checks.append(at_most(f"leak_id:{where}", explained(names, goal[order]), MAX_EXPLAINED))
        if real.split != "time":  # the order of time may well tell something
            share = explained(order_features(len(order)), goal[order])
            checks.append(at_most(f"leak_order:{where}", share, MAX_EXPLAINED))
    return checks


def _goal(real: Real) -> Floats:
    """Return the target as numbers, or as indicators of its classes."""
    if not real.classes:
        return np.array([[parse_number(value)] for value in real.values])
    kinds = sorted(set(real.values))
    return np.array([[float(value == kind) for kind in kinds] for value in real.values])


def _single(real: Real, goal: Floats, train: Sequence[int]) -> Check:
    shares = {}
    for name in real.features:
        cells = real.column(name, train)
        numbers = np.array([parse_number(cell) for cell in cells])
        numbers[np.isnan(numbers)] = -1e9
        code = {text: n for n, text in enumerate(sorted(set(cells)))}
        features = np.column_stack([numbers, [float(code[cell]) for cell in cells]])
        # a small tree cannot follow a line to the end, ranks can
        shares[name] = max(explained(features, goal[list(train)]), _ranked(numbers, goal, train))
    which = max(shares, key=lambda name: shares[name])
    detail = f"column {which!r} gives the target away; leave it out with --drop {which}"
    return at_most("single_column", shares[which], MAX_SINGLE, detail)


def _ranked(numbers: Floats, goal: Floats, train: Sequence[int]) -> float:
    """Return the squared rank correlation of a column with a target of numbers; 0 for classes."""
    from scipy.stats import rankdata

    value = goal[list(train)]
    if value.shape[1] > 1 or np.ptp(numbers) == 0 or np.ptp(value) == 0:
        return 0.0
    return float(np.corrcoef(rankdata(numbers), rankdata(value[:, 0]))[0, 1] ** 2)


def _twins(real: Real, train: Sequence[int], test: Sequence[int]) -> list[Check]:
    """Count units that are on both sides."""
    both = {real.units[i] for i in train} & {real.units[i] for i in test}
    return [at_most(f"{real.split}_on_both_sides", len(both), 0)]
