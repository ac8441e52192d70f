"""HAProxy for the tests, with the configuration in deploy/: one endpoint in front of two servers."""

from __future__ import annotations

import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from serving import free_port

_PROGRAM: Final = "/usr/sbin/haproxy"
_CONFIGURATION: Final = Path(__file__).parents[1] / "packages" / "postgres" / "deploy" / "haproxy.cfg"
_START_SECONDS_MAX: Final = 10.0


def installed() -> bool:
    """Whether this machine has HAProxy."""
    return os.access(_PROGRAM, os.X_OK)


@contextmanager
def balancing(endpoints: Sequence[str]) -> Iterator[str]:
    """Run HAProxy in front of two servers until the block ends; yields its endpoint."""
    first, second = (urlsplit(endpoint).netloc for endpoint in endpoints)
    place = f"127.0.0.1:{free_port()}"
    process = subprocess.Popen(
        [_PROGRAM, "-db", "-q", "-f", str(_CONFIGURATION)],
        env=os.environ | {"HASHRANGE_BIND": place, "HASHRANGE_ONE": first, "HASHRANGE_TWO": second},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + _START_SECONDS_MAX
        while not _answers(place):
            assert process.poll() is None, "HAProxy has ended"
            assert time.monotonic() < end, "HAProxy does not answer"
        yield f"http://{place}"
    finally:
        process.kill()
        process.wait()


def _answers(place: str) -> bool:
    try:
        urllib.request.urlopen(f"http://{place}/", timeout=5).close()
    except OSError:
        return False
    return True
