"""A database of this process with what a test wants of it: a clock, snapshots, clients, tables, triggers."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import orjson

from hashrange import client as clients
from hashrange.clock import VirtualClock
from hashrange.database import Database, Settings
from hashrange.operations.context import Caller
from hashrange.storage.api import Snapshot as Records
from hashrange.testing.moments import LocalClock, Moment, epoch_of

SETTINGS = Settings(separate_accounts=True, separate_regions=True)
"""Those of a database of this process: each account and each region has tables of its own, as on AWS."""


class Snapshot:
    """The state of a database at one moment, for `LocalDatabase.restore`: its records and its clock."""

    __slots__ = ("course", "records")

    def __init__(self, records: Records, course: tuple[float, bool]) -> None:
        self.records = records
        self.course = course


class LocalDatabase:
    """A database of this process, as `hashrange.local` gives it. Thread-safe, and a context manager that
    closes it.

    `database` is the `hashrange.Database` beneath. `region` and `account_id` are the caller of the methods
    that make requests of their own, such as `create_table` and `client`.
    """

    def __init__(
        self,
        database: Database | None = None,
        *,
        settings: Settings = SETTINGS,
        now: Moment | None = None,
        region: str | None = None,
        account_id: str | None = None,
    ) -> None:
        """An empty database in memory with `settings`, or the one that is given.

        With `now`, its clock stands still there. Raises ValueError where `now` is no moment.
        """
        self.database = database or Database.in_memory(settings=settings, clock=VirtualClock())
        clock = self.database.clock
        if not isinstance(clock, VirtualClock):
            clock = self.database.clock = VirtualClock(real=clock)
        self._virtual = clock
        self.clock = LocalClock(clock, self.settle)
        self.caller = Caller(region or Caller().region, account_id or Caller().account_id)
        if now is not None:
            clock.change(epoch_of(now), frozen=True)

    def __enter__(self) -> LocalDatabase:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def execute(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """Run one operation of the API, such as ``PutItem``, and return its answer, in the form of the wire.

        Raises `hashrange.errors.ServiceError`.
        """
        answer: dict[str, Any] = orjson.loads(
            orjson.dumps(self.database.execute(operation, request, self.caller))
        )
        return answer

    def client(self, service: str = "dynamodb", *, region: str | None = None, config: Any = None) -> Any:
        """A boto3 client of this database for ``dynamodb`` or ``dynamodbstreams``, inside and outside of the
        block. As `hashrange.client.connect`."""
        return clients.connect(
            self.database,
            region=region or self.caller.region,
            account_id=self.caller.account_id,
            service=service,
            config=config,
        )

    def resource(self, *, region: str | None = None, config: Any = None) -> Any:
        """A boto3 ``dynamodb`` resource of this database. As `hashrange.client.resource`."""
        return clients.resource(
            self.database,
            region=region or self.caller.region,
            account_id=self.caller.account_id,
            config=config,
        )

    def snapshot(self) -> Snapshot:
        """The state of the database now: all tables of all accounts and regions, their items, indexes and
        streams, and the clock. It costs no copy of the items.

        Raises `hashrange.storage.api.Unsupported` for a database on disk.
        """
        return Snapshot(self.database.snapshot(), (self._virtual.now(), self._virtual.frozen))

    def restore(self, snapshot: Snapshot) -> None:
        """Bring the state of `snapshot` back, in microseconds, whatever changed since. It may be called again
        and again, also with the snapshot of another database in memory.

        The clock shows the time of the snapshot again if it stood still then; otherwise it runs with the
        time of this process. Raises `hashrange.storage.api.Unsupported` for a database on disk.
        """
        self.database.restore(snapshot.records)
        now, frozen = snapshot.course
        if frozen:
            self._virtual.change(now, frozen=True)

    def settle(self) -> None:
        """Do all work that is due by the clock: expire items, fill indexes, age streams."""
        self.database.settle()

    def close(self) -> None:
        """End the database; requests of its clients raise `StoreClosed` from then on. Idempotent."""
        self.database.close()
