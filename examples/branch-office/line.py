"""A line between two machines, as a relay of TCP connections. While it is cut, it drops what it carries."""

from __future__ import annotations

import socket
import socketserver
import threading
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit


class Line(socketserver.ThreadingTCPServer):
    """A line to the server at `url`; programs on this end use the line's own `url`."""

    daemon_threads = True

    def __init__(self, url: str) -> None:
        super().__init__(("127.0.0.1", 0), socketserver.BaseRequestHandler)
        self.is_cut = False
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self._far = (str(urlsplit(url).hostname), int(urlsplit(url).port or 80))
        self._ends: set[socket.socket] = set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def cut(self, is_cut: bool = True) -> None:
        """Cut the line, or mend it."""
        self.is_cut = is_cut
        for end in list(self._ends) if is_cut else ():
            _end(end)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Carry what comes on a connection, both ways, in a thread of its own."""
        if self.is_cut:
            return
        with socket.create_connection(self._far) as far:
            self._ends |= {request, far}
            back = threading.Thread(target=self._carry, args=(far, request))
            back.start()
            self._carry(request, far)
            back.join()
            self._ends -= {request, far}

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while not self.is_cut and (data := one.recv(65_536)):
                other.sendall(data)
        for end in (one, other):
            _end(end)


def _end(end: socket.socket) -> None:
    with suppress(OSError):  # (the other end was faster)
        end.shutdown(socket.SHUT_RDWR)
