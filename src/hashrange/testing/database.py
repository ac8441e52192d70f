"""A database of this process with what tests need: a clock, snapshots, clients, tables, triggers."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal

import orjson

from hashrange import client as clients
from hashrange import rings
from hashrange.clock import VirtualClock
from hashrange.database import Database, Settings
from hashrange.operations.context import Caller
from hashrange.storage.capabilities import Snapshot as Records
from hashrange.testing.moments import LocalClock, Moment, epoch_of

if TYPE_CHECKING:
    from hashrange.costs import Costs
    from hashrange.faults import Faults
    from hashrange.operations.travel import Travel
    from hashrange.rings import Trigger
    from hashrange.testing.declarations import Declaration

_ROUNDS_MAX: Final = 1_000

Start = Literal["TRIM_HORIZON", "LATEST"]

SETTINGS = Settings(separate_accounts=True, separate_regions=True)
"""The settings of a database of this process: each account and each region has its own tables, as on AWS."""


class Snapshot:
    """The state of a database at one moment, for `LocalDatabase.restore`: its records, its clock, and how far
    its triggers were."""

    __slots__ = ("course", "records", "triggers")

    def __init__(
        self, records: Records, course: tuple[float, bool], triggers: list[tuple[Trigger, Any]]
    ) -> None:
        self.records = records
        self.course = course
        self.triggers = triggers


class NoStream(ValueError):
    """The table of a trigger has no stream; the text says what to do."""


class NotSettling(RuntimeError):
    """The functions of triggers keep making changes that call them again; the text names them."""


class LocalDatabase:
    """A database of this process, as `hashrange.local` gives it. Thread-safe, and a context manager that
    closes it.

    `database` is the underlying `hashrange.Database`. `region` and `account_id` are the caller of methods
    that make requests, such as `create_table` and `client`; the default region is that of the environment
    (AWS_DEFAULT_REGION), or us-east-1.
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
        """An empty database in memory with `settings`, or an existing database.

        With `now`, its clock stands still there. Raises ValueError if `now` is not a moment.
        """
        self.database = database or Database.in_memory(settings=settings, clock=VirtualClock())
        clock = self.database.clock
        if not isinstance(clock, VirtualClock):
            clock = self.database.clock = VirtualClock(real=clock)
        self._virtual = clock
        self.clock = LocalClock(clock, self.database.settle)
        region = region or os.environ.get("AWS_DEFAULT_REGION") or Caller().region
        self.caller = Caller(region, account_id or Caller().account_id)
        self.endpoint_url = ""
        """The port that a block with an endpoint has opened; "" if there is none."""
        self._triggers: list[Trigger] = []
        self._settling = RLock()
        self._delivering = False
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
        """A boto3 client of this database for ``dynamodb`` or ``dynamodbstreams``, inside and outside the
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
        streams, and the clock. No item is copied.

        Raises `hashrange.storage.failures.Unsupported` for a database on disk.
        """
        positions = [(trigger, trigger.positions()) for trigger in self._triggers]
        return Snapshot(self.database.snapshot(), (self._virtual.now(), self._virtual.frozen), positions)

    def restore(self, snapshot: Snapshot) -> None:
        """Restore the state of `snapshot`, in microseconds, whatever changed since. A snapshot can be
        restored many times, even one from another database in memory.

        If the clock stood still in the snapshot, it shows that time again. Triggers continue from where they
        were, and triggers that were added later are removed. Raises `hashrange.storage.failures.Unsupported`
        for a database on disk.
        """
        self.database.restore(snapshot.records)
        now, frozen = snapshot.course
        if frozen:
            self._virtual.change(now, frozen=True)
        trigger_states = dict(snapshot.triggers)
        self._triggers = [trigger for trigger in self._triggers if trigger in trigger_states]
        for trigger in self._triggers:
            trigger.go_back(trigger_states[trigger])

    def create_table(
        self,
        name: str,
        key: str,
        *,
        indexes: Mapping[str, str] | None = None,
        local_indexes: Mapping[str, str] | None = None,
        stream: str | None = None,
        ttl: str | None = None,
        **members: Any,
    ) -> None:
        """Create a table, on demand: ``create_table("orders", "pk, sk:N", indexes={"by-day": "day, pk"})``.

        `key` names the partition key, and the sort key if there is one, with their types; an attribute
        without a type is a text. Indexes project all attributes. `stream` is a StreamViewType such as
        ``"NEW_AND_OLD_IMAGES"``, `ttl` the attribute of the time to live. `members` are other members of
        CreateTable. Raises `DeclarationError` for a key that cannot be read, and
        `hashrange.errors.ServiceError` for a table that DynamoDB refuses.
        """
        from hashrange.testing.declarations import declare

        self._make(
            declare(
                name,
                key,
                indexes=indexes,
                local_indexes=local_indexes,
                stream=stream,
                ttl=ttl,
                **members,
            )
        )

    def create_tables(self, *paths: str | Path, parameters: Mapping[str, Any] | None = None) -> list[str]:
        """Create the tables that files declare, with the items in these files; returns their names.

        A file is a CloudFormation or SAM template in YAML (which needs PyYAML) or JSON, a Terraform plan or
        state in JSON (``terraform show -json``), JSON for or of ``aws dynamodb create-table`` or
        ``describe-table``, or a NoSQL Workbench model. `parameters` are those of a template. Warns
        (`DeclarationWarning`) of what is declared and has no effect here. Raises `DeclarationError` for a
        file that declares no tables, or a property that is not known, `hashrange.errors.ServiceError` for
        a table that DynamoDB refuses, and `rings.Missing` without the ring `templates`.
        """
        from hashrange.testing.declarations import DeclarationWarning

        read = rings.needed("templates", "testing", "tables")
        declarations = [
            declaration
            for path in paths
            for declaration in read(
                path,
                parameters=parameters,
                region=self.caller.region,
                account_id=self.caller.account_id,
            )
        ]
        for declaration in declarations:
            for note in self._make(declaration):
                warnings.warn(f"{declaration.name}: {note}", DeclarationWarning, stacklevel=2)
        return [declaration.name for declaration in declarations]

    def _make(self, declaration: Declaration) -> list[str]:
        from hashrange.testing.declarations import make

        return make(self.database, self.execute, self.load, declaration)

    def load(self, table: str, items: str | Path | Iterable[Mapping[str, Any]]) -> int:
        """Put items into a table; returns how many there were.

        `items` are the path of a file in JSON or CSV (`hashrange.testing.items` says how it looks), or items
        as Python values, such as ``{"pk": "a", "n": 1}``, or in DynamoDB's JSON, such as
        ``{"pk": {"S": "a"}, "n": {"N": "1"}}``. Raises `DeclarationError` for items that cannot be read, and
        `hashrange.errors.ServiceError` for an item that DynamoDB refuses.
        """
        from hashrange.testing import items as reading

        if isinstance(items, str | Path):
            described = self.execute("DescribeTable", {"TableName": table})["Table"]
            types = {
                definition["AttributeName"]: definition["AttributeType"]
                for definition in described["AttributeDefinitions"]
            }
            read_items = reading.read(items, types, table.rpartition("/")[2])
        else:
            read_items = reading.of_values(items)
        for item in read_items:
            self.database.execute("PutItem", {"TableName": table, "Item": item}, self.caller)
        return len(read_items)

    def trigger(
        self,
        table: str,
        function: Callable[..., Any],
        *,
        batch_size: int = 100,
        patterns: Iterable[Mapping[str, Any]] = (),
        retries: int | None = None,
        bisect_on_error: bool = False,
        report_batch_item_failures: bool = False,
        starting_position: Start = "LATEST",
    ) -> Trigger:
        """Let `settle` call `function` with the changes of `table`, as AWS Lambda does.

        `function` takes an event, or an event and a context. `patterns` are filters in Lambda's language.
        `settle` raises the function's errors; with `retries` the function is called again that many times,
        and the records are then given up (`Trigger.given_up`). Raises `NoStream` if the table has no stream,
        and ValueError for patterns that are none. Raises `rings.Missing` without the ring.
        """
        trigger_: Trigger = rings.needed("triggers", "testing", "trigger")(
            self.execute,
            self._virtual,
            table,
            function,
            batch_size=batch_size,
            patterns=patterns,
            retries=retries,
            bisect_on_error=bisect_on_error,
            report_batch_item_failures=report_batch_item_failures,
            starting_position=starting_position,
        )
        self._triggers.append(trigger_)
        return trigger_

    @property
    def faults(self) -> Faults:
        """The fault rules of this database: ``with database.faults(hashrange.faults.throttle("Query")):``."""
        return self.database.faults

    @property
    def travel(self) -> Travel:
        """The past of the tables whose point-in-time recovery is on: see docs/history.md."""
        return self.database.travel.of(self.caller)

    def costs(self) -> Costs:
        """What each request costs while a block runs: ``with database.costs() as costs:``."""
        return self.database.costs()

    def settle(self) -> None:
        """Do all work that is due by the clock, and deliver all changes to the triggers, in the order in
        which the triggers were added; repeat this until nothing is left to do.

        Raises the errors of the triggers' functions, and `NotSettling` if they never stop making changes.
        """
        with self._settling:
            self.database.settle()
            if self._delivering:
                return  # a function of a trigger calls this: what it changed is delivered after it
            self._delivering = True
            try:
                for _ in range(_ROUNDS_MAX):
                    ran = [trigger.run() for trigger in list(self._triggers)]
                    if not any(ran):
                        return
                    self.database.settle()
            finally:
                self._delivering = False
        tables = ", ".join(sorted({trigger.table for trigger in self._triggers}))
        raise NotSettling(
            f"After {_ROUNDS_MAX} rounds the triggers of {tables} still make changes that call them again. "
            "Give them patterns that leave their own changes out, or let them write elsewhere."
        )

    def close(self) -> None:
        """End the database; requests of its clients raise `StoreClosed` from then on. Idempotent."""
        self.database.close()
