"""The part of access in `hashrange serve`: its options, and the gate, the limits and the audit log that they
ask for."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hashrange import __version__
from hashrange.cli.forms import Size
from hashrange.cli.serving.options import Number, option
from hashrange.clock import SystemClock
from hashrange.database import Caller, Database
from hashrange.operations.context import scope_of
from hashrange.rings import ServingPart, Starting
from hashrange.storage.capabilities import Remote
from hashrange.storage.failures import StorageError
from hashrange.tables.definitions import catalog

if TYPE_CHECKING:
    from hashrange_access.audit.log import AuditLog
    from hashrange_access.judging.gate import Gate
    from hashrange_access.keys.sealing import Vault
    from hashrange_access.rates import Limiter
    from hashrange_access.users import Users

OFF: Final = "off"
STRICT: Final = "strict"
MODES: Final = (OFF, "soft", STRICT)
KEY_FILE: Final = "access.key"
"""The name of the key file in the data directory."""

_FILE: Final = click.Path(path_type=Path, dir_okay=False)
_KEY_ID: Final = re.compile(r"\w{4,128}", re.ASCII)
_SECRET_CHARS_MIN: Final = 8


_OPTIONS: Final = (
    option(
        "--auth",
        type=click.Choice(MODES),
        default=OFF,
        help="Who has access. off: every client; soft: every client, and the log has what strict would "
        "refuse; strict: clients with a key, as their policies allow.",
    ),
    option(
        "--users",
        type=_FILE,
        metavar="FILE",
        help="Accounts, users, keys and policies: a file in YAML or JSON, which is read again when it "
        "changes; see packages/access/docs/access.md.  [default: none]",
    ),
    option(
        "--key-file",
        type=_FILE,
        metavar="FILE",
        help="The key that encrypts stored keys and sessions, the same for all servers over a store. With "
        "--postgres, stored keys and sessions need this file.  "
        f"[default: {KEY_FILE} in the data directory]",
    ),
    option(
        "--root-access-key-id",
        default="",
        metavar="ID",
        help="Access key of the root user of --account-id, or of the only account of --users.  "
        "[default: none]",
    ),
    option(
        "--root-secret-access-key",
        default="",
        metavar="SECRET",
        help="Secret key of the root user. Use the variable: other users of the machine can read options.  "
        "[default: none]",
    ),
    option(
        "--audit-log",
        type=_FILE,
        metavar="FILE",
        help="Log of requests and changes with their callers, in JSON lines. Keys of items are hashed, other "
        "values never written; see packages/access/docs/access.md.  [default: none]",
    ),
    option(
        "--audit-log-bytes",
        type=Size(),
        default=100 * 1024 * 1024,
        help="Size at which the audit log continues in a new file.",
    ),
    option(
        "--audit-log-files",
        type=Number(int, 1),
        metavar="NUMBER",
        default=10,
        help="How many files of the audit log are kept.",
    ),
    option(
        "--requests-per-second-max",
        type=Number(float, 0),
        metavar="NUMBER",
        help="The most requests per second of each access key; more are refused with "
        "ThrottlingException.  [default: no limit]",
    ),
    option(
        "--requests-burst",
        type=Number(float, 1),
        metavar="NUMBER",
        help="How many requests a limited key may make at once.  [default: those of a second]",
    ),
)


class AccessPart(ServingPart):
    """Access, in a server."""

    options = _OPTIONS

    def asks_for_keys(self, given: Mapping[str, Any]) -> bool:
        """Whether --auth is strict."""
        return bool(given["auth"] == STRICT)

    def begin(self, starting: Starting) -> None:
        """Judge and limit the requests to a database, and log who makes them. Raises ClickException."""
        given, database = starting.given, starting.database
        limiter = _limiter(given)
        if given["auth"] == OFF:
            _refuse_options_of_users(given)
            if limiter is not None:
                from hashrange_access.judging.gate import LimitingGate

                database.observers.guard(LimitingGate(limiter))
        else:
            from hashrange_access.judging.judging import guard

            guard(database, _gate(starting, limiter))
        if given["audit_log"] is not None:
            log = opened_log(given, database)
            starting.stack.callback(log.close)
            starting.audit = log


PART: Final = AccessPart()


def _refuse_options_of_users(given: Mapping[str, Any]) -> None:
    for name in ("users", "key_file", "root_access_key_id", "root_secret_access_key"):
        if given[name]:
            raise click.UsageError(
                f"--{name.replace('_', '-')} has no effect without --auth soft or --auth strict."
            )


def _gate(starting: Starting, limiter: Limiter | None) -> Gate:
    """The gate of a server; watches over the users and keys until the server ends. Raises ClickException."""
    given, database = starting.given, starting.database
    auth = given["auth"]
    # Imported here, because most servers have no users.
    from hashrange_access.commands.watching import Watcher
    from hashrange_access.directory import Directory
    from hashrange_access.judging.gate import Gate
    from hashrange_access.keys.keyring import Keyring
    from hashrange_access.keys.sealing import VaultError
    from hashrange_access.sts.tokens import Tokens

    def load() -> Users:
        return _users(given, starting.account_id, separate=database.settings.separate_accounts)

    now = SystemClock().now
    watcher = Watcher(given["users"], load)
    vault = _vault(database, given["key_file"], starting.data_dir)
    try:
        directory = Directory(watcher.first())
        if given["key_file"] is not None:
            vault.seal("")
    except (ValueError, VaultError) as error:
        raise click.ClickException(str(error)) from error
    keyring = Keyring(database.engine, vault, directory, now)
    keyring.refresh()
    can_make = starting.has_token and not _lacks_key_file(database, given["key_file"])
    _check_somebody(auth, directory, can_make=can_make)
    # Signatures are compared with the machine's time, even if the database has another clock: clients sign
    # with theirs.
    tokens = Tokens(vault, directory)
    gate = Gate(
        directory,
        now,
        strict=auth == STRICT,
        secure=starting.secure,
        tokens=tokens,
        keyring=keyring,
        limiter=limiter,
    )
    starting.stack.callback(watcher.watch(directory, keyring))
    if given["users"] is not None:
        starting.reload = watcher.ask
    return gate


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
        raise ValueError(f"--account-id {account} is not an account of {file}, so it has no root user.")
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
            "a key: without one nobody can use the server; see packages/access/docs/access.md."
        )
    click.echo(
        "There are no keys yet: `hashrange key create --root`, with the token of the admin plane in "
        "HASHRANGE_ADMIN_TOKEN, makes the first.",
        err=True,
    )


def _limiter(given: Mapping[str, Any]) -> Limiter | None:
    """What limits the requests of keys, as --requests-per-second-max and the users file say."""
    per_second, burst = given["requests_per_second_max"], given["requests_burst"]
    if per_second == 0:
        raise click.UsageError("--requests-per-second-max is 0; leave the option out for no limit.")
    if per_second is None and given["auth"] == OFF:
        if burst is not None:
            raise click.UsageError("--requests-burst has no effect without --requests-per-second-max.")
        return None
    from hashrange_access.rates import Limiter

    return Limiter(per_second, burst, time.monotonic)


def opened_log(given: Mapping[str, Any], database: Database) -> AuditLog:
    """The log of --audit-log, which must be closed. Raises ClickException."""
    from hashrange_access.audit.log import AuditError, AuditLog

    def key_names(table: str, caller: Caller) -> tuple[str, ...] | None:
        scope = scope_of(caller.account_id, caller.region, database.settings)
        try:
            described = database.engine.read(lambda reader: catalog.find(reader, table, scope))
        except StorageError:
            return None
        if described is None:
            return None
        return tuple(attribute.name for attribute in (*described.key.partition, *described.key.sort))

    bytes_max, files_max = given["audit_log_bytes"], given["audit_log_files"]
    log = AuditLog(given["audit_log"], SystemClock().now, key_names, bytes_max=bytes_max, files_max=files_max)
    try:
        log.open(__version__)
    except AuditError as error:
        raise click.ClickException(str(error)) from error
    return log
