"""`hashrange load`: a load of a named mix."""

from __future__ import annotations

from typing import Any, Final

import click

from hashrange.cli.forms import Duration, Size, limit_option, yes_option
from hashrange.cli.remote.asking import AWS, endpoint_option, tell_server
from hashrange_lab.commands.signing import endpoint_of, signature_options
from hashrange_lab.commands.tables import StatusLine, codes, milliseconds, plural, table
from hashrange_lab.loads import items, mixes, running, sending
from hashrange_lab.loads.making import CannotFill, Load, LoadCounts, LoadSettings
from hashrange_lab.loads.replay import CannotMake, make_table
from hashrange_lab.loads.sending import Connection, Endpoint

DEFAULT_TABLE: Final = "hashrange-load"
_SECONDS: Final = 10.0

_EPILOG: Final = """\b
Mixes, those of YCSB:
  a  half reads, half updates             d  95 % reads of new items, 5 % new items
  b  95 % reads, 5 % updates              e  95 % queries, 5 % new items
  c  reads only                           f  half reads, half reads with an update

\b
Examples:
  hashrange load a
  hashrange load b --duration 1m --in-flight 32 --items 100000 --item-size 1KiB
  hashrange load c --limit 100000 --distribution uniform --seed 7
  hashrange load f --rate 500 --consistent
  hashrange load a --table orders-load --keep-table

The command makes its table, fills it, and deletes it in the end. Answers are verified: a wrong one makes the
exit status 1. On AWS a load costs what its requests cost. See packages/lab/docs/load.md."""


@click.command("load", epilog=_EPILOG)
@click.argument("mix", type=click.Choice(sorted(mixes.MIXES)))
@click.option(
    "--table",
    "table_name",
    metavar="NAME",
    help="The table to use, created if it is missing. The table is never deleted; its items are "
    f"overwritten.  [default: {DEFAULT_TABLE}, deleted at the end]",
)
@click.option("--keep-table", is_flag=True, help="Do not delete the table that the command created.")
@click.option(
    "--items", "items_count", type=click.IntRange(1, 10_000_000), default=10_000, show_default=True,
    metavar="N", help="How many items to fill the table with.",
)  # fmt: skip
@click.option(
    "--item-size", type=Size(0, 390_000), default="400B", show_default=True,
    help=f"The size of an item's content; its key and version add about {items.KEY_BYTES} bytes.",
)  # fmt: skip
@click.option(
    "--distribution", type=click.Choice(mixes.DISTRIBUTIONS),
    help="How requests are distributed over the items.  [default: latest for mix d, zipf for the others]",
)  # fmt: skip
@click.option(
    "--in-flight", type=click.IntRange(1, 5_000), default=16, show_default=True,
    metavar="N", help="How many requests are in progress at a time.",
)  # fmt: skip
@click.option(
    "--duration", type=Duration(0.001),
    help="How long the load lasts.  [default: 10s, without --limit]",
)  # fmt: skip
@limit_option("Send at most N requests.")
@click.option(
    "--rate", type=click.FloatRange(0, min_open=True), metavar="N",
    help="Requests a second. Latencies then count from the time at which a request was due.  "
    "[default: as many as possible]",
)  # fmt: skip
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Runs with the same seed send the same requests."
)
@click.option(
    "--consistent", is_flag=True, help="Read with ConsistentRead, and verify that no read is stale."
)
@click.option("--no-check", is_flag=True, help="Do not verify the answers.")
@signature_options
@yes_option
@endpoint_option(f"URL of the server; `{AWS}` for Amazon DynamoDB, after a question.")
def command(
    mix: str,
    table_name: str | None,
    keep_table: bool,
    items_count: int,
    distribution: str | None,
    endpoint_url: str,
    region: str | None,
    profile: str | None,
    **options: Any,
) -> None:
    """Send a benchmark load of MIX to an endpoint, and measure it."""
    seconds = options["duration"]
    if seconds is None and options["limit"] is None:
        seconds = _SECONDS
    settings = LoadSettings(
        table=table_name or DEFAULT_TABLE,
        mix=mixes.MIXES[mix],
        distribution=distribution or mixes.MIXES[mix].distribution,
        items=items_count,
        item_bytes=options["item_size"],
        connections=options["in_flight"],
        seconds=seconds,
        requests_max=options["limit"],
        rate=options["rate"],
        seed=options["seed"],
        consistent=options["consistent"],
        verifies=not options["no_check"],
    )
    tell_server(endpoint_url)
    question = f"Put a load on table {settings.table}"
    run = _Run(settings, is_own=table_name is None, keeps=keep_table)
    try:
        run.run(endpoint_of(endpoint_url, region, profile, question, yes=options["yes"]))
    except (sending.Unreachable, CannotMake, CannotFill) as error:
        raise click.ClickException(str(error)) from None
    if run.made is not None and run.made.wrong:
        raise click.exceptions.Exit(1)
    if not run.ended:
        raise click.exceptions.Exit(130)


class _Run:
    """One run of the command. `is_own`: the table is the command's own."""

    def __init__(self, settings: LoadSettings, *, is_own: bool, keeps: bool) -> None:
        self._settings = settings
        self._is_own = is_own
        self._keeps = keeps
        self._line = StatusLine()
        self.made: LoadCounts | None = None
        self.ended = True

    def run(self, to: Endpoint) -> None:
        """Make the table, fill it, put the load on it, and tell what was measured."""
        load = Load(to, self._settings)
        is_new: list[bool] = []
        try:
            self.ended = running.run(self._fill(to, load, is_new), lambda: self._show_filling(load))
            self._line.end()
            if self.ended:
                self.made = load.made
                self.ended = running.run(load.run(), lambda: self._show(load.made))
                self._line.end()
                _tell(load.made, self._settings, self.ended)
        finally:
            self._line.end()
            if self._is_own and is_new == [True] and not self._keeps:
                running.run(_delete(to, self._settings.table), lambda: None)

    async def _fill(self, to: Endpoint, load: Load, is_new: list[bool]) -> None:
        table = self._settings.table
        is_new.append(await make_table(to, items.create(table)))
        if self._is_own and not is_new[0]:
            raise CannotMake(
                f"There is a table {table} already, perhaps from a load that was killed. Delete it, or give "
                f"--table {table}, which overwrites its items."
            )
        await load.fill()

    def _show_filling(self, load: Load) -> None:
        self._line.show(f"filling {self._settings.table}: {load.filled:,} of {self._settings.items:,} items")

    def _show(self, made: LoadCounts) -> None:
        second, made.second = made.second, type(made.second)()
        self._line.show(
            f"{made.requests:,} requests, {second.count:,} in the last second, p99 "
            f"{milliseconds(second.percentile(99))} ms, {plural(made.errors, 'error')}"
        )


async def _delete(to: Endpoint, table: str) -> None:
    connection = Connection(to)
    try:
        await connection.send("DeleteTable", {"TableName": table})
    finally:
        connection.close()


def _tell(made: LoadCounts, settings: LoadSettings, ended: bool) -> None:
    """Print the summary."""
    seconds = max(made.seconds, 1e-9)
    rate = f"{made.requests / seconds:,.0f} a second"
    click.echo(f"{plural(made.requests, 'request')} in {made.seconds:,.1f} s, {rate}")
    if not ended:
        click.echo("interrupted")
    rows = []
    for name, kind in sorted(made.kinds.items()):
        latencies = kind.latencies
        shown = [milliseconds(latencies.percentile(percent)) for percent in (50, 95, 99)]
        rate = f"{latencies.count / seconds:,.0f}"
        longest = milliseconds(latencies.longest)
        errors = f"{sum(kind.errors.values()):,}"
        rows.append([name, f"{latencies.count:,}", rate, *shown, longest, errors])
    heads = ["request", "number", "a second", "p50 ms", "p95 ms", "p99 ms", "longest", "errors"]
    for text in table(heads, rows) if rows else ():
        click.echo(text)
    for name, kind in sorted(made.kinds.items()):
        if kind.errors:
            click.echo(f"errors of {name}: {codes(kind.errors)}")
        if kind.conflicts:
            conflicts = plural(kind.conflicts, "update")
            click.echo(f"{name}: {conflicts} came after another one, and changed nothing")
    click.echo(f"consumed: {made.read_units:,.1f} read units, {made.write_units:,.1f} write units")
    if not settings.verifies:
        click.echo("answers were not verified")
        return
    click.echo(f"verified: {plural(made.verified, 'answer')}, {made.wrong:,} wrong")
    for example in made.examples:
        click.echo(f"  {example}")
