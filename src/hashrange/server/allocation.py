"""Keeps the memory small that the C library holds for later.

glibc gives each thread an arena of its own, and memory that is freed in one of them serves no other thread.
With an arena for each of RocksDB's and the server's threads, half of what they held was free after twenty
minutes of mixed control operations. Python's threads take turns anyway, and so do well with one arena.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

_ARENAS_MAX: Final = -8
"""M_ARENA_MAX of glibc's malloc.h."""


def share_one_arena(environment: Mapping[str, str]) -> None:
    """Let all threads that begin later share one arena, unless the environment sets MALLOC_ARENA_MAX. For a
    process that is a server only, and to be called before it opens a store; without glibc it does nothing."""
    if "MALLOC_ARENA_MAX" not in environment:
        with suppress(AttributeError, OSError, TypeError):  # another C library, or Windows
            ctypes.CDLL(None).mallopt(_ARENAS_MAX, 1)
