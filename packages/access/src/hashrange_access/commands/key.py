"""`hashrange key`: the access keys in the store of a running server, through its admin plane."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click
import orjson

from hashrange.cli.forms import JSON, Duration, format_option, print_lines, show_duration, yes_option
from hashrange.cli.remote.asking import Plane, ask, confirm, plane_options
from hashrange.clock import show_moment

_START: Final = "hashrange serve --auth strict"
_PATH: Final = "/v1/access-keys"

_EPILOG: Final = """\b
Examples:
  hashrange key create --root                        the first key of a new server
  hashrange key create --user alice                  a key of a user of the users file
  hashrange key create --user ci --policy ci.json    a user with this policy only, without a users file
  hashrange key create --user alice > alice.env      the only time that the secret is shown
  hashrange key list
  hashrange key rotate AKIA… --grace 1h              a new key; the old key expires in an hour
  hashrange key disable AKIA…                        refused at once
  hashrange key enable AKIA…

A key that is disabled, deleted or rotated out is refused at once by the server that the command asks, and
within two seconds by other servers over the same store. Secrets are encrypted by the server's --key-file. See
packages/access/docs/access.md."""


@click.group("key", epilog=_EPILOG)
def command() -> None:
    """Create, list, disable, rotate and delete access keys in a server's store."""


@command.command("create")
@click.option("--user", metavar="NAME", help="The user who gets the key.")
@click.option("--root", is_flag=True, help="Create a key of the root user, who may do everything.")
@click.option("--account", metavar="ID", help="The account, if the server has several.")
@click.option(
    "--policy",
    "policy_file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="The policy of a user who is not in the users file, in JSON.",
)
@plane_options
def create(
    plane: Plane, user: str | None, root: bool, account: str | None, policy_file: Path | None
) -> None:
    """Create a key, and show its secret, which is not shown again."""
    if root == bool(user):
        raise click.UsageError("Name the user with --user NAME, or give --root.")
    sent: dict[str, Any] = {"user": user or "", "account": account}
    if policy_file is not None:
        try:
            sent["policy"] = orjson.loads(policy_file.read_bytes())
        except (orjson.JSONDecodeError, OSError) as error:
            raise click.ClickException(f"{policy_file} is not a policy in JSON: {error}") from error
    _show_secret(ask(plane, _PATH, "secret", _START, sent))


@command.command("list")
@format_option("How each key is printed: as a line of text, or as a JSON object on a line.")
@plane_options
def list_(plane: Plane, format_: str) -> None:
    """Show the keys of the store, without their secrets."""
    keys = ask(plane, _PATH, "keys", _START)["keys"]
    if format_ == JSON:
        print_lines(keys)
        return
    for key in keys:
        click.echo("  ".join(_columns(key)))
    if not keys:
        click.echo("The store has no keys; `hashrange key create` makes one.")


@command.command("disable")
@click.argument("key_id", metavar="ID")
@plane_options
def disable(plane: Plane, key_id: str) -> None:
    """Disable a key at once."""
    _set(plane, key_id, enabled=False)


@command.command("enable")
@click.argument("key_id", metavar="ID")
@plane_options
def enable(plane: Plane, key_id: str) -> None:
    """Accept a disabled or expired key again."""
    _set(plane, key_id, enabled=True)


@command.command("rotate", short_help="Make another key of the same user.")
@click.argument("key_id", metavar="ID")
@click.option(
    "--grace", type=Duration(), default="24h", show_default=True, help="How long the old key stays valid."
)
@plane_options
def rotate(plane: Plane, key_id: str, grace: float) -> None:
    """Create a new key for the same user; the old key expires after a grace period."""
    answer = ask(plane, f"{_PATH}/{key_id}/rotate", "secret", _START, {"grace_seconds": grace})
    _show_secret(answer)
    click.echo(f"{key_id} ends in {show_duration(grace)}.", err=True)


@command.command("delete")
@click.argument("key_id", metavar="ID")
@yes_option
@plane_options
def delete(plane: Plane, key_id: str, yes: bool) -> None:
    """Delete a key permanently."""
    confirm(f"Delete the key {key_id}? Programs that use it are refused at once.", yes)
    ask(plane, f"{_PATH}/{key_id}", "deleted", _START, method="DELETE")
    click.echo(f"{key_id} is deleted.")


def _set(plane: Plane, key_id: str, *, enabled: bool) -> None:
    key = ask(plane, f"{_PATH}/{key_id}", "key", _START, {"enabled": enabled})["key"]
    click.echo("  ".join(_columns(key)))


def _show_secret(answer: dict[str, Any]) -> None:
    """The key in the form of a file of variables."""
    click.echo(f"AWS_ACCESS_KEY_ID={answer['id']}\nAWS_SECRET_ACCESS_KEY={answer['secret']}")
    click.echo(
        f"A key of {answer['user']} in the account {answer['account']}. Its secret is not shown again.",
        err=True,
    )


def _columns(key: dict[str, Any]) -> list[str]:
    status = key["status"]
    if key["ends"] is not None and status == "enabled":
        status = f"until {show_moment(key['ends'])}"
    columns = [key["id"], key["account"], key["user"], status, f"made {show_moment(key['created'])}"]
    columns += ["with a policy of its own"] if key["policy"] else []
    columns += [f"cannot be used: {key['problem']}"] if key["problem"] else []
    return columns
