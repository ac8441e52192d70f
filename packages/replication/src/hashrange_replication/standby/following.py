"""Follows a copy: applies its segments to an open store, and makes that store the primary.

The store and the chain fit together as long as the note in the store, or `copy/state` after a restore or a
clean end, names the store's last batch. `Following.apply` stores the note with each batch, so a kill at any
moment leaves both. A directory that somebody has written to since is refused.

One thread calls `step` each second; tests call it themselves. `promote` and `step` exclude each other.

Refuses to know: what records mean, and who reads the store.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Event, RLock, Thread
from typing import Any, Final, Protocol

import msgspec

from hashrange.buckets import BucketError
from hashrange.clock import show_moment
from hashrange.storage import capabilities
from hashrange.storage.capabilities import Follower
from hashrange_replication import chain, lease
from hashrange_replication.failures import ERRORS, CopyError, Damaged
from hashrange_replication.format.batches import Batch
from hashrange_replication.format.segments import Segment
from hashrange_replication.lease import Record, Watch
from hashrange_replication.place import Place
from hashrange_replication.restore import Progress
from hashrange_replication.running import Copying, Setup, Succession
from hashrange_replication.spool import SPOOL
from hashrange_replication.standby import telling
from hashrange_replication.state import FOLDER, State, read_state, write_state

_log = logging.getLogger("hashrange.replication")

STEP_SECONDS: Final = 1.0
TELL_SECONDS: Final = 10.0
"""How often the standby says in the bucket how far it is."""
APPLIED_BYTES: Final = 1 << 20
"""About how much is applied at once: a larger batch would hold up readers."""
_MILLIS: Final = 1_000

_Records = Mapping[bytes, bytes | None]


class Engine(Protocol):
    """The engine of a standby, as this package needs it."""

    def follow(self, follower: Follower | None) -> capabilities.Position: ...

    def checkpoint(self, directory: str) -> None: ...

    def stand_by(self, why: Callable[[], str]) -> tuple[capabilities.Position, bytes | None]: ...

    def apply(self, batches: Iterable[_Records], note: bytes) -> None: ...

    def take_over(self) -> capabilities.Position: ...

    def upkeep(self) -> None: ...


class Note(msgspec.Struct, frozen=True, array_like=True):
    """What the store holds with its last batch, `batch`: where the chain goes on."""

    at: chain.Position
    batch: int


class Standby:
    """Follows the copy at `place` with the store in `directory`, from `begin` on. `promote_after`:
    the standby promotes itself when the primary has been silent for so many seconds; None: only when it is
    asked to.

    `again` is called with the reason, and with how to tell progress, when the store can no longer follow;
    after one of `ERRORS` it is called again by the next step. It may take long: the standby serves what it
    has meanwhile. `succeeding` is called when a promotion begins, `promoted` when the engine accepts writes.
    """

    def __init__(self, engine: Engine, setup: Setup, *, promote_after: float | None = None) -> None:
        """Raises CopyError for a directory that is no standby of this copy."""
        directory, place = setup.directory, setup.place
        state = read_state(directory)
        if state is None or state.place != place.shown:
            raise CopyError(_foreign(directory, place))
        self.id = state.owner
        self.place = place
        self._engine = engine
        self._setup = setup
        self._directory = directory
        self._key = setup.key
        self._clock = setup.clock
        self._now = setup.now
        self._promote_after = promote_after
        self._state = state
        self._lock = RLock()
        self._stop = Event()
        self._thread: Thread | None = None
        self._watch = Watch(place, setup.now)
        self._epoch = state.epoch
        self._known_at = setup.now()
        self._told_at = -TELL_SECONDS
        self._moment = 0
        self.at = chain.Position(0, 1, "", 0)
        """Where the chain goes on."""
        self.batch = 0
        """The last batch in the store."""
        self.problem = ""
        """Why the last step failed."""
        self._is_forced = False
        self.is_done = False
        """Whether the standby follows no more: it was promoted, or the store cannot follow."""
        self._stuck = ""  # why the store can no longer follow, until `again` is done
        self._restoring = ""
        self.again: Callable[[str, Progress], None] = lambda why, progress: None
        self.succeeding: Callable[[Copying], None] = lambda copying: None
        self.promoted: Callable[[Copying], None] = lambda copying: None

    def begin(self) -> None:
        """Refuse writes, and find where the chain goes on. Raises CopyError, StorageError."""
        position, stored = self._engine.stand_by(self.refusal)
        self._store_id, self.batch = position
        note = msgspec.json.decode(stored, type=Note) if stored is not None else None
        end = self._state.end
        spool = self._directory / FOLDER / SPOOL
        if spool.is_dir() and any(spool.iterdir()):
            end = note = None
        if note is not None and note.batch == self.batch:
            self.at = note.at
        elif end is not None and end.after == self.batch:
            self.at = end
        else:
            raise CopyError(_foreign(self._directory, self.place))

    # A step.

    def step(self) -> None:
        """Follow the copy to its end, or have the store restored. What fails is a `problem` until the next
        step."""
        self._step()
        if self._stuck:
            try:
                self.again(self._stuck, self._progress)
                self._stuck = self._restoring = ""
            except ERRORS as error:
                self.problem = f"the store cannot be restored: {error}"

    def _progress(self, step: str, done: int, total: int) -> None:
        """As `Progress`. Raises CopyError when the standby ends."""
        if self._stop.is_set():
            raise CopyError("the standby ends")
        self._restoring, self.problem = f"{done / (total or 1):.0%} of the {step}", ""

    def _step(self) -> None:
        with self._lock:
            self._is_forced = False
            if self.is_done:
                return
            try:
                record = self._follow()
                self._register(record)
                self._tell()
                self._engine.upkeep()
                self.problem = ""
            except ERRORS as error:
                self.problem = str(error)
                return
            quiet = self._watch.quiet_seconds()
            if self._promote_after is not None and quiet >= self._promote_after and not self.is_done:
                self._promote_itself(record, quiet)

    def _follow(self) -> Record:
        """Apply all that the copy has; returns the lease's record from before."""
        began, record = self._now(), self._watch.look()
        if record is None:
            raise CopyError(f"There is no copy at {self.place.shown} any more.")
        if record.store_id != self._store_id:
            raise CopyError(
                f"The copy at {self.place.shown} is of another store now, {record.store_id}. Start a standby "
                "with a new directory."
            )
        # (a later base begins a chain in a later epoch: until there is one, this request is spared)
        listing = chain.list_after(self.place, self.at, bases=record.epoch > self.at.epoch)
        found = chain.Chain(self.place, self._key, listing)
        try:
            for segment, after in found.walk(self.at):
                self._apply(segment, after)
        except Damaged as error:
            self._look_for_base(str(error))
            raise
        if not self._begins_again(found):
            # Nothing in the listing follows, and it was made after the record was read.
            self._epoch, self._known_at = record.epoch, began
        return record

    def _apply(self, segment: Segment, after: chain.Position) -> None:
        held: list[Batch] = []
        size = 0
        for batch in segment.batches:
            if batch.number <= self.batch:
                continue
            if size >= APPLIED_BYTES:
                self._commit(held, self.at)
                held, size = [], 0
            held.append(batch)
            size += sum(len(key) + len(value or b"") for key, value in batch.records.items())
        if held:
            self._commit(held, after)
        self.at = after

    def _commit(self, batches: list[Batch], at: chain.Position) -> None:
        last = batches[-1]
        note = msgspec.json.encode(Note(at, last.number))
        self._engine.apply([batch.records for batch in batches], note)
        self.batch, self._moment = last.number, last.moment

    def _begins_again(self, found: chain.Chain) -> bool:
        """Whether the chain goes on elsewhere, so that this store cannot follow. If the copy has a base
        there, `again` is called."""
        here, listing = self.at, found.listing
        later = sorted(name.epoch for name in listing.segments if name.epoch > here.epoch)
        if later:
            head = found.head(later[0])
            why = f"a chain began in epoch {head.epoch}, and this store ends in epoch {here.epoch}"
            if not head.is_root:
                self._renounce(why)  # this store has batches of a server that was overtaken
                return True
        for name in sorted(listing.bases, reverse=True):
            if found.manifest(name).predecessor != here.predecessor:
                self._renounce(f"a chain began in epoch {name.epoch}, with a base")
                return True
        if later and not self._is_forced:
            raise CopyError(
                f"{why}; its base is not there yet. If the primary is dead for certain, promote with "
                "--force: what that chain has is lost, because the copy has no base for it."
            )
        return False

    def _look_for_base(self, why: str) -> None:
        """If a base has more than this store, a segment that is lost does no harm."""
        if any(name.batch > self.batch for name in chain.list_bases(self.place)):
            self._renounce(why)

    def _renounce(self, why: str) -> None:
        if not self.is_done:
            self.is_done = True
            _log.warning("the standby is restored again", extra={"fields": {"cause": why}})
            self._stuck = why

    def _register(self, record: Record) -> None:
        if record.standby != self.id and not record.standby and record.owner != self.id:
            lease.register(self.place, self.id)

    def _tell(self, *, at_once: bool = False) -> None:
        if self._now() - self._told_at < TELL_SECONDS and not at_once:
            return
        self._told_at = self._now()
        told = telling.Told(
            id=self.id,
            where=self._setup.where,
            batch=self.batch,
            moment=self._moment,
            at=int(self._clock() * _MILLIS),
            lag_seconds=round(self.lag_seconds, 1),
        )
        telling.tell(self.place, told)

    # Promotion.

    def promote(self, *, force: bool = False) -> Copying:
        """Make this store the primary: wait until the lease may be taken, follow the copy to its end, ship
        to it, and accept writes. Without `force` only if the primary has agreed to this standby, or has given
        the lease up.

        Raises CopyError, Held, Fenced, StorageError, BucketError, OSError; then the standby goes on to
        follow.
        """
        with self._lock:
            self._is_forced = force
            self._follow()
            if self.is_done:
                raise CopyError("the standby is being restored, or is the primary already.")
            self._write_state()
            succession = Succession(self._watch, self._catch_up, not force)
            copying = Copying(self._engine, self._setup, succession)
            self.succeeding(copying)
            try:
                copying.begin()
            except BaseException:
                self._engine.follow(None)
                self._write_state()
                raise
            self.is_done = True
            self._engine.take_over()
            self.promoted(copying)
            self._stop.set()
        with contextlib.suppress(OSError, BucketError):
            telling.forget(self.place, self.id)
        fields = {"copy": self.place.shown, "epoch": copying.lease.epoch, "batch": self.batch}
        _log.warning("the standby is the primary now", extra={"fields": fields})
        return copying

    def _catch_up(self) -> chain.Position:
        self._follow()
        if self.is_done:
            raise CopyError("the chain of the copy goes on elsewhere.")
        return replace(self.at, after=self.batch)

    def _write_state(self) -> None:
        end = replace(self.at, after=self.batch)
        state = State(owner=self.id, place=self.place.shown, epoch=self._epoch, end=end, has_standby=True)
        write_state(self._directory, state)

    def _promote_itself(self, record: Record, quiet: float) -> None:
        if not record.yields_to(self.id):
            self.problem = "the primary is silent, and has not agreed to this standby"
            return
        _log.warning("the primary is silent", extra={"fields": {"seconds": round(quiet)}})
        try:
            self.promote()
        except ERRORS as error:
            self.problem = str(error)

    # The thread.

    def start(self) -> None:
        """Start the thread."""
        self._thread = Thread(target=self._run, name="hashrange-standby", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(STEP_SECONDS):
            try:
                self.step()
            except Exception:
                self.problem = "following failed; the log has the error"
                _log.exception("following failed", extra={"fields": {"copy": self.place.shown}})

    def close(self) -> None:
        """End, and note where the chain goes on. The registration stays: the standby may come back."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        if self.is_done and not self._stuck:
            return
        try:
            self._write_state()
            self._tell(at_once=True)
        except (OSError, BucketError) as error:
            _log.warning("the standby was not ended well", extra={"fields": {"error": str(error)}})

    # What others show.

    @property
    def lag_seconds(self) -> float:
        """How long ago the store held all that the copy had."""
        return max(0.0, self._now() - self._known_at)

    @property
    def is_agreed(self) -> bool:
        """Whether the primary has agreed to this standby, and its store follows: it may be promoted."""
        record = self._watch.record
        return record is not None and record.yields_to(self.id) and not self._stuck

    def refusal(self) -> str:
        """Why a request is refused, and what to do."""
        record = self._watch.record
        primary = f" ({record.where})" if record is not None else ""
        return (
            f"This server is a standby of the copy at {self.place.shown}, {self.lag_seconds:.0f} s behind: "
            "it answers eventually consistent reads only. Send writes and strongly consistent reads to the "
            f"primary{primary}; if that is lost, `hashrange replica promote` makes this server the primary."
        )

    def shown(self) -> dict[str, Any]:
        """How far the standby is, for `/health`."""
        record = self._watch.record
        shown: dict[str, Any] = {
            "copy": self.place.shown,
            "role": "standby",
            "id": self.id,
            "primary": record.where if record is not None else None,
            "lag_seconds": round(self.lag_seconds, 1),
            "epoch": self.at.epoch,
            "batch": self.batch,
            "may_be_promoted": self.is_agreed,
        }
        if self._moment:
            shown["last_commit"] = show_moment(self._moment / _MILLIS)
        if self._restoring:
            shown["restoring"] = self._restoring
        if self.problem:
            shown["problem"] = self.problem
        return shown


def _foreign(directory: Path, place: Place) -> str:
    return (
        f"The directory {directory} is no standby of the copy at {place.shown}: it holds another store, or "
        "writes that the copy may lack. Start the standby with a new directory; keep this one until you have "
        "looked at it."
    )
