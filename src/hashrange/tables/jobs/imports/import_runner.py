"""The background work of imports: a unit for each import that is in progress.

A step of an import reads a bite of rows outside a transaction, and writes it in one: the items through
`applying.apply`, like any put, then the counts, the errors and the place that was reached. A step does
nothing if its transaction finds another place than the one where it began.

If an object cannot be read now, for example because the connection to S3 is lost, the step fails, and is
tried again later (`jobs.transfers`). While such an import is stalled, its table can be deleted.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, Final

import msgspec

from hashrange.buckets import Buckets
from hashrange.errors import ITEM_TOO_LARGE, ServiceError, ValidationException
from hashrange.interchange.csv_files import Columns
from hashrange.limits import ITEM_BYTES_MAX
from hashrange.settings import Settings
from hashrange.storage.api import Engine, Reader, Transaction
from hashrange.tables.background.units import Bite
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import UNTIL_FILLED, Table
from hashrange.tables.items import keys, records
from hashrange.tables.items.item_change import Occasion
from hashrange.tables.jobs.imports.import_records import IMPORTS, Import
from hashrange.tables.jobs.objects import Fault, Input, Reading, Taken
from hashrange.tables.jobs.transfers import TransferRunner
from hashrange.tables.writes import read_modify_write
from hashrange.tables.writes.read_modify_write import Write
from hashrange.values import Item, admit_item

ERRORS_KEPT_MAX: Final = 10_000
"""The most errors of an import that are stored."""

_ERRORS_LOGGED_MAX: Final = 10
_MESSAGE_CHARS_MAX: Final = 1_000

# [docs] Developer Guide, "Import format quotas and validation"
_INVALID_ITEMS: Final = (
    "Some of the items failed validation checks and were not imported. "
    "Please check CloudWatch error logs for more details."
)

_log = logging.getLogger("hashrange")


class Runner(TransferRunner[Import, Reading]):
    """Does the work of imports, and keeps the objects open that are being read."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        super().__init__(engine, settings, "import", IMPORTS)

    def _progress(self, job: Import, bite: Bite) -> bool:
        engine, now = self._engine, bite.occasion.now
        if job.table is not None:
            self._checked(job)
            return bite.write(engine, partial(self._begin, scope=job.scope, id_=job.id, now=now))
        table = engine.read(partial(_table_of, job=job))
        if table is None:
            bite.write(engine, partial(self._cancel, scope=job.scope, id_=job.id, now=now))
            return False
        reading = self._steps.opened.get(job.id)
        if reading is None or reading.place != job.place:
            self._steps.close_one(job.id)
            reading = self._steps.opened[job.id] = _reading(self._checked(job), job, table)
        rows = reading.take(bite.limit, bite.pause)
        write = partial(self._write, scope=job.scope, id_=job.id, rows=rows, occasion=bite.occasion)
        ended = bite.write(engine, write)
        return not ended

    def _checked(self, job: Import) -> Buckets:
        """The buckets, if the import's bucket is among them."""
        buckets = self._found_buckets()
        buckets.check(job.bucket)
        return buckets

    def _begin(self, txn: Transaction, scope: str, id_: str, now: float) -> bool:
        """Make the table, CREATING; returns whether the import continues."""
        job = self._under_way(txn, scope, id_)
        if job is None or job.table is None:
            return False
        if catalog.find_full(txn, job.table_full_name) is not None:
            # [report] for the code, [assumed] for the text
            message = f"Table already exists: {job.table_name}"
            self._end(txn, job, now, "FAILED", "TableAlreadyExists", message)
            return False
        spaced = tuple(index.placed(partial(catalog.new_space, txn)) for index in job.table.indexes)
        table = msgspec.structs.replace(
            job.table,
            space=catalog.new_space(txn),
            indexes=spaced,
            created=now,
            billing_changed=now if job.table.billing_mode == "PAY_PER_REQUEST" else None,
            creating_until=UNTIL_FILLED,
        )
        catalog.save(txn, table)
        IMPORTS.save(txn, msgspec.structs.replace(job, table=None))
        return True

    def _write(self, txn: Transaction, scope: str, id_: str, rows: Taken, occasion: Occasion) -> bool:
        """Write a bite; returns whether the import has ended."""
        job = self._under_way(txn, scope, id_)
        if job is None or job.place != rows.before:
            return False
        table = _table_of(txn, job)
        if table is None:
            self._end(txn, job, occasion.now, "CANCELLED")
            return True
        faults = list(rows.faults)
        imported = 0
        for put in rows.puts:
            try:
                read_modify_write.perform(txn, table, put.write, occasion, put.address)
            except ServiceError as error:  # nothing of the item was written
                faults.append(Fault(put.key, put.row, error.message or error.code))
            else:
                imported += 1
        _keep(txn, job, faults)
        job = msgspec.structs.replace(
            job,
            place=rows.after,
            processed_bytes=job.processed_bytes + rows.bytes,
            processed_items=job.processed_items + rows.rows,
            imported_items=job.imported_items + imported,
            errors=job.errors + len(faults),
            stalled=False,
        )
        if not rows.is_end:
            IMPORTS.save(txn, job)
        elif job.errors:
            self._end(txn, job, occasion.now, "FAILED", "ItemValidationError", _INVALID_ITEMS)
        else:
            self._end(txn, job, occasion.now, "COMPLETED")
        return rows.is_end

    def _cancel(self, txn: Transaction, scope: str, id_: str, now: float) -> None:
        job = self._under_way(txn, scope, id_)
        if job is not None:
            self._end(txn, job, now, "CANCELLED")

    def _settle(self, txn: Transaction, job: Import, now: float) -> Import:
        """Make the table ACTIVE with the items that were imported."""
        table = _table_of(txn, job) if job.table is None else None
        if table is not None and table.creating_until == UNTIL_FILLED:
            catalog.save(txn, msgspec.structs.replace(table, creating_until=0.0))
        return msgspec.structs.replace(job, table=None)

    def _counts(self, job: Import) -> dict[str, int]:
        return {"items": job.imported_items, "errors": job.errors}


def _reading(buckets: Buckets, job: Import, table: Table) -> Reading:
    columns = columns_of(job, table)
    input_ = Input(job.bucket, job.prefix, job.format, job.compression, columns)
    return Reading(buckets, input_, job.place, partial(_put, table))


def _put(table: Table, item: Item) -> tuple[Write, tuple[bytes, bytes]]:
    """The write of an item, and its address."""
    size = admit_item(item)
    if size > ITEM_BYTES_MAX:
        raise ValidationException(ITEM_TOO_LARGE)
    address = keys.address_of_item(table.key, item)
    return Write("put", table.name, item, records.pack(item, size)), address


def columns_of(job: Import, table: Table) -> Columns:
    """How to read the rows of CSV files for `table`."""
    options = (job.request.get("InputFormatOptions") or {}).get("Csv") or {}
    header = options.get("HeaderList")
    optional = {
        attribute.name for index in table.indexes for attribute in index.attributes()
    } - table.key_names
    return Columns(
        options.get("Delimiter") or ",",
        tuple(header) if header else None,
        table.attribute_types,
        frozenset(optional),
    )


def shown(job: Import, fault: Fault) -> dict[str, Any]:
    """An error as the service logs it."""
    arn = job.arn(job.region, job.account_id)
    pointer = {"bucket": job.bucket, "key": fault.key, "itemIndex": fault.row}
    message = fault.message[:_MESSAGE_CHARS_MAX]
    return {"itemS3Pointer": pointer, "importArn": arn, "errorMessages": [message]}


def _table_of(reader: Reader, job: Import) -> Table | None:
    """The table that the import fills, if it still exists."""
    table = catalog.find_full(reader, job.table_full_name)
    return table if table is not None and table.id == job.table_id else None


def _keep(txn: Transaction, job: Import, faults: list[Fault]) -> None:
    """Store the errors of a bite, and log the first errors of the import."""
    for number, fault in enumerate(faults, job.errors):
        if number >= ERRORS_KEPT_MAX:
            return
        IMPORTS.keep_part(txn, job, number, shown(job, fault))
        if number < _ERRORS_LOGGED_MAX:
            fields = {"import": job.id, "object": fault.key, "item": fault.row, "error": fault.message}
            _log.warning("an item was not imported", extra={"fields": fields})
