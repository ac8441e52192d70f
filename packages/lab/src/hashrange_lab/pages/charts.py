"""Bars, in the units of a drawing that the templates stretch: over time, and as shares of the longest.

Refuses to know what the bars stand for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

HEIGHT: Final = 100
STEP: Final = 10
"""The width of a bar, with the gap after it."""
_LIMIT_SHOWN: Final = 5
"""A limit this many times above the highest bar is not drawn: the bars would be invisible."""


_ROOM: Final = 1.1
"""How much higher the drawing is than what is in it: room for the marks."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: where it begins from the left and from the top, its height, and the value that it stands for;
    `marked`: something was refused in its time. `label` is its time."""

    x: int
    y: float
    height: float
    value: float
    marked: int
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars from the first time to the last. `limit` is the height of the limit's line from the top, None if
    it is not drawn; `highest` is the highest value, `mean` that of all times."""

    bars: list[Bar]
    width: int
    top: float
    highest: float
    mean: float
    limit: float | None
    marked: int


def chart(values: Sequence[float], marks: Sequence[int], labels: Sequence[str], limit: float | None) -> Chart:
    """The chart of a value for each time, and of how often something was refused in it."""
    highest = max(values, default=0.0)
    is_drawn = limit is not None and 0 < limit <= highest * _LIMIT_SHOWN
    top = _ROOM * max(highest, (limit or 0.0) if is_drawn else 0.0) or 1.0
    bars = []
    for place, (value, marked, label) in enumerate(zip(values, marks, labels, strict=True)):
        if value or marked:
            height = round(HEIGHT * value / top, 2)
            bars.append(Bar(place * STEP, round(HEIGHT - height, 2), height, value, marked, label))
    return Chart(
        bars,
        max(len(values), 1) * STEP,
        top,
        highest,
        sum(values) / len(values) if values else 0.0,
        round(HEIGHT - HEIGHT * (limit or 0.0) / top, 2) if is_drawn else None,
        sum(marks),
    )


def share(amount: Decimal, highest: Decimal) -> float:
    """The length of a bar, in percent of the longest one's."""
    return round(float(100 * amount / highest), 2) if highest else 0.0
