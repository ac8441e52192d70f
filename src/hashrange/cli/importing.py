"""`hashrange import`: put the items of files into a table, through its API, with the readers of ImportTable.

For users without buckets, and for existing tables. It works with any server that speaks DynamoDB's API.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from hashrange.cli.forms import counted
from hashrange.cli.remote import batches
from hashrange.cli.remote.connecting import attempt, connect_loudly, connection
from hashrange.cli.remote.progress import bar
from hashrange.errors import ITEM_TOO_LARGE, ServiceError
from hashrange.limits import BATCH_WRITE_ITEMS_MAX, ITEM_BYTES_MAX
from hashrange.tables.definitions.table import KeyAttribute, KeySchema
from hashrange.tables.items.keys import address_of_item
from hashrange.values import admit_item

if TYPE_CHECKING:
    from hashrange.interchange.csv_files import Columns
    from hashrange.interchange.object_rows import Format
    from hashrange.interchange.rows import Bad
    from hashrange.values import Item

_FORMATS: Final[dict[str, Format]] = {"csv": "CSV", "json": "DYNAMODB_JSON", "ion": "ION"}
_ENDINGS: Final = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".ion": "ion"}
_COMPRESSED: Final = (".gz", ".zst")
_ERRORS_SHOWN_MAX: Final = 20
# The exit status that shells give a program that Ctrl-C ended.
_INTERRUPTED: Final = 130


@click.command(
    "import",
    epilog="""\b
Examples:
  hashrange import music songs.csv
  hashrange import music songs.json --dry-run
  hashrange import music export/data/*.json.gz
  hashrange import music songs.txt --format csv --delimiter ';' --endpoint-url aws""",
)
@click.argument("table")
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@connection
@click.option(
    "--format",
    "format_",
    type=click.Choice(list(_FORMATS)),
    help="The format; by default from the names of the files: .csv, .json, .jsonl, .ndjson or .ion, perhaps "
    "with .gz or .zst after it. JSON is lines of an export, an item per line, a list of items, an answer of "
    "Scan, or requests of BatchWriteItem; the items are plain or in DynamoDB's JSON. Files may be "
    "compressed, whatever their names are.",
)
@click.option("--delimiter", default=",", show_default=True, help="The separator of a CSV's fields.")
@click.option("--header", help="The names of a CSV's columns, with the same separator, if no line has them.")
@click.option(
    "--types",
    help="The types of a CSV's columns: size=N,done=BOOL with S, N, BOOL, JSON or AUTO (as it looks), "
    "or one of them for all. Without it they are texts; in a file whose name ends with .typed.csv, as they "
    "look. Key attributes have the types of the table.",
)
@click.option("--dry-run", is_flag=True, help="Read the files and report their errors; put nothing.")
def command(
    table: str,
    files: tuple[Path, ...],
    endpoint_url: str,
    region: str | None,
    format_: str | None,
    delimiter: str,
    header: str | None,
    types: str | None,
    dry_run: bool,
) -> None:
    """Put the items of FILES into TABLE, which must exist, and replace items with the same keys.

    The files are those of ImportTable (CSV, DynamoDB JSON, Ion), or items in plain JSON. Rows that are not
    items of the table are reported, counted from 1, and left out; the exit status is then 1.
    """
    if len(delimiter) != 1:
        raise click.UsageError(f"--delimiter is {delimiter!r}; give one character.")
    formats = [_format_of(file, format_) for file in files]
    for file in files:
        _check_compression(file)
    sending = _Sending(connect_loudly(endpoint_url, region).dynamodb, table, dry_run)
    columns = sending.columns(delimiter, header, *_types_of(types))
    size = sum(file.stat().st_size for file in files)
    try:
        with bar(table, size) as progress:
            for file, of_file in zip(files, formats, strict=True):
                own = columns._replace(rest="AUTO") if types is None and _is_typed(file) else columns
                _send_file(file, of_file, own, sending, progress)
            sending.flush()
    except KeyboardInterrupt:
        reached = f"up to {sending.reached}" if sending.reached else "none of the first batch"
        click.echo(
            f"\nInterrupted: {sending.items} items are in table {table}, {reached}. To continue, run the "
            "same command again: items that are already there are replaced by themselves.",
            err=True,
        )
        raise click.exceptions.Exit(_INTERRUPTED) from None
    done = "would be imported" if dry_run else "imported"
    click.echo(f"{counted(sending.items, 'item')} {done}, {counted(sending.errors, 'row')} left out")
    if sending.errors:
        raise click.exceptions.Exit(1)


def _format_of(file: Path, option: str | None) -> Format:
    suffixes = [suffix.lower() for suffix in file.suffixes if suffix.lower() not in _COMPRESSED]
    format_ = option or (_ENDINGS.get(suffixes[-1]) if suffixes else None)
    if format_ is None:
        from hashrange.interchange.item_files import is_json

        with file.open("rb") as opened:
            format_ = "json" if is_json(opened) else None
    if format_ is None:
        raise click.UsageError(f"The name of {file} has no known format; give --format.")
    return _FORMATS[format_]


def _types_of(option: str | None) -> tuple[dict[str, str], str]:
    """The types of some columns, and that of the others."""
    from hashrange.interchange.csv_types import KINDS

    named = dict(pair.rpartition("=")[::2] for pair in (option or "S").split(","))
    for kind in named.values():
        if kind not in KINDS:
            raise click.UsageError(f"--types has no type {kind!r}; give one of {', '.join(KINDS)}.")
    rest = named.pop("", "S")
    return named, rest


def _is_typed(file: Path) -> bool:
    from hashrange.interchange.csv_types import TYPED_SUFFIX

    return file.name.lower().removesuffix(".gz").removesuffix(".zst").endswith(TYPED_SUFFIX)


def _check_compression(file: Path) -> None:
    from hashrange.interchange.compression import compression_of, unreadable

    with file.open("rb") as opened:
        problem = unreadable(compression_of(opened))
    if problem is not None:
        raise click.UsageError(f"{file} cannot be read. {problem}")


def _send_file(file: Path, format_: Format, columns: Columns, sending: _Sending, progress: Any) -> None:
    from hashrange.interchange import item_files
    from hashrange.interchange.compression import compression_of
    from hashrange.interchange.object_rows import Rows
    from hashrange.interchange.plain_json import NoItem
    from hashrange.interchange.rows import Bad

    with file.open("rb") as opened:
        done = 0
        if format_ == "DYNAMODB_JSON":
            rows: Iterable[Item | Bad] = item_files.rows(opened, sending.table)
        else:
            rows = Rows(opened, format_, compression_of(opened), columns)
        try:
            for number, row in enumerate(rows, 1):
                if isinstance(row, Bad):
                    sending.tell(f"{file}, row {number}", row.message)
                else:
                    sending.put(f"{file}, row {number}", row)
                if opened.tell() > done:
                    progress.update(opened.tell() - done)
                    done = opened.tell()
        except NoItem as error:
            raise click.ClickException(f"{file}: {error}") from None


class _Put(NamedTuple):
    """An item to be sent, and its place in the files."""

    where: str
    item: dict[str, Any]


class _Sending:
    """Puts items in batches with distinct keys, as BatchWriteItem demands."""

    def __init__(self, client: Any, table: str, dry_run: bool) -> None:
        self._client = client
        self._dry_run = dry_run
        self.table = table
        self._described = attempt(
            lambda: client.describe_table(TableName=table), client.meta.endpoint_url
        )["Table"]
        self._types = {
            attribute["AttributeName"]: attribute["AttributeType"]
            for attribute in self._described["AttributeDefinitions"]
        }
        attributes = tuple(
            KeyAttribute(element["AttributeName"], self._types[element["AttributeName"]])
            for element in self._described["KeySchema"]
        )
        self._key = KeySchema(attributes[:1], attributes[1:])
        self._batch: dict[tuple[bytes, bytes], _Put] = {}
        self.items = 0
        self.errors = 0
        self.reached = ""
        """The row up to which all items were sent."""

    def columns(self, delimiter: str, header: str | None, kinds: dict[str, str], rest: str) -> Columns:
        """How to read CSV files for the table."""
        from hashrange.interchange.csv_files import Columns

        key = {attribute.name for attribute in self._key.attributes()}
        names = tuple(header.split(delimiter)) if header else None
        optional = frozenset(self._types) - key
        return Columns(delimiter, names, self._types, optional, kinds, rest)

    def put(self, where: str, item: dict[str, Any]) -> None:
        """Send an item, with the next batch."""
        try:
            if admit_item(item) > ITEM_BYTES_MAX:
                self.tell(where, ITEM_TOO_LARGE)
                return
            key = address_of_item(self._key, item)
        except ServiceError as error:
            self.tell(where, error.message or error.code)
            return
        if key in self._batch or len(self._batch) == BATCH_WRITE_ITEMS_MAX:
            self.flush()
        self._batch[key] = _Put(where, _of_boto3({"M": item})["M"])

    def flush(self) -> None:
        """Send the waiting items. If the service refuses the batch, its items are sent one by one."""
        puts, self._batch = list(self._batch.values()), {}
        try:
            if not self._dry_run:
                batches.put(self._client, self.table, [put.item for put in puts])
            self.items += len(puts)
        except self._refusals():
            for put in puts:
                self._put_one(put)
        if puts:
            self.reached = puts[-1].where

    def _put_one(self, put: _Put) -> None:
        try:
            self._client.put_item(TableName=self.table, Item=put.item)
            self.items += 1
        except self._refusals() as error:
            if error.response["Error"]["Code"] != "ValidationException":
                raise click.ClickException(str(error)) from error
            self.tell(put.where, error.response["Error"]["Message"])

    def _refusals(self) -> Any:
        return self._client.exceptions.ClientError

    def tell(self, where: str, message: str) -> None:
        """Report that a row is left out."""
        self.errors += 1
        if self.errors <= _ERRORS_SHOWN_MAX:
            click.echo(f"{where}: {message}", err=True)


def _of_boto3(value: Any) -> Any:
    """An attribute value as boto3 takes it: with bytes in place of base64."""
    ((kind, content),) = value.items()
    if kind == "B":
        return {kind: b64decode(content)}
    if kind == "BS":
        return {kind: [b64decode(member) for member in content]}
    if kind == "L":
        return {kind: [_of_boto3(member) for member in content]}
    if kind == "M":
        return {kind: {name: _of_boto3(member) for name, member in content.items()}}
    return value
