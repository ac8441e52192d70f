"""Opens only regular files: for folders that other programs write to, and for files that a running server
reads again.

Opening a named pipe waits until another program opens its other end, and a device may do anything.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

from hashrange.files.durable import private

# Where this flag exists, opening a named pipe does not wait. It has no effect on regular files.
_AT_ONCE: Final[int] = getattr(os, "O_NONBLOCK", 0)

_KINDS: Final = (
    (stat.S_ISDIR, "directory"),
    (stat.S_ISFIFO, "named pipe"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
)


class NotRegular(OSError):
    """The path to be opened is not a regular file."""


def open_to_read(path: Path) -> BinaryIO:
    """Open a file for reading. Raises NotRegular, OSError."""
    return _open(path, os.O_RDONLY, "rb")


def read(path: Path, bytes_max: int) -> bytes:
    """The content of a file. Raises NotRegular, OSError, also for a file with more than `bytes_max` bytes."""
    with open_to_read(path) as file:
        content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise OSError(errno.EFBIG, f"it has more than {bytes_max} bytes", str(path))
    return content


def others_may(path: Path) -> int:
    """What the group and all others may do with a file, as bits of its mode; 0 on systems without modes."""
    return path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO) if os.name == "posix" else 0


def open_to_write(path: Path) -> BinaryIO:
    """Create a file that only its owner may read, or empty an existing one, and open it for writing. Raises
    NotRegular, OSError."""
    return _open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, "wb")


def _open(path: Path, flags: int, mode: str) -> BinaryIO:
    try:
        descriptor = private(path, flags | _AT_ONCE)
    except OSError as error:
        # A socket, a device without a driver, or a named pipe that nobody reads.
        if error.errno == errno.ENXIO:
            raise NotRegular(errno.EINVAL, "it is not a regular file", str(path)) from None
        raise
    try:
        # Check the opened file, not the name, which may lead to another file by now.
        kind = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(kind):
            name = next((name for is_kind, name in _KINDS if is_kind(kind)), "special file")
            raise NotRegular(errno.EINVAL, f"it is a {name}, not a regular file", str(path))
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, mode)  # type: ignore[return-value]
