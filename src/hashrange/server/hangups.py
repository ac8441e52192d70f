"""SIGHUP: `watch`.

Operators send SIGHUP to let a server read its files again, as they do with PostgreSQL and nginx. The kernel
and shells send it too when a terminal is closed: then the server that was started there has to end, after it
has finished its requests. The two are distinguished by the controlling terminal, which a process no longer
has when the terminal has been closed. A server that was started by `nohup` is not ended so.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable

_log = logging.getLogger(__name__)


def watch(
    loop: asyncio.AbstractEventLoop, end: Callable[[str], None], reload: Callable[[], None] | None
) -> None:
    """From now on SIGHUP calls `reload`, or `end` with the name of the signal if the terminal is gone from
    which the server was started. `reload` is None if the server has nothing to read again."""
    if not hasattr(signal, "SIGHUP"):  # pragma: no cover (Windows)
        return
    ends_with_terminal = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN and _has_terminal()

    def hung_up() -> None:
        if ends_with_terminal and not _has_terminal():
            end(signal.SIGHUP.name)
        elif reload is not None:
            reload()
        else:
            _log.info("SIGHUP: there is no users file to read again")

    loop.add_signal_handler(signal.SIGHUP, hung_up)


def _has_terminal() -> bool:
    """Whether the process has a controlling terminal."""
    try:
        descriptor = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return False
    os.close(descriptor)
    return True
