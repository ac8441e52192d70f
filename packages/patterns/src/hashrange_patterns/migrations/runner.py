"""Migrations of a table: which are applied, what the others would cost, and their performance in both
directions.

    migrations = Migrations(client, "blog", "migrations", units_per_second=500)
    migrations.plan()
    migrations.up()

One run at a time has the lock. A run that dies leaves its progress in the table, and the next goes on there.
What a dead or slow run wrote late does no harm: its notes of progress are refused or true, and its changes of
items are made again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from hashrange_patterns.flows import (
    AsyncClient,
    Awaiting,
    Blocking,
    Client,
    Flow,
    Performing,
    Together,
    performed,
)
from hashrange_patterns.locks import Holding, LockFlows
from hashrange_patterns.migrations.edits import Change, Shape
from hashrange_patterns.migrations.files import Revision, revisions_of
from hashrange_patterns.migrations.records import (
    PARTITION,
    Pace,
    Progress,
    Record,
    Run,
    progress_in,
    records,
)
from hashrange_patterns.migrations.steps import Step, Switch
from hashrange_patterns.migrations.walks import Look, Walk, change_segment, look, walk_of
from hashrange_patterns.requests import Runtime, check_seconds
from hashrange_patterns.tables import Table, table_of

T = TypeVar("T")
C = TypeVar("C")

SAMPLE: Final = 1_000
SEGMENTS_MAX: Final = 256
Segments: TypeAlias = Callable[[threading.Event, Sequence[Flow[Progress]]], Flow[list[Progress]]]
"""Performs the flows of segments; the event is set when one of them fails."""


class Locked(Exception):
    """Another run of migrations has the lock of the table."""


class Irreversible(Exception):
    """A step has no way back."""


class Unfinished(Exception):
    """Items are left after a walk, because a program still writes them as before the change."""


@dataclass(frozen=True, slots=True)
class Status:
    """How far a migration is. `state` is "pending", "up" or "down" under way, or "applied".

    `seen` and `changed` count items, `segments_done` those of `segments` of the walk under way; `at` is when
    it was applied, in seconds. `is_edited`: its file is another than the one that was applied.
    `has_file` is False if the file is missing.
    """

    revision: str
    about: str
    state: str
    seen: int = 0
    changed: int = 0
    segments_done: int = 0
    segments: int = 0
    at: int = 0
    is_edited: bool = False
    has_file: bool = True


@dataclass(frozen=True, slots=True)
class Planned:
    """What a step of a pending migration would do; `look` is None for a step that changes no items."""

    revision: str
    step: Step
    look: Look | None


def one_after_another(stopped: threading.Event, flows: Sequence[Flow[Progress]]) -> Flow[list[Progress]]:
    """Perform the flows of segments in turn."""
    done: list[Progress] = []
    for flow in flows:
        done += [(yield from flow)]
    return done


def side_by_side(stopped: threading.Event, flows: Sequence[Flow[Progress]]) -> Flow[list[Progress]]:
    """Perform the flows of segments side by side."""
    done: list[Progress] = yield Together(flows, stopped.set)
    return done


@dataclass(frozen=True, slots=True)
class MigrationFlows:
    """The logic of `Migrations`."""

    table: Table
    revisions: Sequence[Revision]
    segments: int
    units_per_second: float | None
    lease_seconds: float
    runtime: Runtime
    perform_segments: Segments = one_after_another

    def __post_init__(self) -> None:
        check_seconds("lease_seconds", self.lease_seconds)
        if not 1 <= self.segments <= SEGMENTS_MAX:
            raise ValueError(f"a walk has 1 to {SEGMENTS_MAX} segments, not {self.segments}")

    def status(self) -> Flow[list[Status]]:
        """How far each migration is, in their order; those without a file, too.

        Costs a read unit for each 4 KB of what is recorded.
        """
        found, of_segments = yield from records(self.runtime, self.table)
        files = {revision.name: revision for revision in self.revisions}
        statuses = []
        for name in sorted({*files, *(one.revision for one in found.values() if one.state)}):
            record, file = found.get(name, Record(name)), files.get(name)
            beginning = f"{name}#{record.passes}#"
            under_way = [
                progress_in(item)
                for item in of_segments
                if self.table.address(item).sort.startswith(beginning) and record.state in ("up", "down")
            ]
            statuses.append(
                Status(
                    name,
                    file.about if file else "",
                    record.state or "pending",
                    record.seen + sum(one.seen for one in under_way),
                    record.changed + sum(one.changed for one in under_way),
                    sum(one.done for one in under_way),
                    record.segments if record.state in ("up", "down") else 0,
                    record.at,
                    file is not None and bool(record.state) and record.digest != file.digest,
                    file is not None,
                )
            )
        return statuses

    def plan(self, *, sample: int | None = SAMPLE, show: int = 3) -> Flow[list[Planned]]:
        """What the steps of the pending migrations would do, with the differences of `show` items each.

        Estimated from about `sample` items of each table, whose reading it costs for each step; None reads
        all, for exact numbers. Writes nothing.
        """
        _check_sample(sample)
        found, _ = yield from records(self.runtime, self.table)
        planned = []
        walks: dict[str, list[Walk]] = {}
        for revision in self.revisions:
            record = found.get(revision.name, Record(revision.name))
            if record.state == "applied":
                continue
            for step in revision.steps[record.step :]:
                seen = None
                if isinstance(step, Change | Shape):
                    earlier = walks.setdefault(revision.table or self.table.name, [])
                    earlier.append((yield from self._walk(revision, step, up=True)))
                    seen = yield from look(self.runtime, earlier, sample=sample, show=show)
                planned.append(Planned(revision.name, step, seen))
        return planned

    def verify(self, revision: str | None = None, *, sample: int | None = None) -> Flow[Look]:
        """What the changes of an applied migration have left, or programs wrote again: nothing, if all is
        well.

        Of the one that was applied last, unless another is named. Reads all items, or about `sample`.
        """
        _check_sample(sample)
        found, _ = yield from records(self.runtime, self.table)
        if revision is None:
            applied = [one for one in found.values() if one.state == "applied"]
            revision = max(applied, key=_recency, default=Record("")).revision
        file = next((one for one in self.revisions if one.name == revision), None)
        if file is None or found.get(revision, Record("")).state != "applied":
            raise ValueError(f"the migration {revision!r} is not applied, or has no file: see status")
        total = Look()
        for step in file.steps:
            if isinstance(step, Change | Shape):
                walk = yield from self._walk(file, step, up=True)
                seen = yield from look(self.runtime, [walk], sample=sample, show=3)
                total = replace(
                    seen,
                    to_change=total.to_change + seen.to_change,
                    differences=total.differences + seen.differences,
                )
        return total

    def up(self, to: str | None = None) -> Flow[list[str]]:
        """Apply the pending migrations, in their order, up to `to` or all; returns their names.

        A migration that is half done, in either direction, goes on. Raises `Locked`, `Lost` if another run
        took over, `Unfinished`, and what the changes raise; the next run goes on where this one ended.
        Costs for each walk the reading of the table, a write for each item that is changed, and a write
        for each 100 items.
        """
        if to is not None and to not in {revision.name for revision in self.revisions}:
            raise ValueError(f"there is no migration {to!r}: see status")
        return (yield from self._locked(lambda locked: self._up(locked, to)))

    def down(self) -> Flow[str | None]:
        """Take back the migration that is half done, or else the one that was applied last; returns its
        name, None if there is none.

        Raises `Irreversible`, before anything is changed, and otherwise as `up`.
        """
        return (yield from self._locked(self._down))

    def _locked(self, work: Callable[[Run], Flow[T]]) -> Flow[T]:
        lease = self.lease_seconds
        locks = LockFlows(self.table, lease, lease / 10, 60.0, self.runtime)
        # (long enough to see that the holder has died)
        held = yield from locks.acquire(PARTITION, wait_seconds=1.5 * lease)
        if held is None:
            raise Locked(f"another run of migrations works on {self.table.name}: wait until it is done")
        holding = Holding(locks, held)
        locked = Run(self.table, self.runtime, holding, self.lease_seconds, Pace(self.units_per_second))
        try:
            done = yield from work(locked)
        except Exception:
            with suppress(Exception):  # (the work's own error is raised)
                yield from holding.end()
            raise
        yield from holding.end()
        return done

    def _up(self, locked: Run, to: str | None) -> Flow[list[str]]:
        done = []
        found, _ = yield from records(self.runtime, self.table)
        for revision in self.revisions:
            if found.get(revision.name, Record("")).state != "applied":
                record = yield from locked.claim(revision.name)
                yield from self._perform(locked, revision, record, up=True)
                done.append(revision.name)
            if revision.name == to:
                break
        return done

    def _down(self, locked: Run) -> Flow[str | None]:
        found, _ = yield from records(self.runtime, self.table)
        latest = max((one for one in found.values() if one.state), key=_recency, default=None)
        if latest is None:
            return None
        revision = next((one for one in self.revisions if one.name == latest.revision), None)
        if revision is None:
            raise ValueError(f"the file of {latest.revision} is missing: restore it to take it back")
        record = yield from locked.claim(revision.name)
        if any(isinstance(step, Change | Shape) and not step.goes_back for step in revision.steps):
            raise Irreversible(f"{revision.name} has a change without a way back: give it `down`")
        yield from self._perform(locked, revision, record, up=False)
        return revision.name

    def _perform(self, locked: Run, revision: Revision, record: Record, *, up: bool) -> Flow[None]:
        """Perform the steps that are left in a direction. Steps may be repeated: what a file that was edited
        meanwhile has done in part begins again."""
        state, steps = "up" if up else "down", revision.steps
        goes_on = record.state == state and record.digest == revision.digest
        if not goes_on:
            if record.digest != revision.digest:
                record = replace(record, step=0 if up else len(steps) - 1, seen=0, changed=0)
            step = min(max(record.step, 0), len(steps) - 1)
            record = replace(record, state=state, digest=revision.digest, step=step, segments=0)
            yield from locked.save(record)
        while 0 <= record.step < len(steps):
            step_ = steps[record.step]
            if isinstance(step_, Change | Shape):
                record = yield from self._change(locked, revision, step_, record, up=up)
            else:
                own = self.table if isinstance(step_, Switch) else self._table(revision)
                yield from step_.perform(self.runtime, own, locked.keep, up=up)
            record = replace(record, step=record.step + (1 if up else -1), segments=0)
            yield from locked.save(record)
        at = int(self.runtime.now())
        ended = (
            replace(record, state="applied", at=at) if up else Record(record.revision, passes=record.passes)
        )
        yield from locked.save(ended)

    def _change(
        self, locked: Run, revision: Revision, step: Change | Shape, record: Record, *, up: bool
    ) -> Flow[Record]:
        """Walk over the items, and look at a sample of what came out."""
        walk = yield from self._walk(revision, step, up=up)
        if not record.segments:
            record = replace(record, passes=record.passes + 1, segments=self.segments)
            yield from locked.save(record)
        flows = [change_segment(locked, walk, record, segment) for segment in range(record.segments)]
        done = yield from self.perform_segments(locked.stopped, flows)
        left = yield from look(self.runtime, [walk], sample=SAMPLE, show=1)
        yield from locked.clear(record)
        if left.to_change:
            yield from locked.save(replace(record, segments=0))
            raise Unfinished(
                f"{left.to_change} of {left.items} items are still to be changed by {revision.name} after "
                f"the walk over all, such as {left.differences}: deploy the program that writes the new "
                "form, and run it again"
            )
        return replace(
            record,
            seen=record.seen + sum(one.seen for one in done),
            changed=record.changed + sum(one.changed for one in done),
        )

    def _table(self, revision: Revision) -> Table:
        return self.table if revision.table is None else replace(self.table, name=revision.table)

    def _walk(self, revision: Revision, step: Change | Shape, *, up: bool) -> Flow[Walk]:
        return walk_of(self.runtime, self._table(revision), step, up=up)


class _Migrations(Performing[MigrationFlows, C]):
    def __init__(
        self,
        client: C,
        table: Table | str,
        folder: Path | str = "migrations",
        *,
        segments: int = 4,
        units_per_second: float | None = None,
        lease_seconds: float = 30.0,
        runtime: Runtime = Runtime(),  # noqa: B008 (frozen)
    ) -> None:
        flows = MigrationFlows(
            table_of(table),
            revisions_of(Path(folder)),
            segments,
            units_per_second,
            lease_seconds,
            runtime,
            side_by_side,
        )
        super().__init__(client, flows)

    status = performed(MigrationFlows.status)
    plan = performed(MigrationFlows.plan)
    verify = performed(MigrationFlows.verify)
    up = performed(MigrationFlows.up)
    down = performed(MigrationFlows.down)


class Migrations(_Migrations[Client], Blocking[MigrationFlows]):
    """Migrations of a table, from the files of a folder, with a boto3 client.

    A walk has `segments`, each with a thread; its progress is kept if the next run asks for another number.
    `units_per_second` limits its reads and writes together. A run takes over the
    lock of another that gives no sign of life for `lease_seconds`.
    """


class AsyncMigrations(_Migrations[AsyncClient], Awaiting[MigrationFlows]):
    """`Migrations` with an aiobotocore client; each segment has a task."""


def _recency(record: Record) -> tuple[bool, int, str]:
    """Sorts records: what is half done last, then what was applied last."""
    return record.state in ("up", "down"), record.fence, record.revision


def _check_sample(sample: int | None) -> None:
    if sample is not None and sample < 1:
        raise ValueError(f"a sample has 1 item or more, not {sample}: leave it out to read all")
