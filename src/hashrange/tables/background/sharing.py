"""Shares the background work among the servers of a store: each unit has one owner at a time.

A server that takes part has a record in the store, its lease:

    (SERVER_SPACE, "server", id of the server) → a number that grows by one with each renewal

Each server renews its lease every RENEW_SECONDS, and reads those of the others. It owns the units for which
its id wins among the present servers (`_weight`), so the work is spread, and few units change hands when a
server joins or leaves.

Servers do not rely on each other's clocks. A lease has expired for a reader that finds the same number at two
looks that are more than LEASE_SECONDS of its own steady clock apart. A server owns nothing

- when its own last renewal was LEASE_SECONDS ago, so that others may have taken its units;
- in its first LEASE_SECONDS beside other servers, because they may still be doing the work of its units.

So no two servers own a unit at the same time. A server that is alone from the start owns everything at once.
The work is correct without any of this, because a bite is a transaction that reads the current state.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from hashlib import blake2b
from typing import Final

from hashrange.storage.api import Engine, Transaction
from hashrange.storage.capabilities import Remote
from hashrange.tables.spaces import SERVER_SPACE

LEASE_SECONDS: Final = 10.0
RENEW_SECONDS: Final = 3.0
_FORGET_SECONDS: Final = 600.0

_SERVER: Final = b"server"
_NUMBER_BYTES: Final = 8


class _Other:
    """The lease of another server: its number, and when this server saw that number first."""

    __slots__ = ("number", "since")

    def __init__(self, number: int, since: float) -> None:
        self.number = number
        self.since = since


class Sharing:
    """A server's share of the background work. `steady` is a clock that never goes back."""

    def __init__(self, engine: Engine, server: str, steady: Callable[[], float]) -> None:
        self._engine = engine
        self._server = server.encode()
        self._steady = steady
        self._number = 0
        self._renewed: float | None = None
        self._joined = 0.0
        self._looked = 0.0
        self._others: dict[bytes, _Other] = {}

    @property
    def servers(self) -> int:
        """How many servers take part, including this one."""
        return 1 + len(self._present())

    def tend(self) -> None:
        """Renew the lease if it is time to do so. Raises what the engine raises."""
        now = self._steady()
        if self._renewed is not None and now - self._renewed < RENEW_SECONDS:
            return
        leases = self._engine.write(self._renew)
        # Other servers may see this lease only now, and may have renewed their leases only now.
        seen = self._steady()
        lapsed = self._renewed is None or seen - self._renewed >= LEASE_SECONDS
        self._number += 1
        self._look(leases, seen)
        if lapsed:
            # Alone from the start: no other server can be doing work.
            alone = self._renewed is None and not self._others
            self._joined = seen - LEASE_SECONDS if alone else seen
        self._renewed = now

    def _renew(self, txn: Transaction) -> dict[bytes, int]:
        """Renew the lease in a single transaction, so that of two servers that start together one sees the
        other."""
        leases = {server: int.from_bytes(number) for server, number in txn.scan(SERVER_SPACE, _SERVER)}
        number = (self._number + 1).to_bytes(_NUMBER_BYTES)
        txn.put(SERVER_SPACE, _SERVER, self._server, number)
        now = self._steady()
        for server in leases:
            other = self._others.get(server)
            if other is not None and other.number == leases[server] and now - other.since > _FORGET_SECONDS:
                txn.delete(SERVER_SPACE, _SERVER, server)
        return leases

    def _look(self, leases: dict[bytes, int], now: float) -> None:
        others: dict[bytes, _Other] = {}
        for server, number in leases.items():
            if server != self._server:
                known = self._others.get(server)
                unchanged = known is not None and known.number == number
                others[server] = known if known is not None and unchanged else _Other(number, now)
        self._others = others
        self._looked = now

    def _present(self) -> list[bytes]:
        """The servers whose leases had not expired at the last look: another may have been renewed since."""
        looked = self._looked
        return [server for server, other in self._others.items() if looked - other.since <= LEASE_SECONDS]

    def owns(self, unit: str) -> bool:
        """Whether this server does the work of a unit now."""
        now = self._steady()
        if self._renewed is None or now - self._renewed >= LEASE_SECONDS:
            return False
        if now - self._joined < LEASE_SECONDS:
            return False
        name = unit.encode(errors="surrogatepass")
        own_weight = _weight(self._server, name)
        return all(own_weight > _weight(server, name) for server in self._present())

    def leave(self) -> None:
        """Give the lease back, so that others need not wait for its end. Raises what the engine raises."""
        if self._renewed is not None:
            self._renewed = None
            self._engine.write(lambda txn: txn.delete(SERVER_SPACE, _SERVER, self._server))


def _weight(server: bytes, unit: bytes) -> tuple[bytes, bytes]:
    return blake2b(unit, key=server[:64], digest_size=8).digest(), server


def sharing_of(engine: Engine, server: str) -> Sharing | None:
    """This server's share of the work on a shared store; None for a store that cannot be shared."""
    return Sharing(engine, server, time.monotonic) if isinstance(engine, Remote) else None
