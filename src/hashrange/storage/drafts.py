"""Runs long write bodies without making other writes wait.

A body in `Engine.write` makes all other writes wait. `write_aside` runs the body on a view of the store and
notes the records that the body reads and writes (`Draft`). Then a short body in `Engine.write` compares the
records that were read with the store, and writes. If one of them has changed, the long body runs again.

Only gets can be compared. A body that scans, or asks for totals or positions, runs in `Engine.write` after
all. So does a body whose records changed again in each of `ATTEMPTS_MAX` tries. Both are rare: no write of
items scans.

Works on any engine that keeps the contract. Refuses to know: what bodies do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NoReturn, TypeVar

from hashrange import pace
from hashrange.storage.api import Address, Engine, Reader, Totals, Transaction

T = TypeVar("T")

ATTEMPTS_MAX: Final = 8


class _NotByGets(BaseException):
    """The body reads by other methods than gets, so its reads cannot be compared with the store."""


class _Overtaken(Exception):
    """A record that the body read has changed since."""


class Draft:
    """A `Transaction` over a reader. Its writes are kept here until `commit`."""

    __slots__ = ("_appended", "_counted", "_kept", "_own", "_read", "_reader")

    def __init__(self, reader: Reader) -> None:
        self._reader: Reader | None = reader
        self._read: dict[tuple[int, bytes, bytes], bytes | None] = {}
        self._own: dict[tuple[int, bytes, bytes], bytes | None] = {}
        self._appended: list[tuple[int, bytes, bytes, int | None]] = []
        self._counted: list[tuple[int, int, int]] = []
        self._kept: list[tuple[int, bytes, bytes, bytes, int]] = []

    def get(self, space: int, partition: bytes, sort: bytes) -> bytes | None:
        address = (space, partition, sort)
        if address in self._own:
            return self._own[address]
        if address in self._read:
            return self._read[address]
        assert self._reader is not None
        pace.point()
        value = self._read[address] = self._reader.get(space, partition, sort)
        return value

    def get_many(self, addresses: Iterable[Address | tuple[int, bytes, bytes]]) -> list[bytes | None]:
        return [self.get(space, partition, sort) for space, partition, sort in addresses]

    def scan(
        self,
        space: int,
        partition: bytes,
        low: bytes = b"",
        high: bytes | None = None,
        *,
        reverse: bool = False,
        likely: int | None = None,
    ) -> Iterator[tuple[bytes, bytes]]:
        _not_by_gets()

    def scan_space(
        self,
        space: int,
        low: tuple[bytes, bytes] = (b"", b""),
        high: tuple[bytes, bytes] | None = None,
        *,
        likely: int | None = None,
    ) -> Iterator[tuple[bytes, bytes, bytes]]:
        _not_by_gets()

    def totals(self, space: int) -> Totals:
        _not_by_gets()

    def position(self, space: int) -> int:
        _not_by_gets()

    def stamp(self, moment: int) -> int:
        _not_by_gets()

    def delete_space(self, space: int) -> None:
        _not_by_gets()

    def put(self, space: int, partition: bytes, sort: bytes, value: bytes) -> None:
        self._own[space, partition, sort] = value

    def delete(self, space: int, partition: bytes, sort: bytes) -> None:
        self._own[space, partition, sort] = None

    def append(self, space: int, partition: bytes, value: bytes, stamp_at: int | None = None) -> None:
        self._appended.append((space, partition, value, stamp_at))

    def keep(self, space: int, partition: bytes, sort: bytes, value: bytes, moment: int) -> None:
        self._kept.append((space, partition, sort, value, moment))

    def count(self, space: int, records: int, bytes_: int) -> None:
        self._counted.append((space, records, bytes_))

    def wrote(self) -> bool:
        """Whether the body wrote anything."""
        return bool(self._own or self._appended or self._counted or self._kept)

    def end(self) -> None:
        """Drop the reader, because it is valid only while its own body runs."""
        self._reader = None

    def commit(self, txn: Transaction) -> None:
        """The short body, which writes the draft. Raises `_Overtaken` if a record that was read has
        changed."""
        for (space, partition, sort), seen in self._read.items():
            if txn.get(space, partition, sort) != seen:
                raise _Overtaken
        for (space, partition, sort), value in self._own.items():
            if value is None:
                txn.delete(space, partition, sort)
            else:
                txn.put(space, partition, sort, value)
        # The engine numbers and stamps these records now, after all that were committed in the meantime.
        for space, partition, content, stamp_at in self._appended:
            txn.append(space, partition, content, stamp_at)
        for space, partition, sort, content, moment in self._kept:
            txn.keep(space, partition, sort, content, moment)
        for space, records, bytes_ in self._counted:
            txn.count(space, records, bytes_)


def _not_by_gets() -> NoReturn:
    raise _NotByGets


def write_aside(engine: Engine, body: Callable[[Transaction], T]) -> T:
    """As `Engine.write`, for a body that takes long. Called on a worker thread, not on the event loop."""

    def draft(reader: Reader) -> tuple[T, Draft]:
        made = Draft(reader)
        try:
            return body(made), made
        finally:
            made.end()

    try:
        for _ in range(ATTEMPTS_MAX):
            result, made = engine.read(draft)
            if not made.wrote():
                return result
            try:
                engine.write(made.commit)
            except _Overtaken:
                continue
            return result
    except _NotByGets:
        pass
    return engine.write(body)
