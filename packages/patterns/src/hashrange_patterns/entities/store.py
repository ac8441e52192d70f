"""The store of entities: reads and writes items of a table as instances of their classes.

    store = Entities(client, "quick-photos")
    store.create(User("alice", "Alice Doe"))
    user = store.get(User.key("alice"))          # User | None
    user.name = "Alice Roe"
    store.update(user)                           # SET name, unless somebody else has written the item
    store.query(Photo, "alice", newest_first=True, limit=20)
    store.collect(Profile, "alice")              # the user and the photos, in one Query

Refusals (`Refused`: `AlreadyExists`, `NotUnique`, `Changed`, `Missing`) mean that nothing was written. If an
answer was lost, and the item does not show whether the write was performed, the error of the lost answer is
raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from hashrange_patterns.batches import delete_all, get_all, put_all, query_read
from hashrange_patterns.entities.model import (
    VERSION,
    AnyEntity,
    E,
    Key,
    kind_of,
    remember,
    schema_of,
    version_in,
)
from hashrange_patterns.entities.queries import collection_query, fields_of, filled, query_of
from hashrange_patterns.entities.writes import (
    Changed,
    Missing,
    Plan,
    Write,
    add,
    create,
    delete,
    new_version,
    update,
)
from hashrange_patterns.flows import AsyncClient, Awaiting, Blocking, C, Client, Flow, Performing, performed
from hashrange_patterns.requests import Runtime, failed_members, get, item_that_was_there, request, transact
from hashrange_patterns.tables import Index, Item, Table, table_of

Into = TypeVar("Into")

_OPERATIONS = {"Put": "put_item", "Update": "update_item", "Delete": "delete_item"}


@dataclass(frozen=True, slots=True)
class EntityFlows:
    """The logic of `Entities`."""

    table: Table
    runtime: Runtime

    def get(self, key: Key[E], *, consistent: bool = False) -> Flow[E | None]:
        """The entity with this key. Costs half a read unit for each 4 KB, or 1 if consistent."""
        item = yield from get(self.runtime, self.table, key.address, consistent=consistent)
        return self._read(item, key.kind)

    def get_all(self, keys: Iterable[Key[E]], *, consistent: bool = False) -> Flow[dict[Key[E], E]]:
        """The entities with these keys that exist, in the order of `keys`, by BatchGetItem.

        Costs as `get` for each. Raises `StillUnprocessed` if throttling does not end.
        """
        keys_ = list(keys)
        addresses = [key.address for key in keys_]
        items = yield from get_all(self.runtime, self.table, addresses, consistent=consistent)
        read = {key: self._read(items.get(key.address), key.kind) for key in keys_}
        return {key: entity for key, entity in read.items() if entity is not None}

    def get_together(self, *keys: Key[E]) -> Flow[dict[Key[E], E]]:
        """The entities with these keys that exist, all read at the same moment, by TransactGetItems.

        Costs 2 read units for each 4 KB of each.
        """
        parameters = {"TransactItems": [{"Get": self.table.at(key.address)} for key in keys]}
        answer = yield from request(self.runtime, "transact_get_items", parameters, repeatable=True)
        read = {
            key: self._read(response.get("Item"), key.kind)
            for key, response in zip(keys, answer["Responses"], strict=True)
        }
        return {key: entity for key, entity in read.items() if entity is not None}

    def create(self, entity: AnyEntity) -> Flow[None]:
        """Write a new entity. Raises `AlreadyExists` or `NotUnique`.

        Costs a write unit for each KB; with unique values twice that, and 2 for each unique value.
        """
        yield from self._perform(create(entity))

    def update(self, entity: AnyEntity) -> Flow[bool]:
        """Write the changes of an entity since it was read; False if there are none. Raises `Changed`.

        Costs as much as `create`; unique values cost only if they were changed.
        """
        return (yield from self._perform(update(entity)))

    def modify(self, key: Key[E], change: Callable[[E], object]) -> Flow[E]:
        """Read an entity, let `change` change it, and write it; again if somebody else wrote it meanwhile.

        Raises `Missing` if there is none, and `Changed` if that happened `attempts_max` times.
        """

        def write(entity: E) -> Flow[bool]:
            change(entity)
            return (yield from self.update(entity))

        entity = yield from self._again(key, write)
        if entity is None:
            raise Missing(f"there is no {schema_of(key.kind).name} {key.address}")
        return entity

    def delete(self, target: AnyEntity | Key[AnyEntity]) -> Flow[bool]:
        """Delete an entity. With a key: False if there is none. With an entity that was read: raises
        `Changed` if somebody else has changed or deleted it.

        Costs as much as `create`, and with a key also as much as `get`.
        """
        if not isinstance(target, Key):
            return (yield from self._perform(delete(target)))
        deleted = yield from self._again(target, lambda entity: self._perform(delete(entity)))
        return deleted is not None

    def add(self, target: AnyEntity | Key[AnyEntity], /, **amounts: int) -> Flow[None]:
        """Add to numbers of an entity; many may do so at once. Raises `Missing`.

        It is a transaction, which is performed once even if its answer is lost and the request is sent again,
        by this class or by a client that repeats requests by itself. Costs twice as much as `create`.
        """
        yield from self.transact(add(target, **amounts))

    def transact(self, *writes: Write | Mapping[str, Any]) -> Flow[None]:
        """Perform all writes, or none. Raises the `Refused` of the first write whose condition failed.

        Members of a TransactWriteItems may be among them, for example from `Jobs.member`; if the condition of
        such a member fails, the client's TransactionCanceledException is raised. Costs twice as much as the
        separate writes.
        """
        members: list[Item] = []
        refusals: list[Exception | None] = []
        plans = []
        for write in writes:
            if isinstance(write, Mapping):
                members.append(dict(write))
                refusals.append(None)
                continue
            plan = write(self.table, self.runtime)
            members += plan.members
            refusals += plan.refusals
            plans.append(plan)
        if members:
            yield from self._transact(members, refusals)
        for plan in plans:
            plan.written()

    def put_all(self, entities: Iterable[AnyEntity]) -> Flow[None]:
        """Write entities over existing ones, by BatchWriteItem; raises as `get_all`.

        For loading data: versions are not compared. Costs as much as `create` for each.
        """
        items = []
        entities_ = list(entities)
        for entity in entities_:
            schema = schema_of(type(entity))
            if schema.unique:
                raise ValueError(f"{schema.name} has unique values, which a batch cannot check: create each")
            version = {"S": new_version(self.runtime)}
            items.append({**schema.encode(self.table, entity), VERSION: version})
        yield from put_all(self.runtime, self.table, items)
        for entity, item in zip(entities_, items, strict=True):
            remember(entity, item)

    def delete_all(self, keys: Iterable[Key[AnyEntity]]) -> Flow[None]:
        """Delete the entities with these keys, whatever their versions, by BatchWriteItem; raises as
        `get_all`."""
        addresses = []
        for key in keys:
            if schema_of(key.kind).unique:
                raise ValueError(
                    f"{schema_of(key.kind).name} has unique values, which a batch cannot free: delete each"
                )
            addresses.append(key.address)
        yield from delete_all(self.runtime, self.table, addresses)

    def query(
        self,
        kind: type[E],
        *values: object,
        index: Index | None = None,
        low: object = None,
        high: object = None,
        newest_first: bool = False,
        limit: int | None = None,
        after: E | Key[E] | None = None,
        consistent: bool = False,
    ) -> Flow[list[E]]:
        """The entities of one class in one partition, in the order of the sort key.

        `values` are the values of the fields in the partition key's template, and then of the first fields in
        the sort key's. `low` and `high` bound the next field, in the order of the keys; both belong to the
        range. `after` is the last entity of the previous page. Costs half a read unit for each 4 KB that is
        read, or 1 if consistent.
        """
        parameters = query_of(self.table, kind, values, index, low, high, newest_first, after, consistent)
        if parameters is None:
            return []
        return (yield from self._found([kind], parameters, limit))

    def collect(
        self, into: type[Into], *values: object, index: Index | None = None, consistent: bool = False
    ) -> Flow[Into | None]:
        """Entities of several classes in one partition, by one Query, as an instance of the dataclass `into`.

        A field of type `list[Photo]` takes all photos, a field of type `User` or `User | None` the user.
        Returns None if a field needs a `User` and there is none. `values` are the values of the fields in the
        partition key's template, which must be the same for all classes. Costs as much as `query`, for
        everything between the first and the last of the items.
        """
        fields_ = fields_of(into)
        kinds = [field_.kind for field_ in fields_]
        parameters = collection_query(self.table, into, kinds, values, index, consistent)
        return filled(into, fields_, (yield from self._found(kinds, parameters, None)))

    def _again(self, key: Key[E], write: Callable[[E], Flow[bool]]) -> Flow[E | None]:
        """Read an entity and write it, again while others are faster; None if there is none."""
        for attempt in range(self.runtime.attempts_max):
            entity = yield from self.get(key, consistent=True)
            if entity is None:
                return None
            try:
                yield from write(entity)
                return entity
            except Changed:
                yield self.runtime.pause(attempt)
        raise Changed(f"{key.address} was changed by others {self.runtime.attempts_max} times")

    def _read(self, item: Item | None, kind: type[E]) -> E | None:
        if not item:
            return None
        if kind_of(self.table, item, [kind]) is None:
            raise ValueError(f"{self.table.address(item)} is no {schema_of(kind).name}")
        entity: Any = schema_of(kind).decode(self.table, item)
        read: E = entity
        return read

    def _perform(self, write: Write) -> Flow[bool]:
        """Perform one write; False if there was nothing to do."""
        plan = write(self.table, self.runtime)
        if not plan.members:
            return False
        if len(plan.members) > 1:
            yield from self._transact(plan.members, plan.refusals)
            plan.written()
            return True
        [(kind, parameters)] = plan.members[0].items()
        yield from self._single(kind, parameters, plan)
        plan.written()
        return True

    def _single(self, kind: str, parameters: Item, plan: Plan) -> Flow[None]:
        """Perform a write of one member."""
        doubts: list[Exception] = []
        request_parameters = {**parameters, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        try:
            yield from request(
                self.runtime, _OPERATIONS[kind], request_parameters, repeatable=True, doubts=doubts
            )
        except Exception as error:
            old_item = item_that_was_there(error)
            if plan.version is not None and version_in(old_item) == plan.version:
                return  # an earlier attempt was performed, and its answer was lost
            if doubts and kind == "Delete" and not old_item:
                return
            if doubts:
                raise doubts[-1] from error
            raise plan.refusals[0] from error

    def _transact(self, members: Sequence[Item], refusals: Sequence[Exception | None]) -> Flow[None]:
        try:
            yield from transact(self.runtime, members)
        except Exception as error:
            refusal = refusals[failed_members(error)[0]]
            if refusal is None:
                raise
            raise refusal from error

    def _found(
        self, kinds: Sequence[type[E]], parameters: Mapping[str, Any], limit: int | None
    ) -> Flow[list[E]]:
        """The entities of `kinds` that a Query returns, page after page; other items are skipped."""

        def read(item: Item) -> E | None:
            kind = kind_of(self.table, item, kinds)
            return None if kind is None else self._read(item, kind)

        return (yield from query_read(self.runtime, parameters, read, limit=limit))


class _Entities(Performing[EntityFlows, C]):
    def __init__(
        self,
        client: C,
        table: Table | str,
        *,
        runtime: Runtime = Runtime(),  # noqa: B008 (frozen)
    ) -> None:
        super().__init__(client, EntityFlows(table_of(table), runtime))

    get = performed(EntityFlows.get)
    get_all = performed(EntityFlows.get_all)
    get_together = performed(EntityFlows.get_together)
    create = performed(EntityFlows.create)
    update = performed(EntityFlows.update)
    modify = performed(EntityFlows.modify)
    delete = performed(EntityFlows.delete)
    add = performed(EntityFlows.add)
    transact = performed(EntityFlows.transact)
    put_all = performed(EntityFlows.put_all)
    delete_all = performed(EntityFlows.delete_all)
    query = performed(EntityFlows.query)
    collect = performed(EntityFlows.collect)


class Entities(_Entities[Client], Blocking[EntityFlows]):
    """Entities in a table, with a boto3 client."""


class AsyncEntities(_Entities[AsyncClient], Awaiting[EntityFlows]):
    """`Entities` with an aiobotocore client."""
