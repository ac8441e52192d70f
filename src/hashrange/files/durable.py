"""Files and names that survive a crash of the machine, and that only their owner may read.

A file is durable once it was synced, its name once its directory was.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_BINARY: Final[int] = getattr(os, "O_BINARY", 0)


def private(path: str | Path, flags: int) -> int:
    """Open a file; a new one only its owner may read. For `open(…, opener=private)`: whatever holds values of
    items, or secrets, is written so. Raises OSError."""
    return os.open(path, flags | _BINARY, 0o600)


def write_durably(path: Path, content: bytes) -> None:
    """Write a file so that a crash leaves either the whole new file or the old one."""
    new = path.with_name(path.name + ".new")
    with open(new, "wb", opener=private) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    if os.name == "nt":  # Windows can neither open nor sync a directory
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(directory: Path) -> None:
    """Create a directory and its missing parents, durably."""
    if not directory.is_dir():
        make_directory(directory.parent)
        directory.mkdir(exist_ok=True)
        sync_directory(directory.parent)
