"""What some engines can do beside the contract: go back to a snapshot, know the clock of their store, copy a
directory, tell its committed batches, or follow those of another store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol, runtime_checkable

from hashrange.clock import Clock, SystemClock
from hashrange.storage.api import Engine


class Snapshot:
    """The records of a store at one moment. Only the engine that made the snapshot can use it."""

    __slots__ = ()


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

    def commit_seconds(self) -> float:
        """How long the commit under way has been under way; 0 if there is none."""
        ...

    def problems(self) -> list[str]:
        """What is wrong with that program, as this process sees it, although it may still take writes."""
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

    def problems(self) -> list[str]:
        """The damage that was met since the store was opened, with the file and the remedy."""
        ...

    def discard(self, wanted: bool) -> None:
        """Whether to remove the store when this engine is closed, if the engine has made it, and the
        directories that were made for the store."""
        ...


class Position(NamedTuple):
    """How far a store is: its id, and the number of its last batch. Numbers grow, perhaps with gaps."""

    store_id: str
    batch: int


class Follower(Protocol):
    """Gets the batches of an engine in order, on the engine's commit thread. While it holds a batch, no
    further one is committed."""

    def committed(self, batch: int, records: Mapping[bytes, bytes | None], bytes_: int) -> str | None:
        """The batch with this number is durable, and neither visible nor acknowledged yet. `records` are all
        raw records that it wrote, the engine's own included (None: deleted); they never change. `bytes_` is
        about their size.

        Returns None, or why the batch must not be acknowledged: its bodies end with CommitUnknown, and the
        engine refuses writes until `refusing` returns None. An exception is such a reason."""
        ...

    def refusing(self) -> str | None:
        """Why the engine may not acknowledge writes at the moment; None if it may."""
        ...


@runtime_checkable
class Followed(Protocol):
    """An engine that tells somebody its committed batches."""

    def follow(self, follower: Follower | None) -> Position:
        """Tell `follower`, which takes the place of a former one, all batches after the returned position.
        Raises StoreClosed, CommitFailed."""
        ...


@runtime_checkable
class Following(Protocol):
    """An engine whose batches may come from another store, of which this store is a copy."""

    def stand_by(self, why: Callable[[], str]) -> tuple[Position, bytes | None]:
        """From now on bodies that write end with CommitFailed, of the text of `why`, and batches come from
        `apply`. Returns how far the store is, and the note of the last `apply`; None if there was none.
        Raises StoreClosed, CommitFailed."""
        ...

    def apply(self, batches: Iterable[Mapping[bytes, bytes | None]], note: bytes) -> None:
        """Commit the batches that follow, as a `Follower` of the other store got them, as one batch: readers
        see all of them or none. `note` is stored with them. Raises StoreClosed, CommitError."""
        ...

    def take_over(self) -> Position:
        """Accept the writes of bodies again, and no batches of others; returns how far the store is. Raises
        StoreClosed, CommitFailed."""
        ...


def clock_of(engine: Engine) -> Clock:
    """The clock that a database over this engine follows, unless another one is given to it."""
    return engine.clock if isinstance(engine, Remote) else SystemClock()
