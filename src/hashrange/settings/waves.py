"""Waves: the service's words for wrong requests change region by region, one group of operations at a time.

Since June 2026 a newer layer of the service has been taking over operations from an older one
(`shapes.layers` says how each checks a request and words its errors). A row of `WAVES` is one step of that:
which operations moved to the newer layer, and in which regions this was seen. A new capture of the service
needs a new row, or another region in a row, and a layer in `shapes.layers.NEWER` for each new operation.

A setting names a wave or a region. In a region the newer layer reads the operations of all rows that list
the region; for a wave, those of all rows that list every region of the wave.

Source: recordings of all regions, published by paritysuite ("captures" and "registry" in
dynamodb-conformance). They have 33 regions.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple


class Wave(NamedTuple):
    """A step of the service's words.

    date: when a capture first showed it.
    regions: where the newest capture, of October 8, 2026, shows it.
    newer: the difference: the operations that the newer layer reads there, besides those of other rows.
    """

    date: str
    regions: frozenset[str]
    newer: frozenset[str]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


OLDEST: Final = "older"

WAVES: Final[dict[str, Wave]] = {
    OLDEST: Wave(
        "before 2026-06-09",
        _words("eu-south-2 me-central-1"),
        _words(""),
    ),
    "items": Wave(
        "2026-06-09",
        _words(
            "af-south-1 ap-east-1 ap-east-2 ap-northeast-1 ap-northeast-2 ap-northeast-3 ap-south-1 "
            "ap-south-2 ap-southeast-1 ap-southeast-2 ap-southeast-3 ap-southeast-4 ap-southeast-5 "
            "ap-southeast-6 ap-southeast-7 ca-central-1 ca-west-1 eu-central-1 eu-central-2 eu-north-1 "
            "eu-south-1 eu-west-1 eu-west-2 eu-west-3 il-central-1 mx-central-1 sa-east-1 us-east-1 "
            "us-east-2 us-west-1 us-west-2"
        ),
        _words("PutItem UpdateItem DeleteItem GetItem BatchGetItem Query"),
    ),
    "batch-writes": Wave(
        "2026-08-22",
        _words("ap-east-2 ap-southeast-1 eu-central-1 eu-north-1 eu-west-2"),
        _words("BatchWriteItem"),
    ),
    "transactions": Wave(
        "2026-10-08",
        _words("ap-northeast-2 eu-north-1 eu-west-2"),
        _words("TransactWriteItems"),
    ),
    # eu-west-2 gave the older answer thirty times, and the newer one twice on the same day.
    "transaction-reads": Wave(
        "2026-10-08",
        _words("ap-northeast-2 eu-north-1"),
        _words("TransactGetItems"),
    ),
}

DEFAULT: Final = "us-east-1"
"""The words of this region's newest capture: a row that lists it changes the default."""


@cache
def newer(name: str) -> frozenset[str]:
    """The operations that the newer layer reads with the words of a wave or a region.

    Raises ValueError, with the waves, if there is no such wave and no row lists such a region.
    """
    regions = WAVES[name].regions if name in WAVES else frozenset((name,))
    rows = [wave for wave in WAVES.values() if regions <= wave.regions]
    if not rows:
        raise ValueError(f"{name!r} is neither a wave of the service's words nor a region. {_listed()}")
    return frozenset[str]().union(*(wave.newer for wave in rows))


def _listed() -> str:
    """The waves, for people."""
    shown = [f"{name} ({wave.date}: {_shown(wave.regions)})" for name, wave in WAVES.items()]
    return f"The waves are {', '.join(shown)}."


def _shown(regions: frozenset[str]) -> str:
    few = sorted(regions)
    return ", ".join(few) if len(few) < _SHOWN_MAX else f"{len(few)} regions, {DEFAULT} among them"


_SHOWN_MAX: Final = 10
