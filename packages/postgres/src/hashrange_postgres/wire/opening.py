"""The first connection to a database: each reason why there is none has its own message, with the remedy.

PostgreSQL tells these reasons by its text only, in English unless its administrator has chosen another
language; then the message is the general one.
"""

from __future__ import annotations

import re
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hashrange.storage.failures import StorageError
from hashrange_postgres.wire.connections import (
    Connection,
    Trouble,
    call,
    close,
    connect,
    hide_password,
    refused,
    unreachable,
)

_NO_DATABASE: Final = re.compile(r'database "(.*?)" does not exist')
_NOT_LET_IN: Final = re.compile(
    r'password authentication failed|role ".*?" does not exist|no pg_hba\.conf entry|no password supplied'
    r"|authentication failed|not permitted to log in|permission denied for database"
)
_READ_ONLY: Final = re.compile(r"session is read-only|hot standby mode|not in read-write")


def first_connection(url: str) -> Connection:
    """Raises StorageError."""
    try:
        user = conninfo_to_dict(url).get("user") or "the user"
    except psycopg.ProgrammingError as error:
        text = hide_password(str(error).strip())
        raise StorageError(
            f"This is not a URL of PostgreSQL: {text}. Give one such as "
            "postgresql://user@host:5432/database; write an @ in the password as %40."
        ) from None
    try:
        return connect(url)
    except Trouble as error:
        text = str(error)
    missing = _NO_DATABASE.search(text)
    if missing is not None:
        raise StorageError(
            f'PostgreSQL has no database {missing[1]!r}. Make it, by CREATE DATABASE "{missing[1]}" OWNER '
            f'"{user}"; or name another one in the URL.'
        )
    if _NOT_LET_IN.search(text):
        raise StorageError(
            f"PostgreSQL refuses the user {user}: {text}. Check the user and the password in the URL, and "
            "PostgreSQL's file pg_hba.conf."
        )
    if _READ_ONLY.search(text):
        raise _why_read_only(url, text)
    raise unreachable(text)


def _why_read_only(url: str, text: str) -> StorageError:
    try:
        connection = connect(make_conninfo(url, target_session_attrs="any"))
        try:
            user = connection.info.user
            [(standby,)] = call(connection, "SELECT pg_is_in_recovery()")
        finally:
            close(connection)
    except Trouble as error:
        return refused(error)
    if standby:
        return StorageError(f"This PostgreSQL is a standby and takes no writes: {text}. Name the primary.")
    return read_only_user(user)


def read_only_user(user: str) -> StorageError:
    """The error where PostgreSQL gives this user read-only transactions."""
    return StorageError(
        f"PostgreSQL gives the user {user!r} read-only transactions. Connect as another user, or run: ALTER "
        f'ROLE "{user}" SET default_transaction_read_only TO off; the database or the server may have this '
        "setting as well."
    )
