"""`hashrange replay`: a recorded load again, on any endpoint."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import click

from hashrange.cli.forms import limit_option, yes_option
from hashrange.cli.remote.asking import AWS, endpoint_option, tell_server
from hashrange.operations import REGISTRY
from hashrange_lab.commands.signing import endpoint_of, signature_options
from hashrange_lab.commands.tables import StatusLine, codes, milliseconds, plural, table
from hashrange_lab.loads import replay, running, sending
from hashrange_lab.loads.replay import CannotMake, Plan, Replay, Summary
from hashrange_lab.recordings import reader
from hashrange_lab.recordings.reader import NotARecording, RecordingFile

_ABSENT: Final = "ResourceNotFoundException"
_EPILOG: Final = """\b
Examples:
  hashrange replay monday.hashrange --create-tables
  hashrange replay monday.hashrange --speed 10
  hashrange replay monday.hashrange --speed max --limit 10000
  hashrange replay monday.hashrange --operations GetItem,Query --strict
  hashrange replay monday.hashrange --tables orders=orders-copy

`hashrange serve --record FILE` makes recordings. Requests of one connection are sent in their order, those of
different connections side by side, as they were recorded. Without --operations only operations on items are
repeated, so no table is made, changed or deleted. Credentials are those of the AWS CLI: a profile, the
environment, a role. On AWS a replay costs what its requests cost. See packages/lab/docs/load.md."""


class _Speed(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """How many times as fast; `max`: as fast as possible."""

    name = "SPEED"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "max":
            return None
        try:
            speed = float(value)
        except ValueError:
            speed = 0.0
        if not 0.0 < speed < 1e6:
            self.fail(f"{value!r} is not a speed; give a number above 0, such as 10, or max.", param, ctx)
        return speed


@click.command("replay", epilog=_EPILOG)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--speed", type=_Speed(), default="1", help="How many times as fast as recorded, or max.  [default: 1]"
)
@limit_option("Send at most the first N requests.")
@click.option(
    "--operations", metavar="A,B", default="", help="Send only these operations.  [default: those on items]"
)
@click.option(
    "--tables",
    metavar="OLD=NEW",
    multiple=True,
    help="Use the table NEW for OLD; may be given several times.",
)
@click.option("--create-tables", is_flag=True, help="Create the tables that the endpoint lacks.")
@click.option(
    "--in-flight",
    type=click.IntRange(1, 10_000),
    default=replay.IN_FLIGHT_MAX,
    show_default=True,
    metavar="N",
    help="The maximum number of requests in progress.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Exit with status 1 if an answer differs, if no request was sent, or if the recording is damaged.",
)
@signature_options
@yes_option
@endpoint_option(f"URL of the server that gets the requests; `{AWS}` for Amazon DynamoDB, after a question.")
def command(
    file: Path,
    endpoint_url: str,
    speed: float | None,
    limit: int | None,
    operations: str,
    tables: tuple[str, ...],
    create_tables: bool,
    in_flight: int,
    strict: bool,
    region: str | None,
    profile: str | None,
    yes: bool,
) -> None:
    """Send the requests of the recording FILE again, and compare the answers and their latencies."""
    plan = Plan(
        speed=speed,
        requests_max=limit,
        operations=_operations(operations),
        tables=dict(map(_renaming, tables)),
        make_tables=create_tables,
        in_flight_max=in_flight,
        token=os.urandom(8).hex(),
    )
    tell_server(endpoint_url)
    line = StatusLine()
    try:
        with reader.open(file) as recording:
            to = endpoint_of(endpoint_url, region, profile, f"Send the requests of {file}", yes=yes)
            run = Replay(recording, to, plan)
            click.echo(f"Recorded: {recording.head.moment}, values {recording.head.values}", err=True)
            ended = running.run(run.run(), lambda: line.show(_progress(run.summary)))
            line.end()
            _tell(run.summary, recording, ended)
    except (sending.Unreachable, NotARecording, CannotMake) as error:
        line.end()
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{file} cannot be read: {error.strerror}") from None
    if not ended:
        raise click.exceptions.Exit(130)
    summary = run.summary
    if strict and (summary.differences or not summary.requests or _is_damaged(summary, recording)):
        raise click.exceptions.Exit(1)


def _operations(given: str) -> frozenset[str]:
    names = frozenset(name.strip() for name in given.split(",") if name.strip())
    if unknown := sorted(names - REGISTRY.keys()):
        raise click.UsageError(f"{unknown[0]!r} is not an operation; give names such as GetItem,PutItem.")
    return names


def _renaming(given: str) -> tuple[str, str]:
    old, equals, new = given.partition("=")
    if not (old and equals and new):
        raise click.UsageError(f"--tables {given!r} does not name two tables; give OLD=NEW.")
    return old, new


def _progress(summary: Summary) -> str:
    done = sum(of.replayed.count for of in summary.operations.values())
    text = f"{done:,} requests, {summary.recorded_seconds:,.0f} s of the recording"
    if summary.late_seconds > 1:
        text += f", {summary.late_seconds:,.0f} s late"
    return f"{text}, {plural(summary.differences, 'difference')}"


def _tell(summary: Summary, recording: RecordingFile, ended: bool) -> None:
    """Print the summary."""
    done = sum(of.replayed.count for of in summary.operations.values())
    click.echo(
        f"{plural(done, 'request')} in {summary.seconds:,.1f} s, recorded in "
        f"{summary.recorded_seconds:,.1f} s; {plural(summary.differences, 'difference')}"
    )
    if not ended:
        click.echo("interrupted: the remaining requests were not sent")
    rows = []
    for name, of in sorted(summary.operations.items()):
        pairs = [
            f"{milliseconds(of.recorded.percentile(p))} → {milliseconds(of.replayed.percentile(p))}"
            for p in (50, 95, 99)
        ]
        differences = f"{of.other_outcomes:,}", f"{of.other_answers:,}"
        rows.append([name, f"{of.replayed.count:,}", *pairs, *differences])
    heads = ["operation", "requests", "p50 ms", "p95 ms", "p99 ms", "other outcome", "other answer"]
    for text in table(heads, rows) if rows else ():
        click.echo(text)
    for name, of in sorted(summary.operations.items()):
        if of.recorded_errors or of.replayed_errors:
            recorded, now = codes(of.recorded_errors) or "none", codes(of.replayed_errors) or "none"
            click.echo(f"errors of {name}: recorded {recorded}; now {now}")
    for example in summary.examples:
        click.echo(f"  {example}")
    if any(_ABSENT in code for of in summary.operations.values() for code in of.replayed_errors):
        click.echo(
            "the endpoint lacks tables: create them with --create-tables, or use others with --tables OLD=NEW"
        )
    if summary.left_out:
        click.echo(f"left out: {codes(summary.left_out)} (choose operations with --operations)")
    if recording.dropped:
        click.echo(
            f"{plural(recording.dropped, 'request')} missing in the recording, because they came too fast"
        )
    if ended and _is_damaged(summary, recording):
        click.echo("the recording is cut off or damaged: the requests after these are missing")


def _is_damaged(summary: Summary, recording: RecordingFile) -> bool:
    """Whether the recording was read as far as possible, and not to its end."""
    return recording.is_cut and summary.requests == recording.requests - sum(summary.left_out.values())
