"""A proxy in front of PostgreSQL that tests let hold back what comes, or cut: what networks do.

    with Proxy(cluster.url) as proxy:
        engine = PostgresEngine(proxy.url)
        proxy.hold("answers")   # PostgreSQL carries out what is asked, and nobody hears of it
        proxy.pass_on()         # what was held back arrives, however late

A connection is never left with a gap: what was held back arrives in its order, or the connection is cut.
"""

from __future__ import annotations

import shutil
import socket
from contextlib import suppress
from threading import Condition, Thread
from typing import Final, Literal

from psycopg.conninfo import conninfo_to_dict, make_conninfo

import postgres

Way = Literal["requests", "answers"]
_CHUNK_BYTES: Final = 65536


class Connection:
    """The two sockets of a connection, and the ways on which nothing passes."""

    def __init__(self, client: socket.socket, server: socket.socket, held: frozenset[Way]) -> None:
        self.client = client
        self.server = server
        self.held = held
        self.is_cut = False
        self.threads: list[Thread] = []
        self.ways_open = 2

    def cut(self) -> None:
        self.is_cut = True
        for end in (self.client, self.server):
            with suppress(OSError):  # the other side was faster
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.client.close()
        self.server.close()


class Proxy:
    """Forwards connections to the PostgreSQL, or the PgBouncer, at `url`, which names the directory of a Unix
    socket. `url` of the proxy leads through it."""

    def __init__(self, url: str) -> None:
        given = conninfo_to_dict(url)
        name = f".s.PGSQL.{given.get('port', 5432)}"
        self._target = f"{given['host']}/{name}"
        self._directory = postgres.new_directory()
        self.url = make_conninfo(url, host=str(self._directory))
        self._changed = Condition()
        self._held_when_new: frozenset[Way] = frozenset()
        self._connections: set[Connection] = set()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._directory / name))
        self._listener.listen()
        self._accepting = Thread(target=self._accept)
        self._accepting.start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def hold(self, *ways: Way, new: bool = True) -> None:
        """Let nothing pass on these ways of all connections; with `new`, also of those that are made later.
        They are still accepted."""
        with self._changed:
            self._held_when_new = frozenset(ways) if new else frozenset()
            for connection in self._connections:
                connection.held = frozenset(ways)
            self._changed.notify_all()

    def pass_on(self) -> None:
        """Pass on what was held back, and all that follows."""
        self.hold()

    def cut(self) -> None:
        """Cut all connections, and drop what was held back. New ones pass."""
        with self._changed:
            for connection in self._connections:
                connection.cut()
        self.pass_on()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        with self._changed:
            threads = [thread for connection in self._connections for thread in connection.threads]
        self.cut()
        for thread in threads:
            thread.join()
        shutil.rmtree(self._directory)

    def _accept(self) -> None:
        while True:
            try:
                client = self._listener.accept()[0]
            except OSError:
                return  # closed
            with self._changed:
                self._connect(client)

    def _connect(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self._target)
        except OSError:
            client.close()
            server.close()
            return
        connection = Connection(client, server, self._held_when_new)
        # One thread for each way: neither side waits for the other's reading.
        connection.threads = [
            Thread(target=self._forward, args=(connection, client, server, "requests")),
            Thread(target=self._forward, args=(connection, server, client, "answers")),
        ]
        self._connections.add(connection)
        for thread in connection.threads:
            thread.start()

    def _forward(
        self, connection: Connection, source: socket.socket, sink: socket.socket, way: Way
    ) -> None:
        try:
            data = b"begun"
            while data:
                data = source.recv(_CHUNK_BYTES)
                with self._changed:
                    self._changed.wait_for(lambda: way not in connection.held or connection.is_cut)
                if connection.is_cut:
                    break
                if data:
                    sink.sendall(data)
                else:
                    sink.shutdown(socket.SHUT_WR)
        except OSError:
            connection.cut()  # one of the sides is gone, and the other has to hear of it
        with self._changed:
            connection.ways_open -= 1
            if not connection.ways_open:
                self._connections.remove(connection)
                connection.close()
