"""`hashrange sql`: a SELECT over the tables of any endpoint."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hashrange.cli.forms import limit_option, yes_option
from hashrange.cli.remote.asking import Plane, confirm, is_aws
from hashrange.cli.remote.connecting import attempt, connect_loudly, connection
from hashrange.cli.remote.progress import bar
from hashrange.files.durable import private

if TYPE_CHECKING:
    from hashrange_sql.looking import Look, Plan
    from hashrange_sql.reading import Reader

_FORMATS: Final = ("table", "csv", "json", "parquet")
_ENDINGS: Final = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}
_UNASKED: Final = 100.0
"""The read units for which nobody is asked, on AWS."""
_EPILOG: Final = """\b
Examples:
  hashrange sql "select status, count(*) from orders group by status"
  hashrange sql "select * from orders where pk = 'CUSTOMER#1'" --plan
  hashrange sql 'select * from shop."Customer order" limit 10'
  hashrange sql "describe orders"                         the columns and their types
  hashrange sql "from orders" --output orders.parquet
  hashrange sql "select sum(total) from orders" --as-of 10m
  hashrange sql "from orders" --endpoint-url aws --region eu-west-1 --rate 50

The SQL is DuckDB's. A condition on a key becomes a Query, other statements Scan. The command
first shows what it will read and what that costs. See packages/sql/docs/sql.md."""


@click.command("sql", epilog=_EPILOG)
@click.argument("statement")
@connection
@click.option(
    "--format",
    "format_",
    type=click.Choice(_FORMATS),
    help="The output format; json prints a row a line.  [default: by the file's name, else table]",
)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the rows into this file."
)
@limit_option("Show at most N rows.")
@click.option(
    "--as-of",
    "moment",
    metavar="MOMENT",
    help="Read the past, on Hashrange: a time, or a time span ago (10m).",
)
@click.option(
    "--rate", metavar="UNITS", type=click.FloatRange(0, min_open=True), help="The most read units a second."
)
@click.option(
    "--sample",
    metavar="N",
    type=click.IntRange(1, 100_000),
    default=400,
    show_default=True,
    help="How many items of each table are read first, to find its columns.",
)
@click.option(
    "--plan", "only_plan", is_flag=True, help="Show what would be read and what that costs; read nothing."
)
@yes_option
def command(
    statement: str,
    endpoint_url: str,
    region: str | None,
    format_: str | None,
    output: Path | None,
    limit: int | None,
    moment: str | None,
    rate: float | None,
    sample: int,
    only_plan: bool,
    yes: bool,
) -> None:
    """Run STATEMENT, a SELECT, over tables, which are never changed.

    On AWS the command asks before it spends more than 100 read units.
    """
    if moment is not None and is_aws(endpoint_url):
        raise click.UsageError(
            "--as-of reads the history of a Hashrange server; AWS has none that can be read."
        )
    format_ = format_ or _ENDINGS.get(output.suffix.lower() if output else "", "table")
    if format_ == "parquet" and output is None:
        raise click.UsageError("Parquet is for files: name one with --output.")
    if output is not None and output.exists():
        confirm(f"Overwrite {output}?", yes, "give --yes")
    client = connect_loudly(endpoint_url, region).dynamodb
    # Imported here, because DuckDB takes a while to load.
    from hashrange_sql.looking import Refused, opened
    from hashrange_sql.reading import Rate

    def look() -> None:
        with (
            _reader(client, endpoint_url, moment) as reader,
            opened(reader, rate=Rate(rate), sample_items=sample) as opened_look,
        ):
            plan = opened_look.plan(statement, limit)
            click.echo(str(plan), err=not only_plan)
            if not only_plan:
                if is_aws(endpoint_url) and plan.units > _UNASKED:
                    question = f"Spend up to {plan.units:g} read units more ({plan.money} in all)?"
                    confirm(question, yes, "give --yes, or look with --plan")
                _show(opened_look, plan, format_, output)

    try:
        attempt(look, client.meta.endpoint_url)
    except Refused as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{error.filename or output}: {error.strerror or error}") from error


@contextmanager
def _reader(client: Any, endpoint_url: str, moment: str | None) -> Iterator[Reader]:
    """The reader of the present or of the past. Raises click.ClickException."""
    from hashrange_sql.reading import ApiReader, PastReader

    if moment is None:
        with ApiReader(client).opened() as reader:
            yield reader
        return
    try:
        past = PastReader(client, Plane(endpoint_url), moment)
    except ValueError as error:
        raise click.ClickException(f"--as-of: {error}") from error
    yield past


def _show(look: Look, plan: Plan, format_: str, output: Path | None) -> None:
    """Load what the plan says, and show the rows."""
    items = sum([read.items or read.source.items for read in plan.reads if not read.done])
    with bar("read", items) as shown:
        look.load(plan, shown.update)
    for line in (line for table in plan.tables for line in table.told):
        click.echo(line, err=True)
    if format_ == "table":
        text = look.text(plan)
        if output is None:
            click.echo(text, nl=False)
        else:
            with open(output, "w", encoding="utf-8", opener=private) as file:
                file.write(text)
        return
    with open(look.write(plan, format_), "rb") as rows:
        if output is None:
            shutil.copyfileobj(rows, sys.stdout.buffer)
        else:
            with open(output, "wb", opener=private) as sink:
                shutil.copyfileobj(rows, sink)
