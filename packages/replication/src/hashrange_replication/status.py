"""What a copy says of itself: who ships to it, how far it is, what it costs."""

from __future__ import annotations

from typing import Any, Final

from hashrange.clock import show_moment
from hashrange_replication import costs
from hashrange_replication.chain import Chain, list_copy
from hashrange_replication.failures import CopyError
from hashrange_replication.format.sealing import Key
from hashrange_replication.format.segments import SegmentHeader
from hashrange_replication.lease import read_record
from hashrange_replication.place import Place, patient
from hashrange_replication.standby.telling import all_told
from hashrange_replication.standby.telling import shown as shown_standby

_MIB: Final = 1 << 20
_RECENT: Final = 100
"""So many segments back are looked at to learn how often segments are shipped."""


def status(place: Place, key: Key | None, now: float) -> dict[str, Any]:
    """The status of a copy at the time `now` (epoch seconds), by names. Without the key of a sealed copy what
    manifests hold is left out. Raises CopyError, BucketError, OSError."""
    found = patient(lambda: read_record(place))
    if found is None:
        raise CopyError(f"There is no copy at {place.shown}: no server has shipped to it.")
    record = found[0]
    listing = patient(lambda: list_copy(place))
    chain = Chain(place, key, listing, sealed_too=True)
    shown: dict[str, Any] = {
        "copy": place.shown,
        "owner": record.where + (" (ended)" if record.released else ""),
        "epoch": record.epoch,
        "standby": record.standby or None,
        "standbys": [shown_standby(told, record, now) for told in patient(lambda: all_told(place))],
    }
    first, last = _recent(chain)
    if last is not None:
        shown["last_commit"] = show_moment(last.last_moment / 1_000)
        shown["last_commit_age_seconds"] = round(max(0.0, now - last.last_moment / 1_000), 1)
    try:
        moments = [chain.manifest(name).moment for name in (min(listing.bases), max(listing.bases))]
    except (CopyError, ValueError):
        moments = []
    if moments:
        shown["restores_from"] = show_moment(moments[0] / 1_000)
    objects = [*listing.bases.values(), *listing.segments.values(), *listing.files.values()]
    stored = sum(one.bytes for one in objects)
    shown |= {
        "bases": len(listing.bases),
        "segments": len(listing.segments),
        "files": len(listing.files),
        "stored_mib": round(stored / _MIB, 1),
    }
    cost = costs.estimate(stored, record.ttl_seconds, first, last)
    shown |= {
        "puts_a_month": cost.writes,
        "dollars_a_month": float(cost.dollars),
    }
    return shown


def _recent(chain: Chain) -> tuple[SegmentHeader | None, SegmentHeader | None]:
    """The headers of the last segment, and of one some way before it."""
    names = sorted(chain.listing.segments)[-_RECENT:]
    if not names:
        return None, None
    return chain.segment(names[0]).header, chain.segment(names[-1]).header
