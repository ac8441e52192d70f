"""Runs read bodies. Each of them sees one moment, and nothing that was out of date when it was asked for.

Most bodies only get records. Such a body runs first over the catalog that the engine knows, to find out what
it needs; then all that it needs is fetched in one statement, which also tells the version of the catalog, and
it runs again over that. If it then needs more, all of it is fetched anew, so that all is of one moment. A
body that needs several rounds, or a range, reads in a transaction of REPEATABLE READ on a thread.

Refuses to know: writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar

from hashrange.storage.api import Reader
from hashrange.storage.postgres.bodies import Missing, OnlyRecords
from hashrange.storage.postgres.cache import CATALOG_SPACE, Catalog, CatalogState, Key, Known
from hashrange.storage.postgres.connections import Connection, Pool, Trouble, call
from hashrange.storage.postgres.direct import DirectReader, Statements
from hashrange.storage.postgres.fetching import Fetched, Fetching

T = TypeVar("T")

ROUNDS_MAX: Final = 3
_UNKNOWN: Final = object()
_NOTHING: Final[dict[Key, Known]] = {}


class NeedsDirect(BaseException):
    """The body reads more than records."""


class KnownReader(OnlyRecords):
    """A `Reader` of records that were fetched, and of the catalog. `used`: whether it was asked at all."""

    __slots__ = ("_known", "state", "used")

    def __init__(self, known: dict[Key, Known], state: CatalogState) -> None:
        self._known = known
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

    def _more(self) -> NoReturn:
        raise NeedsDirect


class Attempt:
    """The rounds of one read body.

    `run` runs it over what was fetched last. It returns True when `result` or `raised` is the outcome;
    else `keys` are to be fetched, or `direct` says that the body has to run by `Reads.directly`.
    """

    __slots__ = ("_catalog", "_rounds", "_wanted", "body", "direct", "keys", "raised", "result")

    def __init__(self, body: Callable[[Reader], Any], catalog: Catalog) -> None:
        self.body = body
        self._catalog = catalog
        self._rounds = 0
        self._wanted: dict[Key, None] = {}
        self.keys: list[Key] = []
        self.direct = False
        self.result: Any = None
        self.raised: Exception | None = None

    def run(self, fetched: Fetched | None) -> bool:
        """Raises what the body raises that is no `Exception`."""
        state = fetched.state if fetched is not None else self._catalog.state
        reader = KnownReader(fetched.records if fetched is not None else _NOTHING, state)
        self._rounds += 1
        self.result = self.raised = None
        try:
            self.result = self.body(reader)
        except Exception as error:
            self.raised = error
        except Missing as missing:
            self._wanted.update(dict.fromkeys(missing.keys))
            self.direct = self._rounds > ROUNDS_MAX
            self.keys = list(self._wanted)
            return False
        except NeedsDirect:
            self.direct = True
            return False
        if fetched is not None or not reader.used:
            return True
        # It read the catalog only; whether that is still so is to be found out.
        self.keys = []
        return False


class Reads:
    """The read bodies of an engine."""

    def __init__(self, pool: Pool, statements: Statements, catalog: Catalog, fetching: Fetching) -> None:
        self._pool = pool
        self._statements = statements
        self._catalog = catalog
        self._fetching = fetching

    def attempt(self, body: Callable[[Reader], Any]) -> Attempt:
        return Attempt(body, self._catalog)

    def read(self, body: Callable[[Reader], T]) -> T:
        """Run a body on this thread."""
        attempt = self.attempt(body)
        fetched: Fetched | None = None
        while not attempt.run(fetched):
            if attempt.direct:
                return self.directly(body)
            fetched = self._fetching.now(attempt.keys)
        if attempt.raised is not None:
            raise attempt.raised
        return attempt.result  # type: ignore[no-any-return]

    def directly(self, body: Callable[[Reader], T]) -> T:
        """Run a body in a transaction of one moment, on this thread."""

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
