"""Runs read bodies. Each body sees one moment, which is never older than the request.

Most bodies get records, or the first records of a range of one partition. Such a body first runs over what
the engine knows: the catalog, and recently used records. Then one statement fetches the missing records, and
tells which of the other records have changed, and whether the catalog has. If nothing has changed and nothing
was missing, all reads were of that moment, and the result is valid. Otherwise the body runs again over the
fetched records. If it then needs more, one statement fetches and verifies everything, so that all reads are
of one moment. A body that needs several rounds, or more of a range, reads in a transaction of REPEATABLE READ
on a thread.

Refuses to know: writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn, TypeVar

from hashrange.storage.api import Reader
from hashrange.storage.loops import Done, Outcome
from hashrange_postgres.bodies import Missing, OnlyRecords
from hashrange_postgres.cache import (
    CATALOG_SPACE,
    Cache,
    Catalog,
    CatalogState,
    Key,
    Known,
    Range,
    Records,
)
from hashrange_postgres.direct import DirectReader
from hashrange_postgres.fetching import UNMARKED, Fetched, Fetching, FetchRequest
from hashrange_postgres.wire.connections import Connection, Numbers, Pool, Trouble, call
from hashrange_postgres.wire.statements import Statements

T = TypeVar("T")

ROUNDS_MAX: Final = 3
_UNKNOWN: Final = object()
_NOTHING: Final[dict[Key, Known]] = {}
_NO_RANGES: Final[dict[Range, Records]] = {}
_NO_RECORDS: Final = FetchRequest(())
ROWS_MAX: Final = 128
"""A range of more records than this is read directly."""


class NeedsDirect(BaseException):
    """The body reads more than records."""


class KnownReader(OnlyRecords):
    """A `Reader` of fetched records and ranges, of the catalog, and of the cache: `cached` are the records
    that came from the cache. `used`: whether anything was read."""

    __slots__ = ("_cache", "_fetched", "_ranges", "cached", "state", "used")

    def __init__(
        self,
        fetched: dict[Key, Known],
        ranges: dict[Range, Records],
        state: CatalogState,
        cache: Cache,
    ) -> None:
        self._fetched = fetched
        self._ranges = ranges
        self.state = state
        self._cache = cache
        self.cached: dict[Key, Known] = {}
        self.used = False

    def get(self, space: int, partition: bytes, sort: bytes) -> bytes | None:
        self.used = True
        if space == CATALOG_SPACE:
            value = self.state.records.get((partition, sort), _UNKNOWN)
            if value is _UNKNOWN:
                raise Missing([(space, partition, sort)])
            return value  # type: ignore[return-value]
        if space in self.state.cleared:
            return None
        key = (space, partition, sort)
        known = self._fetched.get(key)
        if known is None:
            known = self.cached.get(key)  # a second read gives the same value
        if known is None:
            known = self._cache.peek(key)
            if known is None:
                raise Missing([key])
            self.cached[key] = known
        return known[0]

    def scan(
        self,
        space: int,
        partition: bytes,
        low: bytes = b"",
        high: bytes | None = None,
        *,
        reverse: bool = False,
        likely: int | None = None,
    ) -> Iterator[tuple[bytes, bytes]]:
        self.used = True
        if space in self.state.cleared or (high is not None and low >= high):
            return iter(())
        if likely is not None and likely >= ROWS_MAX:
            raise NeedsDirect
        # Fetch one record more than is likely, to find out whether the range has more.
        rows = likely + 1 if likely is not None else ROWS_MAX
        # b"\0" appended makes the next partition in byte order, hence the end of this one.
        end = (partition, high) if high is not None else (partition + b"\0", b"")
        wanted = (space, partition, low, *end, reverse, rows)
        records = self._ranges.get(wanted)
        if records is None or records == UNMARKED:
            raise Missing([], [wanted])
        return _walk(records)

    def _more(self) -> NoReturn:
        raise NeedsDirect


def _walk(records_of_range: Records) -> Iterator[tuple[bytes, bytes]]:
    records, whole = records_of_range
    for (_, sort), value in records:
        yield sort, value
    if not whole:
        raise NeedsDirect


class Attempt:
    """The rounds of one read body.

    `run` runs it over the records fetched last. It returns True when `result` or `raised` is the outcome;
    otherwise `wanted` has to be fetched, or `direct` says that the body has to run in `Reads.directly`. A
    body that has ended over known records may get its outcome from `verify` without another run.
    """

    __slots__ = (
        "_cache",
        "_catalog",
        "_known",
        "_missing",
        "_ranges",
        "_rounds",
        "_unverified",
        "body",
        "direct",
        "done",
        "raised",
        "result",
        "wanted",
    )

    def __init__(self, body: Callable[[Reader], Any], done: Done, catalog: Catalog, cache: Cache) -> None:
        self.body = body
        self.done = done
        self._catalog = catalog
        self._cache = cache
        self._rounds = 0
        self._missing: dict[Key, None] = {}
        self._known: dict[Key, Known] = {}
        self._ranges: dict[Range, None] = {}
        self._unverified: KnownReader | None = None  # the body has ended over it
        self.wanted = _NO_RECORDS
        self.direct = False
        self.result: Any = None
        self.raised: Exception | None = None

    def run(self, fetched: Fetched | None) -> bool:
        """Raises a `BaseException` of the body that is not an `Exception`."""
        if fetched is None:
            reader = KnownReader(_NOTHING, _NO_RANGES, self._catalog.state, self._cache)
        else:
            reader = KnownReader(fetched.records, fetched.ranges, fetched.state, self._cache)
        self._rounds += 1
        self.result = self.raised = None
        try:
            self.result = self.body(reader)
        except Exception as error:
            self.raised = error
        except Missing as missing:
            self._missing.update(dict.fromkeys(missing.keys))
            self._ranges.update(dict.fromkeys(missing.ranges))
            self._want(reader, fetched)
            return False
        except NeedsDirect:
            self.direct = True
            return False
        if fetched is None and reader.used:
            self._unverified = reader
            self.wanted = FetchRequest(list(reader.cached), (), reader.cached)
            return False
        if reader.cached:
            self._want(reader, fetched)
            return False
        return True

    def verify(self, fetched: Fetched) -> Outcome | None:
        """The outcome of the body, if it has ended and its records have not changed since."""
        reader, self._unverified = self._unverified, None
        if reader is None or fetched.state is not reader.state:
            return None
        records = fetched.records
        for key, known in reader.cached.items():
            if records[key][1] != known[1]:
                return None
        return self.done, self.result, self.raised

    def _want(self, reader: KnownReader, fetched: Fetched | None) -> None:
        """Request all records that the body has read or misses, so that all are of one moment."""
        self.direct = self._rounds > ROUNDS_MAX
        if fetched is not None:
            self._known.update(fetched.records)
        self._known.update(reader.cached)
        keys = {**self._missing, **dict.fromkeys(self._known)}
        self.wanted = FetchRequest(list(keys), list(self._ranges), self._known)


def _nobody(result: Any, error: Exception | None) -> None:
    """Ignores an outcome that the thread takes itself."""


class Reads:
    """The read bodies of an engine."""

    def __init__(
        self, pool: Pool, statements: Statements, catalog: Catalog, cache: Cache, fetching: Fetching
    ) -> None:
        self._pool = pool
        self._statements = statements
        self._catalog = catalog
        self._cache = cache
        self._fetching = fetching
        self.direct_reads = 0

    def attempt(self, body: Callable[[Reader], Any], done: Done) -> Attempt:
        return Attempt(body, done, self._catalog, self._cache)

    def read(self, body: Callable[[Reader], T]) -> T:
        """Run a body on this thread."""
        attempt = self.attempt(body, _nobody)
        fetched: Fetched | None = None
        while not attempt.run(fetched):
            if attempt.direct:
                return self.directly(body)
            fetched = self._fetching.now(attempt.wanted)
            if attempt.verify(fetched) is not None:
                break
        if attempt.raised is not None:
            raise attempt.raised
        return attempt.result  # type: ignore[no-any-return]

    def directly(self, body: Callable[[Reader], T]) -> T:
        """Run a body in a transaction of one moment, on this thread."""
        self.direct_reads += 1

        def work(connection: Connection) -> T:
            [(spaces, marks)] = call(connection, self._statements.marks)  # before the moment that it reads
            call(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                known = Numbers(spaces), Numbers(marks)
                result = body(DirectReader(connection, self._statements, self._catalog, known))
            except Trouble:
                raise
            except BaseException:
                call(connection, "ROLLBACK")
                raise
            call(connection, "COMMIT")
            return result

        return self._pool.again(work)  # type: ignore[no-any-return]
