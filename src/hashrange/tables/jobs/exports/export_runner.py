"""The background work of exports: a unit for each export that is in progress.

A data object is written in several steps, each of which reads a bite of the past. When the object is complete
and durable, one transaction stores its entry and the address at which the next object begins. If the process
ends before that, or the connection to S3 is lost, the object is written again from its beginning, under the
same key.

`jobs.transfers` says what happens after an error.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from hashrange.buckets import BucketError, Buckets
from hashrange.interchange import exports
from hashrange.interchange.exports import DataObject, DataWriter, Layout, shown_time
from hashrange.settings import Settings
from hashrange.storage.api import Engine, Reader, Transaction
from hashrange.tables.background.units import Bite
from hashrange.tables.bites import Limit
from hashrange.tables.definitions.spans import stamp_at
from hashrange.tables.definitions.table import Table
from hashrange.tables.history import sources
from hashrange.tables.history.past import Past
from hashrange.tables.history.versions import changed
from hashrange.tables.items import records
from hashrange.tables.jobs.exports.export_records import EXPORTS, Export
from hashrange.tables.jobs.transfers import TransferRunner
from hashrange.values import Item

Filter = Callable[[Item], Item | None]
"""Returns the exported form of an item; None: the item is left out."""

Compile = Callable[[dict[str, Any]], Filter | None]
"""The filter of a request of ExportTableToPointInTime; None: it has none."""

OBJECT_BYTES: Final = 32 * 1024 * 1024
"""A data object ends when it has this many compressed bytes."""

# At least this many items are read before other threads may run.
_PART_ITEMS: Final = 100
_MICROS_A_MILLI: Final = 1_000
_MILLI: Final = stamp_at(0.001)

_log = logging.getLogger("hashrange")


class PastItem(NamedTuple):
    """An item of the past. In a full export: its record (`after`). In an incremental export: its records
    before and after (None: absent), and the stamp of its last change."""

    partition: bytes
    sort: bytes
    before: bytes | None
    after: bytes | None
    stamp: int


class Runner(TransferRunner[Export, "_Writing"]):
    """Does the work of exports, and keeps the objects open that are being written."""

    def __init__(self, engine: Engine, settings: Settings, compile_filter: Compile) -> None:
        super().__init__(engine, settings, "export", EXPORTS)
        self._compile = compile_filter

    def _progress(self, job: Export, bite: Bite) -> bool:
        engine, now = self._engine, bite.occasion.now
        buckets = self._found_buckets()
        layout = Layout(job.prefix, job.id, incremental=job.low is not None)
        if not job.begun:
            buckets.check(job.bucket)
            exports.write_started(buckets, job.bucket, layout)
            return bite.write(engine, partial(self._begin, scope=job.scope, id_=job.id))
        if job.is_read:
            objects = engine.read(lambda reader: list(EXPORTS.parts(reader, job)))
            entries = (msgspec.json.decode(entry, type=DataObject) for entry in objects)
            exports.write_manifests(buckets, job.bucket, layout, entries, _summary(job, layout, now))
            bite.write(engine, partial(self._complete, scope=job.scope, id_=job.id, now=now))
            return False
        writing = self._steps.opened.get(job.id)
        if writing is None or writing.number != job.objects:
            self._steps.close_one(job.id)
            writing = self._steps.opened[job.id] = _Writing(buckets, layout, job, self._compile(job.request))
        lines = self._read(job, writing, bite)
        writing.write(lines)
        if not lines or writing.is_full:
            written = writing.finish()
            del self._steps.opened[job.id]
            done = partial(self._written, job=job, writing=writing, written=written, is_end=not lines)
            return bite.write(engine, done)
        return True

    def _read(self, job: Export, writing: _Writing, bite: Bite) -> list[PastItem]:
        """A bite of the past, in parts, so that other threads can run in between."""
        lines: list[PastItem] = []
        items_left, bytes_left = bite.limit
        place = writing.place
        while items_left > 0 and bytes_left > 0:
            limit = Limit(min(items_left, _PART_ITEMS), bytes_left)
            part = self._engine.read(partial(_look, job=job, start=place, limit=limit))
            if not part:
                break
            lines += part
            items_left -= len(part)
            bytes_left -= sum(len(line.after or b"") + len(line.before or b"") for line in part)
            place = part[-1].partition, part[-1].sort + b"\x00"
            bite.pause()
        return lines

    def _begin(self, txn: Transaction, scope: str, id_: str) -> bool:
        job = self._under_way(txn, scope, id_)
        if job is None:
            return False
        EXPORTS.save(txn, msgspec.structs.replace(job, begun=True))
        return True

    def _written(
        self, txn: Transaction, job: Export, writing: _Writing, written: DataObject, is_end: bool
    ) -> bool:
        """Store that an object was written; returns whether the export continues."""
        current = self._under_way(txn, job.scope, job.id)
        if current is None or current.objects != job.objects:
            return False
        EXPORTS.keep_part(txn, job, job.objects, written)
        partition, sort = writing.place
        EXPORTS.save(
            txn,
            msgspec.structs.replace(
                current,
                objects=job.objects + 1,
                partition=partition,
                sort=sort,
                is_read=is_end,
                items=current.items + written.items,
                size_bytes=current.size_bytes + writing.size_bytes,
            ),
        )
        return True

    def _complete(self, txn: Transaction, scope: str, id_: str, now: float) -> None:
        job = self._under_way(txn, scope, id_)
        if job is not None:
            self._end(txn, job, now, "COMPLETED")

    def _settle(self, txn: Transaction, job: Export, now: float) -> Export:
        """Release the table's history."""
        sources.release(txn, job.table_full_name, job.table_id, job.hold)
        return job

    def _counts(self, job: Export) -> dict[str, int]:
        return {"items": job.items}


class _Writing:
    """A data object that is being written, from the address at which it begins."""

    def __init__(self, buckets: Buckets, layout: Layout, job: Export, shows: Filter | None) -> None:
        self._job = job
        self._shows = shows
        self.number = job.objects
        self.place = job.partition, job.sort
        self.size_bytes = 0
        self._written: list[DataObject] = []
        self._stack = ExitStack()
        opened = exports.data_object(buckets, job.bucket, layout, self.number, job.format, self._written)
        self._writer: DataWriter = self._stack.enter_context(opened)

    @property
    def is_full(self) -> bool:
        """Whether the object should end."""
        return self._writer.compressed_bytes >= OBJECT_BYTES

    def write(self, lines: list[PastItem]) -> None:
        """Write a bite of lines."""
        for line in lines:
            self.place = line.partition, line.sort + b"\x00"
            for record in (line.before, line.after):
                self.size_bytes += records.size_of(record) if record is not None else 0
            if self._job.low is None:
                self._item(line)
            else:
                self._change(line)

    def _item(self, line: PastItem) -> None:
        record = line.after
        if record is None:
            return
        if self._shows is None:
            self._writer.item(record[records.HEADER_BYTES :])
            return
        shown = self._shows(records.item_of(record))
        if shown is not None:
            self._writer.item(orjson.dumps(shown))

    def _change(self, line: PastItem) -> None:
        old = records.item_of(line.before) if line.before is not None else None
        new = records.item_of(line.after) if line.after is not None else None
        some = new if new is not None else old
        if some is None:
            return  # the item was created and deleted in the exported time
        key = {name: some[name] for name in self._job.key_names}
        if self._shows is not None:
            old, new = (self._shows(image) if image is not None else None for image in (old, new))
            if old is None and new is None:
                return
        micros = line.stamp // _MILLI * _MICROS_A_MILLI
        self._writer.change(micros, key, old, new, self._job.view)

    def finish(self) -> DataObject:
        """End the object, and make it durable."""
        self._stack.close()
        return self._written[0]

    def close(self) -> None:
        """Give up the object: it does not appear."""
        error = InterruptedError("the object is left out")
        try:
            self._stack.__exit__(InterruptedError, error, None)
        except InterruptedError:
            pass
        except Exception:
            _log.exception("an unfinished object of an export could not be removed")


def _look(reader: Reader, job: Export, start: tuple[bytes, bytes], limit: Limit) -> list[PastItem]:
    """A bite of the past of the table, from the address `start` on."""
    table = _table_of(reader, job)
    if job.low is None:
        past = Past(reader, table, job.high)
        rows = past.scan_space(table.space, start, likely=limit.items)
        past_lines: Iterator[PastItem] = (
            PastItem(partition, sort, None, record, 0) for partition, sort, record in rows
        )
    else:
        past_lines = (PastItem(*change) for change in changed(reader, table, job.low, job.high, start))
    lines: list[PastItem] = []
    bytes_left = limit.bytes
    for line in islice(past_lines, limit.items):
        lines.append(line)
        bytes_left -= len(line.after or b"") + len(line.before or b"")
        if bytes_left <= 0:
            break
    return lines


def _table_of(reader: Reader, job: Export) -> Table:
    """The exported table, even if it was deleted meanwhile. Raises `BucketError` if it is lost."""
    table = sources.find(reader, job.table_full_name, job.table_id)
    if table is None:
        raise BucketError("TableNotFound", f"The table {job.table_name} is lost: the store was damaged.")
    return table


def _summary(job: Export, layout: Layout, now: float) -> dict[str, object]:
    export = exports.Export(
        arn=job.arn(job.region, job.account_id),
        table_arn=job.arn(job.region, job.account_id).rpartition("/export/")[0],
        table_id=job.table_id,
        start_time=shown_time(job.started),
        end_time=shown_time(now),
        bucket=job.bucket,
        prefix=job.request.get("S3Prefix"),
        sse_algorithm=job.request.get("S3SseAlgorithm") or "AES256",
        sse_key=job.request.get("S3SseKmsKeyId"),
        billed_bytes=billed(job),
        items=job.items,
        format=job.format,
    )
    if job.low is None:
        return exports.full_summary(export, layout, shown_time(job.time))
    return exports.incremental_summary(
        export, layout, shown_time(job.from_time), shown_time(job.to_time), job.view
    )


_BILLED_INCREMENTAL_MIN: Final = 10_000_000


def billed(job: Export) -> int:
    """The bytes that the service bills: at least 10 MB for an incremental export ([report]
    DDB-EXPORT-019)."""
    return job.size_bytes if job.low is None else max(job.size_bytes, _BILLED_INCREMENTAL_MIN)
