"""Files and names that survive a crash of the machine, and that only their owner may read.

A file is durable once it was synced, its name once its directory was.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Final

try:
    from fcntl import F_FULLFSYNC, fcntl  # type: ignore[attr-defined, unused-ignore]
except ImportError:  # it is macOS that has this
    F_FULLFSYNC = None

BINARY: Final[int] = getattr(os, "O_BINARY", 0)
"""The flag of `os.open` without which Windows writes a line's end as two bytes."""
_UNKNOWN: Final = frozenset({errno.EINVAL, errno.ENOTSUP, errno.ENOTTY})


def sync(descriptor: int) -> None:
    """Make what was written to a file durable. Raises OSError.

    On macOS `fsync` ends when the drive has the data, perhaps in its own memory; F_FULLFSYNC waits until the
    drive has stored them. Source: Apple, fsync(2). Some file systems do not know F_FULLFSYNC.
    """
    if F_FULLFSYNC is not None:
        try:
            fcntl(descriptor, F_FULLFSYNC)
            return
        except OSError as error:
            if error.errno not in _UNKNOWN:
                raise
    os.fsync(descriptor)


def sync_drive(descriptor: int) -> None:
    """Have the drive store what another program has synced by `fsync` alone, such as RocksDB its log.
    `descriptor` is that of any file on the drive. Raises OSError.

    rocksdict's RocksDB is built without HAVE_FULLFSYNC. F_FULLFSYNC flushes the whole drive.
    """
    if F_FULLFSYNC is not None:
        sync(descriptor)


def private(path: str | Path, flags: int) -> int:
    """Open a file; a new one only its owner may read. For `open(…, opener=private)`: whatever holds values of
    items, or secrets, is written so. Raises OSError."""
    return os.open(path, flags | BINARY, 0o600)


def lock_file(descriptor: int) -> None:
    """Wait until no other program has locked a file, and lock it until it is closed. Raises OSError."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX)


def write_durably(path: Path, content: bytes) -> None:
    """Write a file so that a crash leaves either the whole new file or the old one."""
    new = path.with_name(path.name + ".new")
    with open(new, "wb", opener=private) as file:
        file.write(content)
        file.flush()
        sync(file.fileno())
    new.replace(path)
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    if os.name == "nt":  # Windows can neither open nor sync a directory
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(directory: Path) -> None:
    """Create a directory and its missing parents, durably."""
    if not directory.is_dir():
        make_directory(directory.parent)
        directory.mkdir(exist_ok=True)
        sync_directory(directory.parent)
