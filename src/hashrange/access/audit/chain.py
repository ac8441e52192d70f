"""The chain of an audit log: each line has the SHA-256 of the line before, and its own number.

    {"n":1,"time":…,…,"previous":"0000…"}
    {"n":2,"time":…,…,"previous":"<SHA-256 of the first line, without its end>"}

Who changes a line has to change all lines after it. A file that was rotated is continued by the next one. The
chain cannot show that its end was cut off: for that, keep the hash of a line elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

BEGINNING: Final = "0" * 64
"""The hash before the first line."""

LINE_BYTES_MAX: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Link:
    """The end of a chain: the number of its last line, and that line's hash."""

    number: int = 0
    digest: str = BEGINNING

    def follow(self, fields: dict[str, Any]) -> tuple[bytes, Link]:
        """The next line, with its end, and the link that it makes."""
        number = self.number + 1
        line = orjson.dumps({"n": number, **fields, "previous": self.digest})
        return line + b"\n", Link(number, digest_of(line))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check of files found. `first` is the number of the first line, `lost` the number of entries
    that the log says were lost. `broken` says where the chain breaks, "" for nowhere; `expected`: the hash
    that was looked for is among those of the lines."""

    lines: int
    first: int
    end: Link
    lost: int
    broken: str
    expected: bool


def digest_of(line: bytes) -> str:
    """The hash of a line without its end."""
    return hashlib.sha256(line).hexdigest()


def read_link(line: bytes) -> Link:
    """The link that a line makes, if it is the last one. Raises ValueError if it is no line of a log."""
    read = orjson.loads(line)
    if not isinstance(read, dict) or not isinstance(read.get("n"), int) or "previous" not in read:
        raise ValueError("no line of an audit log")
    return Link(read["n"], digest_of(line))


def verify(files: Iterable[Path], expected: str = "") -> Verdict:
    """Check files, which continue each other in this order. `expected` is the hash of a line that must be
    among them. Raises OSError."""
    end: Link | None = None
    count = first = lost = 0
    is_there = not expected
    where = ""
    for path in files:
        for place, line in enumerate(_lines(path), 1):
            before, where = where, f"{path}, line {place}"
            if not line.endswith(b"\n"):
                return Verdict(count, first, end or Link(), lost, f"{where}: the line has no end", is_there)
            line = line[:-1]
            try:
                read = orjson.loads(line)
                link = read_link(line)
            except ValueError:
                why = f"{where}: this is no line of an audit log"
                return Verdict(count, first, end or Link(), lost, why, is_there)
            end = end or Link(link.number - 1, BEGINNING if link.number == 1 else str(read["previous"]))
            if link.number != end.number + 1:
                why = f"{where}: line number {link.number} follows number {end.number}"
                return Verdict(count, first, end, lost, why, is_there)
            if read["previous"] != end.digest:
                changed = f"{before} was changed after it was written, or " if before else ""
                why = f"{where}: {changed}this line was"
                return Verdict(count, first, end, lost, why, is_there)
            count, first, end = count + 1, first or link.number, link
            lost += read.get("lost", 0) if read.get("event") == "lost" else 0
            is_there = is_there or link.digest == expected
    return Verdict(count, first, end or Link(), lost, "", is_there)


def _lines(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while line := file.readline(LINE_BYTES_MAX):
            yield line


def rotated(path: Path) -> list[Path]:
    """The files of a log that exist, oldest first: FILE.2, FILE.1, FILE."""
    older: list[Path] = []
    while (before := numbered(path, len(older) + 1)).exists():
        older.append(before)
    return [*reversed(older), path]


def numbered(path: Path, number: int) -> Path:
    """The file of a log that was rotated `number` times."""
    return path.with_name(f"{path.name}.{number}")
