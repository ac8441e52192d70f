"""The object standbys/ID: who a standby is and how far, for `hashrange replica status` on any machine.

It decides nothing: the lease does.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from hashrange.clock import show_moment
from hashrange_replication.lease import Record
from hashrange_replication.place import Place

STANDBYS: Final = "standbys/"


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A standby. `moment` is that of its last batch, `at` when it said so; both in epoch milliseconds."""

    id: str
    where: str
    batch: int
    moment: int
    at: int
    lag_seconds: float


def tell(place: Place, told: Told) -> None:
    """Replace the object of a standby. Raises BucketError, OSError."""
    place.put(f"{STANDBYS}{told.id}", msgspec.json.format(msgspec.json.encode(told), indent=2) + b"\n")


def forget(place: Place, standby: str) -> None:
    """Delete the object of a standby. Raises BucketError, OSError."""
    place.delete(f"{STANDBYS}{standby}")


def all_told(place: Place) -> list[Told]:
    """What all standbys have said. Raises BucketError, OSError."""
    found = []
    for one in list(place.list(STANDBYS)):
        content = place.find(one.key)
        try:
            found += [msgspec.json.decode(content[0], type=Told)] if content is not None else []
        except msgspec.DecodeError:
            continue  # (it decides nothing)
    return found


def shown(told: Told, record: Record, now: float) -> dict[str, Any]:
    """A standby, for people. `now` is in epoch seconds."""
    return {
        "id": told.id,
        "where": told.where,
        "may_be_promoted": record.yields_to(told.id),
        "batch": told.batch,
        "last_commit": show_moment(told.moment / 1_000),
        "lag_seconds": told.lag_seconds,
        "seen_seconds_ago": round(max(0.0, now - told.at / 1_000), 1),
    }
