"""The storage contract: an ordered, transactional store of byte records.

A record's address is `(space, partition, sort)`:

    space      a number below 0xFFFFFFFF (which is reserved for the engine): one table's items, one index's
               entries, a stream, the catalog, …
               Space 0 holds records that nearly every body reads: an engine may keep it in memory.
    partition  at most 32 bytes; within one space all partitions that `scan_space` walks have the same length
    sort       order-preserving bytes; `len(partition) + len(sort)` is at most 2,300

A body is a plain synchronous function of a `Reader` or `Transaction`. An engine decides when, and how
often, it runs a body: a body may have effects only through its transaction and its return value. It
must not call the engine, nor use the reader, the transaction or a scan after it has ended. Read bodies
should be short, a page at a time, because an engine may have to keep the old version of every record that
changes while a read body runs.

A body must not catch a `BaseException` that is not an `Exception`. `pace` raises one when the
body has taken too long for the thread that it runs on. An engine may raise one to stop a body, fetch records
that the body needs, and run it again. Such an exception passes through `read`, `write`, `submit` and
`submit_read` unchanged, and the body has written nothing. A submitted body that the engine queued, and ran
after `submit` had returned, ends with `Stopped` instead, and the bodies queued after it still run.

What every engine promises (and `storage.contract` tests):

- Write bodies are serializable. A body sees its own writes and those of every body before it.
- A body that raises leaves nothing behind; the exception reaches the caller.
- `write` returns, and `submit` calls `done`, only when the writes are durable (memory: applied).
- If a commit fails, each body in it, and each body that saw writes of it, ends with `CommitFailed`, and none
  of their writes is visible afterwards. If the engine cannot find out whether the commit failed, for example
  after a lost connection, they end with `CommitUnknown`: then all of their writes are visible or none, and
  that does not change after the next commit that succeeds.
- `read` sees committed records only, all from one moment.
- The numbers of a log's records increase in commit order, and their stamps never decrease.
- The stamps of bodies (`Transaction.stamp`) increase in commit order.
- Partitions and sorts are ordered as unsigned bytes.

A time that orders records has to be a stamp (`Transaction.append`, `Transaction.stamp`). A body is given its
time before it runs, and bodies may commit in another order than that of their times, above all on several
servers. Only numbers and stamps never go back in commit order. Code that stores a time elsewhere, as tokens
do, must work with times in any order.

Knows nothing of tables, items or time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

from hashrange.clock import Clock, SystemClock

T = TypeVar("T")

PARTITION_BYTES_MAX = 32
ADDRESS_BYTES_MAX = 2_300
STAMP_BYTES = 8


class Address(NamedTuple):
    """Where a record is."""

    space: int
    partition: bytes
    sort: bytes


class Totals(NamedTuple):
    """The exact totals of a space, as summed by `Transaction.count`."""

    records: int
    bytes: int


class Reader(Protocol):
    """A consistent view of the store, valid while the body runs."""

    def get(self, space: int, partition: bytes, sort: bytes) -> bytes | None:
        """The record's value, or None."""
        ...

    def get_many(self, addresses: Iterable[Address | tuple[int, bytes, bytes]]) -> list[bytes | None]:
        """The values at `addresses`, in the same order; None for a missing record."""
        ...

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
        """The records of one partition with `low <= sort < high`, as `(sort, value)`, in order.

        `high=None` means to the end of the partition. `reverse` starts at the highest. A body may
        write while its scan is under way; whether that scan shows those writes is not defined.

        `likely` is the number of records that the body expects to take; None: about a megabyte, or all. It
        changes no result. An engine that fetches records from elsewhere fetches that many first.
        """
        ...

    def scan_space(
        self,
        space: int,
        low: tuple[bytes, bytes] = (b"", b""),
        high: tuple[bytes, bytes] | None = None,
        *,
        likely: int | None = None,
    ) -> Iterator[tuple[bytes, bytes, bytes]]:
        """The records of a space with `low <= (partition, sort) < high`, as `(partition, sort, value)`.

        The partitions in `low` and `high` may be shorter or longer than those of the space. `likely` is as in
        `scan`.
        """
        ...

    def totals(self, space: int) -> Totals:
        """The totals of a space; `(0, 0)` if nothing was counted."""
        ...


class Transaction(Reader, Protocol):
    """A reader that also writes. Its reads see its own writes."""

    def put(self, space: int, partition: bytes, sort: bytes, value: bytes) -> None:
        """Set a record."""
        ...

    def delete(self, space: int, partition: bytes, sort: bytes) -> None:
        """Remove a record; nothing happens if it does not exist."""
        ...

    def delete_space(self, space: int) -> None:
        """Remove all records and totals of a space. No body may write to that space again."""
        ...

    def append(self, space: int, partition: bytes, value: bytes, stamp_at: int | None = None) -> None:
        """Add a record to a log.

        The engine gives the record its sequence number (unsigned 64-bit, at least 1) by the time of the
        commit, and stores it at `(space, partition, sequence as 8 bytes big-endian)`. Within a space,
        sequence numbers strictly increase in commit order, also across restarts; a reader that has seen
        number n never later sees a new record below n.

        `stamp_at` is the offset in the value of a stamp, such as a time: `STAMP_BYTES` bytes, at the same
        offset in all records of the log. If the stamp is smaller (as unsigned bytes) than the stamp of the
        log's newest record, the engine stores the newest record's stamp instead. So stamps never decrease in
        commit order, whatever stamps the bodies gave. Whether a deleted record counts as the newest is not
        defined.
        """
        ...

    def position(self, space: int) -> int:
        """A sequence number that no record of the space has. It is above the numbers of all records appended
        before, also by this body, and below those of all records appended later."""
        ...

    def stamp(self, moment: int) -> int:
        """The body's stamp (unsigned 64-bit): `moment`, or a greater number if the store's last stamp is not
        below `moment`.

        A body has one stamp: later calls return the stamp of the first. Stamps strictly increase in
        commit order, across all spaces and restarts: every body that commits later gets a greater stamp.
        """
        ...

    def keep(self, space: int, partition: bytes, sort: bytes, value: bytes, moment: int) -> None:
        """Set the record whose sort is `sort` followed by the body's stamp, `stamp(moment)`, as 8 bytes
        big-endian. The engine decides the stamp by the time of the commit. If the body keeps two values at
        one address, the first one stays."""
        ...

    def count(self, space: int, records: int, bytes_: int) -> None:
        """Add to the totals of a space (negative to subtract). Bodies never conflict by counting."""
        ...


Done = Callable[[Any, "Exception | None"], None]
"""Called exactly once with `(result, None)` or `(None, exception)`."""


LoopWatch = Callable[[int, "Callable[[], None] | None"], object]
"""Called with a descriptor and a callback, which the event loop calls whenever there is something to read
from the descriptor. None in place of the callback ends the watch."""

Moment = Literal["before", "after"]
"""A moment of a commit: before any write reached the store, or after all writes did and before any caller
hears of it."""

CommitFault = Callable[[Moment], None]
"""Called by an engine at both moments of each commit that writes something. An exception from it fails the
commit with `CommitFailed`. If it raises `CommitUnknown`, the bodies end with `CommitUnknown`, and their
writes are stored if the moment was "after". `storage.contract.faults` makes such functions."""


class Snapshot:
    """The records of a store at one moment. Only the engine that made the snapshot can use it."""

    __slots__ = ()


class Engine(Protocol):
    """A store. `commit_fault` is for tests; every engine calls it."""

    name: str
    commit_fault: CommitFault | None

    def read(self, body: Callable[[Reader], T]) -> T:
        """Run `body` on one consistent snapshot of the committed records."""
        ...

    def write(self, body: Callable[[Transaction], T]) -> T:
        """Run `body` and return its result once its writes are durable. Any thread may call it."""
        ...

    def submit_read(self, body: Callable[[Reader], Any], done: Done) -> None:
        """Like `read`, without waiting: `done` gets the outcome, at once, or later as for `submit`."""
        ...

    def submit(self, body: Callable[[Transaction], Any], done: Done) -> None:
        """Like `write`, without waiting: `done` gets the outcome.

        If the outcome need not wait, `done` may be called before `submit` returns. Otherwise it is called
        through the function given to `deliver_on`, once per batch, so that an event loop is woken once
        for all the requests of a batch. `submit` never waits: an engine that has too much under way queues
        the body, and runs it later. A body does not block the loop for longer than `pace.TURN_SECONDS`, and
        queued bodies run a few at a time.
        """
        ...

    def deliver_on(
        self,
        deliver: Callable[[Callable[[], None]], None],
        defer: Callable[[Callable[[], None]], object] | None = None,
        watch: LoopWatch | None = None,
    ) -> None:
        """Use the event loop whose thread calls this and will call `submit`. An engine that was given no loop
        delivers outcomes, and runs queued bodies, on threads of its own.

        `deliver(callback)` has the loop call `callback`, for example by `call_soon_threadsafe`. The engine
        calls `deliver` on any thread, to deliver outcomes or to run queued bodies. `deliver` must not block.
        If it raises, because the loop is closed, the engine drops these outcomes and goes on.

        `defer(callback)`, for example `call_soon`, has the loop call `callback` in its next round, when the
        caller of `submit` has nothing more to submit for now. The engine calls `defer` on the loop's thread
        only. It starts a commit in that round, so that the commit holds all bodies that were submitted
        together.

        `watch(descriptor, callback)`, for example by `add_reader` and `remove_reader`, has the loop call
        `callback` whenever there is something to read, and `watch(descriptor, None)` ends this. An engine
        whose records another program keeps calls it on the loop's thread, with `defer`; others do not.

        Each call replaces all functions. Bodies that the former loop was to run then run on the new one, and
        outcomes that were not handed to the former `deliver` go to the new one. A callback of the former loop
        may still be called, at any time or never.
        """
        ...

    def refusing(self) -> str | None:
        """Why the engine currently refuses writes (with CommitFailed) while it serves reads; None if it
        accepts writes."""
        ...

    def checkpoint(self, directory: str) -> None:
        """Write a consistent copy of the store, which can be opened like the store itself. Raises
        `Unsupported` if the engine cannot."""
        ...

    def upkeep(self) -> None:
        """Begin the engine's own background work, such as giving back the disk space of deleted records.

        Call it about once a second, and more often while records are deleted. It returns soon. Only
        `close` waits for the background work, and cuts it short.
        """
        ...

    def close(self) -> None:
        """Wait for the bodies and commits under way, then release everything. Idempotent.

        Queued bodies run to their end, on the engine's threads and without the time limit of a turn, because
        the event loop may have ended, or be waiting for `close`. Their outcomes are delivered as usual.
        """
        ...


@runtime_checkable
class Rewinding(Protocol):
    """An engine that can go back to what it held before."""

    def snapshot(self) -> Snapshot:
        """All records as they are now, for `restore`."""
        ...

    def restore(self, snapshot: Snapshot) -> None:
        """Bring back the records, totals and sequence numbers of a snapshot, and drop everything written
        since. A snapshot may be restored many times. Raises `Unsupported` for a snapshot of another kind of
        engine."""
        ...


@runtime_checkable
class Remote(Protocol):
    """An engine whose records are stored by another program."""

    @property
    def connected_to(self) -> str:
        """Where that program is, without any password."""
        ...

    @property
    def clock(self) -> Clock:
        """That program's clock. All servers that share the store agree on it."""
        ...

    def counts(self) -> dict[str, int]:
        """Counters of the engine's work since its start, by names in the style of metrics."""
        ...


@runtime_checkable
class Local(Protocol):
    """An engine that keeps its records in a directory of this machine."""

    def checkpoint_inside(self) -> str:
        """Make a checkpoint in that directory for another process to copy; returns its path. The caller
        removes it. Raises StorageError."""
        ...

    def missing_files(self) -> str | None:
        """The files of the open store that somebody has removed, so that the store is lost when this process
        ends; None if no file is missing."""
        ...


def clock_of(engine: Engine) -> Clock:
    """The clock that a database over this engine follows, unless another one is given to it."""
    return engine.clock if isinstance(engine, Remote) else SystemClock()


class StorageError(Exception):
    """Something is wrong with the store or its use; the text says what to do."""


class StoreClosed(StorageError):
    """The store was used after it was closed."""

    def __init__(self) -> None:
        super().__init__(
            "The database is closed. Open it again with hashrange.Database.open(path), and make new clients "
            "with hashrange.client.connect; or close it later, after the last request."
        )


class CommitError(StorageError):
    """A batch was not acknowledged. The engine has logged the cause, once for all bodies of the batch."""


class CommitFailed(CommitError):
    """The engine could not make a batch durable; none of its writes is visible."""


class CommitUnknown(CommitError):
    """The engine does not know whether a batch became durable: either all of it did, or none of it."""


class Stopped(StorageError):
    """A queued body was ended by a `BaseException` that is not an `Exception`, such as `pace.TurnOver`. The
    body has written nothing, and may be run again."""


class DataDirectoryLocked(StorageError):
    """Another process has the data directory open."""


class UnknownFormat(StorageError):
    """The data directory was written by a newer or foreign program."""


class OutdatedFormat(StorageError):
    """The data directory was written by an older program, and has to be migrated."""


class UnfinishedCopy(StorageError):
    """The store is an unfinished copy: it is still being made, or was cut off."""


class StoreDamaged(StorageError):
    """Files of the store are missing or damaged. The engine has not changed them."""


class Unsupported(StorageError):
    """The engine does not have this capability."""
