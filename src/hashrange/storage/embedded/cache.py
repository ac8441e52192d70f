"""The size limit of RocksDB's block cache.

The cache takes memory only as reads need it, so a small store leaves most of it free. A get from a block that
is not in the cache reads a file, and the event loop waits for it: on a store larger than the cache, gets are
as slow as the disk unless the operating system has the file in its page cache.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_MIB: Final = 1024 * 1024
CACHE_BYTES_MIN: Final = 128 * _MIB
SHARE: Final = 8
"""The cache may take an eighth of the memory: other programs, and the engine itself, need the rest."""

_LIMIT_FILES: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""The files of Linux with a container's memory limit, in the newer and the older layout."""


def cache_bytes(memory: int | None) -> int:
    """The size of the cache on a machine with `memory` bytes of memory (None: not known)."""
    return max(CACHE_BYTES_MIN, (memory or 0) // SHARE)


def memory_bytes(limit_files: Iterable[Path] = _LIMIT_FILES) -> int | None:
    """The memory of this machine, or of the container that the process runs in; None if it is not known."""
    known: list[int] = []
    with contextlib.suppress(AttributeError, ValueError, OSError):  # Windows has no sysconf
        known.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for file in limit_files:
        with contextlib.suppress(ValueError, OSError):  # "max" where there is no limit
            known.append(int(file.read_text()))
    return min((size for size in known if size > 0), default=None)
