"""The lines of a recording: what is known of a load and of each of its requests.

A recording is a text of JSON lines, each an object whose member `line` says what it is:

    head      the first line: the version of the form, when the recording began, and how values were recorded
    table     the definition of a table, as a CreateTable request, before or soon after its first request
    request   one request, when it had ended: `Entry`
    dropped   the number of requests missing here, which came faster than the writer could write
    end       the last line: how long it was, how many requests it has, and why it ended

A line is written when its request has ended, so lines are in the order of the ends; `reader.in_order` gives
the order of the beginnings. Members with their default value are left out. A reader skips members that it
does not know, and refuses another version.

Lines come in blocks, each compressed by itself: zstd frames or gzip members, one after the other, so
`zstdcat` and `zcat` print the lines. A file that a crash cut off is readable up to the cut.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec

VERSION: Final = 1
KEPT: Final = "kept"
HASHED: Final = "hashed"
VALUES: Final = (KEPT, HASHED)
"""How the values of items were recorded: as they are, or each replaced by a hash of it (`hashing`)."""

STOPPED: Final = "stopped"
FULL: Final = "full"
"""Why a recording ended: it was stopped, or the file had as many bytes as it may have."""


class Head(msgspec.Struct, frozen=True, tag_field="line", tag="head"):
    """The first line. `began`: in epoch seconds; `values`: `KEPT` or `HASHED`; `by`: who recorded it."""

    version: int
    began: float
    values: Literal["kept", "hashed"] = KEPT
    by: str = ""

    @property
    def moment(self) -> str:
        """When the recording began, in ISO 8601."""
        return datetime.fromtimestamp(self.began, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


class TableLine(msgspec.Struct, frozen=True, tag_field="line", tag="table"):
    """A table that requests named. `create` is the CreateTable request that makes one like it."""

    create: dict[str, Any]


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="line", tag="request"):
    """One request.

    `at`: the seconds from the recording's beginning to the request's; `seconds`: from there to its outcome.
    `connection` numbers the connections from 1, in process the threads from -1 downwards. `request` are the
    parameters as they were sent. `status` and `error` (the code, "" for none) are those of the answer; the
    status 0 is that of an answer that a fault lost. `attempt` counts the attempts of the SDK from 1.

    The others are those of `hashrange.costs.Record`: `tables` and `index` that the request named, the units
    that it consumed with its indexes, and of these `index_units`; the items that it read and returned, None
    for writes; whether it read a whole table or index; and the bytes of request and answer as JSON.
    `digest` identifies the answer (`digests`), "" if it was not taken.
    """

    at: float
    operation: str
    seconds: float
    connection: int = 0
    request: dict[str, Any] = {}
    status: int = 200
    error: str = ""
    tables: tuple[str, ...] = ()
    index: str = ""
    read_units: float = 0.0
    write_units: float = 0.0
    index_units: dict[str, float] = {}
    read_items: int | None = None
    returned_items: int | None = None
    is_scan: bool = False
    request_bytes: int = 0
    answer_bytes: int = 0
    attempt: int = 1
    digest: str = ""


class Dropped(msgspec.Struct, frozen=True, tag_field="line", tag="dropped"):
    """The number of requests left out since the last such line."""

    requests: int


class End(msgspec.Struct, frozen=True, tag_field="line", tag="end"):
    """The last line: how many seconds were recorded, how many requests were written, and why it ended."""

    seconds: float
    requests: int
    why: str


Line = Head | TableLine | Entry | Dropped | End

encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Line).decode


def decode(line: bytes) -> Line:
    """The line in bytes. Raises ValueError."""
    read: Line = _decode(line)
    return read
