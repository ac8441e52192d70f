"""How a server's process takes memory from the C library."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.once

ARENAS = """
import ctypes, os, threading
from hashrange.server import allocation

if {shared}:
    allocation.share_one_arena(os.environ)
began, end = threading.Barrier(4), threading.Event()

def take():
    kept = bytes(100_000)
    began.wait()
    end.wait()

for _ in range(3):
    threading.Thread(target=take, daemon=True).start()
began.wait()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
out = ctypes.c_void_p(libc.fdopen(1, b"w"))
libc.malloc_info(0, out)
libc.fflush(out)
end.set()
"""


def arenas(shared: bool, **environment: str) -> int:
    """How many arenas the threads of a program have."""
    inherited = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}
    done = subprocess.run(
        [sys.executable, "-c", ARENAS.format(shared=shared)],
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.count("<heap nr=")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has arenas")
def test_all_threads_of_a_server_share_one_arena() -> None:
    assert arenas(shared=False) > 1
    assert arenas(shared=True) == 1
    assert arenas(shared=True, MALLOC_ARENA_MAX="2") == 2
