"""Runs the jobs of a kind that move items between tables and buckets: imports, exports, bulk operations.

A running job is a unit of the background work (`background.units`). Its steps keep a resource open, such as
an object that is being read, which is closed when the job ends, when a step fails and when the store is
closed; a later step opens it again at the stored position.

A permanent failure, such as a missing bucket, is a `BucketError` and ends the job as FAILED. After any other
error the unit is tried again: forever if the error may pass (`units.may_pass`), such as a lost connection,
and otherwise `units.TRIES_MAX` times, because nobody could end the job, and it would hold its table. A job
whose error may pass is noted as `stalled` after as many tries, so that its table can be deleted.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Final, Generic, TypeVar

import msgspec

from hashrange import buckets
from hashrange.buckets import NO_SUCH_BUCKET, BucketError, Buckets
from hashrange.settings import Settings
from hashrange.storage.api import Engine, Reader, Transaction
from hashrange.storage.failures import StorageError
from hashrange.tables.background.units import Bite, Tables, Unit, described, failing, may_pass
from hashrange.tables.jobs.job_records import UNDER_WAY, Job, JobRecords, Status
from hashrange.tables.jobs.steps import Open, Steps

KEPT_SECONDS: Final = 90 * 24 * 3600
"""How long an ended job can still be listed and described."""

# [assumed] the code
_UNFORESEEN: Final = "InternalServerError"

_log = logging.getLogger("hashrange")


J = TypeVar("J", bound=Job)
O = TypeVar("O", bound=Open)  # noqa: E741


class TransferRunner(ABC, Generic[J, O]):
    """Does the work of the jobs of a kind, which is called `kind` ("import") and stored in `records`.

    `buckets` come from the settings.
    """

    def __init__(self, engine: Engine, settings: Settings, kind: str, records: JobRecords[J]) -> None:
        self._engine = engine
        self._settings = settings
        self._kind = kind
        self._records = records
        self._steps: Steps[O] = Steps()
        self.buckets: Buckets | None = None

    @abstractmethod
    def _progress(self, job: J, bite: Bite) -> bool:
        """Do a bite of a running job; returns whether more is due."""

    @abstractmethod
    def _settle(self, txn: Transaction, job: J, now: float) -> J:
        """Release the table of a job that ends. Returns the job to be stored."""

    @abstractmethod
    def _counts(self, job: J) -> dict[str, int]:
        """The counts to log for a job that has ended."""

    def forget(self) -> None:
        """Close open resources, because the store's contents were replaced."""
        self._steps.forget()

    def close(self) -> None:
        """Close open resources, because the store is closed."""
        self._steps.end()

    def units(self, tables: Tables) -> Iterator[Unit]:
        """The work that may be due."""
        any_job, under_way = self._engine.read(self._found)
        for job in under_way:
            yield Unit(f"{self._kind} {job.id}", partial(self._step, job.scope, job.id))
        for name, error in self._engine.read(lambda reader: list(self._records.damaged(reader))):
            yield failing(f"{self._kind} {name}", error)
        if any_job:
            yield Unit(f"records of {self._kind}s", self._forget_old, destroys=True)

    def _found(self, reader: Reader) -> tuple[bool, list[J]]:
        """Whether there are jobs, and the jobs that have not ended: all jobs of 90 days may be many."""
        any_job, under_way = False, []
        for job in self._records.every(reader):
            any_job = True
            if job.status in UNDER_WAY:
                under_way.append(job)
        return any_job, under_way

    def _step(self, scope: str, id_: str, bite: Bite) -> bool:
        """Do a bite of a job; returns whether more is due."""

        def step() -> bool:
            job = self._engine.read(partial(self._under_way, scope=scope, id_=id_))
            return job is not None and self._progress(job, bite)

        def give_up(error: Exception) -> bool:
            if not self._is_last(scope, id_, error):
                return False
            fail = partial(self._fail, scope=scope, id_=id_, error=error, now=bite.occasion.now)
            bite.write(self._engine, fail)
            return True

        return self._steps.run(id_, step, give_up)

    def _is_last(self, scope: str, id_: str, error: Exception) -> bool:
        """Whether a job ends by an error of its step. Notes that the job is stalled if the error may pass."""
        if isinstance(error, BucketError):
            return True
        has_tried = self._steps.tries.failed(id_)
        if not may_pass(error):
            return has_tried
        if has_tried and not isinstance(error, StorageError):
            self._engine.write(partial(self._stall, scope=scope, id_=id_))
        return False

    def _stall(self, txn: Transaction, scope: str, id_: str) -> None:
        job = self._under_way(txn, scope, id_)
        if job is not None and not job.stalled:
            self._records.save(txn, msgspec.structs.replace(job, stalled=True))

    def _under_way(self, reader: Reader, scope: str, id_: str) -> J | None:
        """The current job, or None if it has ended."""
        job = self._records.find(reader, scope, id_)
        return job if job is not None and job.status in UNDER_WAY else None

    def _found_buckets(self) -> Buckets:
        if self.buckets is None:
            self.buckets = buckets.of(self._settings.s3_dir, self._settings.s3_endpoint)
        if self.buckets is None:
            raise BucketError(NO_SUCH_BUCKET, "There are no buckets: give --s3-dir or --s3-endpoint.")
        return self.buckets

    def _fail(self, txn: Transaction, scope: str, id_: str, error: Exception, now: float) -> None:
        job = self._under_way(txn, scope, id_)
        if job is None:
            return
        if isinstance(error, BucketError):
            self._end(txn, job, now, "FAILED", error.code, error.message)
        else:
            self._end(txn, job, now, "FAILED", _UNFORESEEN, described(error))

    def _end(
        self,
        txn: Transaction,
        job: J,
        now: float,
        status: Status,
        code: str | None = None,
        message: str | None = None,
    ) -> None:
        """End a job, and store it."""
        ended = msgspec.structs.replace(
            self._settle(txn, job, now),
            status=status,
            ended=now,
            failure_code=code,
            failure_message=message,
            stalled=False,
        )
        self._records.save(txn, ended)
        fields = {self._kind: job.id, "table": job.table_name, "status": status, **self._counts(ended)}
        _log.info("%s ended", self._kind, extra={"fields": {**fields, "reason": code or "done"}})

    def _forget_old(self, bite: Bite) -> bool:
        """Remove the records of jobs that ended long ago."""
        oldest = bite.occasion.now - KEPT_SECONDS

        def old(reader: Reader) -> list[J]:
            every = self._records.every(reader)
            return [job for job in every if job.ended is not None and job.ended < oldest]

        for job in self._engine.read(old):
            self._engine.write(partial(self._records.forget, record=job))
        return False
