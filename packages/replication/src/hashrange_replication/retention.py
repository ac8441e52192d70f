"""Deletes what no kept base needs.

Kept are the bases of the last so many seconds, the newest base before that, so that every moment of this time
can be restored, and the newest base of all. Of segments, those behind the oldest kept base; of files, those
that a kept base names. Manifests are deleted first, so a base that is listed is always complete.

Refuses to know: who ships. It must not run while a base is made.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hashrange_replication.chain import Chain, Listing
from hashrange_replication.format.manifests import Manifest
from hashrange_replication.format.names import BaseName, SegmentName, file_name
from hashrange_replication.format.sealing import Key
from hashrange_replication.place import Place

_MILLIS = 1_000


@dataclass(slots=True)
class Surplus:
    """What may be deleted."""

    bases: list[BaseName] = field(default_factory=list)
    segments: list[SegmentName] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def names(self) -> list[str]:
        """The names of the objects, in the order in which they have to be deleted."""
        return [*(base.name for base in self.bases), *(one.name for one in self.segments), *self.files]


def surplus(chain: Chain, key: Key | None, now: float, keep_seconds: float) -> Surplus:
    """What no base needs that is kept at the time `now` (epoch seconds). Raises Damaged, CopyError,
    BucketError, OSError; then nothing should be deleted."""
    listing: Listing = chain.listing
    manifests = [chain.manifest(name) for name in sorted(listing.bases)]
    kept = _kept(manifests, int((now - keep_seconds) * _MILLIS))
    if not kept:
        return Surplus()
    first = min(manifest.index for manifest in kept)
    key_id = key.id if key is not None else ""
    needed = {file_name(file.sha256, key_id) for manifest in kept for file in manifest.files}
    names = {manifest.name for manifest in kept}
    return Surplus(
        [name for name in sorted(listing.bases) if name not in names],
        [name for name in sorted(listing.segments) if name.index < first],
        [name for name in sorted(listing.files) if name not in needed],
    )


def _kept(manifests: list[Manifest], since: int) -> list[Manifest]:
    """The manifests to keep, of all in the order of their names."""
    before = [manifest for manifest in manifests if manifest.moment < since]
    return before[-1:] + [manifest for manifest in manifests if manifest.moment >= since]


def delete(place: Place, found: Surplus) -> int:
    """Delete what is not needed; returns how many objects. Raises BucketError, OSError."""
    names = found.names()
    for name in names:
        place.delete(name)
    return len(names)
