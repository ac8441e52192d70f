"""Buckets as folders of a directory: `<directory>/<bucket>/<key>`.

An object is written to a temporary file in `<bucket>/.hashrange`, which no listing shows, made durable, and
renamed, so that a reader finds either the whole new object or the old one. Two writers of the same object
would disturb each other; exports avoid this with unique keys.

`_MAY_PASS` lists the errors of the file system that may be temporary, such as a full disk. Any other error,
such as a name that is too long, is permanent, and becomes a `BucketError`.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import BinaryIO, Final

from hashrange.buckets import (
    ACCESS_DENIED,
    CHANGED,
    CHUNK_BYTES,
    INVALID_KEY,
    NO_SUCH_BUCKET,
    NO_SUCH_KEY,
    BucketError,
    Content,
    Object,
)
from hashrange.files.durable import lock_file, make_directory, sync, sync_directory
from hashrange.files.regular import open_to_read, open_to_write

_UNFINISHED: Final = ".hashrange"
_NO_PARTS: Final = ("", ".", "..")
_NAME_BYTES: Final = 16
_md5: Final = partial(hashlib.md5, usedforsecurity=False)
_ON_WINDOWS: Final = os.name == "nt"
# Source: Microsoft, "Naming Files, Paths, and Namespaces".
_FORBIDDEN: Final = re.compile(r'[<>:"|?*\\\x00-\x1f]')
_DEVICES: Final = frozenset(
    ("CON", "PRN", "AUX", "NUL", *(f"{name}{digit}" for name in ("COM", "LPT") for digit in range(1, 10)))
)

_MAY_PASS: Final = frozenset(
    getattr(errno, name)
    for name in (
        *("ENOSPC", "EDQUOT", "ENOMEM", "EMFILE", "ENFILE"),  # somebody may free space, memory or files
        *("EAGAIN", "EINTR", "EBUSY", "ETXTBSY", "ENOLCK"),
        # A disk or a file server may come back.
        *("EIO", "ENODEV", "ENXIO", "ESTALE", "ETIMEDOUT", "ECONNREFUSED", "ECONNRESET", "ECONNABORTED"),
        *("EHOSTDOWN", "EHOSTUNREACH", "ENETDOWN", "ENETUNREACH", "ENOTCONN", "EREMOTEIO", "ESHUTDOWN"),
    )
    if hasattr(errno, name)
)
_MAY_NOT: Final = (errno.EACCES, errno.EPERM, errno.EROFS)


class Folders:
    """The folders of `directory` as buckets. The directory need not exist."""

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory)

    def check(self, bucket: str) -> None:
        """As `Buckets.check`."""
        self._folder(bucket)

    def list(self, bucket: str, prefix: str, after: str = "") -> Iterator[Object]:
        """As `Buckets.list`."""
        folder = self._folder(bucket)
        with _translated(folder):
            yield from _walk(folder, "", prefix, after)

    def open(self, bucket: str, item_object: Object, offset: int = 0) -> _Opened:
        """As `Buckets.open`."""
        path = self._path(bucket, item_object.key)
        with _translated(path):
            try:
                file = open_to_read(path)
            except FileNotFoundError:
                raise BucketError(NO_SUCH_KEY, f"The object {item_object.key} of {bucket} is gone.") from None
            if _etag(os.fstat(file.fileno())) != item_object.etag:
                file.close()
                raise BucketError(CHANGED, f"The object {item_object.key} of {bucket} has changed.")
            file.seek(offset)
        return _Opened(file, path)

    @contextmanager
    def create(self, bucket: str, key: str) -> Iterator[_File]:
        """As `Buckets.create`."""
        with self._writing(bucket, key) as file:
            sink = _File(file, self._path(bucket, key))
            yield sink

    @contextmanager
    def _writing(self, bucket: str, key: str) -> Iterator[BinaryIO]:
        path = self._path(bucket, key)
        unfinished = self._folder(bucket) / _UNFINISHED
        # The name is derived from the key, so that the file that a killed process left is overwritten.
        temporary = unfinished / hashlib.blake2b(key.encode(), digest_size=_NAME_BYTES).hexdigest()
        try:
            with _translated(path):
                unfinished.mkdir(exist_ok=True)
                with open_to_write(temporary) as file:
                    yield file
                    file.flush()
                    sync(file.fileno())
                make_directory(path.parent)
                temporary.replace(path)
                sync_directory(path.parent)
        finally:
            with suppress(OSError):
                temporary.unlink()

    def read(self, bucket: str, key: str) -> tuple[bytes, str]:
        """As `Buckets.read`."""
        path = self._path(bucket, key)
        with _translated(path):
            try:
                with open_to_read(path) as file:
                    content = file.read()
                    return content, _etag_of([content], file)
            except FileNotFoundError:
                raise BucketError(NO_SUCH_KEY, f"There is no object {key} in {bucket}.") from None

    def put(
        self, bucket: str, key: str, content: Content, *, etag: str | None = None, new: bool = False
    ) -> str:
        """As `Buckets.put`. Programs on several machines agree only if the file system's locks do."""
        if not new and etag is None:
            pieces = [content] if isinstance(content, bytes) else content
            with self._writing(bucket, key) as file:
                file.writelines(pieces)
                file.flush()
                return _etag_of(pieces, file)
        with _translated(self._path(bucket, key)), self._locked(bucket):
            try:
                found: str | None = self.read(bucket, key)[1]
            except BucketError as error:
                if error.code != NO_SUCH_KEY:
                    raise
                found = None
            if found != etag:
                raise BucketError(CHANGED, f"The object {key} of {bucket} is not as it was expected.")
            return self.put(bucket, key, content)

    def delete(self, bucket: str, key: str) -> None:
        """As `Buckets.delete`."""
        path = self._path(bucket, key)
        with _translated(path):
            path.unlink(missing_ok=True)

    @contextmanager
    def _locked(self, bucket: str) -> Iterator[None]:
        """Alone among all programs that write to the bucket on a condition."""
        unfinished = self._folder(bucket) / _UNFINISHED
        unfinished.mkdir(exist_ok=True)
        with open_to_write(unfinished / "lock") as file:
            lock_file(file.fileno())
            yield

    def _folder(self, bucket: str) -> Path:
        folder = self._directory / bucket
        with _translated(folder):
            is_there = bucket not in _NO_PARTS and Path(bucket).name == bucket and folder.is_dir()
        if not is_there:
            raise BucketError(
                NO_SUCH_BUCKET,
                "The specified bucket does not exist (Service: Amazon S3; Status Code: 404; "
                f"Error Code: NoSuchBucket): a bucket is a folder here, and there is no {folder}",
            )
        return folder

    def _path(self, bucket: str, key: str) -> Path:
        parts = key.split("/")
        if any(map(_is_no_name, parts)) or parts[0] == _UNFINISHED:
            raise BucketError(INVALID_KEY, f"The key {key!r} cannot be the name of a file.")
        return self._folder(bucket).joinpath(*parts)


def _is_no_name(part: str) -> bool:
    """Whether a part of a key cannot be the name of a file, or would be something else: on Windows `a:b` is a
    stream of the file `a`, and a backslash leads into another folder."""
    if part in _NO_PARTS or "\0" in part:
        return True
    if not _ON_WINDOWS:
        return False
    stem = part.partition(".")[0].rstrip(" ").upper()
    return bool(_FORBIDDEN.search(part)) or part[-1] in ". " or stem in _DEVICES


class _Opened:
    """An object that is being read."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path

    def read(self, size: int, /) -> bytes:
        with _translated(self._path):
            return self._file.read(size)

    def close(self) -> None:
        self._file.close()


class _File:
    """An object that is being written."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self.write = file.write
        self._path = path

    @cached_property
    def etag(self) -> str:
        """The one that S3 gives an object in one part, as exports are. Most writers need none."""
        digest = _md5()
        with _translated(self._path), open_to_read(self._path) as file:
            while piece := file.read(CHUNK_BYTES):
                digest.update(piece)
        return _md5(digest.digest()).hexdigest() + "-1"


def _walk(folder: Path, start: str, prefix: str, after: str) -> Iterator[Object]:
    """The objects beneath `folder`, whose keys begin with `start`, in the order of the whole keys."""
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    # "a.b" comes before "a/b", which the folder "a" holds.
    named = [(f"{start}{entry.name}{'/' if entry.is_dir() else ''}", entry) for entry in entries]
    for key, entry in sorted(named, key=lambda pair: os.fsencode(pair[0])):
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


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Turn permanent errors of the file system into `BucketError`. `path` is the file or folder in use."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.errno in _MAY_PASS:
            raise
        code = ACCESS_DENIED if error.errno in _MAY_NOT else INVALID_KEY
        raise BucketError(code, f"{error.filename or path} cannot be used: {error.strerror}.") from error


def _etag_of(pieces: Sequence[bytes | bytearray | memoryview], file: BinaryIO) -> str:
    """The ETag for `put`. That of a listing may stay the same if small objects replace each other fast."""
    status = os.fstat(file.fileno())
    if status.st_size > CHUNK_BYTES:
        return _etag(status)
    return hashlib.sha256(b"".join(pieces)).hexdigest()


def _etag(status: os.stat_result) -> str:
    return f"{status.st_size:x}-{status.st_mtime_ns:x}"
