"""The gate of a server, from --auth and --users."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from hashrange.clock import SystemClock
from hashrange.database import Database

OFF: Final = "off"
STRICT: Final = "strict"
MODES: Final = (OFF, "soft", STRICT)


def guard(database: Database, auth: str, users_file: Path | None, *, secure: bool = False) -> None:
    """Judge the requests to a database as --auth and --users say. `secure`: they come by TLS. Raises
    ClickException."""
    if auth == OFF:
        if users_file is not None:
            raise click.UsageError("--users has no effect without --auth soft or --auth strict.")
        return
    # Imported here, because most servers have no users.
    from hashrange.access.judging import Gate
    from hashrange.access.users import UsersError, load

    if users_file is None:
        raise click.UsageError(f"--auth {auth} needs --users FILE, which holds the keys; see docs/access.md.")
    try:
        users = load(users_file)
    except (UsersError, OSError, ImportError, UnicodeDecodeError) as error:
        raise click.ClickException(f"The users file {users_file} cannot be used: {error}") from error
    if len(users.accounts) > 1 and not database.settings.separate_accounts:
        raise click.UsageError(
            f"{users_file} has {len(users.accounts)} accounts, which would share all tables: add "
            "--separate-accounts, or keep one account."
        )
    # Signatures are compared with the machine's time, even if the database has another clock: clients sign
    # with theirs.
    database.interest.judge(Gate(users, SystemClock().now, strict=auth == STRICT, secure=secure))
