"""A line between two machines, as a relay of TCP connections. While it is cut, it drops what it carries."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit


class Line:
    """A line to the server at `url`; programs on this end use the line's own `url`."""

    def __init__(self, url: str) -> None:
        self.is_cut = False
        self._far = (urlsplit(url).hostname, urlsplit(url).port)
        self._ends: set[socket.socket] = set()
        self._near = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._near.getsockname()[1]}"
        threading.Thread(target=self._take, daemon=True).start()

    def cut(self, is_cut: bool = True) -> None:
        """Cut the line, or mend it."""
        self.is_cut = is_cut
        for end in list(self._ends) if is_cut else ():
            _end(end)

    def _take(self) -> None:
        while True:
            near, _ = self._near.accept()
            far = None if self.is_cut else socket.create_connection(self._far)
            if far is None:
                near.close()
                continue
            self._ends |= {near, far}
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while not self.is_cut and (data := one.recv(65_536)):
                other.sendall(data)
        for end in (one, other):
            self._ends.discard(end)
            _end(end)
            end.close()


def _end(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
