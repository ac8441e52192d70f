"""An engine that wraps another engine and runs every body several times, as the contract allows.

For tests of the code above the contract, which must work on `Reruns(engine)` as it does on `engine`.
A body is run

1. from its beginning up to its first read, which is interrupted by a `BaseException`; then up to its second
   read, and so on (`interruptions_max` times at most), as by an engine that has to fetch what a body reads;
2. to its end, but its writes and its result or exception are thrown away;
3. to its end, and this run counts.

With `alone` (nobody else writes meanwhile) the last two runs must write, return and raise the same, or the
caller gets an AssertionError. That finds bodies that count something outside of their transaction, change
their arguments or draw an identifier.

A body that the inner engine runs after `submit` has returned runs only once. Refuses to know: the inner
engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from hashrange.storage.api import Address, Engine, Reader, Totals, Transaction
from hashrange.storage.failures import CommitFault
from hashrange.storage.loops import Done, Loop

T = TypeVar("T")
Place = tuple[Any, ...]

INTERRUPTIONS_MAX = 8


class Interrupted(BaseException):
    """The body is run again from its beginning. Not an `Exception`, so the body must let it through."""


class Reruns:
    """The engine. `runs` counts how often bodies were run, `bodies` how many there were."""

    def __init__(
        self, engine: Engine, *, alone: bool = False, interruptions_max: int = INTERRUPTIONS_MAX
    ) -> None:
        self.inner = engine
        self.name = engine.name
        self.runs_once = False
        self.bodies = 0
        self.runs = 0
        self._alone = alone
        self._interruptions_max = interruptions_max

    @property
    def commit_fault(self) -> CommitFault | None:
        """The fault of the inner engine."""
        return self.inner.commit_fault

    @commit_fault.setter
    def commit_fault(self, fault: CommitFault | None) -> None:
        self.inner.commit_fault = fault

    @property
    def loop(self) -> Loop:
        """The event loop of the inner engine."""
        return self.inner.loop

    def read(self, body: Callable[[Reader], T]) -> T:
        body_runs = self._begin(body)
        while True:
            try:
                return self.inner.read(body_runs.run)  # type: ignore[no-any-return]
            except Interrupted:
                self.runs += 1

    def write(self, body: Callable[[Transaction], T]) -> T:
        body_runs = self._begin(body)
        while True:
            try:
                return self.inner.write(body_runs.run)  # type: ignore[no-any-return]
            except Interrupted:
                self.runs += 1

    def submit_read(self, body: Callable[[Reader], Any], done: Done) -> None:
        self._submit(self.inner.submit_read, body, done)

    def submit(self, body: Callable[[Transaction], Any], done: Done) -> None:
        self._submit(self.inner.submit, body, done)

    def _submit(self, submit: Callable[[Any, Done], None], body: Callable[[Any], Any], done: Done) -> None:
        body_runs = self._begin(body)
        try:
            while True:
                try:
                    return submit(body_runs.run, done)
                except Interrupted:
                    self.runs += 1
        finally:
            body_runs.is_last = True

    def _begin(self, body: Callable[[Any], Any]) -> _Runs:
        self.bodies += 1
        self.runs += 1
        return _Runs(body, self._interruptions_max, alone=self._alone)

    def refusing(self) -> str | None:
        return self.inner.refusing()

    def checkpoint(self, directory: str) -> None:
        self.inner.checkpoint(directory)

    def upkeep(self) -> None:
        self.inner.upkeep()

    def close(self) -> None:
        self.inner.close()


class _Runs:
    """The runs of one body; `is_last`: the next run counts."""

    __slots__ = ("_alone", "_body", "_interruptions_left", "_known", "_whole", "is_last")

    def __init__(self, body: Callable[[Any], Any], interruptions_max: int, *, alone: bool) -> None:
        self._body = body
        self._alone = alone
        self._interruptions_left = interruptions_max
        self._known: set[Place] = set()
        self._whole: Any = None
        self.is_last = False

    def run(self, inner: Any) -> Any:
        """The function that the engine runs instead of the body."""
        if self.is_last and not self._alone:
            return self._body(inner)
        watched = _Watched(inner, self)
        outcome: tuple[str, Any]
        raised: Exception | None = None
        try:
            result = self._body(watched)
            outcome = ("returned", result)
        except Exception as error:
            raised = error
            outcome = ("raised", (type(error), str(error)))
        if not self.is_last:
            self.is_last = True
            self._whole = (*outcome, watched.written)
            raise Interrupted
        if self._alone and self._whole is not None:
            whole = (*outcome, watched.written)
            assert _alike(self._whole, whole), f"two runs of one body differ: {self._whole} and {whole}"
        if raised is not None:
            raise raised
        return result

    def look(self, place: Place) -> None:
        """Interrupt the body if it reads at a place for the first time."""
        if not self.is_last and self._interruptions_left > 0 and place not in self._known:
            self._known.add(place)
            self._interruptions_left -= 1
            raise Interrupted


def _alike(first: Any, other: Any) -> bool:
    """Whether two values are equal, as far as their parts can be compared."""
    if type(first) is not type(other):
        return False
    if isinstance(first, dict):
        return list(first) == list(other) and all(_alike(first[key], other[key]) for key in first)
    if isinstance(first, list | tuple):
        return len(first) == len(other) and all(map(_alike, first, other))
    return first == other or _is_opaque(first)


def _is_opaque(value: Any) -> bool:
    """Whether a value equals itself only."""
    equality: object = type(value).__eq__
    return equality is object.__eq__


class _Watched:
    """The transaction or reader that a body gets: it reports reads, and notes writes."""

    __slots__ = ("_inner", "_runs", "written")

    def __init__(self, inner: Any, runs: _Runs) -> None:
        self._inner = inner
        self._runs = runs
        self.written: list[Place] = []

    def get(self, space: int, partition: bytes, sort: bytes) -> bytes | None:
        self._runs.look(("get", space, partition, sort))
        return self._inner.get(space, partition, sort)  # type: ignore[no-any-return]

    def get_many(self, addresses: Iterable[Address | tuple[int, bytes, bytes]]) -> list[bytes | None]:
        wanted = tuple(addresses)
        self._runs.look(("get_many", *wanted))
        return self._inner.get_many(wanted)  # type: ignore[no-any-return]

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
        place = ("scan", space, partition, low, high, reverse)
        self._runs.look(place)
        records = self._inner.scan(space, partition, low, high, reverse=reverse, likely=likely)
        return self._walk(records, place)

    def scan_space(
        self,
        space: int,
        low: tuple[bytes, bytes] = (b"", b""),
        high: tuple[bytes, bytes] | None = None,
        *,
        likely: int | None = None,
    ) -> Iterator[tuple[bytes, bytes, bytes]]:
        place = ("scan_space", space, low, high)
        self._runs.look(place)
        return self._walk(self._inner.scan_space(space, low, high, likely=likely), place)

    def _walk(self, records: Iterator[Any], place: Place) -> Iterator[Any]:
        """The scan, which may be interrupted once more after its first record."""
        for record in records:
            yield record
            self._runs.look((*place, "more"))

    def totals(self, space: int) -> Totals:
        self._runs.look(("totals", space))
        return self._inner.totals(space)  # type: ignore[no-any-return]

    def position(self, space: int) -> int:
        self._runs.look(("position", space))
        return self._inner.position(space)  # type: ignore[no-any-return]

    def put(self, space: int, partition: bytes, sort: bytes, value: bytes) -> None:
        self.written.append(("put", space, partition, sort, value))
        self._inner.put(space, partition, sort, value)

    def delete(self, space: int, partition: bytes, sort: bytes) -> None:
        self.written.append(("delete", space, partition, sort))
        self._inner.delete(space, partition, sort)

    def delete_space(self, space: int) -> None:
        self.written.append(("delete_space", space))
        self._inner.delete_space(space)

    def append(self, space: int, partition: bytes, value: bytes, stamp_at: int | None = None) -> None:
        self.written.append(("append", space, partition, value, stamp_at))
        self._inner.append(space, partition, value, stamp_at)

    def stamp(self, moment: int) -> int:
        self._runs.look(("stamp",))
        self.written.append(("stamp", moment))
        return self._inner.stamp(moment)  # type: ignore[no-any-return]

    def keep(self, space: int, partition: bytes, sort: bytes, value: bytes, moment: int) -> None:
        self.written.append(("keep", space, partition, sort, value, moment))
        self._inner.keep(space, partition, sort, value, moment)

    def count(self, space: int, records: int, bytes_: int) -> None:
        self.written.append(("count", space, records, bytes_))
        self._inner.count(space, records, bytes_)
