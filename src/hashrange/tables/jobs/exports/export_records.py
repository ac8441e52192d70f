"""The records of exports.

    ("export", scope / id)                   → the job
    ("export-object", scope / id / number)   → a data object that was written
    ("export-token", digest of the token)    → the id of the last export with the token

Jobs are kept for 90 days after their end.
"""

from __future__ import annotations

from typing import Final, Literal

from hashrange.tables.jobs.job_records import Job, JobRecords
from hashrange.tables.spaces import EXPORT_JOBS, EXPORT_SPACE


class Export(Job, frozen=True, kw_only=True):
    """An export.

    `key_names` are the attributes of the table's key. The items are those at the stamp `high`; in an
    incremental export, the items that were changed with `low < stamp <= high`, from the moment `from_time` up
    to but not including `to_time`. `time` is the moment of a full export. Moments are epoch seconds.

    `begun`: the bucket exists. `objects` were written, with `items` lines; the next object begins at the
    address `partition` and `sort`. `is_read`: there are no further objects.
    """

    high: int
    key_names: tuple[str, ...]
    low: int | None = None
    time: float = 0.0
    from_time: float = 0.0
    to_time: float = 0.0
    begun: bool = False
    objects: int = 0
    partition: bytes = b""
    sort: bytes = b""
    is_read: bool = False
    items: int = 0
    size_bytes: int = 0

    @property
    def hold(self) -> str:
        """The name under which the export holds its table's history."""
        return f"export:{self.id}"

    @property
    def format(self) -> Literal["DYNAMODB_JSON", "ION"]:
        """The format of the data objects."""
        return self.request.get("ExportFormat") or "DYNAMODB_JSON"

    @property
    def view(self) -> Literal["NEW_IMAGE", "NEW_AND_OLD_IMAGES"]:
        """The images that an incremental export shows."""
        specification = self.request.get("IncrementalExportSpecification") or {}
        return specification.get("ExportViewType") or "NEW_AND_OLD_IMAGES"

    @property
    def prefix(self) -> str:
        """The beginning of the keys of the objects."""
        return self.request.get("S3Prefix") or ""

    @property
    def bucket(self) -> str:
        """The bucket of the export."""
        return str(self.request["S3Bucket"])

    def arn(self, region: str, account_id: str) -> str:
        """The ARN of the export for a caller in this region and account."""
        return f"arn:aws:dynamodb:{region}:{account_id}:table/{self.table_name}/export/{self.id}"


EXPORTS: Final = JobRecords(
    EXPORT_SPACE, Export, job=EXPORT_JOBS, part=b"export-object", token=b"export-token"
)
