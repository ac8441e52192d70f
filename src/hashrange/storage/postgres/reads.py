"""Runs read bodies. Each of them sees one moment, and nothing that was out of date when it was asked for.

Most bodies get records, or the first records of a range of one partition. Such a body runs first over the
catalog that the engine knows, to find out what it needs; then all that it needs is fetched in one statement,
which also tells the version of the catalog, and it runs again over that. If it then needs more, all of it is
fetched anew, so that all is of one moment. A body that needs several rounds, or more of a range, reads in a
transaction of REPEATABLE READ on a thread.

Refuses to know: writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn, TypeVar

from hashrange.storage.api import Reader
from hashrange.storage.postgres.bodies import Missing, OnlyRecords
from hashrange.storage.postgres.cache import CATALOG_SPACE, Catalog, CatalogState, Key, Known, Range, Records
from hashrange.storage.postgres.connections import Connection, Pool, Trouble, call
from hashrange.storage.postgres.direct import DirectReader, Statements
from hashrange.storage.postgres.fetching import Fetched, Fetching, Wanted

T = TypeVar("T")

ROUNDS_MAX: Final = 3
_UNKNOWN: Final = object()
_NOTHING: Final[dict[Key, Known]] = {}
_NO_RANGES: Final[dict[Range, Records]] = {}
ROWS_MAX: Final = 128
"""A range of more records than this is read directly."""


class NeedsDirect(BaseException):
    """The body reads more than records."""


class KnownReader(OnlyRecords):
    """A `Reader` of records and ranges that were fetched, and of the catalog. `used`: whether it was asked at
    all."""

    __slots__ = ("_known", "_ranges", "state", "used")

    def __init__(self, known: dict[Key, Known], ranges: dict[Range, Records], state: CatalogState) -> None:
        self._known = known
        self._ranges = ranges
        self.state = state
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
        known = self._known.get((space, partition, sort))
        if known is None:
            raise Missing([(space, partition, sort)])
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
        # One more than is likely, to find out whether there is one.
        rows = likely + 1 if likely is not None else ROWS_MAX
        # b"\0" appended makes the next partition in byte order, hence the end of this one.
        end = (partition, high) if high is not None else (partition + b"\0", b"")
        wanted = (space, partition, low, *end, reverse, rows)
        found = self._ranges.get(wanted)
        if found is None:
            raise Missing([], [wanted])
        return _walk(found)

    def _more(self) -> NoReturn:
        raise NeedsDirect


def _walk(found: Records) -> Iterator[tuple[bytes, bytes]]:
    records, whole = found
    for (_, sort), value in records:
        yield sort, value
    if not whole:
        raise NeedsDirect


class Attempt:
    """The rounds of one read body.

    `run` runs it over what was fetched last. It returns True when `result` or `raised` is the outcome;
    else `wanted` is to be fetched, or `direct` says that the body has to run by `Reads.directly`.
    """

    __slots__ = ("_catalog", "_keys", "_ranges", "_rounds", "body", "direct", "raised", "result", "wanted")

    def __init__(self, body: Callable[[Reader], Any], catalog: Catalog) -> None:
        self.body = body
        self._catalog = catalog
        self._rounds = 0
        self._keys: dict[Key, None] = {}
        self._ranges: dict[Range, None] = {}
        self.wanted = Wanted(())
        self.direct = False
        self.result: Any = None
        self.raised: Exception | None = None

    def run(self, fetched: Fetched | None) -> bool:
        """Raises what the body raises that is no `Exception`."""
        state = fetched.state if fetched is not None else self._catalog.state
        reader = KnownReader(_NOTHING, _NO_RANGES, state)
        if fetched is not None:
            reader = KnownReader(fetched.records, fetched.ranges, state)
        self._rounds += 1
        self.result = self.raised = None
        try:
            self.result = self.body(reader)
        except Exception as error:
            self.raised = error
        except Missing as missing:
            self._keys.update(dict.fromkeys(missing.keys))
            self._ranges.update(dict.fromkeys(missing.ranges))
            self.direct = self._rounds > ROUNDS_MAX
            self.wanted = Wanted(list(self._keys), list(self._ranges))
            return False
        except NeedsDirect:
            self.direct = True
            return False
        if fetched is not None or not reader.used:
            return True
        # It read the catalog only; whether that is still so is to be found out.
        self.wanted = Wanted(())
        return False


class Reads:
    """The read bodies of an engine."""

    def __init__(self, pool: Pool, statements: Statements, catalog: Catalog, fetching: Fetching) -> None:
        self._pool = pool
        self._statements = statements
        self._catalog = catalog
        self._fetching = fetching
        self.direct_reads = 0

    def attempt(self, body: Callable[[Reader], Any]) -> Attempt:
        return Attempt(body, self._catalog)

    def read(self, body: Callable[[Reader], T]) -> T:
        """Run a body on this thread."""
        attempt = self.attempt(body)
        fetched: Fetched | None = None
        while not attempt.run(fetched):
            if attempt.direct:
                return self.directly(body)
            fetched = self._fetching.now(attempt.wanted)
        if attempt.raised is not None:
            raise attempt.raised
        return attempt.result  # type: ignore[no-any-return]

    def directly(self, body: Callable[[Reader], T]) -> T:
        """Run a body in a transaction of one moment, on this thread."""
        self.direct_reads += 1

        def work(connection: Connection) -> T:
            call(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                result = body(DirectReader(connection, self._statements, self._catalog))
            except Trouble:
                raise
            except BaseException:
                call(connection, "ROLLBACK")
                raise
            call(connection, "COMMIT")
            return result

        return self._pool.again(work)  # type: ignore[no-any-return]
