"""What is stored of an export.

    ("export", scope / id)                   → the job
    ("export-object", scope / id / number)   → a data object that was written
    ("export-token", digest of the token)    → the id of the export that had the token last

An id begins with the time of its request, so that the jobs of a scope lie in the order of their times. Jobs
are kept for 90 days after their end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Final, Literal

import msgspec

from hashrange.encoding import successor
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.exports.exporter import JOB
from hashrange.tables.spaces import EXPORT_SPACE

_OBJECT: Final = b"export-object"
_TOKEN: Final = b"export-token"
_DIGEST_BYTES: Final = 24
_NUMBER_BYTES: Final = 8

Status = Literal["IN_PROGRESS", "COMPLETED", "FAILED"]


class Export(msgspec.Struct, frozen=True):
    """An export.

    `request` is the request of ExportTableToPointInTime, without its token. `key_names` are the attributes of
    the table's key. The items are those at the stamp
    `high`; in an incremental export, those that changes with `low < stamp <= high` touched, from the moment
    `from_time` on, until before `to_time`. `time` is the moment of a full export. Moments are epoch seconds.

    `begun`: the bucket was found. `objects` were written, with `items` lines; the next one begins at the
    address `partition` and `sort`. `is_read`: there are no further ones.
    """

    id: str
    scope: str
    region: str
    account_id: str
    token: str | None
    request: dict[str, Any]
    table_name: str
    table_id: str
    started: float
    high: int
    key_names: tuple[str, ...]
    low: int | None = None
    time: float = 0.0
    from_time: float = 0.0
    to_time: float = 0.0
    status: Status = "IN_PROGRESS"
    ended: float | None = None
    begun: bool = False
    objects: int = 0
    partition: bytes = b""
    sort: bytes = b""
    is_read: bool = False
    items: int = 0
    size_bytes: int = 0
    failure_code: str | None = None
    failure_message: str | None = None

    @property
    def table_full_name(self) -> str:
        """The name of the table that no other table has."""
        return f"{self.scope}/{self.table_name}" if self.scope else self.table_name

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
        given = self.request.get("IncrementalExportSpecification") or {}
        return given.get("ExportViewType") or "NEW_AND_OLD_IMAGES"

    @property
    def prefix(self) -> str:
        """The beginning of the keys of the objects."""
        return self.request.get("S3Prefix") or ""

    @property
    def bucket(self) -> str:
        """The bucket that is written to."""
        bucket: str = self.request["S3Bucket"]
        return bucket

    def arn(self, region: str, account_id: str) -> str:
        """The ARN of the export as a caller of this region and account sees it."""
        return f"arn:aws:dynamodb:{region}:{account_id}:table/{self.table_name}/export/{self.id}"


class Written(msgspec.Struct, frozen=True, array_like=True):
    """A data object that was written."""

    items: int
    md5: str
    etag: str
    key: str


_ENCODE: Final = msgspec.json.Encoder()
_DECODE: Final = msgspec.json.Decoder(Export)
_DECODE_WRITTEN: Final = msgspec.json.Decoder(Written)


def _sort(scope: str, id_: str) -> bytes:
    return f"{scope}/{id_}".encode()


def find(reader: Reader, scope: str, id_: str) -> Export | None:
    """The export with this id, or None."""
    stored = reader.get(EXPORT_SPACE, JOB, _sort(scope, id_))
    return _DECODE.decode(stored) if stored is not None else None


def save(txn: Transaction, job: Export) -> None:
    """Store an export, new or changed."""
    txn.put(EXPORT_SPACE, JOB, _sort(job.scope, job.id), _ENCODE.encode(job))


def newest_first(reader: Reader, scope: str, before: str | None = None) -> Iterator[Export]:
    """The exports of a scope, the newest first, from the one before the id `before` on."""
    low = f"{scope}/".encode()
    high = _sort(scope, before) if before is not None else successor(low)
    for _, stored in reader.scan(EXPORT_SPACE, JOB, low, high, reverse=True):
        with suppress(msgspec.MsgspecError):  # `damaged` tells of it
            yield _DECODE.decode(stored)


def every(reader: Reader) -> Iterator[Export]:
    """The exports of all scopes, without those of `damaged`."""
    for _, stored in reader.scan(EXPORT_SPACE, JOB):
        with suppress(msgspec.MsgspecError):
            yield _DECODE.decode(stored)


def damaged(reader: Reader) -> Iterator[tuple[str, Exception]]:
    """The exports whose records cannot be decoded: scope and id, and the error."""
    for sort, stored in reader.scan(EXPORT_SPACE, JOB):
        try:
            _DECODE.decode(stored)
        except msgspec.MsgspecError as error:
            yield sort.decode(errors="backslashreplace"), error


def forget(txn: Transaction, job: Export) -> None:
    """Remove an export with its objects' records and its token."""
    txn.delete(EXPORT_SPACE, JOB, _sort(job.scope, job.id))
    prefix = _sort(job.scope, job.id) + b"/"
    for sort in [sort for sort, _ in txn.scan(EXPORT_SPACE, _OBJECT, prefix, successor(prefix))]:
        txn.delete(EXPORT_SPACE, _OBJECT, sort)
    if job.token is not None:
        name = _token(job.scope, job.account_id, job.token)
        if txn.get(EXPORT_SPACE, _TOKEN, name) == job.id.encode():
            txn.delete(EXPORT_SPACE, _TOKEN, name)


def keep_written(txn: Transaction, job: Export, number: int, written: Written) -> None:
    """Store that data object number `number` was written."""
    sort = _sort(job.scope, job.id) + b"/" + number.to_bytes(_NUMBER_BYTES)
    txn.put(EXPORT_SPACE, _OBJECT, sort, _ENCODE.encode(written))


def written(reader: Reader, job: Export) -> Iterator[Written]:
    """The data objects that were written, in their order."""
    prefix = _sort(job.scope, job.id) + b"/"
    for _, stored in reader.scan(EXPORT_SPACE, _OBJECT, prefix, successor(prefix)):
        yield _DECODE_WRITTEN.decode(stored)


def by_token(reader: Reader, scope: str, account_id: str, token: str) -> Export | None:
    """The export that was begun with a token, or None."""
    stored = reader.get(EXPORT_SPACE, _TOKEN, _token(scope, account_id, token))
    return find(reader, scope, stored.decode()) if stored is not None else None


def keep_token(txn: Transaction, job: Export) -> None:
    """Remember the token of an export."""
    if job.token is not None:
        name = _token(job.scope, job.account_id, job.token)
        txn.put(EXPORT_SPACE, _TOKEN, name, job.id.encode())


def _token(scope: str, account_id: str, token: str) -> bytes:
    return blake2b(f"{scope}\x00{account_id}\x00{token}".encode(), digest_size=_DIGEST_BYTES).digest()
