"""`hashrange audit`: check the log of --audit-log, and find the entries of a key."""

from __future__ import annotations

from pathlib import Path

import click
import orjson

from hashrange.access.audit.chain import rotated, verify
from hashrange.access.audit.entries import key_hash

_EPILOG = """\b
Examples:
  hashrange audit verify audit.jsonl                 with audit.jsonl.1 and so on, if they exist
  hashrange audit verify monday.jsonl tuesday.jsonl  these, in this order
  grep "$(hashrange audit hash '{"id": {"S": "a"}}')" audit.jsonl"""


@click.group("audit", epilog=_EPILOG)
def command() -> None:
    """Check the log of who did what."""


@command.command("verify")
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False, exists=True)
)
@click.option(
    "--expect",
    metavar="HASH",
    default="",
    help="The hash that a former check printed: its line must still be there, so nothing before was cut off.",
)
def verify_command(files: tuple[Path, ...], expect: str) -> None:
    """Check that no line of FILES was changed, removed or added.

    FILES are given from the oldest to the newest; for a single one, those that it continues are found beside
    it. The last line's hash is printed. Keep it elsewhere: only with it can a later check notice that the end
    of the log was cut off. The exit code is 1 if the chain breaks.
    """
    try:
        verdict = verify(rotated(files[0]) if len(files) == 1 else files, expect)
    except OSError as error:
        raise click.ClickException(f"{error.filename} cannot be read: {error.strerror}") from error
    if verdict.broken:
        raise click.ClickException(f"the chain breaks after {verdict.lines} lines. {verdict.broken}.")
    if not verdict.expected:
        raise click.ClickException(f"no line has the hash {expect}: the log was cut off, or is another one.")
    begins = "" if verdict.first <= 1 else f", from number {verdict.first}"
    lost = f"; {verdict.lost} entries were lost when they were to be written" if verdict.lost else ""
    click.echo(f"{verdict.lines} lines are whole{begins}{lost}.")
    click.echo(f"The last one's hash: {verdict.end.digest}")


@command.command("hash")
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
