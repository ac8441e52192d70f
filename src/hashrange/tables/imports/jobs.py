"""What is stored of an import.

    ("import", scope / id)             → the job
    ("import-error", id, number)       → an error of an item, as JSON
    ("import-token", digest of token)  → the id of the import that had the token last

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
from hashrange.tables.definitions.table import Table
from hashrange.tables.imports.importer import JOB
from hashrange.tables.spaces import IMPORT_SPACE

_ERROR: Final = b"import-error"
_TOKEN: Final = b"import-token"
_DIGEST_BYTES: Final = 24
_NUMBER_BYTES: Final = 8

Status = Literal["IN_PROGRESS", "COMPLETED", "CANCELLING", "CANCELLED", "FAILED"]


class Place(msgspec.Struct, frozen=True):
    """How far the objects were read.

    `key` is the object that is being read, or was read last; `etag` is that of the object, "" when it was
    read to its end. `byte` is the place in its decompressed bytes, `row` the number of rows before it.
    """

    key: str = ""
    etag: str = ""
    byte: int = 0
    row: int = 0


class Import(msgspec.Struct, frozen=True):
    """An import. `table` is the definition of the table while it is not made yet.

    `request` is the request of ImportTable, without its token, as it is shown. Times are epoch seconds.
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
    table: Table | None
    status: Status = "IN_PROGRESS"
    ended: float | None = None
    processed_bytes: int = 0
    processed_items: int = 0
    imported_items: int = 0
    errors: int = 0
    failure_code: str | None = None
    failure_message: str | None = None
    place: Place = Place()

    @property
    def table_full_name(self) -> str:
        """The name of the table that no other table has."""
        return f"{self.scope}/{self.table_name}" if self.scope else self.table_name

    @property
    def bucket(self) -> str:
        """The bucket that is read."""
        bucket: str = self.request["S3BucketSource"]["S3Bucket"]
        return bucket

    @property
    def prefix(self) -> str:
        """The beginning of the keys of the objects that are read."""
        prefix: str = self.request["S3BucketSource"].get("S3KeyPrefix") or ""
        return prefix

    @property
    def format(self) -> Literal["DYNAMODB_JSON", "ION", "CSV"]:
        """The format of the objects."""
        found: Literal["DYNAMODB_JSON", "ION", "CSV"] = self.request["InputFormat"]
        return found

    @property
    def compression(self) -> str:
        """The compression of the objects."""
        return self.request.get("InputCompressionType") or "NONE"

    def arn(self, region: str, account_id: str) -> str:
        """The ARN of the import as a caller of this region and account sees it."""
        return f"arn:aws:dynamodb:{region}:{account_id}:table/{self.table_name}/import/{self.id}"


_ENCODE: Final = msgspec.json.Encoder()
_DECODE: Final = msgspec.json.Decoder(Import)


def _sort(scope: str, id_: str) -> bytes:
    return f"{scope}/{id_}".encode()


def find(reader: Reader, scope: str, id_: str) -> Import | None:
    """The import with this id, or None."""
    stored = reader.get(IMPORT_SPACE, JOB, _sort(scope, id_))
    return _DECODE.decode(stored) if stored is not None else None


def save(txn: Transaction, job: Import) -> None:
    """Store an import, new or changed."""
    txn.put(IMPORT_SPACE, JOB, _sort(job.scope, job.id), _ENCODE.encode(job))


def newest_first(reader: Reader, scope: str, before: str | None = None) -> Iterator[Import]:
    """The imports of a scope, the newest first, from the one before the id `before` on."""
    low = f"{scope}/".encode()
    high = _sort(scope, before) if before is not None else successor(low)
    for _, stored in reader.scan(IMPORT_SPACE, JOB, low, high, reverse=True):
        with suppress(msgspec.MsgspecError):  # `damaged` tells of it
            yield _DECODE.decode(stored)


def every(reader: Reader) -> Iterator[Import]:
    """The imports of all scopes, without those of `damaged`."""
    for _, stored in reader.scan(IMPORT_SPACE, JOB):
        with suppress(msgspec.MsgspecError):
            yield _DECODE.decode(stored)


def damaged(reader: Reader) -> Iterator[tuple[str, Exception]]:
    """The imports whose records cannot be decoded: scope and id, and the error."""
    for sort, stored in reader.scan(IMPORT_SPACE, JOB):
        try:
            _DECODE.decode(stored)
        except msgspec.MsgspecError as error:
            yield sort.decode(errors="backslashreplace"), error


def forget(txn: Transaction, job: Import) -> None:
    """Remove an import with its errors and its token."""
    txn.delete(IMPORT_SPACE, JOB, _sort(job.scope, job.id))
    prefix = _sort(job.scope, job.id) + b"/"
    for sort in [sort for sort, _ in txn.scan(IMPORT_SPACE, _ERROR, prefix, successor(prefix))]:
        txn.delete(IMPORT_SPACE, _ERROR, sort)
    if job.token is not None:
        name = _token(job.scope, job.account_id, job.token)
        if txn.get(IMPORT_SPACE, _TOKEN, name) == job.id.encode():
            txn.delete(IMPORT_SPACE, _TOKEN, name)


def keep_error(txn: Transaction, job: Import, number: int, error: dict[str, Any]) -> None:
    """Store an error of an item, as number `number` of the import."""
    sort = _sort(job.scope, job.id) + b"/" + number.to_bytes(_NUMBER_BYTES)
    txn.put(IMPORT_SPACE, _ERROR, sort, _ENCODE.encode(error))


def errors(reader: Reader, job: Import, first: int = 0) -> Iterator[dict[str, Any]]:
    """The errors of items that were stored, in their order, from number `first` on."""
    prefix = _sort(job.scope, job.id) + b"/"
    low = prefix + min(first, 2**63).to_bytes(_NUMBER_BYTES)
    for _, stored in reader.scan(IMPORT_SPACE, _ERROR, low, successor(prefix)):
        yield msgspec.json.decode(stored)


def by_token(reader: Reader, scope: str, account_id: str, token: str) -> Import | None:
    """The import that was begun with a token, or None."""
    stored = reader.get(IMPORT_SPACE, _TOKEN, _token(scope, account_id, token))
    return find(reader, scope, stored.decode()) if stored is not None else None


def keep_token(txn: Transaction, job: Import) -> None:
    """Remember the token of an import."""
    if job.token is not None:
        name = _token(job.scope, job.account_id, job.token)
        txn.put(IMPORT_SPACE, _TOKEN, name, job.id.encode())


def _token(scope: str, account_id: str, token: str) -> bytes:
    return blake2b(f"{scope}\x00{account_id}\x00{token}".encode(), digest_size=_DIGEST_BYTES).digest()
