"""One pair: opens what is stored of it, follows the streams, and sweeps when that is needed.

    pair = Pair(settings, clients, clock=clock, wait=wait)
    while pair.cycle():
        pass

After an error the pair forgets what it knows, and opens the stored state again at its next cycle.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import msgspec

from hashrange.cli.remote.clients import SERVICE_ERRORS, Clients, explain
from hashrange.clock import Clock
from hashrange_sync.deciding import Rules, SideName
from hashrange_sync.errors import Gap, Missing, OutcomeUnknown, SyncError
from hashrange_sync.estimates import Estimate, estimate
from hashrange_sync.items import digest
from hashrange_sync.policies import resolver
from hashrange_sync.scopes import Scope
from hashrange_sync.settings import Pair as PairSettings
from hashrange_sync.settings import Policy
from hashrange_sync.sides import definitions
from hashrange_sync.sides.calls import Side
from hashrange_sync.sides.definitions import Table, create_if_missing, needed
from hashrange_sync.sides.pace import Pace
from hashrange_sync.sides.reading import items_of, pieces
from hashrange_sync.sides.streams import Follower, Page, Shard
from hashrange_sync.stored.conflicts import Conflict, ConflictLog
from hashrange_sync.stored.status import SECONDS, PairStatus, Progress
from hashrange_sync.stored.table import KEY, Member, StateTable
from hashrange_sync.work.applying import Applier, Counts, Look
from hashrange_sync.work.recovering import recover
from hashrange_sync.work.sweeping import FIRST, Sweep
from hashrange_sync.work.verifying import Comparison, verify

_log = logging.getLogger("hashrange_sync")

GAP: Final = "comparison after a gap"
_UNKNOWN_MAX: Final = 3
_SHARDS_MAX: Final = 8
"""So many pages of streams are in memory at a time, of 1 MB each."""
_FURTHER_MAX: Final = 8
"""A transaction has room for so many members beside those of items."""


class _Session:
    """What a process knows of a pair between two errors."""

    def __init__(self, applier: Applier, followers: dict[SideName, Follower], sweep: Sweep | None) -> None:
        self.applier = applier
        self.followers = followers
        self.sweep = sweep


class Pair:
    """A pair of tables, and what was done with it since the process began."""

    def __init__(
        self,
        settings: PairSettings,
        cloud: Clients,
        edge: Clients,
        *,
        clock: Clock,
        wait: Callable[[float], object],
        pool: ThreadPoolExecutor | None = None,
        attempts: int = 4,
        batches: bool = True,
    ) -> None:
        self.settings = settings
        self.counts = Counts()
        self._policy = Policy.parse(settings.conflicts)
        self.status = PairStatus(
            name=settings.title,
            cloud_endpoint=cloud.dynamodb.meta.endpoint_url,
            cloud_table=settings.cloud_name,
            edge_table=settings.edge_name,
            direction=settings.direction,
            policy=str(self._policy),
            attributes=settings.attributes,
            withhold=[*settings.withhold, *([settings.mark] if settings.mark else [])],
        )
        self._clock = clock
        self._wait = wait
        self._pool = pool
        common: Any = {"clock": clock, "wait": wait, "attempts": attempts}
        self.sides: dict[SideName, Side] = {
            "cloud": Side(
                *("cloud", cloud, settings.cloud_name),
                pace=Pace(settings.rate, clock),
                batches=batches,
                **common,
            ),
            "edge": Side("edge", edge, settings.edge_name, pace=Pace(0.0, clock), **common),
        }
        self.state = StateTable(self.sides["edge"], settings.state_table)
        self.log = ConflictLog(self.sides["edge"], settings.conflict_table)
        self._resolve = resolver(self._policy)
        self._session: _Session | None = None
        self._written = PairStatus(name="")
        self._lag = self._lag_reported = 0.0
        ways: dict[str, list[SideName]] = {"down": ["cloud"], "up": ["edge"], "both": ["cloud", "edge"]}
        self._followed = ways[settings.direction]

    # -- Opening ----------------------------------------------------------------------------------------

    def tables(self) -> dict[SideName, Table]:
        """Both tables. Raises `SyncError` if they cannot be kept equal."""
        tables = {name: needed(side) for name, side in self.sides.items()}
        definitions.check(tables, self._followed, self.sides)
        return tables

    def align(self) -> list[str]:
        """Make both tables alike. Returns what was done. Raises `SyncError`."""
        return definitions.align(self.sides, self._followed, self._wait)

    def scope(self, tables: Mapping[SideName, Table]) -> Scope:
        """The filter of the pair. Raises `SyncError`."""
        [(partition, _, kind), *_] = tables["edge"].key
        if self.settings.filter.prefix and kind != "S":
            raise SyncError(
                f"filter.prefix needs a partition key that is a text; {partition} has the type {kind}."
            )
        return Scope(self.settings, tables["edge"].key_names)

    def _open(self) -> _Session:
        tables = self.tables()
        self.status.differences = definitions.told(tables)
        create_if_missing(self.sides["edge"], self.state.name, KEY, self._wait)
        create_if_missing(self.sides["edge"], self.log.name, KEY, self._wait)
        meta = self.state.open()
        ids = {f"{name}_table": {"S": table.id} for name, table in tables.items()}
        for name, value in ids.items():
            if meta.get(name, value) != value:
                raise SyncError(self._made_anew(name.partition("_")[0]))
        if not ids.keys() <= meta.keys():
            self.state.note(**ids)
            self.state.begin()
        applier = self._applier(tables)
        if entries := self.state.journal():

            def follow(name: SideName) -> Follower | None:
                arn = meta.get(f"{name}_stream", {}).get("S")
                return Follower(self.sides[name], arn, self.state.positions(name)) if arn else None

            ways = {name: lambda name=name: follow(name) for name in self.sides}
            recover(entries, self.sides, ways, self.state, applier, self._wait)
        session = _Session(applier, {}, None)
        for name in self._followed:
            arn = meta.get(f"{name}_stream", {}).get("S", "")
            if arn == tables[name].stream:
                session.followers[name] = Follower(self.sides[name], arn, self.state.positions(name))
            else:
                self._begin(session, name, tables, meta)
        if session.sweep is None and "sweep" in meta:
            session.sweep = self._sweep(session, meta["sweep"]["M"], tables)
        return session

    def _made_anew(self, name: str) -> str:
        return (
            f"The {name}'s table is another one than before: it was deleted and made again, or restored. "
            f"Nothing was changed. `hashrange sync reset FILE --pair {self.settings.title}` forgets what "
            "both sides agreed on; then the next run compares them as for a first copy, and deletes nothing."
        )

    def _applier(self, tables: Mapping[SideName, Table]) -> Applier:
        rules = Rules(
            self.scope(tables),
            self.settings.direction,
            self._policy,
            self._resolve,
            self.settings.expiries == "delete",
            tables["cloud"].expiry or tables["edge"].expiry,
        )

        def is_same_table(name: SideName) -> None:
            if needed(self.sides[name]).id != tables[name].id:
                raise SyncError(self._made_anew(name))

        applier = Applier(
            self.sides,
            self.state,
            self.log,
            rules,
            now=self._clock.now,
            is_same_table=is_same_table,
            pool=self._pool,
            mark=self.settings.mark,
        )
        applier.counts = self.counts
        return applier

    # -- Beginning --------------------------------------------------------------------------------------

    def _begin(
        self, session: _Session, name: SideName, tables: Mapping[SideName, Table], meta: Mapping[str, Any]
    ) -> None:
        """Note where the stream of a side is now, and sweep. A process that dies here begins again, because
        the stream is noted last."""
        reason = meta["sweep"]["M"]["reason"]["S"] if "sweep" in meta else FIRST
        if f"{name}_stream" in meta:
            reason = GAP
        sweep = self._note_sweep(name, reason, sum(tables[side].items for side in self._followed))
        follower = Follower.beginning(self.sides[name], tables[name].stream)
        old = self.state.positions(name).keys() - follower.positions.keys()
        members = [self.state.position_member(name, shard, None) for shard in old]
        members += [self.state.position_member(name, shard, at) for shard, at in follower.positions.items()]
        members += [self.state.segment_member(segment, None) for segment in self.state.segments()]
        for part in pieces(members, 90):
            self.state.commit(part)
        self.state.note(**{f"{name}_stream": {"S": tables[name].stream}})
        session.followers[name] = follower
        session.sweep = self._sweep(session, sweep, tables)
        fields = {"pair": self.settings.title, "side": name, "why": reason}
        _log.info("comparing both tables", extra={"fields": fields})

    def _note_sweep(self, name: str, reason: str, total: int) -> dict[str, Any]:
        """Note that both tables have to be compared, and that the stream of a side begins again."""
        sweep = {
            "reason": {"S": reason},
            "began": {"N": f"{self._clock.now():.3f}"},
            "total": {"N": str(total)},
            "segments": {"N": str(self.settings.segments)},
        }
        self.state.note(**{f"{name}_stream": None, "sweep": {"M": sweep}})
        return sweep

    def _sweep(self, session: _Session, stored: Mapping[str, Any], tables: Mapping[SideName, Table]) -> Sweep:
        progress = Progress(stored["reason"]["S"], float(stored["began"]["N"]), 0, int(stored["total"]["N"]))
        sides = {name: self.sides[name] for name in self._followed}
        segments = int(stored["segments"]["N"])
        empty = [name for name, table in tables.items() if not table.items]
        return Sweep(sides, self.state, session.applier, progress, segments, self._pool, empty)

    # -- Going on ---------------------------------------------------------------------------------------

    def cycle(self) -> bool:
        """Read each stream once, and sweep a page if a sweep is under way. Returns whether there may be more
        to do at once. Raises `SyncError`."""
        try:
            more = self._cycle()
        except BaseException as error:
            self._session = None
            if isinstance(error, (SyncError, *SERVICE_ERRORS)):
                text = str(error) if isinstance(error, SyncError) else explain(error)
                self.status.state, self.status.error = "stopped", text
                self.status.error_at = self._clock.now()
                if not isinstance(error, SyncError):
                    raise SyncError(f"{self.settings.title}: {text}") from error
            raise
        self.status.state = "sweeping" if self._session and self._session.sweep else "in step"
        if self._session and not self._session.sweep:
            self.status.in_step_at = self._clock.now() - self.status.lag
        self._show(force=False)
        return more

    def once(self) -> None:
        """Cycle until both sides are equal. Raises `SyncError`."""
        unknown = 0
        while True:
            try:
                if not self.cycle():
                    break
            except OutcomeUnknown:
                unknown += 1
                if unknown == _UNKNOWN_MAX:
                    raise
        self._show(force=True)

    def _cycle(self) -> bool:
        if self._session is None:
            self._session = self._open()
        session = self._session
        for name, follower in session.followers.items():
            if follower.has_ended and self.tables()[name].stream != follower.arn:
                self._session = None  # (the table, or the stream, is another one)
                return True
        more, self._lag = False, 0.0
        try:
            due = [
                (name, shard) for name, follower in session.followers.items() for shard in follower.ready()
            ]
            for part in pieces(due, _SHARDS_MAX):
                read = self._read(session.followers, part)
                self._follow(session, read)
                more = more or any(page.records or page.position.done for _, page in read)
        except Gap as gap:
            self.counts.gaps += 1
            fields = {"pair": self.settings.title, "side": gap.side, "why": str(gap)}
            _log.warning("the stream no longer has all changes", extra={"fields": fields})
            self._note_sweep(gap.side, GAP, 0)
            self._session = None
            return True
        self.status.lag = self._lag
        self._lag_reported = max(self._lag_reported, self._lag)
        if session.sweep is not None:
            if not session.sweep.step():
                session.sweep = None
            more = True
        return more

    def _read(
        self, followers: Mapping[SideName, Follower], shards: Sequence[tuple[SideName, Shard]]
    ) -> list[tuple[SideName, Page]]:
        """The next pages of shards, which are read side by side. Raises `Gap`."""

        def read(one: tuple[SideName, Shard]) -> tuple[SideName, Page]:
            name, shard = one
            return name, followers[name].read(shard)

        return list(self._pool.map(read, shards) if self._pool else map(read, shards))

    def _follow(self, session: _Session, read: Sequence[tuple[SideName, Page]]) -> None:
        """Make equal what pages of the streams have changed, and go on after the pages."""
        looks = _looks(read, session.applier.rules.scope)
        members: list[Member] = []
        gone: dict[SideName, list[str]] = {}
        for name, page in read:
            follower = session.followers[name]
            if page.position != follower.positions[page.shard]:
                members.append(self.state.position_member(name, page.shard, page.position))
                gone[name] = follower.forgotten()
        members += [
            self.state.position_member(name, shard, None) for name, shards in gone.items() for shard in shards
        ]
        if session.sweep is not None:
            session.sweep.changed(look.mark for look in looks)
        session.applier.apply(looks, members[:_FURTHER_MAX])
        for rest in pieces(members[_FURTHER_MAX:], 90):
            self.state.commit(rest)
        for name, page in read:
            session.followers[name].advance(page, gone.pop(name, ()))
        self.counts.records += sum(len(page.records) for _, page in read)
        now = self._clock.now()
        self._lag = max([self._lag, *(now - page.records[-1].at for _, page in read if page.records)])

    # -- Status -----------------------------------------------------------------------------------------

    def current(self) -> PairStatus:
        """The status of this process."""
        status = self.status
        status.at = self._clock.now()
        for name in ("to_cloud", "to_edge", "conflicts", "records", "gaps"):
            setattr(status, name, getattr(self.counts, name))
        pace = self.sides["cloud"].pace
        status.throttled, status.units = pace.throttled, pace.used
        status.sweep = self._session.sweep.progress if self._session and self._session.sweep else None
        return status

    def _show(self, *, force: bool) -> None:
        status, last = self.current(), self._written
        seconds = status.at - last.at
        if not force and 0 <= seconds < SECONDS:
            return
        if last.at and seconds >= 1:
            status.to_cloud_rate = (status.to_cloud - last.to_cloud) / seconds
            status.to_edge_rate = (status.to_edge - last.to_edge) / seconds
        self._written = msgspec.structs.replace(status, lag=self._lag_reported)
        self.state.write_status(msgspec.json.encode(self._written).decode())
        self._lag_reported = 0.0

    def show_error(self, *, again: bool = False) -> None:
        """Store the last error for `hashrange sync status`, if the edge can be reached. `again`: the error
        was stored before, and the process still runs."""
        try:
            self._show(force=not again)
        except (SyncError, *SERVICE_ERRORS) as error:
            if not again:
                _log.warning("the status cannot be stored", extra={"fields": {"error": str(error)}})

    def stored_status(self) -> PairStatus:
        """What the last process has stored. Raises `SyncError`."""
        try:
            text = self.state.status()
        except Missing:
            text = ""
        return msgspec.json.decode(text, type=PairStatus) if text else PairStatus(name=self.settings.title)

    # -- For people -------------------------------------------------------------------------------------

    def has_begun(self) -> bool:
        """Whether a first copy was begun. Raises `SyncError`."""
        try:
            return "epoch" in self.state.meta()
        except Missing:
            return False

    def estimate(self) -> Estimate:
        """What a first copy will take. Raises `SyncError`."""
        return estimate(self.settings, self.tables(), self.sides["cloud"].region)

    def differences(self) -> list[str]:
        """How the definitions of the tables differ. Raises `SyncError`."""
        return definitions.told(self.tables())

    def verify(self, keys_max: int = 20) -> Comparison:
        """Compare both tables, item by item. Raises `SyncError`."""
        return verify(self.sides, self.scope(self.tables()), keys_max)

    def restore(self, conflict: Conflict, image: SideName) -> SideName:
        """Write an image of a conflict back, as a user would. Returns the side that has it now; the next
        cycle carries it to the other. Raises `SyncError`."""
        scope = self.scope(self.tables())
        name: SideName = "cloud" if self.settings.direction == "down" else "edge"
        side, item = self.sides[name], scope.shared(conflict.image(image))
        if item is None:
            side.call("delete_item", TableName=side.table, Key=conflict.key)
        else:
            mark = digest(conflict.key)
            held = items_of(side, side.table, {mark: conflict.key}).get(mark)
            side.call("put_item", TableName=side.table, Item={**scope.own(held), **item})
        return name

    # -- Beginning again ---------------------------------------------------------------------------------

    def reset(self) -> int:
        """Forget what both sides agreed on; the conflicts stay. Returns how many items were forgotten. Raises
        `SyncError`."""
        create_if_missing(self.sides["edge"], self.state.name, KEY, self._wait)
        self.state.open()
        self._session = None
        return self.state.clear()


def _looks(read: Sequence[tuple[SideName, Page]], scope: Scope) -> list[Look]:
    """The items that pages have changed, each once, with what the last records of both sides say."""
    looks: dict[bytes, Look] = {}
    for name, page in read:
        for record in page.records:
            if not scope.covers(record.key):
                continue
            mark = digest(record.key)
            outside = record.new is not None and not scope.concerns(record.new)
            earlier = looks.pop(mark, None) or Look(record.key, mark, outside=True)
            looks[mark] = Look(
                record.key,
                mark,
                marks={**earlier.marks, name: digest(scope.shared(record.new))},
                expired={**earlier.expired, name: record.expiry},
                outside=outside and earlier.outside,
            )
    return list(looks.values())
