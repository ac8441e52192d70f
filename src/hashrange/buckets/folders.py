"""Buckets as folders of a directory: `<directory>/<bucket>/<key>`.

An object is written to a temporary file in `<bucket>/.hashrange`, which no listing shows, made durable, and
renamed: so a reader finds the whole object, or what was there before. Two that write the same object at once
would disturb each other; exports have keys of their own.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from hashrange.buckets import (
    ACCESS_DENIED,
    CHANGED,
    INVALID_KEY,
    NO_SUCH_BUCKET,
    NO_SUCH_KEY,
    BucketError,
    Object,
)
from hashrange.durable_files import make_directory, sync_directory

_UNFINISHED: Final = ".hashrange"
_NO_PARTS: Final = ("", ".", "..")
_NAME_BYTES: Final = 16


class Folders:
    """The folders of `directory` as buckets. The directory need not exist."""

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory)

    def check(self, bucket: str) -> None:
        """As `Buckets.check`."""
        self._folder(bucket)

    def list(self, bucket: str, prefix: str, after: str = "") -> Iterator[Object]:
        """As `Buckets.list`."""
        return _walk(self._folder(bucket), "", prefix, after)

    def open(self, bucket: str, found: Object, offset: int = 0) -> BinaryIO:
        """As `Buckets.open`."""
        path = self._path(bucket, found.key)
        try:
            file = path.open("rb")
        except FileNotFoundError:
            raise BucketError(NO_SUCH_KEY, f"The object {found.key} of {bucket} is gone.") from None
        except PermissionError as error:
            raise BucketError(ACCESS_DENIED, f"{path} cannot be read: {error.strerror}.") from error
        if _etag(os.fstat(file.fileno())) != found.etag:
            file.close()
            raise BucketError(CHANGED, f"The object {found.key} of {bucket} has changed.")
        file.seek(offset)
        return file

    @contextmanager
    def create(self, bucket: str, key: str) -> Iterator[_File]:
        """As `Buckets.create`."""
        folder, path = self._folder(bucket), self._path(bucket, key)
        unfinished = folder / _UNFINISHED
        unfinished.mkdir(exist_ok=True)
        # Its name follows from the key, so that what a killed process left is written over.
        made = unfinished / hashlib.blake2b(key.encode(), digest_size=_NAME_BYTES).hexdigest()
        try:
            with made.open("wb") as file:
                sink = _File(file)
                yield sink
                file.flush()
                os.fsync(file.fileno())
            make_directory(path.parent)
            made.replace(path)
            sync_directory(path.parent)
            sink.finish()
        finally:
            made.unlink(missing_ok=True)

    def _folder(self, bucket: str) -> Path:
        folder = self._directory / bucket
        if bucket in _NO_PARTS or Path(bucket).name != bucket or not folder.is_dir():
            raise BucketError(
                NO_SUCH_BUCKET,
                "The specified bucket does not exist (Service: Amazon S3; Status Code: 404; "
                f"Error Code: NoSuchBucket): a bucket is a folder here, and there is no {folder}",
            )
        return folder

    def _path(self, bucket: str, key: str) -> Path:
        parts = key.split("/")
        if any(part in _NO_PARTS or "\0" in part for part in parts) or parts[0] == _UNFINISHED:
            raise BucketError(INVALID_KEY, f"The key {key!r} cannot be the name of a file.")
        return self._folder(bucket).joinpath(*parts)


class _File:
    """An object that is being written. Its ETag is that of an object of S3 in one part, as exports have."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.md5(usedforsecurity=False)
        self.etag = ""

    def write(self, data: bytes, /) -> None:
        self._file.write(data)
        self._digest.update(data)

    def finish(self) -> None:
        self.etag = hashlib.md5(self._digest.digest(), usedforsecurity=False).hexdigest() + "-1"


def _walk(folder: Path, start: str, prefix: str, after: str) -> Iterator[Object]:
    """The objects beneath `folder`, whose keys begin with `start`, in the order of the whole keys."""
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    except PermissionError as error:
        raise BucketError(ACCESS_DENIED, f"{folder} cannot be read: {error.strerror}.") from error
    # "a.b" comes before "a/b", which the folder "a" holds.
    named = [(f"{start}{entry.name}{'/' if entry.is_dir() else ''}", entry) for entry in entries]
    for key, entry in sorted(named, key=lambda one: os.fsencode(one[0])):
        if key == f"{_UNFINISHED}/":
            continue
        if key.endswith("/"):
            is_wanted = key.startswith(prefix) or prefix.startswith(key)
            if is_wanted and (os.fsencode(key) >= os.fsencode(after) or after.startswith(key)):
                yield from _walk(folder / entry.name, key, prefix, after)
        elif key.startswith(prefix) and os.fsencode(key) > os.fsencode(after):
            with suppress(FileNotFoundError):
                status = entry.stat()
                yield Object(key, status.st_size, _etag(status))


def _etag(status: os.stat_result) -> str:
    return f"{status.st_size:x}-{status.st_mtime_ns:x}"
