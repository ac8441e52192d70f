"""The background work of imports: one unit for each import that is in progress.

A step of an import reads a bite of rows, without a transaction, and writes it in one: the items through
`items.apply`, as any put, then the counts, the errors and the place that was reached. A step whose
transaction finds another place than it began at does nothing.

If an object cannot be read now, as when the connection to S3 is lost, the step fails, and the unit is tried
again later (`background.units`). What will not get better ends the import as FAILED.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from threading import Lock
from typing import Final

import msgspec

from hashrange import buckets
from hashrange.buckets import NO_SUCH_BUCKET, BucketError, Buckets
from hashrange.errors import ServiceError
from hashrange.settings import Settings
from hashrange.storage.api import Engine, Reader, Transaction
from hashrange.tables.background.units import Bite, Unit
from hashrange.tables.data import writes
from hashrange.tables.data.item_change import Occasion
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import UNTIL_FILLED, Table
from hashrange.tables.imports import jobs
from hashrange.tables.imports.jobs import Import
from hashrange.tables.imports.source import Fault, Reading, Taken, shown

KEPT_SECONDS: Final = 90 * 24 * 3600
"""How long an import that has ended is shown."""

ERRORS_KEPT_MAX: Final = 10_000
"""The most errors of an import that are stored."""

_ERRORS_LOGGED_MAX: Final = 10

# [docs] Developer Guide, "Import format quotas and validation"
_INVALID_ITEMS: Final = (
    "Some of the items failed validation checks and were not imported. "
    "Please check CloudWatch error logs for more details."
)

_log = logging.getLogger("hashrange")


class Runner:
    """Does the work of imports, and keeps the objects open that are being read."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._engine = engine
        self._settings = settings
        self.buckets: Buckets | None = None
        self._readings: dict[str, Reading] = {}
        # Programs without a server may sweep on several threads.
        self._lock = Lock()

    def forget(self) -> None:
        """Forget how far imports are: the store holds something else from now on, or is closed."""
        with self._lock:
            for id_ in list(self._readings):
                self._close(id_)

    def units(self) -> Iterator[Unit]:
        """The work that may be due."""
        engine = self._engine
        found = engine.read(lambda reader: list(jobs.every(reader)))
        for job in found:
            if job.status == "IN_PROGRESS":
                yield Unit(f"import {job.id}", partial(self._step, engine, job.scope, job.id))
        for name, error in engine.read(lambda reader: list(jobs.damaged(reader))):
            yield Unit(f"import {name}", partial(_raise, error))
        if found:
            yield Unit("records of imports", partial(_forget_old, engine))

    def _close(self, id_: str) -> None:
        reading = self._readings.pop(id_, None)
        if reading is not None:
            reading.close()

    def _step(self, engine: Engine, scope: str, id_: str, bite: Bite) -> bool:
        """Do a bite of an import; returns whether more is due."""
        with self._lock:
            return self._locked_step(engine, scope, id_, bite)

    def _locked_step(self, engine: Engine, scope: str, id_: str, bite: Bite) -> bool:
        try:
            more = self._progress(engine, scope, id_, bite)
        except BucketError as error:
            self._close(id_)
            bite.write(engine, partial(_fail, scope=scope, id_=id_, error=error, now=bite.occasion.now))
            return False
        except BaseException:
            self._close(id_)
            raise
        if not more:
            self._close(id_)
        return more

    def _progress(self, engine: Engine, scope: str, id_: str, bite: Bite) -> bool:
        job, table = engine.read(partial(_opened, scope=scope, id_=id_))
        if job is None or job.status != "IN_PROGRESS":
            return False
        if job.table is not None:
            self._checked(job)
            return bite.write(engine, partial(_begin, scope=scope, id_=id_, now=bite.occasion.now))
        if table is None:
            bite.write(engine, partial(_cancel, scope=scope, id_=id_, now=bite.occasion.now))
            return False
        reading = self._readings.get(id_)
        if reading is None or reading.place != job.place:
            self._close(id_)
            reading = self._readings[id_] = Reading(self._checked(job), job, table)
        taken = reading.take(bite.limit, bite.pause)
        ended = bite.write(
            engine, partial(_write, scope=scope, id_=id_, taken=taken, occasion=bite.occasion)
        )
        return not ended

    def _checked(self, job: Import) -> Buckets:
        """The buckets, if the import's is among them."""
        if self.buckets is None:
            self.buckets = buckets.of(self._settings.s3_dir, self._settings.s3_endpoint)
        if self.buckets is None:
            raise BucketError(NO_SUCH_BUCKET, "There are no buckets: give --s3-dir or --s3-endpoint.")
        self.buckets.check(job.bucket)
        return self.buckets


def _raise(error: Exception, bite: Bite) -> bool:
    raise error


def _opened(reader: Reader, scope: str, id_: str) -> tuple[Import | None, Table | None]:
    job = jobs.find(reader, scope, id_)
    return job, _table_of(reader, job) if job is not None else None


def _table_of(reader: Reader, job: Import) -> Table | None:
    """The table that the import fills, if it is still there."""
    table = catalog.find_full(reader, job.table_full_name)
    return table if table is not None and table.id == job.table_id else None


def _begin(txn: Transaction, scope: str, id_: str, now: float) -> bool:
    """Make the table, CREATING; returns whether the import goes on."""
    job = jobs.find(txn, scope, id_)
    if job is None or job.table is None:
        return False
    if catalog.find_full(txn, job.table_full_name) is not None:
        message = f"Table already exists: {job.table_name}"  # [report] for the code, [assumed] for the words
        _end(txn, job, now, "FAILED", "TableAlreadyExists", message)
        return False
    spaced = tuple(
        msgspec.structs.replace(index, space=catalog.new_space(txn)) for index in job.table.indexes
    )
    table = msgspec.structs.replace(
        job.table,
        space=catalog.new_space(txn),
        indexes=spaced,
        created=now,
        billing_changed=now if job.table.billing_mode == "PAY_PER_REQUEST" else None,
        creating_until=UNTIL_FILLED,
    )
    catalog.save(txn, table)
    jobs.save(txn, msgspec.structs.replace(job, table=None))
    return True


def _write(txn: Transaction, scope: str, id_: str, taken: Taken, occasion: Occasion) -> bool:
    """Write a bite; returns whether the import has ended."""
    job = jobs.find(txn, scope, id_)
    if job is None or job.status != "IN_PROGRESS" or job.place != taken.before:
        return False
    table = _table_of(txn, job)
    if table is None:
        _end(txn, job, occasion.now, "CANCELLED")
        return True
    faults = list(taken.faults)
    imported = 0
    for put in taken.puts:
        try:
            writes.perform(txn, table, put.write, occasion, put.address)
        except ServiceError as error:  # it has written nothing of the item
            faults.append(Fault(put.key, put.row, error.message or error.code))
        else:
            imported += 1
    _keep(txn, job, faults)
    job = msgspec.structs.replace(
        job,
        place=taken.after,
        processed_bytes=job.processed_bytes + taken.bytes,
        processed_items=job.processed_items + taken.rows,
        imported_items=job.imported_items + imported,
        errors=job.errors + len(faults),
    )
    if not taken.is_end:
        jobs.save(txn, job)
    elif job.errors:
        _end(txn, job, occasion.now, "FAILED", "ItemValidationError", _INVALID_ITEMS)
    else:
        _end(txn, job, occasion.now, "COMPLETED")
    return taken.is_end


def _keep(txn: Transaction, job: Import, faults: list[Fault]) -> None:
    """Store the errors of a bite, and log the first of the import."""
    for number, fault in enumerate(faults, job.errors):
        if number >= ERRORS_KEPT_MAX:
            return
        jobs.keep_error(txn, job, number, shown(job, fault))
        if number < _ERRORS_LOGGED_MAX:
            fields = {"import": job.id, "object": fault.key, "item": fault.row, "error": fault.message}
            _log.warning("an item was not imported", extra={"fields": fields})


def _end(
    txn: Transaction,
    job: Import,
    now: float,
    status: jobs.Status,
    code: str | None = None,
    message: str | None = None,
) -> None:
    """End an import; its table becomes ACTIVE with the items that were imported."""
    ended = msgspec.structs.replace(
        job, status=status, ended=now, failure_code=code, failure_message=message, table=None
    )
    jobs.save(txn, ended)
    table = _table_of(txn, job) if job.table is None else None
    if table is not None and table.creating_until == UNTIL_FILLED:
        catalog.save(txn, msgspec.structs.replace(table, creating_until=0.0))
    fields = {"import": job.id, "table": job.table_name, "status": status, "items": job.imported_items}
    _log.info("import ended", extra={"fields": {**fields, "errors": job.errors, "reason": code or "done"}})


def _fail(txn: Transaction, scope: str, id_: str, error: BucketError, now: float) -> None:
    job = jobs.find(txn, scope, id_)
    if job is not None and job.status == "IN_PROGRESS":
        _end(txn, job, now, "FAILED", error.code, error.message)


def _cancel(txn: Transaction, scope: str, id_: str, now: float) -> None:
    job = jobs.find(txn, scope, id_)
    if job is not None and job.status == "IN_PROGRESS":
        _end(txn, job, now, "CANCELLED")


def _forget_old(engine: Engine, bite: Bite) -> bool:
    """Remove the records of imports that ended long ago."""
    oldest = bite.occasion.now - KEPT_SECONDS

    def old(reader: Reader) -> list[Import]:
        return [job for job in jobs.every(reader) if job.ended is not None and job.ended < oldest]

    for job in engine.read(old):
        engine.write(partial(jobs.forget, job=job))
    return False
