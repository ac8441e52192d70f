"""What a page and the process that runs its statement say to each other, over the pipes of the process.

The page sends a `Job`. The process asks for the API's answers, line by line, and ends with a `Message` that
is no question. An answer is a line with its kind and size, and then its bytes: the API's JSON, or a
`Failure`. Imports neither DuckDB nor the server's parts.
"""

from __future__ import annotations

from typing import IO, Final, Literal

import msgspec

ROWS_MAX: Final = 200
COLUMNS_MAX: Final = 50
CHARACTERS_MAX: Final = 300
"""What a page shows: so many rows, so many columns, and the beginnings of texts."""
SECONDS_MAX: Final = 30
LINE_BYTES_MAX: Final = 1 << 26
Form = Literal["", "csv", "json", "parquet"]


class Job(msgspec.Struct, frozen=True):
    """A statement, and what is wanted of it: its plan only; or, without a `form`, its first rows; or all rows
    in a file of a form. The process may write into the `folder`. `region` is that of the prices."""

    sql: str
    folder: str
    region: str
    only_plan: bool
    form: Form


class Done(msgspec.Struct):
    """What came of a job: `plan` is what is read, in lines, and `cost` what it costs; `told` is what users
    should know of the columns. `numbers` says which columns hold numbers; None in a row is NULL. `more`:
    there are more rows; `more_columns` so many more columns. `file` is that of the form."""

    plan: list[str]
    cost: str
    told: list[str] = []
    names: list[str] = []
    numbers: list[bool] = []
    rows: list[list[str | None]] = []
    more: bool = False
    more_columns: int = 0
    file: str = ""


class Message(msgspec.Struct, omit_defaults=True):
    """A line of the process: the operation `ask` of the API with its `request`; or the end, which is `done`,
    or a text that says why the statement was `refused`."""

    ask: str = ""
    request: msgspec.Raw = msgspec.Raw(b"{}")
    done: Done | None = None
    refused: str = ""


class Failure(msgspec.Struct):
    """An error of the API: its code, "" for another one, and a text."""

    code: str
    text: str


def send(pipe: IO[bytes], body: bytes, *, failed: bool = False) -> None:
    """Send a job or an answer. Raises OSError."""
    pipe.write(b"%d %d\n" % (failed, len(body)))
    pipe.write(body)
    pipe.flush()


def receive(pipe: IO[bytes]) -> tuple[bytes, bool]:
    """A job or an answer, and whether it is a `Failure`. Raises EOFError."""
    failed, _, size = pipe.readline().partition(b" ")
    if not size:
        raise EOFError
    body = pipe.read(int(size))
    if len(body) < int(size):
        raise EOFError
    return body, failed == b"1"
