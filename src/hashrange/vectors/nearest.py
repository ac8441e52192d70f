"""The nearest rows of a matrix: exactly, or the nearest of those that a graph proposes.

numpy multiplies the matrix with the vector in 32-bit floats, which is fast and not quite right. A row can be
among the nearest only if its score, less the largest error that the multiplication may have, is not worse
than the k-th best score plus that error. The scores of these rows, which are hardly more than k, are computed
again in 64-bit floats, always in the same order. So a result is exact and does not depend on the machine, on
the number of threads, or on the rows around it. Equal scores are ordered by the places of their entries.

A score is 1 minus the cosine of the angle (0 to 2), the distance, or the product, as the distance function
says. A vector of zeros has the score 1 for COSINE ([report] measured on the service: extenddb pull request
307).
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

import numpy as np

from hashrange import pace
from hashrange.expressions import SearchCondition
from hashrange.tables.items.vectors import FLOAT_MAX
from hashrange.vectors.graph import Floats, Rows
from hashrange.vectors.matrix import Matrix, Scores, square_of

Distance = Literal["COSINE", "DOT_PRODUCT", "EUCLIDEAN"]

_ROUNDING: Final = 2.0**-24
_TINY: Final = 2.0**-126
_LAST_DIGITS: Final = 1e-12
"""More than the rounding of a few operations on 64-bit floats."""

_ROWS_AT_ONCE: Final = 2_048


class Match(NamedTuple):
    """An entry near a vector. `order` is smaller for nearer entries. `score` is what the answer shows, within
    the range of 32-bit floats ([report] dynoxide's captures of August 2026)."""

    order: float
    sort: bytes
    score: float


def nearest(
    matrix: Matrix,
    distance: Distance,
    query: Floats,
    count: int,
    condition: SearchCondition,
    exact_max: int,
) -> list[Match]:
    """The `count` nearest of the matrix's rows whose filter attributes meet the condition. If the matrix has
    a graph, more than `exact_max` rows are not all compared."""
    rows = matrix.near(query, count, condition, exact_max)
    if rows is None:
        known, squares = matrix.floats[: matrix.count], matrix.squares[: matrix.count]
    else:
        known, squares = matrix.floats[rows], matrix.squares[rows]
    candidates = _candidates(known, squares, distance, query, count)
    scores = np.concatenate([np.empty(0), *_exact(known, candidates, distance, query)])
    if len(scores) > count:
        keys = -scores if distance == "DOT_PRODUCT" else scores
        worst = np.partition(keys, count - 1)[count - 1]
        kept = np.flatnonzero(keys <= worst)
        candidates, scores = candidates[kept], scores[kept]
    places = candidates if rows is None else rows[candidates]
    sign = -1.0 if distance == "DOT_PRODUCT" else 1.0
    matches = [
        Match(sign * score, matrix.sorts[place], min(max(score, -FLOAT_MAX), FLOAT_MAX))
        for place, score in zip(places.tolist(), scores.tolist(), strict=True)
    ]
    return sorted(matches)[:count]


def _candidates(
    known: Floats, squares: Scores, distance: Distance, query: Floats, count: int
) -> Rows:
    """The rows that may be among the nearest."""
    if len(known) <= count:
        return np.arange(len(known))
    dimensions, square = known.shape[1], square_of(query)
    with np.errstate(over="ignore", invalid="ignore"):
        products = (known @ query).astype(np.float64)
    if not np.isfinite(products).all():  # beyond the range of 32-bit floats
        return np.arange(len(known))
    lengths = np.sqrt(squares * square)
    # The error of a sum of n products is below n roundings of the product of the lengths. A product that is
    # too small for a 32-bit float vanishes.
    error = 2.0 * _ROUNDING * dimensions * lengths + dimensions * _TINY
    if distance == "DOT_PRODUCT":
        keys = -products
    elif distance == "COSINE":
        whole = lengths > 0
        divisors = np.where(whole, lengths, 1.0)
        keys = np.where(whole, 1.0 - products / divisors, 1.0)
        error = error / divisors + _LAST_DIGITS
    else:
        keys = squares + square - 2.0 * products
        error = 2.0 * error + _LAST_DIGITS * (squares + square)
    worst = np.partition(keys + error, count - 1)[count - 1]
    return np.flatnonzero(keys - error <= worst)


def _exact(known: Floats, rows: Rows, distance: Distance, query: Floats) -> list[Scores]:
    """The scores of these rows in 64-bit floats."""
    wide, square = query.astype(np.float64), square_of(query)
    scores: list[Scores] = []
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        pace.point()
        part: Any = known[rows[start : start + _ROWS_AT_ONCE]].astype(np.float64)
        if distance == "EUCLIDEAN":
            part -= wide
            scores.append(np.sqrt((part * part).sum(axis=1)))
            continue
        products = (part * wide).sum(axis=1)
        if distance == "COSINE":
            lengths = np.sqrt((part * part).sum(axis=1) * square)
            cosines = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
            scores.append(1.0 - np.clip(cosines, -1.0, 1.0))
        else:
            scores.append(products)
    return scores
