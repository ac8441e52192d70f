"""The schema of a store: creates a missing one, and refuses a schema that is not a store's.

`schema.sql` has all tables and then all functions. A store has a number, FORMAT. A store of an older format
is converted to the current format when it is opened: MIGRATIONS change its tables, and it gets the current
functions. A newer format is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from secrets import randbits
from typing import Any, Final
from zlib import crc32

from hashrange.storage import features
from hashrange.storage.failures import StorageError, UnfinishedCopy, UnknownFormat
from hashrange_postgres.wire import probe
from hashrange_postgres.wire.connections import (
    Connection,
    Lost,
    Refused,
    call,
    refused,
    run_script,
    unreachable,
)
from hashrange_postgres.wire.opening import read_only_user

FORMAT = 9
MIGRATIONS: Final[dict[int, str]] = {
    1: "ALTER TABLE {schema}.records SET (fillfactor = 85);",
    2: "",
    3: "",
    4: "",
    5: """
        ALTER TABLE {schema}.log_stamp RENAME TO stamps_of_logs;
        CREATE SEQUENCE {schema}.log_number MINVALUE 0;
        CREATE SEQUENCE {schema}.log_stamp MINVALUE -9223372036854775808;
        CREATE SEQUENCE {schema}.body_stamp MINVALUE -9223372036854775808;
        SELECT setval('{schema}.log_number', (SELECT coalesce(max(last), 0) FROM {schema}.log)),
            setval('{schema}.log_stamp', -9223372036854775808),
            setval('{schema}.body_stamp', (SELECT (stamp - 9223372036854775808)::bigint FROM {schema}.clock));
        DROP TABLE {schema}.stamps_of_logs, {schema}.clock;
    """,
    6: "",
    7: """
        ALTER TABLE {schema}.server ALTER id DROP IDENTITY;
        ALTER TABLE {schema}.server ALTER epoch DROP DEFAULT;
        ALTER TABLE {schema}.store ADD needs bytea NOT NULL DEFAULT '';
    """,
    8: "",
}
"""By format: the statements that convert its tables to the next format. The functions are always replaced; a
format that differs only by a function keeps servers of older versions off the store."""

_FUNCTIONS: Final = "-- Functions.\n"
"""The line of `schema.sql` after which the functions follow."""
_DROP_FUNCTIONS: Final = """
DO $$
DECLARE
    one regprocedure;
BEGIN
    FOR one IN SELECT oid FROM pg_proc WHERE pronamespace = '{schema}'::regnamespace LOOP
        EXECUTE 'DROP FUNCTION ' || one::text;
    END LOOP;
END
$$;
"""

PROGRAM: Final = "hashrange"
COPYING: Final = "hashrange copy"
"""Replaces PROGRAM while the store is an unfinished copy."""

SCHEMA: Final = "hashrange"
"""The name of the schema, if no other one is given."""

_FORMAT_OF_NEEDS: Final = 8
_VERSION_MIN: Final = 150_000
"""The first version that has MERGE."""
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,50}")
_LOCK: Final = 1_212_301_395  # the first key of our advisory locks; the second one is the schema's
_INSUFFICIENT: Final = "SQLSTATE 42501"
_IS_MADE: Final = "SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = 'store'"


def text_of(statements: str, schema: str) -> str:
    """Statements of `schema.sql` or of a migration for a schema of this name."""
    key = _schema_key(schema)
    words = {
        "schema": schema,
        "format": FORMAT,
        "padded_format": f"{FORMAT:8}",
        "lock": f"{_LOCK}, {key}",
        "drawing": f"{_LOCK + 2}, {key}",
        "stamping": f"{_LOCK + 3}, {key}",
        "salt": crc32(schema.encode()),
    }
    for word, value in words.items():
        statements = statements.replace(f"{{{word}}}", str(value))
    return statements


def _schema_key(schema: str) -> int:
    return crc32(schema.encode()) - 2**31


def prepare(connection: Connection, schema: str) -> None:
    """Create the store in this schema, or check the existing one. Raises StorageError, UnknownFormat,
    UnfinishedCopy."""
    _prepare(connection, schema, _make_or_check)


def prepare_copy(connection: Connection, schema: str) -> None:
    """Create a store that no engine opens in this schema, or reuse an unfinished copy. Raises StorageError,
    UnknownFormat."""
    _prepare(connection, schema, _make_copy)


def check_readable(connection: Connection, schema: str) -> None:
    """Check that this schema holds a store of the current format. Changes nothing. Raises StorageError,
    UnknownFormat, UnfinishedCopy."""
    try:
        _check_name(connection, schema)
        _check_version(connection)
        stored = _format_of(connection, schema)
        if stored is None:
            raise UnknownFormat(f"The schema {schema} of this database holds no Hashrange store.")
        _check_format(connection, schema, *stored)
    except (Lost, Refused) as error:
        raise refused(error) from None
    if stored[1] < FORMAT:
        raise StorageError(
            f"The schema {schema} is of format {stored[1]}, of an older Hashrange. Start a server of this "
            "version on the schema: the server upgrades it."
        )


def _prepare(connection: Connection, schema: str, work: Callable[[Connection, str], None]) -> None:
    try:
        _check_name(connection, schema)
        _check_server(connection)
        if not call(connection, _IS_MADE, (schema,)):
            probe.check(connection)
        with connection.transaction():
            # Another server may be creating it right now; an existing schema needs no right to create one.
            call(connection, "SELECT pg_advisory_xact_lock(%s, %s)", (_LOCK + 1, _schema_key(schema)))
            work(connection, schema)
            _check_on_one_node(connection, schema)
    except Lost as error:
        raise unreachable(str(error)) from None
    except Refused as error:
        text = str(error)
        if _INSUFFICIENT in text:
            raise _missing_rights(connection, schema, text) from None
        raise StorageError(f"PostgreSQL refused to create or read the store: {text}") from None


def _missing_rights(connection: Connection, schema: str, text: str) -> StorageError:
    user = connection.info.user
    owners = call(
        connection, "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = %s", (schema,)
    )
    if not owners:
        return StorageError(
            f"The PostgreSQL user {user!r} may not create the schema {schema}: {text}. As the owner of the "
            f'database or a superuser, run: CREATE SCHEMA {schema} AUTHORIZATION "{user}";'
        )
    [(owner,)] = owners
    return StorageError(
        f"The PostgreSQL user {user!r} may not use the schema {schema}, which belongs to {owner}: {text}. "
        f'Connect as {owner}; or, as a superuser, run: GRANT {owner} TO "{user}";'
    )


def _check_name(connection: Connection, schema: str) -> None:
    reserved = "SELECT 1 FROM pg_get_keywords() WHERE word = %s AND catcode IN ('R', 'T')"
    if _NAME.fullmatch(schema) is None or call(connection, reserved, (schema,)):
        raise StorageError(
            f"{schema!r} cannot be the name of the schema; take small letters, digits and _, as my_tables, "
            "and no word of SQL."
        )


def _check_version(connection: Connection) -> None:
    version = connection.info.server_version
    if version < _VERSION_MIN:
        raise StorageError(
            f"PostgreSQL {version // 10_000} is too old; Hashrange needs {_VERSION_MIN // 10_000} or newer."
        )


def _check_server(connection: Connection) -> None:
    _check_version(connection)
    [(standby, read_only, isolation)] = call(
        connection,
        "SELECT pg_is_in_recovery(), current_setting('transaction_read_only')::text, "
        "current_setting('default_transaction_isolation')::text",
    )
    where = f"PostgreSQL at {connection.info.host or 'the socket'}, port {connection.info.port},"
    if standby:
        raise StorageError(f"{where} is a standby and takes no writes; connect to the primary.")
    if read_only == "on":
        raise read_only_user(connection.info.user)
    if isolation != "read committed":
        raise StorageError(
            f"{where} gives this user {isolation} transactions by default; run: ALTER ROLE "
            f"\"{connection.info.user}\" SET default_transaction_isolation TO 'read committed'; Hashrange "
            "ensures isolation by itself."
        )


def _make_or_check(connection: Connection, schema: str) -> None:
    if _make(connection, schema):
        return
    stored = _format_of(connection, schema)
    if stored is None:
        raise UnknownFormat(
            f"The schema {schema} of this database has other contents than a Hashrange store; choose "
            "another name with --postgres-schema."
        )
    _check_format(connection, schema, *stored)
    version = stored[1]
    if version < FORMAT:
        run_script(connection, text_of(_DROP_FUNCTIONS, schema))
    while version < FORMAT:
        run_script(connection, text_of(MIGRATIONS[version], schema))
        version += 1
        # Servers that run with older functions see the new version of the catalog, and learn why.
        upgrade = f"UPDATE {schema}.store SET format = %s, catalog = %s"
        call(connection, upgrade, (version, randbits(63)))
        if version == FORMAT:
            run_script(connection, text_of(_script().partition(_FUNCTIONS)[2], schema))


def _make(connection: Connection, schema: str) -> bool:
    """Create the store if the schema is missing or empty. Returns whether it did."""
    [(exists,)] = call(connection, "SELECT to_regnamespace(%s) IS NOT NULL", (schema,))
    if not exists:
        call(connection, f"CREATE SCHEMA {schema}")
    elif not _is_empty(connection, schema):
        return False
    run_script(connection, text_of(_script(), schema))
    return True


def _make_copy(connection: Connection, schema: str) -> None:
    if _make(connection, schema):
        call(connection, f"UPDATE {schema}.store SET program = %s", (COPYING,))
        return
    stored = _format_of(connection, schema)
    if stored != (COPYING, FORMAT):
        holds = "something else" if stored is None else "a store" if stored[0] == PROGRAM else "an older copy"
        raise StorageError(
            f"The schema {schema} of this database holds {holds} already. Choose another name with "
            f"--to-schema, or give it up: DROP SCHEMA {schema} CASCADE;"
        )


def _check_format(connection: Connection, schema: str, program: str, version: int) -> None:
    """Refuse a copy that is not finished, a newer format, and a store that needs unknown features."""
    if program == COPYING:
        raise UnfinishedCopy(
            f"The schema {schema} holds an unfinished copy. Run `hashrange copy` again with "
            f"the same two stores: the copy starts again. Or remove it: DROP SCHEMA {schema} CASCADE;"
        )
    if version > FORMAT:
        raise UnknownFormat(
            f"The schema {schema} is of format {version}, of a newer Hashrange; this one knows format "
            f"{FORMAT}. Use that newer version."
        )
    if version >= _FORMAT_OF_NEEDS:
        [(needs,)] = call(connection, f"SELECT needs FROM {schema}.store")
        features.check(f"The schema {schema}", needs.split())


def _check_on_one_node(connection: Connection, schema: str) -> None:
    """Raises StorageError if Citus has spread tables of the store over nodes.

    A commit locks rows of many partitions in the order of their addresses, and a read is of one moment.
    Citus locks no rows of several shards in one statement, and has no snapshot across shards.
    """
    [(is_citus,)] = call(connection, "SELECT to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL")
    if not is_citus:
        return
    tables = call(
        connection,
        "SELECT c.relname::text FROM pg_catalog.pg_dist_partition d "
        "JOIN pg_class c ON c.oid = d.logicalrelid WHERE c.relnamespace = to_regnamespace(%s) ORDER BY 1",
        (schema,),
    )
    if tables:
        undone = " ".join(f"SELECT undistribute_table('{schema}.{table}');" for (table,) in tables)
        raise StorageError(
            f"Citus has spread tables of the schema {schema} over its nodes. Hashrange needs all of them on "
            "one node, because Citus has neither locks nor snapshots that reach across shards. If the store "
            f"was made before, run: {undone} If Citus distributes each new schema, set "
            "citus.enable_schema_based_sharding to off for this user."
        )


def _script() -> str:
    return files(__package__).joinpath("schema.sql").read_text()


def _is_empty(connection: Connection, schema: str) -> bool:
    rows: list[Any] = call(
        connection,
        "SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace(%s) LIMIT 1",
        (schema,),
    )
    return not rows


def _format_of(connection: Connection, schema: str) -> tuple[str, int] | None:
    """PROGRAM or COPYING, and the format of the store in the schema; None if it holds none."""
    columns = call(
        connection,
        "SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0",
        (f"{schema}.store",),
    )
    if not {("program",), ("format",)} <= set(columns):
        return None
    rows = call(connection, f"SELECT program, format FROM {schema}.store")
    if len(rows) != 1 or rows[0][0] not in (PROGRAM, COPYING):
        return None
    return rows[0][0], int(rows[0][1])
