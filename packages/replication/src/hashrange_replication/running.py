"""A server that ships: its lease, its shipper, its bases, and the threads that drive them.

    hashrange-copy-ship     each second, and when enough waits: `Shipper.step`
    hashrange-copy-lease    renews the lease, or takes it if the bucket was away at the start
    hashrange-copy-base     makes a base when one is due, and deletes what is not kept

Each thread does one step at a time (`ship`, `keep_lease`, `make_base`), which tests call themselves.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final, Protocol

from hashrange.storage.capabilities import Follower, Position
from hashrange.storage.failures import StorageError
from hashrange_replication import chain, retention
from hashrange_replication.bases import Bases
from hashrange_replication.failures import ERRORS, CopyError, Damaged, Fenced, Held
from hashrange_replication.format.sealing import Key
from hashrange_replication.lease import Lease, Record, Watch
from hashrange_replication.place import Place
from hashrange_replication.shipper import ACK_SECONDS, CUT_SECONDS, Shipper
from hashrange_replication.spool import SPOOL, Spool
from hashrange_replication.state import FOLDER, State, new_owner, read_state, write_state

_log = logging.getLogger("hashrange.replication")

RETENTION_SECONDS: Final = 3600.0
"""How often what is not kept is deleted."""
_HELD_SECONDS: Final = 1.0
_BASE_SECONDS: Final = 1.0
_PAUSE_SECONDS_MAX: Final = 60.0
END_SECONDS: Final = 5.0
"""How long a server that ends works on a base, if there is none. Docker kills after ten seconds."""
_LAST_TRIES: Final = 3


class Engine(Protocol):
    """The engine of the data directory, as this package needs it."""

    def follow(self, follower: Follower | None) -> Position: ...

    def checkpoint(self, directory: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Succession:
    """How a standby begins to ship. `watch` has observed the lease. `catch_up` is called when the standby has
    the lease: it applies what the chain has gained, and returns where the chain ends, behind the last batch
    of the store. `only_agreed` is as in `Lease`."""

    watch: Watch
    catch_up: Callable[[], chain.Position]
    only_agreed: bool


@dataclass(frozen=True, slots=True)
class Options:
    """`acks`: acknowledge only what the bucket has. `keep_seconds`: how long the past can be restored."""

    acks: bool = False
    ack_seconds: float = ACK_SECONDS
    spool_bytes: int = 1 << 30
    keep_seconds: float = 7 * 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a server is made of that ships the store in `directory` to `place`, or follows it. `where` tells
    people which server it is. `clock` gives the time of batches (epoch seconds), `now` is monotonic, `random`
    gives random bytes, and `wait` waits so many seconds; None: no longer than the server lives."""

    directory: Path
    place: Place
    key: Key | None = None
    options: Options = Options()
    where: str
    clock: Callable[[], float]
    now: Callable[[], float]
    random: Callable[[int], bytes]
    wait: Callable[[float], object] | None = None


class Copying:
    """Ships a store, from `begin` to `close`."""

    def __init__(self, engine: Engine, setup: Setup, succession: Succession | None = None) -> None:
        self.place = setup.place
        self.options = setup.options
        self._engine = engine
        self._directory = setup.directory
        self._key = setup.key
        self._where = setup.where
        self._clock = setup.clock
        self._now = setup.now
        self._succession = succession
        self._stop = Event()
        self._wait = setup.wait or self._stop.wait
        self._state = read_state(setup.directory)
        self._owner = self._state.owner if self._state is not None else new_owner(setup.random)
        self._threads: list[Thread] = []
        self._retained_at = -math.inf
        self._pause_seconds = _BASE_SECONDS
        self._retry_at = -math.inf
        self._guarded = False
        self.guard: Callable[[], None] = lambda: None
        """Called when a standby is registered: from then on reads have to ask `lease.refusing`."""
        self.problems: dict[str, str] = {}
        """What fails at the moment: "lease" or "base", and why."""
        self.spool = Spool(setup.directory / FOLDER / SPOOL, setup.options.spool_bytes)

    def begin(self) -> None:
        """Take the lease, and begin to follow the engine; with `acks`, make the base as well. If the bucket
        is away, go on without it, unless `acks` or a standby may have taken over.

        Raises CopyError, BucketError, StorageError, OSError.
        """
        position = self._engine.follow(None)
        succession = self._succession
        self.lease = Lease(
            self.place,
            self._owner,
            self._where,
            position.store_id,
            self._now,
            watch=succession.watch if succession is not None else None,
            only_agreed=succession is not None and succession.only_agreed,
        )
        self.lease.agreeing = self._agree
        self.shipper = Shipper(
            self.place,
            self._key,
            self.spool,
            self.lease,
            clock=self._clock,
            now=self._now,
            acks=self.options.acks,
            ack_seconds=self.options.ack_seconds,
        )
        self.bases = Bases(
            self._engine,
            self._directory,
            self.place,
            self._key,
            self.shipper,
            self.lease,
            clock=self._clock,
            now=self._now,
        )
        if self._state is not None and self._state.lacks_since:
            self.shipper.lacks_since = self._state.lacks_since
        try:
            if succession is not None:
                position = self._succeed(succession)
            else:
                self._attach(position.batch)
        except OSError as error:
            if succession or self.options.acks or (self._state is not None and self._state.has_standby):
                raise
            if self._state is None:
                self._write_state(None)  # the next start has to know since when the copy lacks everything
            self.problems["lease"] = str(error)
            fields = {"copy": self.place.shown, "error": str(error)}
            _log.warning("the copy's bucket is away; the server starts without it", extra={"fields": fields})
        told = self._engine.follow(self.shipper)
        if told != position and not self.shipper.broken:
            self.shipper.break_off("something was committed while the server started")
        if self.options.acks and not self.shipper.has_base:
            self.bases.make()

    def _attach(self, batch: int) -> None:
        """Take the lease, and find out whether the chain goes on at the store's last batch."""
        state = self._state
        if state is not None and state.place != self.place.shown:
            state = None
        before = self._take((state.epoch or None) if state is not None else None)
        listing = chain.list_copy(self.place, files=False)
        end = state.end if state is not None else None
        is_other = before is not None and before.owner != self._owner
        if end is not None and before is not None and is_other and self._goes_on(listing, end):
            self.lease.release()
            raise CopyError(
                f"The copy at {self.place.shown} holds writes that this directory lacks: {before.where} has "
                "shipped them since the restore. Restore once more; or, to give these writes up, remove "
                f"{self._directory / FOLDER}."
            )
        if end is not None and end.after == batch and listing.bases and self._meets(listing, end):
            self.shipper.follow_on(replace(end, epoch=self.lease.epoch), batch)
            newest = max(listing.bases)
            self.bases.continues(listing.bases[newest].bytes, newest.batch)
        else:
            self.shipper.lacks_since = self._known_until(listing, batch)
        self._write_state(None)

    def _goes_on(self, listing: chain.Listing, end: chain.Position) -> bool:
        """Whether a restore would find more behind `end`. Segments whose base was never finished are nothing
        that it finds."""
        try:
            return chain.Chain(self.place, self._key, listing).next_name(end) is not None
        except Damaged:
            return True

    def _known_until(self, listing: chain.Listing, batch: int) -> int:
        """The moment up to which a restore from the bucket finds everything (epoch milliseconds); now, if its
        last batch is `batch`, the store's last one. What an earlier process could not ship is not there."""
        copy = chain.Chain(self.place, self._key, listing)
        try:
            manifest = copy.base()
            last, moment = manifest.batch, manifest.moment
            name = copy.last_name(chain.start_of(manifest))
            if name is not None:
                header = copy.segment(name).header
                last, moment = max(last, header.last), max(moment, header.last_moment)
        except CopyError:  # there is no base yet, or the copy is damaged
            return self.shipper.lacks_since
        return int(self._clock() * 1_000) if last == batch else moment

    def _succeed(self, succession: Succession) -> Position:
        """Take the lease as a standby, and go on where the chain ends; returns how far the store is then."""
        self._take(self._state.epoch if self._state is not None else None)
        try:
            end = succession.catch_up()
            bases = chain.list_bases(self.place)
        except BaseException:
            self.lease.release()
            raise
        self._write_state(None)
        self.spool.drop()
        if bases:
            self.shipper.follow_on(replace(end, epoch=self.lease.epoch), end.after)
            self.bases.continues(bases[max(bases)].bytes, max(bases).batch)
        return self._engine.follow(None)

    def _take(self, known_epoch: int | None) -> Record | None:
        """Take the lease; wait for one that may have been left by a server that died."""
        renewals: tuple[int, int] | None = None
        while True:
            try:
                return self.lease.take(known_epoch)
            except Held:
                seen = self.lease.seen
                if seen is None or (renewals is not None and renewals != seen) or self._stop.is_set():
                    raise
                if renewals is None:
                    fields = {"copy": self.place.shown, "owner": self.lease.seen_where}
                    _log.warning("waiting for the lease of another server", extra={"fields": fields})
                renewals = seen
                self._wait(_HELD_SECONDS)

    def _meets(self, listing: chain.Listing, end: chain.Position) -> bool:
        """Whether the segments of the bucket, and behind them those of the spool, lead to `end`."""
        first, last = self.spool.first(), self.spool.last()
        in_bucket = listing.last_index()
        if first is None or last is None:
            return in_bucket + 1 == end.index
        return self.spool.is_whole and first.name.index <= in_bucket + 1 <= end.index == last.name.index + 1

    def _write_state(self, end: chain.Position | None) -> None:
        self._note(self.lease.epoch, end, has_standby=bool(self.lease.record.acknowledged))

    def _note(self, epoch: int, end: chain.Position | None, *, has_standby: bool) -> None:
        """Replace what the directory knows of its copy. Raises OSError."""
        state = State(
            owner=self._owner,
            place=self.place.shown,
            epoch=epoch,
            end=end,
            lacks_since=self.shipper.lacks_since,
            has_standby=has_standby,
        )
        write_state(self._directory, state)
        self._state = state

    # The steps of the threads.

    def ship(self) -> None:
        """A step of the shipping thread."""
        self.shipper.step()

    def keep_lease(self) -> None:
        """Renew the lease, or take it."""
        try:
            if not self.lease.epoch:
                self._attach(-1)  # the batches meanwhile were not collected
            else:
                self.lease.renew()
            self.problems.pop("lease", None)
        except Fenced as error:
            self.lease.fenced = self.problems["lease"] = str(error)
            _log.error("the copy was taken over", extra={"fields": {"error": str(error)}})
            self.shipper.wake.set()
        except ERRORS as error:
            self.problems["lease"] = str(error)
            if isinstance(error, CopyError) and not self.lease.epoch:
                self.lease.fenced = str(error)

    def _agree(self) -> None:
        """A standby is registered: from now on the lease counts, also after a crash. Raises OSError."""
        self._note(self._state.epoch if self._state is not None else 0, None, has_standby=True)
        if not self._guarded:
            self._guarded = True
            self.guard()

    def make_base(self) -> None:
        """Make a base if one is due, and delete what is not kept."""
        if not self.lease.epoch or self.lease.fenced is not None or self._now() < self._retry_at:
            return
        try:
            if why := self.bases.due():
                _log.info("making a base", extra={"fields": {"copy": self.place.shown, "cause": why}})
                self.bases.make()
            if self._now() - self._retained_at >= RETENTION_SECONDS:
                self._retained_at = self._now()
                self.retain()
            self._pause_seconds = _BASE_SECONDS
            self.problems.pop("base", None)
        except ERRORS as error:
            if not self._stop.is_set():
                self.problems["base"] = str(error)
                _log.warning("the copy has no new base", extra={"fields": {"error": str(error)}})
            self._retry_at = self._now() + self._pause_seconds
            self._pause_seconds = min(2 * self._pause_seconds, _PAUSE_SECONDS_MAX)

    def retain(self) -> int:
        """Delete what is not kept; returns how many objects. Raises CopyError, BucketError, OSError."""
        listing = chain.list_copy(self.place)
        found = retention.surplus(
            chain.Chain(self.place, self._key, listing), self._key, self._clock(), self.options.keep_seconds
        )
        return retention.delete(self.place, found)

    # The threads.

    def start(self) -> None:
        """Start the threads."""
        steps = {
            "ship": (self.ship, lambda: CUT_SECONDS, self.shipper.wake),
            "lease": (self.keep_lease, lambda: self.lease.renew_seconds, self._stop),
            "base": (self.make_base, lambda: _BASE_SECONDS, self._stop),
        }
        for name, arguments in steps.items():
            thread = Thread(target=self._run, args=arguments, name=f"hashrange-copy-{name}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def _run(self, step: Callable[[], None], pause: Callable[[], float], wake: Event) -> None:
        while not self._stop.is_set():
            wake.wait(pause())
            if wake is not self._stop:
                wake.clear()
            if self._stop.is_set():
                return
            try:
                step()
            except Exception:
                _log.exception("shipping failed", extra={"fields": {"copy": self.place.shown}})

    def close(self) -> None:
        """Ship what waits, if the bucket takes it; note where the chain goes on; give up the lease. Without a
        base nothing could be restored: then make one, if that takes at most END_SECONDS."""
        position: Position | None = None
        try:
            position = self._engine.follow(None)
        except StorageError as error:
            _log.warning("the copy does not end with the store", extra={"fields": {"error": str(error)}})
        self.bases.until = self._now() + (0.0 if self.shipper.has_base else END_SECONDS)
        self._stop.set()
        self.shipper.wake.set()
        for thread in self._threads:
            thread.join()
        if not self.lease.epoch or self.lease.fenced is not None:
            return
        for _ in range(1 if self.shipper.problem else _LAST_TRIES):
            self.shipper.step(at_once=True)
        if position is not None and not self.shipper.has_base:
            self._make_last_base(self.problem())
        is_whole = position is not None and not self.shipper.broken and self.shipper.has_base
        try:
            if position is not None and is_whole and self.shipper.told in (0, position.batch):
                self.spool.sync()
                self._write_state(replace(self.shipper.end, after=position.batch))
            self.lease.release()
        except ERRORS as error:
            _log.warning("the copy was not ended well", extra={"fields": {"error": str(error)}})

    def _make_last_base(self, problem: str) -> None:
        """Make a base at the end, unless there is a `problem` with the bucket already."""
        fields: dict[str, Any] = {"copy": self.place.shown, "seconds_max": END_SECONDS}
        try:
            if not problem:
                _log.info("the server ends once its copy has a base", extra={"fields": fields})
                self.bases.make()
                self.shipper.step(at_once=True)
        except ERRORS as error:
            problem = str(error)
        if problem:
            _log.warning(
                "the server ends before its copy has a base: the next start makes one, and until then a "
                "restore does not find the last writes",
                extra={"fields": fields | {"error": problem}},
            )

    # What others show.

    def shown(self) -> dict[str, Any]:
        """How far the copy is, for `/health` and `hashrange replica status`."""
        seconds, bytes_ = self.shipper.lag()
        shown: dict[str, Any] = {
            "copy": self.place.shown,
            "epoch": self.lease.epoch,
            "lag_seconds": round(seconds, 3),
            "lag_bytes": bytes_,
            "standby": self.lease.record.acknowledged or None,
        }
        if not self.shipper.has_base:
            shown["base"] = f"being made: {self.bases.share:.0%} is in the bucket"
        if problem := self.problem():
            shown["problem"] = problem
        return shown

    def problem(self) -> str:
        """What is wrong, "" if nothing is."""
        if self.lease.fenced is not None:
            return self.lease.fenced
        return self.shipper.problem or "; ".join(self.problems.values())
