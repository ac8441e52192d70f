"""Migrations from the command line, by boto3 with its usual settings: AWS_ENDPOINT_URL and others.

python -m hashrange_patterns.migrations --table blog status
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from hashrange_patterns.flows import Client
from hashrange_patterns.locks import Lost
from hashrange_patterns.migrations.edits import Unsettled
from hashrange_patterns.migrations.files import write_new
from hashrange_patterns.migrations.runner import (
    SAMPLE,
    Irreversible,
    Locked,
    Migrations,
    Status,
    Unfinished,
)
from hashrange_patterns.migrations.walks import Contended, Look
from hashrange_patterns.tables import Table

_TOLD: Final = (Contended, Irreversible, Locked, Lost, Unfinished, Unsettled, ValueError)


def main(arguments: Sequence[str] | None = None, client: Client | None = None) -> int:
    """Run a command; returns the exit status: 1 if it failed, or `verify` found something."""
    given = _parser().parse_args(arguments)
    try:
        if given.command == "new":
            print(write_new(given.folder, given.about, time.time()))
            return 0
        table = Table(given.table, given.partition_key, given.sort_key)
        migrations = Migrations(
            client or _client(),
            table,
            given.folder,
            segments=given.segments,
            units_per_second=given.rate,
        )
        print(*_lines(migrations, given), sep="\n")
        return int(given.command == "verify" and given.left > 0)
    except _TOLD as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


def _lines(migrations: Migrations, given: argparse.Namespace) -> Iterator[str]:
    """What a command prints."""
    sample = None if given.command in ("plan", "verify") and given.all else getattr(given, "sample", None)
    match given.command:
        case "status":
            yield from map(_status, migrations.status())
        case "plan":
            for planned in migrations.plan(sample=sample, show=given.show):
                if planned.look is None:
                    yield f"{planned.revision}: {planned.step}"
                else:
                    yield f"{planned.revision}: {_cost(planned.look, given)}"
                    yield from _differences(planned.look)
        case "up":
            yield from (f"applied {name}" for name in migrations.up(given.to))
        case "down":
            name = migrations.down()
            yield "nothing is applied" if name is None else f"took back {name}"
        case "verify":
            found = migrations.verify(given.revision, sample=sample)
            given.left = found.to_change
            yield f"{found.to_change} of {_about(found)}{found.items} items are not changed"
            yield from _differences(found)


def _status(status: Status) -> str:
    words = [status.revision, status.state]
    if status.state == "applied":
        words.append(datetime.fromtimestamp(status.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    if status.segments:
        words.append(f"{status.segments_done}/{status.segments} segments")
    if status.state != "pending":
        words.append(f"{status.changed} of {status.seen} items changed")
    words += ["the file was edited"] * status.is_edited + ["the file is missing"] * (not status.has_file)
    return ", ".join(words)


def _cost(found: Look, given: argparse.Namespace) -> str:
    units = found.read_units + found.write_units
    dollars = (found.read_units * given.read_price + found.write_units * given.write_price) / 1e6
    minutes = "" if given.rate is None else f", {units / given.rate / 60:.1f} minutes"
    return (
        f"{_about(found)}{found.to_change} of {found.items} items, {found.read_units:.0f} read units, "
        f"{found.write_units:.0f} write units{minutes}, ${dollars:.2f}"
    )


def _about(found: Look) -> str:
    return "" if found.is_complete else "about "


def _differences(found: Look) -> Iterator[str]:
    for key, attributes in found.differences:
        yield f"  {' '.join(str(next(iter(value.values()))) for value in key.values())}"
        for name, (before, after) in attributes.items():
            yield f"    {name}: {_shown(before)} -> {_shown(after)}"


def _shown(value: Any) -> str:
    return "(none)" if value is None else repr(value)


def _client() -> Client:
    import boto3  # (programs bring their own client)
    from botocore.config import Config

    client: Client = boto3.client("dynamodb", config=Config(retries={"total_max_attempts": 1}))
    return client


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m hashrange_patterns.migrations", description="Change data.")
    parser.add_argument("--table", default="", help="the table that changes, and remembers what was applied")
    parser.add_argument("--folder", type=Path, default=Path("migrations"), help="of the files (migrations)")
    parser.add_argument("--partition-key", default="PK", help="its name (PK)")
    parser.add_argument("--sort-key", default="SK", help="its name (SK)")
    parser.add_argument("--rate", type=float, help="units a second at most, reads and writes together")
    parser.add_argument("--segments", type=int, default=4, help="segments in parallel (4)")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("status", help="show what is applied, under way, pending")
    plan = commands.add_parser("plan", help="show what up would change and cost; write nothing")
    plan.add_argument("--show", type=int, default=3, help="items whose differences are shown (3)")
    plan.add_argument("--read-price", type=float, default=0.125, help="dollars per million units (0.125)")
    plan.add_argument("--write-price", type=float, default=0.625, help="dollars per million units (0.625)")
    up = commands.add_parser("up", help="apply what is pending")
    up.add_argument("--to", help="the last to apply")
    commands.add_parser("down", help="take back the last")
    verify = commands.add_parser("verify", help="count the items that a change has left")
    verify.add_argument("revision", nargs="?", help="the last applied, unless named")
    for looking, all_by_default in ((plan, False), (verify, True)):
        looking.add_argument(
            "--sample", type=int, default=None if all_by_default else SAMPLE, help="items to read"
        )
        looking.add_argument("--all", action="store_true", help="read all items")
    commands.add_parser("new", help="write the file of a migration").add_argument("about")
    return parser


if __name__ == "__main__":
    sys.exit(main())
