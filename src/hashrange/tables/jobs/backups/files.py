"""The folder of a backup.

    manifest.json                the table, the counts, and a list of the files
    data/00000001.json.gz        items, one a line: {"Item": {"id": {"S": "x"}}}, in the table's order
    SHA256SUMS                   the SHA-256 of all of these, for `sha256sum -c SHA256SUMS`

A folder is written beside its place, under a name that begins with a dot, and gets its final name when all of
it is durable: so a folder with its final name is complete. Folders may come from other machines, so nothing
in them is trusted before it is checked. `Damaged` says why a backup cannot be used; an OSError may be
temporary.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from hashrange.files.durable import private, sync, sync_directory
from hashrange.files.regular import NotRegular, open_to_read

FORMAT: Final = "hashrange-backup"
VERSION: Final = 1

MANIFEST: Final = "manifest.json"
MANIFEST_BYTES_MAX: Final = 64 * 1024 * 1024
"""The entry of a file of 64 MB of lines takes about 250 bytes, so a manifest has room for 16 TB."""
_SUMS: Final = "SHA256SUMS"
_DATA: Final = "data"
_IS_DATA: Final = re.compile(r"data/[0-9]{8,}\.json\.gz").fullmatch
_IS_ID: Final = re.compile(r"[0-9]{14,}-[0-9a-f]{8}").fullmatch
_IS_NAME: Final = re.compile(r"[a-zA-Z0-9_.-]{3,255}").fullmatch
_CHUNK_BYTES: Final = 1024 * 1024


class Damaged(Exception):
    """The files of a backup have changed, or are not a backup of this program. `path` is the damaged file, if
    it is a file of items."""

    def __init__(self, message: str, path: Path | None = None) -> None:
        super().__init__(message)
        self.path = path


class DataFile(msgspec.Struct, frozen=True):
    """A file of items: its items, its bytes, its SHA-256 in hex, and the address of its first item in hex."""

    name: str
    items: int
    bytes: int
    sha256: str
    first: str


class Manifest(msgspec.Struct, frozen=True):
    """The manifest. `created` is the moment (epoch seconds); `bytes` is the size of all items."""

    format: str
    version: int
    id: str
    name: str
    created: float
    region: str
    account_id: str
    table: dict[str, Any]
    items: int
    bytes: int
    files: tuple[DataFile, ...]

    @property
    def table_name(self) -> str:
        """The name of the table."""
        return str(self.table["SourceTableDetails"]["TableName"])


class Seen:
    """The observed state of files, to detect changes without reading them."""

    def __init__(self, stats: dict[Path, tuple[int, ...]]) -> None:
        self._stats = stats

    @staticmethod
    def of(folder: Path) -> Seen:
        """The current state of a backup's folder, without the files of items."""
        paths = (folder, folder / MANIFEST, folder / _SUMS, folder / _DATA)
        return Seen({path: _stat(path) for path in paths})

    def beside(self, path: Path | None) -> Seen:
        """This state and the current state of another file."""
        return Seen({**self._stats, path: _stat(path)}) if path is not None else self

    def has_changed(self) -> bool:
        """Whether a file was replaced or changed."""
        return any(_stat(path) != stat for path, stat in self._stats.items())


def _stat(path: Path) -> tuple[int, ...]:
    try:
        status = path.stat()
    except OSError as error:
        return (error.errno or 0,)
    # The time of the change also shows new permissions.
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


class _Kind(msgspec.Struct):
    format: str = ""
    version: int = 0


def partial_of(directory: Path, folder: str) -> Path:
    """The folder of a backup while it is being written."""
    return directory / f".{folder}.partial"


def data_name(number: int) -> str:
    """The name of file number `number`, counted from 1."""
    return f"{_DATA}/{number:08}.json.gz"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest and the checksums, durably."""
    content = msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
    _write(folder / MANIFEST, content)
    sums = [f"{hashlib.sha256(content).hexdigest()}  {MANIFEST}\n"]
    sums += [f"{file.sha256}  {file.name}\n" for file in manifest.files]
    _write(folder / _SUMS, "".join(sums).encode())
    (folder / _DATA).mkdir(exist_ok=True)
    sync_directory(folder / _DATA)
    sync_directory(folder)


def publish(partial: Path, folder: Path) -> None:
    """Give a complete folder its final name."""
    partial.replace(folder)
    sync_directory(folder.parent)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a backup. Raises `Damaged`; OSError if the folder is missing."""
    if not folder.is_dir():
        raise FileNotFoundError(f"The folder of the backup is missing: {folder}. Put it back.")
    try:
        content, sums = _content(folder / MANIFEST), _content(folder / _SUMS).decode("ascii", "replace")
    except FileNotFoundError as error:
        raise Damaged(f"{error.filename} is missing: the folder is not a complete backup.") from None
    except NotRegular as error:
        raise Damaged(f"{error.filename} cannot be read: {error.strerror}.") from None
    try:
        kind = msgspec.json.decode(content, type=_Kind)
    except msgspec.MsgspecError:
        kind = _Kind()
    if kind.format != FORMAT:
        raise Damaged(f"{folder / MANIFEST} is not the manifest of a backup of Hashrange.")
    if kind.version != VERSION:
        raise Damaged(
            f"{folder / MANIFEST} has the version {kind.version}; this program reads version {VERSION}. Use "
            "the program that wrote the backup, or a newer one."
        )
    if f"{hashlib.sha256(content).hexdigest()}  {MANIFEST}" not in sums.splitlines():
        raise Damaged(f"{folder / MANIFEST} does not have the SHA-256 in {_SUMS}.")
    try:
        manifest = msgspec.json.decode(content, type=Manifest)
        is_sound = _is_sound(manifest)
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError) as error:
        raise Damaged(f"{folder / MANIFEST} cannot be read: {error}") from None
    if not is_sound:
        raise Damaged(f"{folder / MANIFEST} names a table, an id or files that no backup has.")
    return manifest


def _is_sound(manifest: Manifest) -> bool:
    names = [file.name for file in manifest.files]
    return (
        _IS_ID(manifest.id) is not None
        and _IS_NAME(manifest.table_name) is not None
        and all(_IS_DATA(name) for name in names)
        and len(set(names)) == len(names)
        and all(bytes.fromhex(file.first) or True for file in manifest.files)
        and sum(file.items for file in manifest.files) == manifest.items
    )


def check_sizes(folder: Path, manifest: Manifest) -> None:
    """Check quickly whether files are missing or cut off. Raises `Damaged`."""
    for file in manifest.files:
        path = folder / file.name
        try:
            size = path.stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            raise Damaged(f"{path} is missing.", path) from None
        if size != file.bytes:
            raise Damaged(f"{path} has {size} bytes, and not {file.bytes}.", path)


def check_content(folder: Path, file: DataFile, pause: Callable[[], None]) -> None:
    """Compare a file with its checksum. Raises `Damaged`."""
    digest = hashlib.sha256()
    try:
        with open_to_read(folder / file.name) as source:
            while chunk := source.read(_CHUNK_BYTES):
                digest.update(chunk)
                pause()
    except FileNotFoundError:
        raise Damaged(f"{folder / file.name} is missing.") from None
    except NotRegular as error:
        raise Damaged(f"{error.filename} cannot be read: {error.strerror}.") from None
    if digest.hexdigest() != file.sha256:
        raise Damaged(f"{folder / file.name} does not have the SHA-256 in the manifest.")


def _content(path: Path) -> bytes:
    """The content of a manifest, or of the checksums. Raises `Damaged` if it is too large to be ours."""
    with open_to_read(path) as file:
        content = file.read(MANIFEST_BYTES_MAX + 1)
    if len(content) > MANIFEST_BYTES_MAX:
        raise Damaged(f"{path} has more than {MANIFEST_BYTES_MAX} bytes.")
    return content


def _write(path: Path, content: bytes) -> None:
    with open(path, "wb", opener=private) as file:
        file.write(content)
        file.flush()
        sync(file.fileno())
