"""Verifies a copy without restoring it: every object, every digest, every chain.

Without the key, sealed objects are compared with their digests and chains only: manifests cannot be read, so
it is not known which files a base needs.

Refuses to know: what records mean.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

from hashrange.buckets import CHANGED, NO_SUCH_KEY, BucketError, Object
from hashrange_replication.chain import Chain, Listing, Position, list_copy, start_of
from hashrange_replication.failures import CopyError, Damaged
from hashrange_replication.format.manifests import Manifest
from hashrange_replication.format.names import FILES, SegmentName, file_name
from hashrange_replication.format.objects import Reader
from hashrange_replication.format.sealing import Key
from hashrange_replication.lease import Record, read_record
from hashrange_replication.place import Place, patient

Progress = Callable[[int, int], None]
"""Called with how many bytes are verified, and of how many."""


@dataclass(slots=True)
class Report:
    """What a verification has found. `end` is where the newest chain ends, and `moment` that of its last
    batch (epoch milliseconds; 0: there is none). `unneeded` are objects that no base needs: they do no harm,
    and retention deletes them."""

    objects: int = 0
    bytes: int = 0
    bases: list[Manifest] = field(default_factory=list)
    segments: int = 0
    moment: int = 0
    end: Position | None = None
    problems: list[str] = field(default_factory=list)
    unneeded: list[str] = field(default_factory=list)


def verify(place: Place, key: Key | None, progress: Progress = lambda done, total: None) -> Report:
    """Verify all objects of a copy. Raises BucketError and OSError if the bucket cannot be read."""
    report = Report()
    record = _record(place, report)
    listing = patient(lambda: list_copy(place))
    report.problems += [f"{name} belongs to no copy" for name in listing.strange]
    chain = Chain(place, key, listing, sealed_too=True)
    every = [*listing.bases.values(), *listing.segments.values(), *listing.files.values()]
    total = sum(one.bytes for one in every)
    for one in every:
        _verify_object(place, key, one, report)
        report.objects += 1
        report.bytes += one.bytes
        progress(report.bytes, total)
    report.segments = len(listing.segments)
    _verify_bases(chain, key, report)
    _verify_chains(chain, listing, report)
    if record is not None:
        _compare(record, listing, report)
    return report


def _record(place: Place, report: Report) -> Record | None:
    try:
        found = patient(lambda: read_record(place))
    except Damaged as error:
        report.problems.append(str(error))
        return None
    return found[0] if found is not None else None


def _verify_object(place: Place, key: Key | None, one: Object, report: Report) -> None:
    """Read an object to its end."""

    def read() -> None:
        source = place.open(one)
        try:
            reader = Reader(source.read, key, sealed_too=True)
            digest = hashlib.sha256()
            for chunk in reader.chunks():
                digest.update(chunk)
        finally:
            source.close()
        name = file_name(digest.hexdigest(), str(reader.header.get("key", "")))
        if reader.is_readable and one.key.startswith(FILES) and one.key != name:
            raise Damaged("it does not have the content that its name says")

    try:
        patient(read)
    except CopyError as error:
        report.problems.append(f"{one.key}: {error}")
    except BucketError as error:
        if error.code not in (CHANGED, NO_SUCH_KEY):
            raise
        report.problems.append(f"{one.key}: it was deleted or replaced meanwhile")


def _verify_bases(chain: Chain, key: Key | None, report: Report) -> None:
    """Read the manifests, and look whether their files are there."""
    listing = chain.listing
    needed = set()
    for name in sorted(listing.bases):
        try:
            manifest = chain.manifest(name)
        except Damaged as error:
            _add(report, str(error))
            continue
        except CopyError:
            continue  # it is sealed
        report.bases.append(manifest)
        for file in manifest.files:
            wanted = file_name(file.sha256, key.id if key is not None else "")
            needed.add(wanted)
            if wanted not in listing.files:
                report.problems.append(f"{wanted} is missing, which is {file.path} of {name.name}")
    if not listing.bases:
        report.problems.append("there is no base, so nothing can be restored")
    if len(report.bases) == len(listing.bases):
        report.unneeded = [name for name in listing.files if name not in needed]


def _verify_chains(chain: Chain, listing: Listing, report: Report) -> None:
    """Walk from each base to the end of its chain, each segment once."""
    reached: set[tuple[int, int, str]] = set()
    seen: set[SegmentName] = set()
    for manifest in report.bases:
        at = start_of(manifest)
        try:
            while (here := (at.epoch, at.index, at.predecessor)) not in reached:
                reached.add(here)
                name = chain.next_name(at)
                if name is None:
                    break
                segment, at = next(chain.walk(at))
                seen.add(name)
                if segment.batches:
                    report.moment = segment.header.last_moment
        except Damaged as error:
            _add(report, f"after the base {manifest.name.name}: {error}")
        report.end = at
        report.moment = max(report.moment, manifest.moment)
    if report.bases:
        report.unneeded += [name.name for name in listing.segments if name not in seen]


def _compare(record: Record, listing: Listing, report: Report) -> None:
    """What the lease says that there is."""
    if record.shipped > listing.last_index():
        report.problems.append(
            f"the segments end with {listing.last_index()}, and {record.shipped} were shipped: the last ones "
            "are lost"
        )
    if record.base > max((name.batch for name in listing.bases), default=0):
        report.problems.append(f"the newest base, of batch {record.base}, is lost")


def _add(report: Report, problem: str) -> None:
    """Add a problem unless an object's own verification has told it."""
    if problem not in report.problems:
        report.problems.append(problem)
