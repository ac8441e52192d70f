"""The gate of a server, from its options: `guard`. `refuse_if_open` keeps a server from being open to other
machines by accident."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hashrange.cli.serving.options import option
from hashrange.clock import SystemClock
from hashrange.database import Database
from hashrange.storage.capabilities import Remote

if TYPE_CHECKING:
    from hashrange_access.keys import Vault
    from hashrange_access.users import Users

OFF: Final = "off"
STRICT: Final = "strict"
MODES: Final = (OFF, "soft", STRICT)
KEY_FILE: Final = "access.key"
"""The name of the key file in the data directory."""

_FILE: Final = click.Path(path_type=Path, dir_okay=False)
_KEY_ID: Final = re.compile(r"\w{4,128}", re.ASCII)
_SECRET_CHARS_MIN: Final = 8
_TOKEN_BYTES: Final = 24


def options(function: Any) -> Any:
    """The options of `hashrange serve` that say who has access."""
    for decorate in reversed((
        option(
            "--auth",
            type=click.Choice(MODES),
            default=OFF,
            help="Who has access: everybody; everybody, but what strict would refuse is logged; those with a "
            "key, as their policies say.",
        ),
        option(
            "--insecure",
            is_flag=True,
            help="Serve other machines without --auth strict; see `--host`.",
        ),
        option(
            "--users",
            type=_FILE,
            metavar="FILE",
            help="Accounts, users, keys and policies; a file in YAML or JSON, which is read again when it "
            "changes, see docs/access.md.  [default: none]",
        ),
        option(
            "--key-file",
            type=_FILE,
            metavar="FILE",
            help="The key that encrypts stored keys and sessions; all servers over a store need the same. "
            "With --postgres there are neither without it.  "
            f"[default: {KEY_FILE} in the data directory]",
        ),
        option(
            "--root-access-key-id",
            default="",
            metavar="ID",
            help="Access key of the root user; of --account-id, or of the only account of --users.  "
            "[default: none]",
        ),
        option(
            "--root-secret-access-key",
            default="",
            metavar="SECRET",
            help="Its secret. Use the variable: other users of the machine can read options.  "
            "[default: none]",
        ),
    )):
        function = decorate(function)
    return function


def refuse_if_open(host: str, given: Mapping[str, Any], *, is_open: bool) -> None:
    """Refuse to start a server that everybody could use over the network. Raises UsageError."""
    if is_open and given["auth"] != STRICT and not given["insecure"]:
        raise click.UsageError(
            f"With --host {host} other machines could reach the server, and everybody could read and change "
            "all data. Add --auth strict, which lets only those in who have a key, or --insecure, if you "
            "trust every machine that can reach it."
        )


def guard(
    database: Database,
    given: Mapping[str, Any],
    data_dir: Path | None,
    account_id: str,
    stack: ExitStack,
    *,
    can_make: bool,
    secure: bool = False,
) -> Callable[[], None] | None:
    """Judge the requests to a database as the options say, and watch over the users and keys until `stack`
    ends; returns what reads the users file again, None if there is none.

    `can_make`: somebody knows the token of the admin plane, over which keys can be made. `secure`: requests
    come by TLS. Raises ClickException.
    """
    auth = given["auth"]
    if auth == OFF:
        for name in ("users", "key_file", "root_access_key_id", "root_secret_access_key"):
            if given[name]:
                raise click.UsageError(
                    f"--{name.replace('_', '-')} has no effect without --auth soft or --auth strict."
                )
        return None
    # Imported here, because most servers have no users.
    from hashrange_access.commands.watching import Watcher
    from hashrange_access.directory import Directory
    from hashrange_access.judging import Gate
    from hashrange_access.keys import Keyring, VaultError
    from hashrange_access.sts import Tokens

    def load() -> Users:
        return _users(given, account_id, separate=database.settings.separate_accounts)

    now = SystemClock().now
    watcher = Watcher(given["users"], load)
    vault = _vault(database, given["key_file"], data_dir)
    try:
        directory = Directory(watcher.first())
        if given["key_file"] is not None:
            vault.seal("")
    except (ValueError, VaultError) as error:
        raise click.ClickException(str(error)) from error
    keyring = Keyring(database.engine, vault, directory, now)
    keyring.refresh()
    _check_somebody(auth, directory, can_make=can_make and not _lacks_key_file(database, given["key_file"]))
    # Signatures are compared with the machine's time, even if the database has another clock: clients sign
    # with theirs.
    tokens = Tokens(vault, directory)
    gate = Gate(directory, now, strict=auth == STRICT, secure=secure, tokens=tokens, keyring=keyring)
    database.interest.judge(gate)
    stack.callback(watcher.watch(directory, keyring))
    return watcher.ask if given["users"] is not None else None


def new_token(given: Mapping[str, Any], log_format: str) -> str:
    """A token for the admin plane with --auth strict, because whoever may use the plane can make keys of the
    root user; "" with the other modes, and where nobody would see the token."""
    return secrets.token_urlsafe(_TOKEN_BYTES) if given["auth"] == STRICT and log_format == "text" else ""


def _users(given: Mapping[str, Any], account_id: str, *, separate: bool) -> Users:
    """The users of the file, and the root user of the options. Raises ValueError."""
    from hashrange_access.signatures import Key
    from hashrange_access.users import Users, load, root_of

    file: Path | None = given["users"]
    if file is None:
        users = Users(accounts=(account_id,))
    else:
        try:
            users = load(file)
        except (ValueError, OSError, ImportError) as error:
            raise ValueError(f"The users file {file} cannot be used: {error}") from error
    if len(users.accounts) > 1 and not separate:
        raise ValueError(
            f"{file} has {len(users.accounts)} accounts, which would share all tables: add "
            "--separate-accounts, or keep one account."
        )
    key_id, secret = given["root_access_key_id"], given["root_secret_access_key"]
    if not key_id and not secret:
        return users
    if not _KEY_ID.fullmatch(key_id):
        raise ValueError(
            f"--root-access-key-id {key_id!r} is not a key id, which has 4 to 128 letters and digits."
        )
    if len(secret) < _SECRET_CHARS_MIN:
        raise ValueError(f"--root-secret-access-key has fewer than {_SECRET_CHARS_MIN} characters.")
    account = users.accounts[0] if len(users.accounts) == 1 else account_id
    if account not in users.accounts:
        raise ValueError(f"--account-id {account} is none of the accounts of {file}, so it has no root user.")
    users.add(Key(key_id, secret), root_of(account))
    return users


def _lacks_key_file(database: Database, key_file: Path | None) -> bool:
    return key_file is None and isinstance(database.engine, Remote)


def _vault(database: Database, key_file: Path | None, data_dir: Path | None) -> Vault:
    from hashrange_access.keys import sealing

    if key_file is not None:
        return sealing.in_file(key_file, os.urandom, may_make=False)
    if data_dir is not None:
        return sealing.in_file(data_dir / KEY_FILE, os.urandom, may_make=True)
    if _lacks_key_file(database, key_file):
        return sealing.missing("over PostgreSQL it needs --key-file, the same for all servers")
    return sealing.in_memory(os.urandom)


def _check_somebody(auth: str, directory: Any, *, can_make: bool) -> None:
    """Refuse a server that nobody could ever use; say how the first key is made."""
    state = directory.state
    if state.users.keys or state.stored or state.users.people or state.users.roles:
        return
    if auth == STRICT and not can_make:
        raise click.UsageError(
            f"--auth {auth} needs --users FILE, or a root key (HASHRANGE_ROOT_ACCESS_KEY_ID and "
            "HASHRANGE_ROOT_SECRET_ACCESS_KEY), or HASHRANGE_ADMIN_TOKEN, with which `hashrange key` makes "
            "one: nobody has a key, and none can be made; see docs/access.md."
        )
    click.echo(
        "Nobody has a key yet: `hashrange key create --root`, with the token of the admin plane in "
        "HASHRANGE_ADMIN_TOKEN, makes the first.",
        err=True,
    )
