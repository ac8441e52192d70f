"""Connections to PostgreSQL, and the conversion of the driver's values and errors."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock, Semaphore
from time import monotonic
from typing import Any, Final, TypeVar

import psycopg
from psycopg import capabilities, pq
from psycopg.abc import Buffer, PQGen
from psycopg.adapt import Dumper
from psycopg.conninfo import conninfo_to_dict

from hashrange.storage.failures import StorageError, StoreClosed, StoreOutgrown
from hashrange_postgres.wire.arrays import pack_bytes, pack_numbers

R = TypeVar("R")

# Defaults, which the connection string may override: a machine that has silently gone is noticed in half a
# minute.
_PARAMETERS: Final[dict[str, Any]] = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,  # milliseconds
    # Of several hosts, the primary. A standby is refused even as the only one: its records are out of date.
    "target_session_attrs": "read-write",
}
# In a database without an encoding (SQL_ASCII), the driver would return bytes as texts.
_ENCODING: Final[dict[str, Any]] = {"client_encoding": "UTF8"}
_FULL: Final = re.compile(
    r"too many clients|too many connections|remaining connection slots|no more connections allowed"
)
_CONNECT_SECONDS_MIN: Final = 2
_CANCEL_SECONDS_MAX: Final = 2.0
_BOOLEAN, _BYTEA, _BYTEA_ARRAY, _BIGINT_ARRAY = 16, 17, 1001, 1016
_UNKNOWN: Final = 0

# SQLSTATEs. Those that begin with HR are of `schema.sql`.
FENCED: Final = "HR002"
EXCLUSIVE: Final = "HR005"
BUSY: Final = "HR006"
# `commit_group` was told another format; or a function has other parameters now.
_OUTGROWN: Final = frozenset({"HR008", "42883"})
# Serialization, deadlock, lock timeout; and that a record that was read has changed meanwhile.
_RETRIED: Final = frozenset({"40001", "40P01", "55P03", "HR004"})
_READ_ONLY: Final = "25006"
_READ_ONLY_TEXT: Final = (
    "; this PostgreSQL is a standby, or gives this user read-only transactions: connect to the primary, or "
    "set default_transaction_read_only to off"
)
# The server ended the connection, or the connection was lost: the outcome of a commit is not known. 26000
# says that the connection is a different one: its prepared statements are gone.
_ENDS: Final = frozenset(
    {
        *("25P03", "26000"),
        *("57P01", "57P02", "57P03", "57P05"),
        *("08000", "08003", "08006", "08007", "08P01"),
    }
)


class Bytes(list[bytes | None]):
    """A `bytea[]`."""


class Numbers(list[int]):
    """A `bigint[]`."""


class _BytesDumper(Dumper):
    format = pq.Format.BINARY
    oid = _BYTEA_ARRAY

    def dump(self, obj: Bytes) -> Buffer:
        return pack_bytes(obj)


class _NumbersDumper(Dumper):
    format = pq.Format.BINARY
    oid = _BIGINT_ARRAY

    def dump(self, obj: Numbers) -> Buffer:
        return pack_numbers(obj)


def encode(value: Any) -> tuple[bytes | None, int, pq.Format]:
    """A value of a statement that is sent without psycopg's cursors: its bytes, type and format."""
    if isinstance(value, Bytes):
        return pack_bytes(value), _BYTEA_ARRAY, pq.Format.BINARY
    if isinstance(value, Numbers):
        return pack_numbers(value), _BIGINT_ARRAY, pq.Format.BINARY
    if isinstance(value, bytes):
        return value, _BYTEA, pq.Format.BINARY
    if isinstance(value, bool):
        return (b"t" if value else b"f"), _BOOLEAN, pq.Format.TEXT
    # PostgreSQL takes the type of a number from the function that is called.
    return (None if value is None else b"%d" % value), _UNKNOWN, pq.Format.TEXT


class Trouble(BaseException):
    """PostgreSQL did not do what was asked. Not an `Exception`, because bodies must not catch it."""


class Lost(Trouble):
    """The connection is lost; whether its last statement was executed is not known."""


class TimedOut(Lost):
    """PostgreSQL took too long to answer. The statement was cancelled, as far as that was possible."""


class Retry(Trouble):
    """PostgreSQL undid the transaction, and asks to try it again."""


class Fenced(Retry):
    """The row of this engine is gone. The connection has to be closed; a new connection makes a new row."""


class NeedsExclusive(Retry):
    """The group has to be sent again with the exclusive lock."""


class StoreBusy(Retry):
    """Other commits hold the lock of the store."""


class Refused(Trouble):
    """PostgreSQL undid the transaction. The text says why."""


class Outgrown(Refused):
    """A newer program has upgraded the store."""


OTHER_FORMAT: Final = "has another format"


class TimeIsUp(psycopg.OperationalError):
    """PostgreSQL has taken too long to answer."""


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that waits `seconds_max` for the answer to a statement. Then it cancels the statement,
    which otherwise could hold its locks for as long as it waits, and ends."""

    seconds_max: float = math.inf

    def wait(self, gen: PQGen[R], interval: float = 0.1, timeout: float | None = None) -> R:
        """Called by the driver for each statement."""
        if self.seconds_max == math.inf:
            return super().wait(gen, interval)
        try:
            return super().wait(_limited(gen, self.seconds_max), interval)
        except TimeIsUp:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Cancel the statement, and close the connection. Nothing follows from the answer that may still
        come: a commit that is cancelled while it waits for a standby says that it has succeeded."""
        if capabilities.has_cancel_safe():  # any other way to cancel could wait forever
            with suppress(psycopg.Error, OSError):
                self.cancel_safe(timeout=_CANCEL_SECONDS_MAX)
        close(self)


def _limited(gen: PQGen[R], seconds_max: float) -> PQGen[R]:
    """What the driver does for a statement. Raises `TimeIsUp` once that has taken too long."""
    until = monotonic() + seconds_max
    try:
        ready = yield next(gen)
        while monotonic() < until:
            ready = yield gen.send(ready)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise TimeIsUp(f"PostgreSQL has not answered for {seconds_max:g} seconds")


def connect(
    url: str, *, name: str = "hashrange", seconds_max: float = math.inf, connect_seconds: float = math.inf
) -> Connection:
    """A new connection, in autocommit mode, that waits `seconds_max` for each answer. To connect to a host
    takes at most `connect_seconds`, but at least the driver's two. Raises `Lost`."""
    try:
        given = {**_PARAMETERS, "application_name": name, **conninfo_to_dict(url), **_ENCODING}
        if connect_seconds < int(given["connect_timeout"]):
            given["connect_timeout"] = max(math.ceil(connect_seconds), _CONNECT_SECONDS_MIN)
        connection = Connection.connect(
            autocommit=True,
            prepare_threshold=None,  # PgBouncer may give each transaction another connection of its own
            **given,
        )
    except psycopg.Error as error:
        text = hide_password(_text(error))
        raise Lost(text + _READ_ONLY_TEXT if "session is read-only" in text else text) from None
    except Exception as error:  # OSError, where the process has no descriptor left
        raise Lost(hide_password(repr(error))) from error
    for array, dumper in ((Bytes, _BytesDumper), (Numbers, _NumbersDumper)):
        connection.adapters.register_dumper(array, dumper)
    connection.seconds_max = seconds_max
    return connection


def is_direct(connection: Connection) -> bool:
    """Whether this connects to PostgreSQL itself and not to a pooler, which may give each transaction a
    different server connection. Raises `Lost`, `Retry`, `Refused`.

    A pooler says at the start that the process has some number, for requests to cancel statements.
    """
    [(process,)] = call(connection, "SELECT pg_backend_pid()")
    return bool(process == connection.info.backend_pid)


def place_of(connection: Connection, schema: str) -> str:
    """The location of the store, without any password."""
    info = connection.info
    host = info.host if not info.host.startswith("/") else f"[{info.host}]"
    return f"postgresql://{info.user}@{host}:{info.port}/{info.dbname} (schema {schema})"


def _text(error: psycopg.Error) -> str:
    """The error in one line, with its SQLSTATE."""
    text = re.sub(r"\s+", " ", error.diag.message_primary or str(error)).strip()
    return f"{text} (SQLSTATE {error.sqlstate})" if error.sqlstate else text


def hide_password(text: str) -> str:
    """The text without the password of a connection string that it may quote."""
    text = re.sub(r":[^:@\s]*@", ":***@", text)
    return re.sub(r"(password\s*=\s*)('(?:[^'\\]|\\.)*'|\S+)", r"\1***", text, flags=re.IGNORECASE)


@contextmanager
def translated(connection: Connection) -> Iterator[None]:
    """Raise `Lost`, `Retry` (as one of its kinds) or `Refused` for what the driver raises.

    Whatever it does not foresee itself is `Lost`: what was sent may come to pass, and no other statement is
    to follow on this connection.
    """
    try:
        yield
    except psycopg.Error as error:
        trouble = trouble_of(error, connection)
        if isinstance(trouble, Fenced):
            close(connection)
        raise trouble from None
    except Exception as error:
        raise Lost(repr(error)) from error


def trouble_of(error: psycopg.Error, connection: Connection) -> Trouble:
    """What an error of the driver means."""
    state = error.sqlstate
    text = _text(error)
    if isinstance(error, TimeIsUp):
        return TimedOut(text)
    # Without a SQLSTATE the error is the driver's, not PostgreSQL's: the statement may still be executed.
    if state is None or state in _ENDS or connection.closed or connection.broken:
        return Lost(text)
    if state == FENCED:
        return Fenced(text)
    if state == EXCLUSIVE:
        return NeedsExclusive(text)
    if state == BUSY:
        return StoreBusy(text)
    if state in _OUTGROWN:
        return Outgrown(text)
    if state in _RETRIED:
        return Retry(text)
    if state == _READ_ONLY:
        return Lost(text + _READ_ONLY_TEXT)
    return Refused(text)


def call(connection: Connection, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """The rows of a statement. Raises `Lost`, `Retry`, `Refused`."""
    with translated(connection):
        cursor = connection.cursor(binary=True)
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description is not None else []


def call_all(
    connection: Connection, statements: Sequence[tuple[str, Sequence[Any]]]
) -> list[list[tuple[Any, ...]]]:
    """The rows of several statements, in one round trip. Raises `Lost`, `Retry`, `Refused`."""
    with translated(connection):
        cursors = [connection.cursor(binary=True) for _ in statements]
        with connection.pipeline():
            for cursor, (statement, values) in zip(cursors, statements, strict=True):
                cursor.execute(statement, values)
        return [cursor.fetchall() if cursor.description is not None else [] for cursor in cursors]


def run_script(connection: Connection, statements: str) -> None:
    """Run several statements at once. Raises `Lost`, `Retry`, `Refused`."""
    with translated(connection):
        connection.execute(statements)


class Pool:
    """Connections for reads, made when they are needed, at most `connections_max` at a time, which wait
    `seconds_max` for each answer."""

    def __init__(self, url: str, connections_max: int, seconds_max: float) -> None:
        self._url = url
        self._seconds_max = seconds_max
        self._left = Semaphore(connections_max)
        self._lock = Lock()
        self._idle: list[Connection] = []
        self._closed = False

    def separate(self) -> Connection:
        """A connection that the pool does not manage. Raises `Lost`."""
        return connect(self._url, seconds_max=self._seconds_max)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection; waits for one. Raises `Lost`, StoreClosed."""
        with self._left:
            with self._lock:
                if self._closed:
                    raise StoreClosed
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                connection = self.separate()
            sound = False
            try:
                yield connection
                sound = not connection.closed and not connection.broken
            except Lost:
                raise
            except BaseException:
                sound = not connection.closed and not connection.broken
                raise
            finally:
                self._give_back(connection, sound)

    def _give_back(self, connection: Connection, sound: bool) -> None:
        if sound and connection.info.transaction_status != pq.TransactionStatus.IDLE:
            sound = False
        with self._lock:
            if sound and not self._closed:
                self._idle.append(connection)
                return
            if not sound:
                # The other connections are probably lost too: a restarted server has cut all of them.
                idle, self._idle = self._idle, []
            else:
                idle = []
        for lost in (connection, *idle):
            close(lost)

    def again(self, work: Callable[[Connection], Any]) -> Any:
        """Do `work`, which changes nothing, on a connection; once more if the connection was lost.

        Raises StorageError.
        """
        for last in (False, True):
            try:
                with self.connection() as connection:
                    return work(connection)
            except Lost as error:
                if last:
                    raise unreachable(str(error)) from None
            except Outgrown:
                raise StoreOutgrown(OTHER_FORMAT) from None
            except (Retry, Refused) as error:
                raise StorageError(f"PostgreSQL refused a read: {error}") from None
        raise AssertionError("not reached")

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            close(connection)


def close(connection: Connection) -> None:
    """Close a connection that may be broken."""
    with suppress(psycopg.Error, OSError):
        connection.close()


def refused(error: Trouble) -> StorageError:
    """Our error for a reader or a copy that PostgreSQL stopped."""
    if isinstance(error, Lost):
        return unreachable(str(error))
    return StorageError(f"PostgreSQL refused a statement: {error}")


def unreachable(cause: str) -> StorageError:
    if _FULL.search(cause):
        return StorageError(
            f"PostgreSQL accepts no more connections: {cause}. Each server needs up to nine. Raise "
            "max_connections of PostgreSQL, or the CONNECTION LIMIT of the role or the database; or put "
            "PgBouncer in between."
        )
    return StorageError(
        f"PostgreSQL does not answer: {cause}. Check that it runs and takes connections; requests work again "
        "as soon as it does."
    )
