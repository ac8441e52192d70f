"""The records of bulk operations.

    ("bulk", scope / id)             → the job
    ("bulk-report", id, number)      → a row that was not written, in the report's form, until it is reported
    ("bulk-token", digest of token)  → the id of the last operation with the token

Jobs are kept for 90 days after their end.
"""

from __future__ import annotations

from typing import Final, Literal

from hashrange.storage.api import Reader
from hashrange.tables.definitions.table import Table
from hashrange.tables.jobs.job_records import UNDER_WAY, Job, JobRecords
from hashrange.tables.jobs.objects import ObjectPosition
from hashrange.tables.spaces import BULK_JOBS, BULK_SPACE


class BulkPut(Job, frozen=True, kw_only=True):
    """A bulk operation.

    `place` is how far the objects have been read; `is_read`: to their end, and the report is written next.
    `total_bytes` is None until the objects are counted. `reported` rows were not written; the first `told` of
    them are in the `objects` of the report, the others are stored. `usage` counts the written bytes, by the
    name of the index, and by "" for the table.
    """

    place: ObjectPosition = ObjectPosition()
    is_read: bool = False
    total_bytes: int | None = None
    processed_bytes: int = 0
    processed_items: int = 0
    failed_items: int = 0
    conditions_failed: int = 0
    reported: int = 0
    told: int = 0
    objects: tuple[tuple[int, str, str, str], ...] = ()
    usage: dict[str, int] = {}  # noqa: RUF012 (msgspec copies it)

    @property
    def bucket(self) -> str:
        """The bucket that is read."""
        return str(self.request["InputS3Configuration"]["S3Bucket"])

    @property
    def prefix(self) -> str:
        """The beginning of the keys of the objects that are read."""
        return self.request["InputS3Configuration"].get("S3KeyPrefix") or ""

    @property
    def format(self) -> Literal["DYNAMODB_JSON", "ION"]:
        """The format of the objects."""
        format_: Literal["DYNAMODB_JSON", "ION"] = self.request["InputS3Configuration"]["InputFormat"]
        return format_

    @property
    def compression(self) -> str:
        """The compression of the objects."""
        return self.request["InputS3Configuration"].get("InputCompressionType") or "NONE"

    @property
    def report_bucket(self) -> str:
        """The bucket of the report."""
        return str(self.request["OutputS3Configuration"]["S3Bucket"])

    @property
    def report_prefix(self) -> str:
        """The beginning of the keys of the report's objects."""
        return self.request["OutputS3Configuration"].get("S3KeyPrefix") or ""

    def reports(self, kind: Literal["ERROR", "CONDITION_CHECK_FAILURE"]) -> bool:
        """Whether the report lists the rows of a kind."""
        return kind in self.request["OutputS3Configuration"]["OutputType"]

    def arn(self, region: str, account_id: str) -> str:
        """The ARN of the operation for a caller in this region and account. Its form is [assumed]."""
        return f"arn:aws:dynamodb:{region}:{account_id}:table/{self.table_name}/bulk-operation/{self.id}"


BULK_PUTS: Final = JobRecords(BULK_SPACE, BulkPut, job=BULK_JOBS, part=b"bulk-report", token=b"bulk-token")


def writes_to(reader: Reader, table: Table) -> bool:
    """Whether a bulk operation on this table is in progress."""
    return any(job.table_id == table.id and job.status in UNDER_WAY for job in BULK_PUTS.every(reader))
