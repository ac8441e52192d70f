"""`hashrange audit`: find the entries of a key in the log of --audit-log."""

from __future__ import annotations

import click
import orjson

from hashrange_access.audit.entries import key_hash

_EPILOG = """\b
Example:
  grep "$(hashrange audit hash '{"id": {"S": "a"}}')" audit.jsonl"""


@click.group("audit", epilog=_EPILOG)
def command() -> None:
    """Read the log of who did what."""


@command.command("hash", short_help="Print the hash by which the log names an item.")
@click.argument("key")
def hash_command(key: str) -> None:
    """Print the hash by which the log names KEY, a key of an item in DynamoDB's JSON.

    An example: {"user": {"S": "alice"}, "number": {"N": "7"}}
    """
    try:
        read = orjson.loads(key)
    except orjson.JSONDecodeError as error:
        raise click.ClickException(f"{key} is not JSON: {error}") from error
    if not isinstance(read, dict):
        raise click.ClickException(f"{key} is not a key in DynamoDB's JSON.")
    click.echo(key_hash(read))
