"""The data directory: whether the server can use it, on which file system it is, and how fast that syncs.

The check writes a small file into the directory, or into the nearest folder that exists, and removes it.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hashrange.cli.health.findings import NOTE, OK, PROBLEM, Finding
from hashrange.files.durable import sync
from hashrange.storage.failures import DataDirectoryLocked, StorageError

SYNCS: Final = 50
"""How often a write is synced, unless `SYNC_SECONDS` are over before."""
SYNC_SECONDS: Final = 1.0
BLOCK_BYTES: Final = 4096
SLOW_SECONDS: Final = 0.020
"""A sync that takes longer makes every write wait noticeably."""
INSTANT_SECONDS: Final = 0.000_02
"""No disk makes a write durable in less."""
FREE_BYTES_MIN: Final = 1 << 30

_GIB: Final = 1 << 30
_IN_MEMORY: Final = ("tmpfs", "ramfs")
_NETWORK: Final = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs", "ceph", "glusterfs")


def findings(directory: Path, mounts: Path = Path("/proc/self/mounts")) -> Iterator[Finding]:
    """The findings about a data directory. `mounts`: the file in which the system lists its file systems."""
    directory = directory.absolute()
    yield _store(directory)
    folder = next((path for path in (directory, *directory.parents) if path.is_dir()), None)
    if folder is None or not os.access(folder, os.W_OK | os.X_OK):
        yield Finding(
            "directory",
            PROBLEM,
            f"{folder or directory} is not writable for this user",
            "Choose another --data-dir, or change the owner of the folder.",
        )
        return
    yield _room(folder)
    yield _file_system(folder, mounts)
    yield _syncs(folder)


def _store(directory: Path) -> Finding:
    # RocksDB's library takes a while to load; only `doctor` waits for it.
    from hashrange.storage.embedded.files.directory import lock, read_format

    if not directory.exists():
        return Finding("data", OK, f"{directory} does not exist yet; the server will create it")
    try:
        has_format = read_format(directory)
        taken = lock(directory, shared=True)
    except DataDirectoryLocked:
        return Finding("data", OK, f"{directory} is in use by a server")
    except StorageError as error:
        return Finding("data", PROBLEM, str(error))
    except OSError as error:
        return Finding("data", PROBLEM, f"{directory} cannot be read: {error.strerror}")
    if taken is not None:
        os.close(taken)
    if not has_format:
        empty = not any(directory.iterdir())
        if empty:
            return Finding("data", OK, f"{directory} is empty; the server can use it")
        return Finding(
            "data",
            PROBLEM,
            f"{directory} has files, but is not a data directory",
            "Choose a new directory: --data-dir",
        )
    return Finding("data", OK, f"{directory} holds a store; no server has it open")


def _room(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    text = f"{free / _GIB:.1f} GiB free at {folder}"
    if free < FREE_BYTES_MIN:
        return Finding("room", NOTE, text, "The server refuses writes when the disk is full; free space.")
    return Finding("room", OK, text)


def _file_system(folder: Path, mounts: Path) -> Finding:
    kind = kind_of_file_system(folder, mounts)
    if kind in _IN_MEMORY:
        return Finding(
            "file system", NOTE, f"{kind}: in memory", "The data is lost when this machine restarts."
        )
    if kind in _NETWORK:
        return Finding(
            "file system",
            NOTE,
            f"{kind}: on another machine",
            "Locks and syncs may not work there; use a local disk, or `serve --postgres`.",
        )
    if kind == "overlay":
        return Finding(
            "file system",
            NOTE,
            "overlay: the layer of a container",
            "The data is lost with the container; mount a volume at this path.",
        )
    return Finding("file system", OK, kind or "not known on this system")


def kind_of_file_system(folder: Path, mounts: Path) -> str:
    """The kind of the file system of a folder, such as "ext4"; "" where the system has no list of them."""
    try:
        lines = mounts.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    folder = folder.resolve()
    best, kind = Path(), ""
    for line in lines:
        words = line.split()
        point = Path(words[1].replace("\\040", " ")) if len(words) > 2 else Path()
        if folder.is_relative_to(point) and len(point.parts) >= len(best.parts):
            best, kind = point, words[2]
    return kind


def _syncs(folder: Path) -> Finding:
    try:
        taken = sync_seconds(folder)
    except OSError as error:
        return Finding(
            "syncs",
            PROBLEM,
            f"a file in {folder} could not be written and synced: {error.strerror}",
            "Choose another --data-dir.",
        )
    return judged(taken)


def judged(taken: list[float]) -> Finding:
    """The finding about the seconds that some syncs took."""
    median, longest = statistics.median(taken), max(taken)
    text = f"{_shown(median)} each, the longest of {len(taken)} {_shown(longest)}"
    if median < INSTANT_SECONDS:
        return Finding(
            "syncs",
            NOTE,
            f"{text}: faster than any disk",
            "The system confirms writes before they are on disk; a power cut may lose the last ones.",
        )
    if median > SLOW_SECONDS:
        return Finding(
            "syncs",
            NOTE,
            f"{text}: slow",
            "Each write waits for one sync; a local SSD takes about 1 ms. If data may be lost, "
            "`serve --memory` does not sync.",
        )
    return Finding("syncs", OK, f"{text}; a write waits for one, and writes at the same time share it")


def sync_seconds(folder: Path) -> list[float]:
    """How long each of up to `SYNCS` syncs of a new block took, in seconds. Raises OSError."""
    taken: list[float] = []
    began = time.perf_counter()
    with tempfile.NamedTemporaryFile(prefix=".hashrange-doctor-", dir=folder, buffering=0) as file:
        while len(taken) < SYNCS and (not taken or time.perf_counter() - began < SYNC_SECONDS):
            start = time.perf_counter()
            file.write(bytes(BLOCK_BYTES))
            sync(file.fileno())
            taken.append(time.perf_counter() - start)
    return taken


def _shown(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms" if seconds < 0.1 else f"{seconds * 1000:.0f} ms"
