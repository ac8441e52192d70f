"""A directory in which a store is made that comes from elsewhere.

    DIRECTORY/COPYING    the origin of the store, until it is whole

COPYING comes first, then `rocks`; then STORE and FORMAT when the store is durable. Last, COPYING is removed.
Only a new copy, which starts over, accepts a directory with COPYING.

Refuses to know: what is written to `rocks`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hashrange.files.durable import sync_directory, write_durably
from hashrange.storage.embedded.files.directory import (
    COPYING,
    check_empty,
    lock,
    make_directory,
    make_private,
    unusable,
    write_format,
)
from hashrange.storage.embedded.files.manifest import read_manifest
from hashrange.storage.embedded.files.mark import NAME as STORE
from hashrange.storage.embedded.files.mark import Mark, write_mark
from hashrange.storage.failures import StorageError

_KEPT: Final = (COPYING, "lost+found")


class NewDirectory:
    """A directory that is missing, empty, or holds an unfinished copy; locked until `close`."""

    def __init__(self, directory: Path, origin: str, parts: Sequence[str] = ()) -> None:
        """`origin` names the store that is copied, for anyone who finds the directory unfinished. Of an
        unfinished copy the `parts` are removed; without them everything.

        Raises DataDirectoryLocked, UnknownFormat, StorageError.
        """
        self._directory = directory
        self._lock: int | None = None
        try:
            make_directory(directory)
            self._lock = lock(directory)
            try:
                self._clear(origin, parts)
            except BaseException:
                self.close()
                raise
        except OSError as error:
            raise unusable(directory, error) from error

    def _clear(self, origin: str, parts: Sequence[str]) -> None:
        directory = self._directory
        if not (directory / COPYING).exists():
            if (directory / "FORMAT").exists() or (directory / STORE).exists():
                raise StorageError(
                    f"The directory {directory} holds a store already; name a new or an empty directory."
                )
            check_empty(directory)
        directory.chmod(0o700)
        write_durably(directory / COPYING, f"{origin}\n".encode())
        for name in parts or [entry.name for entry in directory.iterdir() if entry.name not in _KEPT]:
            path = directory / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        sync_directory(directory)

    def take(self, other: Path) -> None:
        """Move a whole store here from a directory on the same disk, with all that is beside it; a crash
        meanwhile leaves both unusable. Raises StorageError."""
        directory = self._directory
        try:
            for path in sorted(other.iterdir(), key=lambda path: path.name != "FORMAT"):
                path.replace(directory / path.name)
            sync_directory(other)
            self._accept()
        except OSError as error:
            raise unusable(directory, error) from error

    def _accept(self) -> None:
        sync_directory(self._directory)
        (self._directory / COPYING).unlink()
        sync_directory(self._directory)

    def finish(self, batch: int) -> None:
        """Make the closed store in `rocks` durable and usable; `batch` is the number of its last batch.
        Raises StorageError, UnreadableManifest."""
        directory = self._directory
        try:
            make_private(directory)
            sync_directory(directory / "rocks")
            manifest = read_manifest(directory / "rocks")
            write_mark(directory, Mark(True, manifest.store_id, batch, manifest.last_sequence))
            write_format(directory)
            sync_directory(directory.parent)
            self._accept()
        except OSError as error:
            raise unusable(directory, error) from error

    def close(self) -> None:
        """Give the directory free."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
