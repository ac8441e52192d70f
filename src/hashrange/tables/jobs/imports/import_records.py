"""The records of imports.

    ("import", scope / id)             → the job
    ("import-error", id, number)       → an error of an item, as JSON
    ("import-token", digest of token)  → the id of the last import with the token

Jobs are kept for 90 days after their end.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Final, Literal

import msgspec

from hashrange.storage.api import Reader
from hashrange.tables.definitions.table import Table
from hashrange.tables.jobs.job_records import Job, JobRecords
from hashrange.tables.jobs.objects import ObjectPosition
from hashrange.tables.spaces import IMPORT_JOBS, IMPORT_SPACE


class Import(Job, frozen=True, kw_only=True):
    """An import. `table` is the definition of the table until it is made."""

    table: Table | None
    processed_bytes: int = 0
    processed_items: int = 0
    imported_items: int = 0
    errors: int = 0
    place: ObjectPosition = ObjectPosition()

    @property
    def bucket(self) -> str:
        """The bucket that is read."""
        return str(self.request["S3BucketSource"]["S3Bucket"])

    @property
    def prefix(self) -> str:
        """The beginning of the keys of the objects that are read."""
        return self.request["S3BucketSource"].get("S3KeyPrefix") or ""

    @property
    def format(self) -> Literal["DYNAMODB_JSON", "ION", "CSV"]:
        """The format of the objects."""
        format_: Literal["DYNAMODB_JSON", "ION", "CSV"] = self.request["InputFormat"]
        return format_

    @property
    def compression(self) -> str:
        """The compression of the objects."""
        return self.request.get("InputCompressionType") or "NONE"

    def arn(self, region: str, account_id: str) -> str:
        """The ARN of the import for a caller in this region and account."""
        return f"arn:aws:dynamodb:{region}:{account_id}:table/{self.table_name}/import/{self.id}"


IMPORTS: Final = JobRecords(
    IMPORT_SPACE, Import, job=IMPORT_JOBS, part=b"import-error", token=b"import-token"
)


def is_stalled(reader: Reader, table: Table) -> bool:
    """Whether an import fills this table and cannot go on, because its bucket cannot be reached."""
    return any(job.table_id == table.id and job.stalled for job in IMPORTS.newest_first(reader, table.scope))


def errors_of(
    reader: Reader, arn: str, first: int = 0, errors_max: int | None = None
) -> list[dict[str, Any]]:
    """The errors of the items of an import, from number `first` on, in the form in which the service logs
    them. Only the first 10,000 errors are stored. An import that does not exist has none.

    `arn` is the ARN of the import, or its id.
    """
    id_ = arn.rpartition("/")[2]
    job = next((job for job in IMPORTS.every(reader) if job.id == id_), None)
    if job is None:
        return []
    return [msgspec.json.decode(error) for error in islice(IMPORTS.parts(reader, job, first), errors_max)]
