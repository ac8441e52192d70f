"""File descriptors: how many the process may have, and how they are divided.

Sockets and the storage engine's files share the process's descriptors. If none were left, the engine could
not open a file, and every request would fail. So connections are limited to the remaining descriptors:

    a quarter       the engine's files that stay open
    RESERVED        the admin plane's connections, the sockets that listen, the files that the engine writes,
                    the log
    the rest        connections of the data plane
"""

from __future__ import annotations

import contextlib
import sys
from typing import Final

if sys.platform != "win32":
    import resource

RESERVED: Final = 64
"""Descriptors that are neither connections of the data plane nor the engine's open files."""

_UNLIMITED: Final = 1 << 30
_ENGINE_FILES_MAX: Final = 4096
_ENGINE_FILES_MIN: Final = 64
_CONNECTIONS_MIN: Final = 8
"""A server takes this many connections even if the limit is very low, so that it can report the problem."""

# The soft limits to try if there is no hard limit: the kernel may still refuse a large one (macOS does).
_RAISED: Final = (65_536, 10_240)


def raise_limit() -> None:
    """Raise the soft limit of this process (`ulimit -n`) to the hard limit, as far as the system allows."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limits = _RAISED if hard == resource.RLIM_INFINITY else (hard,)
    for limit in limits:
        if soft == resource.RLIM_INFINITY or limit <= soft:
            return
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
            return


def descriptors_max() -> int:
    """How many descriptors this process may have; a large number if there is no limit."""
    if sys.platform == "win32":
        return 2048
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _UNLIMITED if soft == resource.RLIM_INFINITY else min(soft, _UNLIMITED)


def engine_files_max() -> int:
    """How many files the storage engine may keep open."""
    return max(_ENGINE_FILES_MIN, min(_ENGINE_FILES_MAX, descriptors_max() // 4))


def connections_max(wanted: int) -> int:
    """How many connections the data plane may have, at most `wanted`."""
    left = descriptors_max() - engine_files_max() - RESERVED
    return min(wanted, max(_CONNECTIONS_MIN, left))
