"""`hashrange export`: the items of a table into a file, through its API.

For a look, a fixture or another program; it works with any server that speaks DynamoDB's API. An export of
one moment is `ExportTableToPointInTime`, which writes to a bucket.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, cast

import click
import orjson

from hashrange.cli.forms import counted, limit_option, yes_option
from hashrange.cli.remote.asking import check_moved, confirm
from hashrange.cli.remote.connecting import attempt, connect_loudly, connection
from hashrange.cli.remote.progress import bar
from hashrange.files.durable import private
from hashrange.interchange.compression import gzip_writer
from hashrange.interchange.item_texts import csv_field, csv_lines, from_boto3, plain_lines, typed_lines

_FORMATS: Final = ("json", "plain", "csv")
_ENDINGS: Final = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
_STDOUT: Final = "-"
_PART: Final = ".part"
# The exit status that shells give a program that Ctrl-C ended.
_INTERRUPTED: Final = 130

Item = dict[str, Any]


@click.command(
    "export",
    epilog="""\b
Examples:
  hashrange export music songs.json
  hashrange export music songs.csv
  hashrange export music songs.json.gz --limit 1000
  hashrange export music - --format plain | jq .title
  hashrange export music songs.json --endpoint-url aws --region eu-west-1

`hashrange import` reads these files; only the format json keeps every type. The items are those of a Scan,
so the file may have some of the writes made meanwhile. On AWS a Scan consumes the table's read capacity.""",
)
@click.argument("table")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@connection
@click.option(
    "--format",
    "format_",
    type=click.Choice(_FORMATS),
    help="DynamoDB's JSON or plain JSON, an item a line, or CSV; by default from the file's name, else json.",
)
@limit_option("Export at most N items.")
@yes_option
def command(
    table: str,
    file: Path,
    endpoint_url: str,
    region: str | None,
    format_: str | None,
    limit: int | None,
    yes: bool,
) -> None:
    """Write the items of TABLE to FILE; `-` is standard output.

    A failed export leaves no file. A name that ends in .gz makes a compressed file.
    """
    suffixes = [suffix.lower() for suffix in file.suffixes if suffix.lower() != ".gz"]
    format_ = format_ or _ENDINGS.get(suffixes[-1] if suffixes else "", "json")
    if file.exists() and str(file) != _STDOUT:
        confirm(f"Overwrite {file}?", yes, "give --yes")
    client = connect_loudly(endpoint_url, region).dynamodb
    describe = partial(client.describe_table, TableName=table)
    described = attempt(describe, client.meta.endpoint_url)["Table"]
    keys = [element["AttributeName"] for element in described["KeySchema"]]
    total = min(int(described["ItemCount"]), limit or sys.maxsize)
    try:
        with _opened(file) as sink, bar(table, total) as progress, _writer(format_, keys) as writer:
            count = 0
            for items in _pages(client, table, limit):
                writer.write(sink, items)
                count += len(items)
                progress.update(len(items))
            writer.end(sink)
    except KeyboardInterrupt:
        raise click.exceptions.Exit(_INTERRUPTED) from None
    except OSError as error:
        raise click.ClickException(f"{file} cannot be written: {error.strerror or error}") from None
    click.echo(f"{counted(count, 'item')} exported", err=str(file) == _STDOUT)


def _pages(client: Any, table: str, limit: int | None) -> Iterator[list[Item]]:
    """The items of a table, page by page. Raises click.ClickException."""
    request: dict[str, Any] = {"TableName": table, "ConsistentRead": True}
    left = limit
    while left != 0:
        if left is not None:
            request["Limit"] = left
        answer = attempt(partial(client.scan, **request), client.meta.endpoint_url)
        items = [{name: from_boto3(value) for name, value in item.items()} for item in answer["Items"]]
        yield items[:left]
        left = None if left is None else max(left - len(items), 0)
        key = answer.get("LastEvaluatedKey")
        if key is None:
            return
        check_moved(request.get("ExclusiveStartKey"), key)
        request["ExclusiveStartKey"] = key


@contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    """The file, which is there when all is written, and not before; or the standard output."""
    if str(file) == _STDOUT:
        yield sys.stdout.buffer
        return
    part = file.with_name(file.name + _PART)
    try:
        with open(part, "wb", opener=private) as sink:
            if file.suffix.lower() == ".gz":
                with gzip_writer(sink) as packed:
                    yield cast("BinaryIO", packed)
            else:
                yield sink
        os.replace(part, file)
    finally:
        part.unlink(missing_ok=True)


class _Writer(Protocol):
    """Writes items in a format."""

    def write(self, sink: BinaryIO, items: list[Item]) -> None:
        """Write some items, now or in the end."""

    def end(self, sink: BinaryIO) -> None:
        """Write what is left."""


@contextmanager
def _writer(format_: str, keys: list[str]) -> Iterator[_Writer]:
    if format_ != "csv":
        yield _Lines(is_plain=format_ == "plain")
        return
    with tempfile.TemporaryFile() as kept:
        yield _Csv(kept, keys)


class _Lines:
    """A line of JSON for each item."""

    def __init__(self, *, is_plain: bool) -> None:
        self._is_plain = is_plain

    def write(self, sink: BinaryIO, items: list[Item]) -> None:
        sink.write(plain_lines(items) if self._is_plain else typed_lines(items))

    def end(self, sink: BinaryIO) -> None:
        return None


class _Csv:
    """A CSV. The items are kept in a file until all are read, because any of them may bring a column."""

    def __init__(self, kept: BinaryIO, keys: list[str]) -> None:
        self._kept = kept
        self._columns = dict.fromkeys(keys)

    def write(self, sink: BinaryIO, items: list[Item]) -> None:
        for item in items:
            self._columns |= dict.fromkeys(item)
            self._kept.write(orjson.dumps(item) + b"\n")

    def end(self, sink: BinaryIO) -> None:
        columns = list(self._columns)
        sink.write(csv_lines([columns]))
        self._kept.seek(0)
        for line in self._kept:
            item = orjson.loads(line)
            sink.write(csv_lines([[csv_field(item.get(name)) for name in columns]]))
