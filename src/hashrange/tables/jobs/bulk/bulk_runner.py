"""The background work of bulk operations: a unit for each that is in progress.

A step reads a bite of rows outside a transaction, and writes it in one, as imports do: the items like any
put, with the conditions of their rows, then the counts, the rows for the report, and the place that was
reached. When there are many rows for the report, a step writes an object of the report. When everything is
read, or the operation is cancelled, the last steps write the rest of the report and end the operation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import chain, islice
from typing import Any, Final

import msgspec
import orjson

from hashrange.buckets import BucketError, Buckets
from hashrange.errors import ConditionalCheckFailedException, ServiceError
from hashrange.interchange import exports
from hashrange.interchange.exports import DataObject, Layout
from hashrange.settings import Settings
from hashrange.storage.api import Engine, Reader, Transaction
from hashrange.tables.background.units import Bite
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Table
from hashrange.tables.items import indexes, keys, records
from hashrange.tables.items.item_change import ItemChange, Occasion
from hashrange.tables.jobs.bulk import reports
from hashrange.tables.jobs.bulk.bulk_records import BULK_PUTS, BulkPut
from hashrange.tables.jobs.job_records import Status
from hashrange.tables.jobs.objects import Fault, Input, Reading, Taken
from hashrange.tables.jobs.transfers import TransferRunner
from hashrange.tables.writes import read_modify_write
from hashrange.tables.writes.read_modify_write import Write

PutOf = Callable[[dict[str, Any]], Write]
"""The write of a row: its members are those of a PutItem. Raises `ServiceError`."""

REPORT_LINES: Final = 5_000
"""When this many rows were not written, an object of the report is written. Until then they are in the
store."""

# How many lines of the report are read at once.
_PART_LINES: Final = 100

# These codes and texts are [assumed]; those of buckets are the codes of imports.
_NO_TABLE: Final = ("TableNotFound", "The table was deleted while the bulk operation was in progress")
_CANCELLED: Final = ("OperationCancelled", "The bulk operation was cancelled")


class Runner(TransferRunner[BulkPut, Reading]):
    """Does the work of bulk operations, and keeps the objects open that are being read."""

    def __init__(self, engine: Engine, settings: Settings, put_of: PutOf) -> None:
        super().__init__(engine, settings, "bulk operation", BULK_PUTS)
        self._put_of = put_of

    def _progress(self, job: BulkPut, bite: Bite) -> bool:
        buckets = self._found_buckets()
        layout, is_over = Layout(job.report_prefix, job.id), job.is_read or job.status == "CANCELLING"
        if job.reported - job.told >= (1 if is_over else REPORT_LINES):
            return self._report(buckets, layout, job, bite)
        if is_over:
            return self._complete(buckets, layout, job, bite)
        if job.total_bytes is None:
            return self._begin(buckets, job, bite)
        table = self._engine.read(partial(_table_of, job=job))
        if table is None:
            raise BucketError(*_NO_TABLE)
        reading = self._steps.opened.get(job.id)
        if reading is None or reading.place != job.place:
            self._steps.close_one(job.id)
            own = layout.started.removesuffix("_started") if job.bucket == job.report_bucket else None
            input_ = Input(job.bucket, job.prefix, job.format, job.compression, None, True, own)
            reading = Reading(buckets, input_, job.place, partial(self._put, job, table))
            self._steps.opened[job.id] = reading
        rows = reading.take(bite.limit, bite.pause)
        bite.write(self._engine, partial(self._write, before=job, rows=rows, occasion=bite.occasion))
        return True

    def _begin(self, buckets: Buckets, job: BulkPut, bite: Bite) -> bool:
        """Find both buckets, and count the bytes to read."""
        buckets.check(job.bucket)
        buckets.check(job.report_bucket)
        total = sum(object_.bytes for object_ in buckets.list(job.bucket, job.prefix))

        def begun(txn: Transaction) -> bool:
            current = self._under_way(txn, job.scope, job.id)
            if current is not None:
                BULK_PUTS.save(txn, msgspec.structs.replace(current, total_bytes=total))
            return current is not None

        return bite.write(self._engine, begun)

    def _put(self, job: BulkPut, table: Table, row: dict[str, Any]) -> tuple[Write, tuple[bytes, bytes]]:
        """The write of a row, and the address of its item."""
        write = self._put_of({**row, "TableName": table.name})
        write.return_item_on_failure = job.reports("CONDITION_CHECK_FAILURE")
        address = keys.address_of_item(table.key, write.key)
        read_modify_write.check_paths(table, write)
        return write, address

    def _write(self, txn: Transaction, before: BulkPut, rows: Taken, occasion: Occasion) -> None:
        """Write a bite."""
        job = self._under_way(txn, before.scope, before.id)
        if job is None or job.status != "IN_PROGRESS" or job.place != rows.before:
            return
        table = _table_of(txn, job)
        if table is None:
            return  # the next step ends the operation
        lines: list[dict[str, Any]] = []
        faults, usage, refused = list(rows.faults), dict(job.usage), 0
        for put in rows.puts:
            try:
                _add(usage, read_modify_write.perform(txn, table, put.write, occasion, put.address))
            except ConditionalCheckFailedException as error:
                refused += 1
                if job.reports("CONDITION_CHECK_FAILURE"):
                    lines.append(reports.condition_failed(job, put, error.members.get("Item")))
            except ServiceError as error:  # nothing of the item was written
                faults.append(Fault(put.key, put.row, error.message or error.code))
        if job.reports("ERROR"):
            lines += [reports.error(job, fault) for fault in faults]
        for number, line in enumerate(lines, job.reported):
            BULK_PUTS.keep_part(txn, job, number, msgspec.Raw(orjson.dumps(line)))
        done = msgspec.structs.replace(
            job,
            place=rows.after,
            is_read=rows.is_end,
            processed_bytes=job.processed_bytes
            + (rows.bytes if job.compression == "NONE" else rows.object_bytes),
            processed_items=job.processed_items + rows.rows,
            failed_items=job.failed_items + len(faults),
            conditions_failed=job.conditions_failed + refused,
            reported=job.reported + len(lines),
            usage=usage,
        )
        BULK_PUTS.save(txn, done)

    def _report(self, buckets: Buckets, layout: Layout, job: BulkPut, bite: Bite) -> bool:
        """Write an object of the report, with the lines that are stored."""
        written: list[DataObject] = []
        number = len(job.objects)
        opened = exports.data_object(buckets, job.report_bucket, layout, number, "DYNAMODB_JSON", written)
        with opened as writer:
            for first in range(job.told, job.reported, _PART_LINES):
                until = min(first + _PART_LINES, job.reported)
                for line in self._engine.read(partial(_lines, job=job, first=first, until=until)):
                    writer.line(line)
                bite.pause()

        def reported(txn: Transaction) -> bool:
            current = self._under_way(txn, job.scope, job.id)
            if current is None or current.told != job.told:
                return current is not None
            objects = (*current.objects, tuple(written[0]))
            BULK_PUTS.forget_parts(txn, job, job.reported)
            BULK_PUTS.save(txn, msgspec.structs.replace(current, told=job.reported, objects=objects))
            return True

        return bite.write(self._engine, reported)

    def _complete(self, buckets: Buckets, layout: Layout, job: BulkPut, bite: Bite) -> bool:
        """Write the manifests of the report, and end the operation."""
        now = bite.occasion.now
        status: Status = "COMPLETED_WITH_ERRORS" if job.failed_items else "COMPLETED"
        if job.status == "CANCELLING":
            status = "CANCELLED"
        summary = reports.summary(job, status, now, layout.manifest("files"))
        objects = (DataObject(*written) for written in job.objects)
        exports.write_manifests(buckets, job.report_bucket, layout, objects, summary)
        bite.write(self._engine, partial(self._ended, job=job, now=now, status=status))
        return False

    def _ended(self, txn: Transaction, job: BulkPut, now: float, status: Status) -> None:
        current = self._under_way(txn, job.scope, job.id)
        if current is not None:
            self._end(txn, current, now, status, *(_CANCELLED if status == "CANCELLED" else (None, None)))

    def _settle(self, txn: Transaction, job: BulkPut, now: float) -> BulkPut:
        BULK_PUTS.forget_parts(txn, job, job.reported)  # the lines of an operation that failed
        return job

    def _counts(self, job: BulkPut) -> dict[str, int]:
        return {
            "items": job.processed_items,
            "errors": job.failed_items,
            "conditions failed": job.conditions_failed,
        }


def _table_of(reader: Reader, job: BulkPut) -> Table | None:
    """The table, if it still exists."""
    table = catalog.find_full(reader, job.table_full_name)
    return table if table is not None and table.id == job.table_id and table.gone_at is None else None


def _lines(reader: Reader, job: BulkPut, first: int, until: int) -> list[bytes]:
    return list(islice(BULK_PUTS.parts(reader, job, first), until - first))


def _add(usage: dict[str, int], change: ItemChange) -> None:
    """Count the bytes of an item and of its index entries."""
    table, record, item = change.table, change.new, change.new_item
    if record is None or item is None:
        return
    entries = (
        (index.name, indexes.entry_of(table, index, item, change.partition, change.sort, record))
        for index in table.indexes
    )
    sizes = ((name, entry.size) for name, entry in entries if entry is not None)
    for name, size in chain([("", records.size_of(record))], sizes):
        usage[name] = usage.get(name, 0) + size
