"""Two tables, their users, and a sync between them whose every request may meet something.

world = World()
world.cloud.put("k1", a="x")
world.once()                            # as `Sync.once`
world.meets(3, world.dies)              # the third request of the next run is its last
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

from botocore.config import Config
from botocore.exceptions import ConnectionClosedError, EndpointConnectionError

from hashrange import Database, client
from hashrange.clock import ManualClock
from hashrange.storage.memory import MemoryEngine
from hashrange_sync import Clients, Pair, Settings, Sync
from hashrange_sync.items import Item
from hashrange_sync.settings import Place as Where
from hashrange_sync.sides.bodies import quicken
from hashrange_sync.stored.conflicts import Conflict

_ENDPOINT: Final = "https://dynamodb.invalid"
_NUMBER: Final = itertools.count()
_WRITES: Final = {"put_item", "update_item", "delete_item", "batch_execute_statement"}
CONFIG: Final = Config(retries={"total_max_attempts": 1})
STREAM: Final = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


class Killed(BaseException):
    """Ends a sync as the death of its process does."""


class Skewed:
    """A clock that is wrong by some seconds."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.seconds = 0.0

    def now(self) -> float:
        return self.clock.now() + self.seconds


class Place:
    """A side that serves many tables: the users' client, and those of the sync. `connect` makes a client of a
    service; `batches`: whether its PartiQL checks conditions."""

    def __init__(self, connect: Callable[[str], Any], *, batches: bool = True) -> None:
        self.dynamodb = connect("dynamodb")
        self.syncs = quicken(Clients(connect("dynamodb"), connect("dynamodbstreams")))
        self.batches = batches

    def settle(self) -> None:
        """Do what is due by the clock."""

    def close(self) -> None:
        """Nothing is left open."""


class Own(Place):
    """A database of Hashrange."""

    def __init__(self, clock: ManualClock) -> None:
        self.database = Database(MemoryEngine(), clock=clock)
        super().__init__(lambda service: client.connect(self.database, service=service, config=CONFIG))

    def settle(self) -> None:
        self.database.settle()

    def close(self) -> None:
        self.database.close()


class Places:
    """Both sides, which many worlds use one after the other. `cloud`: of somebody else."""

    def __init__(self, cloud: Place | None = None) -> None:
        self.clock = ManualClock()
        self.cloud = cloud or Own(self.clock)
        self.edge = Own(self.clock)

    def close(self) -> None:
        self.cloud.close()
        self.edge.close()


class Users:
    """The users of one side's table, and the values that they have written over with their own hands."""

    def __init__(self, place: Place, table: str, **definition: Any) -> None:
        self.place = place
        self.table = table
        self.replaced: set[str] = set()
        self._client = place.dynamodb
        self._client.create_table(
            TableName=table,
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
            **{"StreamSpecification": STREAM, **definition},
        )

    def put(self, pk: str, **values: Any) -> None:
        """Put an item of texts, or of values in DynamoDB's JSON."""
        item = {"pk": {"S": pk}, **{name: _value(value) for name, value in values.items()}}
        old = self._client.put_item(TableName=self.table, Item=item, ReturnValues="ALL_OLD")
        self.replaced |= texts(old.get("Attributes"))

    def set(self, pk: str, **values: Any) -> None:
        """Set attributes; None removes one."""
        names = {f"#{name}": name for name in values}
        sets = [f"#{name} = :{name}" for name, value in values.items() if value is not None]
        removes = [f"#{name}" for name, value in values.items() if value is None]
        update = (f"SET {', '.join(sets)} " if sets else "") + (
            f"REMOVE {', '.join(removes)}" if removes else ""
        )
        held = {f":{name}": _value(value) for name, value in values.items() if value is not None}
        old = self._client.update_item(
            TableName=self.table,
            Key={"pk": {"S": pk}},
            UpdateExpression=update,
            ExpressionAttributeNames=names,
            ReturnValues="UPDATED_OLD",
            **({"ExpressionAttributeValues": held} if held else {}),
        )
        self.replaced |= texts(old.get("Attributes"))

    def add(self, pk: str, name: str, number: int) -> None:
        """Add to a counter."""
        self._client.update_item(
            TableName=self.table,
            Key={"pk": {"S": pk}},
            UpdateExpression="ADD #n :n",
            ExpressionAttributeNames={"#n": name},
            ExpressionAttributeValues={":n": {"N": str(number)}},
        )

    def delete(self, pk: str) -> None:
        old = self._client.delete_item(TableName=self.table, Key={"pk": {"S": pk}}, ReturnValues="ALL_OLD")
        self.replaced |= texts(old.get("Attributes"))

    def items(self) -> dict[str, Item]:
        """All items by their partition keys."""
        pages = self._client.get_paginator("scan").paginate(TableName=self.table, ConsistentRead=True)
        return {item["pk"]["S"]: item for page in pages for item in page["Items"]}

    def get(self, pk: str) -> Item | None:
        return self.items().get(pk)


class _Watched:
    """A client whose every request goes by the world."""

    def __init__(self, world: World, side: str, inner: Any) -> None:
        self._world, self._side, self._inner = world, side, inner
        self.meta = inner.meta

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        send = getattr(self._inner, operation)
        return lambda **request: self._world._perform(self._side, operation, send, request)


class World:
    """A pair of tables. `meets` says what the requests of the next run meet, by their numbers from 1."""

    def __init__(self, places: Places, *, definition: dict[str, Any] | None = None, **settings: Any) -> None:
        self.places = places
        self.clock = Skewed(places.clock)
        self.name = f"table-{next(_NUMBER)}"
        self.cloud = Users(places.cloud, self.name, **(definition or {}))
        self.edge = Users(places.edge, self.name, **(definition or {}))
        cloud = Where(batches=places.cloud.batches)
        self.settings = Settings(cloud=cloud, pairs=[Pair(table=self.name, **settings)])
        self.unreachable: set[str] = set()
        self.requests: list[tuple[str, str]] = []
        self._plan: dict[int | str, Callable[[Callable[[], Any]], Any]] = {}
        self._writes = 0
        self._sync: Sync | None = None

    # -- The sync ---------------------------------------------------------------------------------------

    @property
    def sync(self) -> Sync:
        """The sync of the process that is alive."""
        if self._sync is None:
            clients = [
                Clients(_Watched(self, name, place.syncs.dynamodb), _Watched(self, name, place.syncs.streams))
                for name, place in (("cloud", self.places.cloud), ("edge", self.places.edge))
            ]
            self._sync = Sync(
                self.settings,
                cloud=clients[0],
                edge=clients[1],
                clock=self.clock,
                wait=self.places.clock.advance,
                workers=0,
                attempts=2,
            )
        return self._sync

    def once(self) -> None:
        """Make both sides equal; a request that kills leaves no process."""
        self.requests, self._writes = [], 0
        try:
            self.sync.once()
        except Killed:
            self._sync = None
        finally:
            self._plan = {}

    def kill(self) -> None:
        """The process dies between two runs."""
        self._sync = None

    def log(self) -> list[Conflict]:
        """All conflicts with their images."""
        log = self.sync.pairs[0].log
        return [log.find(entry.id) for entry in log.entries()]

    # -- What requests meet -----------------------------------------------------------------------------

    def meets(self, number: int | str, what: Callable[[Callable[[], Any]], Any]) -> None:
        """The request with this number, or the write with this number (`write 1`), meets `what`, which gets a
        function that performs it."""
        self._plan[number] = what

    def _perform(self, side: str, operation: str, send: Callable[..., Any], request: dict[str, Any]) -> Any:
        self.requests.append((side, operation))
        what = self._plan.get(len(self.requests), performed)
        is_item = operation in _WRITES and request.get("TableName", self.name) == self.name
        if is_item or operation == "transact_write_items":
            self._writes += 1
            what = self._plan.get(f"write {self._writes}", what)
        if side in self.unreachable:
            raise EndpointConnectionError(endpoint_url=_ENDPOINT)
        return what(lambda: send(**request))

    # -- Time -------------------------------------------------------------------------------------------

    def passes(self, seconds: float) -> None:
        """Time passes; what is due is done: expired items are deleted, and streams trimmed."""
        self.places.clock.advance(seconds)
        self.places.cloud.settle()
        self.places.edge.settle()


def fails(go: Callable[[], Any]) -> Any:
    """The request is not performed, and its sender does not know that."""
    raise EndpointConnectionError(endpoint_url=_ENDPOINT)


def loses(go: Callable[[], Any]) -> Any:
    """The request is performed, and its sender does not know that."""
    go()
    raise ConnectionClosedError(endpoint_url=_ENDPOINT)


def kills_before(go: Callable[[], Any]) -> Any:
    raise Killed


def kills_after(go: Callable[[], Any]) -> Any:
    go()
    raise Killed


def before(act: Callable[[], None], then: Callable[[Callable[[], Any]], Any]) -> Callable[..., Any]:
    """Somebody does something just before the request."""

    def what(go: Callable[[], Any]) -> Any:
        act()
        return then(go)

    return what


def performed(go: Callable[[], Any]) -> Any:
    return go()


def texts(item: Any) -> set[str]:
    """The texts of an item."""
    return {value["S"] for name, value in (item or {}).items() if "S" in value and name != "pk"}


def _value(value: Any) -> Any:
    return value if isinstance(value, dict) else {"S": value}
