"""Makes a data directory from a copy: the files of a base, then the batches after it.

The directory is no store until all is done (`Replay`): a restore that was killed begins again. Files are
fetched by several threads, because one request at a time cannot fill a fast connection.

Refuses to know: what records mean.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Final

from hashrange.files.durable import make_directory, private, sync
from hashrange.storage.embedded.files.mark import FORMAT_VERSION
from hashrange.storage.embedded.offline.replay import Replay
from hashrange_replication.chain import Chain, Position, list_copy, start_of
from hashrange_replication.failures import CopyError, Damaged
from hashrange_replication.format.manifests import BaseFile, Manifest
from hashrange_replication.format.names import file_name
from hashrange_replication.format.objects import Reader
from hashrange_replication.format.sealing import Key
from hashrange_replication.lease import read_record
from hashrange_replication.place import Place, patient
from hashrange_replication.state import State, write_state

Progress = Callable[[str, int, int], None]
"""Called with a step ("files" or "segments"), how many bytes or segments are done, and of how many."""
_THREADS: Final = 4


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore has made. `moment` is that of the last batch (epoch milliseconds), or of the base if no
    batch follows it; `end` is where the chain goes on, `is_newest` whether nothing in the copy follows."""

    manifest: Manifest
    batch: int
    moment: int
    batches: int
    end: Position
    is_newest: bool


def restore(
    place: Place,
    directory: Path,
    key: Key | None,
    *,
    owner: str,
    until: int | None = None,
    progress: Progress = lambda step, done, total: None,
    parts: Sequence[str] = (),
) -> Restored:
    """Make `directory` of the copy, with all batches committed until `until` (epoch milliseconds; None: all).
    `owner` is an id for the directory, in case that it ships. Of an unfinished copy the `parts` are removed;
    without them everything.

    Raises CopyError, Damaged, StorageError, BucketError, OSError.
    """
    # Before the listing: if somebody takes over meanwhile, the directory knows that it may lack batches.
    found = patient(lambda: read_record(place))
    listing = patient(lambda: list_copy(place))
    chain = Chain(place, key, listing)
    manifest = chain.base(until)
    if manifest.data_format != FORMAT_VERSION:
        raise CopyError(
            f"The copy holds a data directory of format {manifest.data_format}; this version of Hashrange "
            f"opens format {FORMAT_VERSION}: restore with the version that made the copy."
        )
    replay = Replay(directory, f"the copy at {place.shown}", parts)
    try:
        _fetch_all(chain, place, key, manifest, directory, progress)
        replay.open()
        restored = _play(chain, manifest, replay, until, progress)
        epoch = restored.end.epoch if found is None else max(found[0].epoch, restored.end.epoch)
        end = restored.end if restored.is_newest else None
        write_state(directory, State(owner=owner, place=place.shown, epoch=epoch, end=end))
        replay.finish()
    finally:
        replay.close()
    return restored


def _play(
    chain: Chain, manifest: Manifest, replay: Replay, until: int | None, progress: Progress
) -> Restored:
    """Apply the batches after a base."""
    end = start_of(manifest)
    batch, moment, count = manifest.batch, manifest.moment, 0
    expected = sum(name.index >= manifest.index for name in chain.listing.segments)
    done = 0
    for segment, after in chain.walk(end):
        for one in segment.batches:
            if one.number <= batch:
                continue
            if until is not None and one.moment > until:
                return Restored(manifest, batch, moment, count, end, is_newest=False)
            replay.apply(one.records)
            batch, moment, count = one.number, one.moment, count + 1
        end = after
        done += 1
        progress("segments", done, expected)
    return Restored(manifest, batch, moment, count, replace(end, after=batch), is_newest=True)


def _fetch_all(
    chain: Chain, place: Place, key: Key | None, manifest: Manifest, directory: Path, progress: Progress
) -> None:
    done, lock = 0, Lock()

    def fetch(file: BaseFile) -> None:
        nonlocal done
        patient(lambda: _fetch(chain, place, key, file, directory / file.path))
        with lock:
            done += file.bytes
            progress("files", done, manifest.bytes)

    # (the largest first, so that none is left alone at the end)
    files = sorted(manifest.files, key=lambda file: -file.bytes)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="hashrange-restore") as pool:
        for future in [pool.submit(fetch, file) for file in files]:
            future.result()


def _fetch(chain: Chain, place: Place, key: Key | None, file: BaseFile, path: Path) -> None:
    """Write a file of a base, and verify its content."""
    name = file_name(file.sha256, key.id if key is not None else "")
    found = chain.listing.files.get(name)
    if found is None:
        raise Damaged(f"{name} is missing, which is {file.path} of a base")
    make_directory(path.parent)
    digest = hashlib.sha256()
    source = place.open(found)
    try:
        with open(path, "wb", opener=private) as target:
            for chunk in Reader(source.read, key).chunks():
                digest.update(chunk)
                target.write(chunk)
            target.flush()
            sync(target.fileno())
    except Damaged as error:
        raise Damaged(f"{name}: {error}") from None
    finally:
        source.close()
    if digest.hexdigest() != file.sha256:
        raise Damaged(f"{name} does not have the content that its name says")
