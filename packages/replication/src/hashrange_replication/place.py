"""The place of a copy: the objects under a prefix of a bucket, by names without the prefix.

    s3://bucket/prefix    a bucket of S3, or of a store that speaks its protocol
    a path                a folder

Errors are those of `hashrange.buckets`: an OSError may pass, a BucketError does not. `PATIENCE` and `patient`
try again what may pass, for commands; servers try again by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar

from hashrange.buckets import NO_SUCH_KEY, BucketError, Buckets, Content, Object, ObjectReader, ObjectWriter
from hashrange.files.durable import make_directory
from hashrange.pace.workers import hold_up
from hashrange_replication.failures import CopyError

T = TypeVar("T")

PATIENCE: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
"""How many seconds a command waits before each further try."""
_S3: Final = "s3://"


class Place:
    """The objects of one copy. `shown` is its URL or path, for people. Thread-safe."""

    def __init__(self, buckets: Buckets, bucket: str, prefix: str, shown: str) -> None:
        self._buckets = buckets
        self._bucket = bucket
        self._prefix = prefix
        self._lock = Lock()
        self.shown = shown
        self.requests = 0
        """How many requests were made, about."""

    def check(self) -> None:
        """Raises BucketError if there is no such bucket, or listing it is not allowed."""
        self._count()
        self._buckets.check(self._bucket)

    def read(self, name: str) -> tuple[bytes, str]:
        """The content of a small object, and its ETag for `put`."""
        self._count()
        return self._buckets.read(self._bucket, self._prefix + name)

    def find(self, name: str) -> tuple[bytes, str] | None:
        """As `read`; None if there is no such object."""
        try:
            return self.read(name)
        except BucketError as error:
            if error.code != NO_SUCH_KEY:
                raise
            return None

    def put(self, name: str, content: Content, *, etag: str | None = None, new: bool = False) -> str:
        """As `Buckets.put`."""
        self._count()
        return self._buckets.put(self._bucket, self._prefix + name, content, etag=etag, new=new)

    def create(self, name: str) -> AbstractContextManager[ObjectWriter]:
        """As `Buckets.create`."""
        self._count()
        return self._buckets.create(self._bucket, self._prefix + name)

    def list(self, start: str, after: str = "") -> Iterator[Object]:
        """The objects whose names begin with `start` and are above the name `after`, in order; `key` is the
        name."""
        self._count()
        found = self._buckets.list(self._bucket, self._prefix + start, self._prefix + after if after else "")
        cut = len(self._prefix)
        for one in found:
            yield Object(one.key[cut:], one.bytes, one.etag)

    def open(self, found: Object) -> ObjectReader:
        """Read an object that was listed."""
        self._count()
        return self._buckets.open(self._bucket, found._replace(key=self._prefix + found.key))

    def delete(self, name: str) -> None:
        self._count()
        self._buckets.delete(self._bucket, self._prefix + name)

    def _count(self) -> None:
        with self._lock:
            self.requests += 1


def place_of(where: str, endpoint: str = "", *, make: bool = False) -> Place:
    """The place at a URL of S3 or a path. `endpoint` is that of S3, "" for AWS. `make` a folder that is
    missing. Raises CopyError."""
    try:
        if where.startswith(_S3):
            bucket, _, prefix = where.removeprefix(_S3).partition("/")
            if not bucket:
                raise CopyError(f"{where} names no bucket; write s3://bucket/prefix.")
            from hashrange.buckets.s3 import AWS, S3Buckets

            prefix = prefix.rstrip("/")
            return Place(S3Buckets(endpoint or AWS), bucket, f"{prefix}/" if prefix else "", where)
        if "://" in where:
            raise CopyError(f"{where} is neither a folder nor a URL such as s3://bucket/prefix.")
        from hashrange.buckets.folders import Folders

        folder = Path(where).absolute()
        if make:
            make_directory(folder)
        return Place(Folders(folder.parent), folder.name, "", str(folder))
    except (BucketError, OSError) as error:
        raise CopyError(f"The copy at {where} cannot be used: {error}") from error


def patient(action: Callable[[], T], wait: Callable[[float], None] = hold_up) -> T:
    """The result of `action`, which is tried again after an error that may pass. Raises its last error."""
    for seconds in PATIENCE:
        try:
            return action()
        except OSError:
            wait(seconds)
    return action()
