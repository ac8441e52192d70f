"""The schema of a store: makes it where it is missing, and refuses what is not one.

`schema.sql` has all tables and functions. A store has a number, FORMAT; a store of an older format is brought
to that of today by MIGRATIONS when it is opened, and a newer one is refused.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any, Final
from zlib import crc32

from hashrange.storage.api import StorageError, UnknownFormat
from hashrange.storage.postgres.connections import Connection, Lost, Refused, call, run_script, unreachable

FORMAT: Final = 1
MIGRATIONS: Final[dict[int, str]] = {}
"""By format: the statements that make the next format of it."""

PROGRAM: Final = "hashrange"
SCHEMA: Final = "hashrange"
"""The name of the schema, if no other one is given."""

_VERSION_MIN: Final = 130_000
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,50}")
_LOCK: Final = 1_212_301_395  # the first key of our advisory locks; the second one is the schema's
_INSUFFICIENT: Final = "SQLSTATE 42501"


def text_of(statements: str, schema: str) -> str:
    """Statements of `schema.sql` or of a migration for a schema of this name."""
    lock = f"{_LOCK}, {_schema_key(schema)}"
    return statements.replace("{schema}", schema).replace("{lock}", lock).replace("{format}", str(FORMAT))


def _schema_key(schema: str) -> int:
    return crc32(schema.encode()) - 2**31


def prepare(connection: Connection, schema: str) -> None:
    """Make the store in this schema, or check the one that is there. Raises StorageError, UnknownFormat."""
    try:
        _check_name(connection, schema)
        _check_server(connection)
        with connection.transaction():
            # Another server may just be making it; where it is there, this needs no right to make one.
            call(connection, "SELECT pg_advisory_xact_lock(%s, %s)", (_LOCK + 1, _schema_key(schema)))
            _make_or_check(connection, schema)
            _check_on_one_node(connection, schema)
    except Lost as error:
        raise unreachable(str(error)) from None
    except Refused as error:
        text = str(error)
        if _INSUFFICIENT in text:
            raise StorageError(
                f"The PostgreSQL user {connection.info.user!r} may not use the schema {schema}: {text}. As "
                f"its owner or a superuser, run: CREATE SCHEMA {schema} AUTHORIZATION "
                f'"{connection.info.user}";'
            ) from None
        raise StorageError(f"PostgreSQL refused to make or read the store: {text}") from None


def _check_name(connection: Connection, schema: str) -> None:
    reserved = "SELECT 1 FROM pg_get_keywords() WHERE word = %s AND catcode IN ('R', 'T')"
    if _NAME.fullmatch(schema) is None or call(connection, reserved, (schema,)):
        raise StorageError(
            f"{schema!r} cannot be the name of the schema; take small letters, digits and _, as my_tables, "
            "and no word of SQL."
        )


def _check_server(connection: Connection) -> None:
    version = connection.info.server_version
    if version < _VERSION_MIN:
        raise StorageError(
            f"PostgreSQL {version // 10_000} is too old; Hashrange needs {_VERSION_MIN // 10_000} or newer."
        )
    [(standby, read_only, isolation)] = call(
        connection,
        "SELECT pg_is_in_recovery(), current_setting('transaction_read_only')::text, "
        "current_setting('default_transaction_isolation')::text",
    )
    where = f"PostgreSQL at {connection.info.host or 'the socket'}, port {connection.info.port},"
    if standby:
        raise StorageError(f"{where} is a standby and takes no writes; connect to the primary.")
    if read_only == "on":
        raise StorageError(
            f"{where} gives this user read-only transactions; set default_transaction_read_only to off."
        )
    if isolation != "read committed":
        raise StorageError(
            f"{where} gives this user {isolation} transactions by default; run: ALTER ROLE "
            f"\"{connection.info.user}\" SET default_transaction_isolation TO 'read committed'; Hashrange "
            "sees to isolation by itself."
        )


def _make_or_check(connection: Connection, schema: str) -> None:
    [(exists,)] = call(connection, "SELECT to_regnamespace(%s) IS NOT NULL", (schema,))
    if not exists:
        call(connection, f"CREATE SCHEMA {schema}")
    if not exists or _is_empty(connection, schema):
        run_script(connection, text_of(files(__package__).joinpath("schema.sql").read_text(), schema))
        return
    found = _format_of(connection, schema)
    if found is None:
        raise UnknownFormat(
            f"The schema {schema} of this database holds something else than a Hashrange store; choose "
            "another name with --postgres-schema."
        )
    if found > FORMAT:
        raise UnknownFormat(
            f"The schema {schema} is of format {found}, of a newer Hashrange; this one knows format "
            f"{FORMAT}. Use that newer version."
        )
    while found < FORMAT:
        run_script(connection, text_of(MIGRATIONS[found], schema))
        found += 1
        call(connection, f"UPDATE {schema}.store SET format = %s", (found,))


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


def _is_empty(connection: Connection, schema: str) -> bool:
    rows: list[Any] = call(
        connection,
        "SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace(%s) LIMIT 1",
        (schema,),
    )
    return not rows


def _format_of(connection: Connection, schema: str) -> int | None:
    """The format of the store in the schema; None if it holds none."""
    columns = call(
        connection,
        "SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0",
        (f"{schema}.store",),
    )
    if not {("program",), ("format",)} <= set(columns):
        return None
    rows = call(connection, f"SELECT program, format FROM {schema}.store")
    if len(rows) != 1 or rows[0][0] != PROGRAM:
        return None
    return int(rows[0][1])
