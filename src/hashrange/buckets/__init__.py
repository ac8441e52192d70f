"""Buckets of objects: where imports read from, exports write to, and copies are kept.

    folders  a bucket is a folder, its objects are the files beneath
    s3       the buckets of S3, or of a store that speaks its protocol, through boto3

Both list, read and write the objects of a bucket as streams, in constant memory; small ones as a whole, and
on a condition (`read`, `put`), by which several programs agree. A permanent error is a
`BucketError`, with the code that the service shows as FailureCode. An error that may pass, such as a lost
connection or a full disk, is an `OSError`: the caller tries again.

Refuses to know what the objects hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final, NamedTuple, Protocol

CHUNK_BYTES: Final = 256 * 1024
"""How much of an object is read or written at once."""

NO_SUCH_BUCKET: Final = "S3NoSuchBucket"
ACCESS_DENIED: Final = "S3AccessDenied"
NO_SUCH_KEY: Final = "S3NoSuchKey"
INVALID_KEY: Final = "S3InvalidObjectKey"
CHANGED: Final = "S3PreconditionFailed"


Content = bytes | Sequence[bytes | bytearray | memoryview]
"""What an object holds, perhaps in pieces, which need not be copied together."""


class BucketError(Exception):
    """A bucket or an object cannot be used, and trying again will not help."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Unreachable(ConnectionError):
    """The store of the buckets does not answer, or says that it cannot serve now."""


class Object(NamedTuple):
    """An object of a bucket. `etag` changes when the object is replaced."""

    key: str
    bytes: int
    etag: str


class ObjectReader(Protocol):
    """An object that is being read."""

    def read(self, size: int, /) -> bytes:
        """Up to `size` bytes; b"" at the end."""
        ...

    def close(self) -> None: ...


class ObjectWriter(Protocol):
    """An object that is being written. The whole object appears when its context ends without an error."""

    @property
    def etag(self) -> str:
        """The ETag of the object; known once it is written."""
        ...

    def write(self, data: bytes, /) -> object: ...


class Buckets(Protocol):
    """The buckets of a database."""

    def check(self, bucket: str) -> None:
        """Raise `BucketError` if there is no such bucket, or if listing it is not allowed."""
        ...

    def list(self, bucket: str, prefix: str, after: str = "") -> Iterator[Object]:
        """The objects whose keys begin with `prefix` and are above `after`, in the order of their keys."""
        ...

    def open(self, bucket: str, item_object: Object, offset: int = 0) -> ObjectReader:
        """Read an object that was listed, from the byte `offset` on. Raises `BucketError` if it was deleted
        or changed since."""
        ...

    def create(self, bucket: str, key: str) -> AbstractContextManager[ObjectWriter]:
        """Write an object; an existing object with this key is replaced."""
        ...

    def read(self, bucket: str, key: str) -> tuple[bytes, str]:
        """The content of a small object, and its ETag for `put`, which differs from that of a listing. Raises
        `BucketError`, with NO_SUCH_KEY if there is none."""
        ...

    def put(
        self, bucket: str, key: str, content: Content, *, etag: str | None = None, new: bool = False
    ) -> str:
        """Write a small object; returns its ETag. `new`: only if there is no such object; `etag`: only if the
        object has this ETag. Otherwise raises `BucketError` with CHANGED, and so it may after a lost answer,
        although the object was written: read it."""
        ...

    def delete(self, bucket: str, key: str) -> None:
        """Delete an object, if there is one."""
        ...


def of(folder: str, endpoint: str) -> Buckets | None:
    """The buckets at an S3 endpoint, or else in a folder; None if neither is given."""
    if endpoint:
        from hashrange.buckets.s3 import S3Buckets

        return S3Buckets(endpoint)
    if folder:
        from hashrange.buckets.folders import Folders

        return Folders(folder)
    return None
