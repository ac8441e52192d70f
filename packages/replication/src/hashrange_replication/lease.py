"""Who ships to a copy: one object of the bucket, which is only written on a condition.

`Record` has an epoch, an owner and a number of renewals. Whoever begins to ship takes the next epoch; nobody
may overwrite a record that he has not seen. Time is that of a monotonic clock, and only its differences
count, so machines need not agree on the time.

While no standby has registered, an outage of the bucket stops nothing: the owner renews its lease to learn of
a successor. A standby writes its id into `standby`. The owner then renews the lease over it, with the id in
`acknowledged`, and from the beginning of that request on acknowledges writes only until its deadline: the
time at which it began its last successful renewal, plus the time to live. The standby takes the next epoch
when the record has not changed for the time to live and a margin, since it last saw it change. It saw the
change after the owner began the renewal, so the owner has stopped by then, if the clocks of the two machines
run equally fast within `DRIFT`.

Refuses to know: what is shipped.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from threading import Lock
from typing import Final

import msgspec
from msgspec.structs import replace

from hashrange.buckets import CHANGED, BucketError
from hashrange_replication.failures import CopyError, Damaged, Fenced, Held
from hashrange_replication.format.names import LEASE
from hashrange_replication.place import Place

TTL_SECONDS: Final = 15.0
"""The time to live once a standby is registered; a third of it passes between two renewals."""
QUIET_TTL_SECONDS: Final = 90.0
"""The time to live without a standby: only a server that wants to take over waits for it."""
RENEWALS_PER_TTL: Final = 3
DRIFT: Final = 0.1
"""How much faster a standby's clock may run than the owner's."""
MARGIN_SECONDS: Final = 1.0
_TRIES: Final = 4
_NO_ETAG: Final = f'"{0:032}"'
"""The ETag of no record."""

Now = Callable[[], float]
"""A monotonic clock, in seconds."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The object. `where` tells people where the owner is; `shipped` is the index of its last segment and
    `base` the last batch of its newest base, by which `verify` finds lost objects."""

    epoch: int
    owner: str
    where: str
    store_id: str
    renewals: int = 0
    ttl_seconds: float = QUIET_TTL_SECONDS
    released: bool = False
    standby: str = ""
    acknowledged: str = ""
    shipped: int = 0
    base: int = 0

    def yields_to(self, server: str) -> bool:
        """Whether the owner has agreed to a server as its standby, or has given the lease up."""
        return self.released or self.acknowledged == server


def read_record(place: Place) -> tuple[Record, str] | None:
    """The record, and its ETag; None if nobody has ever shipped to the place. Raises Damaged, BucketError,
    OSError."""
    found = place.find(LEASE)
    if found is None:
        return None
    try:
        return msgspec.json.decode(found[0], type=Record), found[1]
    except msgspec.DecodeError as error:
        raise Damaged(f"the object {LEASE} cannot be read: {error}") from None


class Watch:
    """Observes the record, and tells when it has not changed for so long that its owner has stopped."""

    def __init__(self, place: Place, now: Now) -> None:
        self._place = place
        self._now = now
        self._changed_at = 0.0
        self.etag: str | None = None
        self.record: Record | None = None

    def look(self) -> Record | None:
        """Read the record. Raises Damaged, BucketError, OSError."""
        found = read_record(self._place)
        record, etag = found if found is not None else (None, None)
        if etag != self.etag or record is None:
            self._changed_at = self._now()
        self.record, self.etag = record, etag
        return record

    def quiet_seconds(self) -> float:
        """For how long the record has not changed."""
        return self._now() - self._changed_at

    def wait_seconds(self) -> float:
        """How long the record has to stay as it was last seen before the next epoch may be taken."""
        record = self.record
        if record is None or record.released:
            return 0.0
        wanted = record.ttl_seconds * (1 + DRIFT) + MARGIN_SECONDS
        return max(0.0, self._changed_at + wanted - self._now())


class Lease:
    """The lease of a server that ships, or wants to. `owner` is the id of its data directory. `watch` has
    observed the record since before. `only_agreed`: the lease is taken only if its owner has agreed to this
    server as his standby, or has given it up."""

    def __init__(
        self,
        place: Place,
        owner: str,
        where: str,
        store_id: str,
        now: Now,
        *,
        watch: Watch | None = None,
        only_agreed: bool = False,
    ) -> None:
        self._place = place
        self._owner = owner
        self._where = where
        self._store_id = store_id
        self._now = now
        self._lock = Lock()
        self._etag = ""
        self._watch = watch or Watch(place, now)
        self._only_agreed = only_agreed
        self._tried: list[Record] = []  # what was written since the last answer, perhaps
        self.record = Record(epoch=0, owner=owner, where=where, store_id=store_id)
        self.deadline = math.inf
        """The time from which on nothing may be acknowledged."""
        self.fenced: str | None = None
        """Why this server must never acknowledge anything again."""
        self.shipped = 0
        self.base = 0
        self.agreeing: Callable[[], None] = lambda: None
        """Called before the owner agrees to a standby, which counts on it even if the owner dies at once."""

    @property
    def epoch(self) -> int:
        return self.record.epoch

    @property
    def seen(self) -> tuple[int, int] | None:
        """The epoch and the renewals that `take` has seen last."""
        record = self._watch.record
        return (record.epoch, record.renewals) if record is not None else None

    @property
    def seen_where(self) -> str:
        """Who has the lease that `take` has seen last."""
        return self._watch.record.where if self._watch.record is not None else ""

    @property
    def renew_seconds(self) -> float:
        """The time between two renewals."""
        return self.record.ttl_seconds / RENEWALS_PER_TTL

    def take(self, known_epoch: int | None) -> Record | None:
        """Take the next epoch; returns the record before it. `known_epoch` is the last epoch of which the
        data directory holds the batches, None if it knows none.

        Raises Held while another server has the lease: call again, as often as the time to live needs; Fenced
        if the directory lacks batches of a later epoch; CopyError, BucketError, OSError.
        """
        with self._lock:
            for _ in range(_TRIES):
                before = self._watch.look()
                if before is not None:
                    self._check_free(before, known_epoch)
                wanted = self._taken(before)
                started = self._bound(wanted)
                try:
                    etag = self._put(wanted, self._watch.etag)
                except BucketError as error:
                    if error.code != CHANGED:
                        raise
                    continue
                self._hold(wanted, etag, started)
                self._check_store()
                return before
        raise Held(f"Several servers try to take the lease of the copy at {self._place.shown}.")

    def _check_store(self) -> None:
        """Raises CopyError if the store of the bucket writes although a condition is not met."""
        try:
            self._put(self.record, _NO_ETAG)
        except BucketError as error:
            if error.code != CHANGED:
                raise
        except OSError:
            pass  # (then nothing is known)
        else:
            raise CopyError(
                f"The store of the copy at {self._place.shown} does not know conditional writes (If-Match), "
                "so two servers could ship to it. Use one that does, such as S3, MinIO or a folder."
            )

    def _check_free(self, before: Record, known_epoch: int | None) -> None:
        shown = self._place.shown
        if before.store_id != self._store_id:
            raise CopyError(
                f"The copy at {shown} is of another store, {before.store_id}, and this one is "
                f"{self._store_id}. Name another place, or restore that copy."
            )
        if before.owner == self._owner:
            return
        if known_epoch is not None and before.epoch > known_epoch:
            raise Fenced(_taken_over(shown, before, known_epoch))
        if self._only_agreed and not before.yields_to(self._owner):
            raise CopyError(
                f"The primary, {before.where}, has not agreed to this standby, so it may go on acknowledging "
                "writes. Stop it and promote then; or, if it is dead for certain, promote with --force."
            )
        if (seconds := self._watch.wait_seconds()) > 0:
            raise Held(
                f"Another server ships to the copy at {shown}: {before.where}, in epoch {before.epoch}. Stop "
                f"that server, or wait {seconds:.0f} s if it has died."
            )

    def _taken(self, before: Record | None) -> Record:
        record = Record(
            epoch=before.epoch + 1 if before else 1,
            owner=self._owner,
            where=self._where,
            store_id=self._store_id,
            shipped=self.shipped,
            base=self.base,
        )
        if before is None or not before.standby or before.standby == self._owner:
            return record
        return replace(
            record,
            ttl_seconds=TTL_SECONDS,
            standby=before.standby,
            acknowledged=before.standby,
            renewals=before.renewals + 1,
        )

    def renew(self, *, new_epoch: bool = False) -> None:
        """Renew the lease; `new_epoch`: and take the next epoch. Raises Fenced, BucketError, OSError."""
        with self._lock:
            for _ in range(_TRIES):
                if self.fenced is not None:
                    raise Fenced(self.fenced)
                wanted = self._renewed(new_epoch)
                started = self._bound(wanted)
                is_first = wanted not in self._tried
                self._tried.append(wanted)
                try:
                    etag = self._put(wanted, self._etag)
                except BucketError as error:
                    if error.code != CHANGED:
                        raise
                    self._look_again()
                    if self.record != wanted or not is_first:
                        continue
                    etag = self._etag
                self._hold(wanted, etag, started)
                return
        raise Held(f"The lease of the copy at {self._place.shown} changes too often.")

    def _bound(self, wanted: Record) -> float:
        """Be bound by a record that is about to be written; returns when that begins. The request may succeed
        although its answer is lost."""
        if wanted.acknowledged and math.isinf(self.deadline):
            self.agreeing()
            self.deadline = self._now() + wanted.ttl_seconds
        return self._now()

    def _renewed(self, new_epoch: bool) -> Record:
        record = self.record
        return replace(
            record,
            epoch=record.epoch + new_epoch,
            renewals=record.renewals + 1,
            ttl_seconds=TTL_SECONDS if record.standby else QUIET_TTL_SECONDS,
            acknowledged=record.standby,
            released=False,
            shipped=self.shipped,
            base=self.base,
        )

    def _look_again(self) -> None:
        """Learn who has written the record: perhaps this server, in a request without an answer. An earlier
        one is no renewal now, because a standby counts from the moment at which it saw the record."""
        found = read_record(self._place)
        if found is None:
            self.fenced = (
                f"The object {LEASE} of the copy at {self._place.shown} was deleted. Restart this server: it "
                "then makes a new base."
            )
            return
        record, etag = found
        # (a standby may have registered, or withdrawn)
        is_own = any(replace(tried, standby=record.standby) == record for tried in self._tried)
        if is_own or (record.owner == self._owner and record.epoch == self.record.epoch):
            self.record, self._etag = record, etag
        else:
            self.fenced = _taken_over(self._place.shown, record, self.record.epoch)

    def release(self) -> None:
        """Give the lease up. Raises BucketError, OSError."""
        with self._lock:
            for _ in range(_TRIES):
                if self.fenced is not None or not self._etag:
                    return
                wanted = replace(self._renewed(False), released=True)
                self._tried.append(wanted)
                try:
                    self._put(wanted, self._etag)
                except BucketError as error:
                    if error.code != CHANGED:
                        raise
                    self._look_again()
                    if self.record != wanted:
                        continue  # a standby has registered since the last renewal
                return

    def refusing(self) -> str | None:
        """Why nothing may be acknowledged now; None if it may."""
        if self.fenced is not None:
            return self.fenced
        if self._now() < self.deadline:
            return None
        return (
            f"the lease of the copy at {self._place.shown} ran out, because the bucket could not be reached, "
            "and a standby may take over; writes go on when the lease was renewed"
        )

    def _put(self, record: Record, etag: str | None) -> str:
        content = msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"
        return self._place.put(LEASE, content, etag=etag, new=etag is None)

    def _hold(self, record: Record, etag: str, started: float) -> None:
        self.record, self._etag = record, etag
        self._tried.clear()
        self.deadline = started + record.ttl_seconds if record.acknowledged else math.inf


def register(place: Place, standby: str) -> bool:
    """Register a standby, "" to withdraw the one that is registered; returns whether it is registered now.
    The owner has agreed once `acknowledged` is `standby`. Raises CopyError if another standby is registered,
    or nobody ships; BucketError, OSError."""
    found = read_record(place)
    if found is None:
        raise CopyError(f"There is no copy at {place.shown}: no server has shipped to it.")
    record, etag = found
    if record.standby == standby:
        return True
    if standby and record.standby:
        raise CopyError(f"The copy at {place.shown} has a standby already: {record.standby}.")
    content = msgspec.json.format(msgspec.json.encode(replace(record, standby=standby)), indent=2) + b"\n"
    try:
        place.put(LEASE, content, etag=etag)
    except BucketError as error:
        if error.code != CHANGED:
            raise
        return False  # the owner has renewed meanwhile; try again
    return True


def _taken_over(shown: str, record: Record, epoch: int) -> str:
    return (
        f"Another server has taken over the copy at {shown}: {record.where}, in epoch {record.epoch}; this "
        f"directory ends in epoch {epoch}, and may hold writes that the other one lacks. Stop this server "
        "and keep its directory until you have looked at them. Start `hashrange standby` with a new "
        "directory, or run `hashrange replica restore` into one."
    )
