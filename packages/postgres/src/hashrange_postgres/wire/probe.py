"""Whether a server that speaks PostgreSQL's protocol has what this engine needs: each need is tried, so that
the answer does not depend on the names and versions of products.

A need is met if its last statement gives the expected row. A function that does nothing, as some servers have
in the place of locks, does not. Each need has a transaction of its own, which is rolled back.

Refuses to know: the schema of a store.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from hashrange.storage.failures import StorageError
from hashrange_postgres.wire.connections import Connection, Refused, Retry, call

_INSUFFICIENT: Final = "SQLSTATE 42501"
_BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"
_KEYS: Final = "1212301395, 77"


class _Need(NamedTuple):
    """What it is, how to try it, and the only row of the last statement; None if any answer will do."""

    name: str
    statements: tuple[str, ...]
    row: tuple[Any, ...] | None = None


_TABLE: Final = "CREATE TEMPORARY TABLE probed (k bytea PRIMARY KEY, v bigint) ON COMMIT DROP"
_HELD: Final = (
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 1212301395 AND objid = 77 "
    "AND granted AND pid = pg_backend_pid() AND mode = "
)
NEEDS: Final = (
    _Need(
        "transactions of READ COMMITTED",
        ("SELECT current_setting('transaction_isolation')::text",),
        ("read committed",),
    ),
    _Need(
        "PL/pgSQL with blocks that catch errors",
        (
            "DO $$ BEGIN RAISE EXCEPTION '' USING ERRCODE = 'HR007'; "
            "EXCEPTION WHEN SQLSTATE 'HR007' THEN END $$",
        ),
    ),
    _Need(
        "advisory locks that pg_locks shows",
        (f"SELECT pg_advisory_xact_lock({_KEYS})", f"{_HELD}'ExclusiveLock'"),
        (1,),
    ),
    _Need(
        "advisory locks that are shared",
        (f"SELECT pg_advisory_xact_lock_shared({_KEYS})", f"{_HELD}'ShareLock'"),
        (1,),
    ),
    _Need(
        "advisory locks that the end of a block releases",
        (
            f"DO $$ BEGIN PERFORM pg_advisory_xact_lock({_KEYS}); RAISE EXCEPTION ''; "
            "EXCEPTION WHEN OTHERS THEN END $$",
            f"{_HELD}'ExclusiveLock'",
        ),
        (0,),
    ),
    _Need(
        "sequences that keep their value when a block is undone",
        (
            "CREATE TEMPORARY SEQUENCE probed_numbers",
            "DO $$ BEGIN PERFORM setval('probed_numbers', 5); RAISE EXCEPTION ''; "
            "EXCEPTION WHEN OTHERS THEN END $$",
            "SELECT pg_sequence_last_value('probed_numbers')::bigint",
        ),
        (5,),
    ),
    _Need(
        "limits of waiting for locks and of silence in a transaction",
        (
            "SELECT set_config('lock_timeout', '100', true)",
            "SELECT set_config('idle_in_transaction_session_timeout', '5000', true)",
        ),
    ),
    _Need(
        "row locks (SELECT ... FOR UPDATE OF) over arrays",
        (
            _TABLE,
            "SELECT p.v FROM unnest(ARRAY['\\x01'::bytea], ARRAY[1]) WITH ORDINALITY AS a(k, v, n) "
            "JOIN probed p ON p.k = a.k ORDER BY p.k FOR UPDATE OF p",
        ),
    ),
    _Need(
        "INSERT ... ON CONFLICT",
        (
            _TABLE,
            "INSERT INTO probed VALUES ('\\x01', 1)",
            "INSERT INTO probed VALUES ('\\x01', 2) ON CONFLICT DO NOTHING",
            "SELECT v FROM probed",
        ),
        (1,),
    ),
    _Need(
        "MERGE, which PostgreSQL has since version 15",
        (
            _TABLE,
            "INSERT INTO probed VALUES ('\\x01', 1), ('\\x02', 1)",
            "MERGE INTO probed p USING (SELECT '\\x01'::bytea AS k) a ON p.k = a.k "
            "WHEN MATCHED AND p.v = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 3",
            "SELECT count(*) FROM probed",
        ),
        (1,),
    ),
)


def check(connection: Connection) -> None:
    """Raises StorageError with the names of all needs that are not met; Lost."""
    missing: list[str] = []
    for need in NEEDS:
        try:
            rows: list[tuple[Any, ...]] = []
            for statement in (_BEGIN, *need.statements):
                rows = call(connection, statement)
            if need.row is not None and rows != [need.row]:
                missing.append(need.name)
        except (Refused, Retry) as error:
            if _INSUFFICIENT not in str(error):  # this user may make no temporary table: nothing is known
                missing.append(f"{need.name} ({error})")
        call(connection, "ROLLBACK")
    if missing:
        info = connection.info
        raise StorageError(
            f"The server at {info.host or 'the socket'}, port {info.port}, speaks PostgreSQL's protocol, but "
            f"lacks what Hashrange needs: {'; '.join(missing)}. Use PostgreSQL 15 or newer, or a service "
            "that runs it."
        )
