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

A body must not catch a `BaseException` that is not an `Exception`: `pace` raises one when the body has taken
too long for the thread that it runs on, and an engine may raise one to fetch records that the body needs, and
run it again. Such an exception passes through `read`, `write`, `submit` and `submit_read` unchanged, and the
body has written nothing. A body that runs after `submit` has returned ends with `Stopped` instead.

What every engine promises (and `hashrange_engine_tests` tests):

- Write bodies are serializable. A body sees its own writes and those of every body before it.
- A body that raises leaves nothing behind; the exception reaches the caller.
- `write` returns, and `submit` calls `done`, only when the writes are durable (memory: applied).
- If a commit fails, each body in it, and each body that saw writes of it, ends with `CommitFailed`, and none
  of their writes is visible afterwards. If the engine cannot find out whether the commit failed, for example
  after a lost connection, they end with `CommitUnknown`: then all of their writes are visible or none, and
  that does not change after the next commit that succeeds.
- `read` sees committed records only, all from one moment. Its scans of logs may lack the newest records:
  those whose numbers are above that of a commit which is still under way.
- Numbers of logs and stamps of bodies are in the order of the bodies: a body has higher ones than all bodies
  that had ended before it began, and all that it depends on, as where both touch one record. Independent
  commits that are under way at the same time may end in another order than that of their numbers and stamps.
- A reader that has seen the record n of a log never later sees a new one below n.
- In the order of a log's numbers, its stamps never decrease.
- Partitions and sorts are ordered as unsigned bytes.

A time that orders records has to be a stamp: bodies may commit in another order than that of their times,
above all on several servers. Code that stores a time elsewhere, as tokens do, must work with times in any
order.

`loops` has what an engine does with an event loop, `capabilities` what only some engines can do, `failures`
the errors. Knows nothing of tables, items or time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar

from hashrange.storage.failures import CommitFault
from hashrange.storage.loops import Done, Loop

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
        commit, and stores it at `(space, partition, sequence as 8 bytes big-endian)`. No two records of a
        space have the same number, also across restarts. The module says in which order they are.

        `stamp_at` is the offset in the value of a stamp, such as a time: `STAMP_BYTES` bytes, at the same
        offset in all records of the log. If the stamp is smaller (as unsigned bytes) than the stamp of the
        log's newest record, the engine stores the newest record's stamp instead; it may take that of a commit
        under way to another log. So stamps never decrease, whatever stamps the bodies gave. Whether a deleted
        record counts as the newest is not defined.
        """
        ...

    def position(self, space: int) -> int:
        """A sequence number that no record of the space has. It is above the numbers of all records appended
        before, also by this body, and below those of all records appended later. Whoever reads what this body
        has written reads all records of the space's logs up to this number."""
        ...

    def stamp(self, moment: int) -> int:
        """The body's stamp (unsigned 64-bit): `moment`, or a greater number if the store's last stamp is not
        below `moment`, or if a body that commits together with this one gives a greater moment.

        A body has one stamp: later calls return the stamp of the first. No two bodies have the same, across
        all spaces and restarts. Every body that commits later than one that has asked for its stamp gets a
        greater one: what is kept up to that stamp never changes.
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


class Engine(Protocol):
    """A store. `commit_fault` is for tests; every engine calls it. `runs_once`: a submitted body that has
    succeeded never runs again, so what it needs may be freed."""

    name: str
    runs_once: bool
    commit_fault: CommitFault | None

    @property
    def loop(self) -> Loop:
        """The event loop that delivers the outcomes of submitted bodies; it may be set at any time."""
        ...

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
        """Like `write`, without waiting: `done` gets the outcome, before `submit` returns or through `loop`.

        An engine that has too much under way queues the body, and runs it later on the loop.
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
