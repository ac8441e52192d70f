"""`hashrange audit`: find the entries of a key in the log of --audit-log."""

from __future__ import annotations

from typing import Any

import click

from hashrange.cli.forms import Key
from hashrange_access.audit.entries import key_hash

_EPILOG = """\b
Example:
  grep "$(hashrange audit hash '{"id": "a"}')" audit.jsonl"""


@click.group("audit", epilog=_EPILOG)
def command() -> None:
    """Find items in the audit log."""


@command.command("hash", short_help="Print the hash by which the log names an item.")
@click.argument("key", type=Key())
def hash_command(key: dict[str, Any]) -> None:
    """Print the hash that stands for an item's KEY in the audit log. KEY is plain JSON, or DynamoDB's JSON.

    An example: {"user": "alice", "number": 7}
    """
    click.echo(key_hash(key))
