"""Writes of entities: in a transaction, or alone.

    store.transact(create(reaction), add(photo, likes=1), jobs.member("thank alice"))

A write is planned when it is performed: its members with their conditions, and for each member the error that
explains why its condition failed. A write with one member is a single request, which costs half as much as a
transaction.

Every write gives the item a new version, a random text. An update is refused if the version is not the one
that was read. By its own version, a repeated request recognises that an earlier attempt was performed and its
answer lost.

A unique value is a separate item, which names its entity. It is written in one transaction with the entity,
on the condition that no other entity has the value.

Refuses to send requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeAlias

from hashrange_patterns.entities.attributes import number_text
from hashrange_patterns.entities.model import (
    KIND,
    VERSION,
    AnyEntity,
    Key,
    Schema,
    item_of,
    key_of,
    remember,
    schema_of,
)
from hashrange_patterns.requests import Runtime
from hashrange_patterns.tables import Address, Item, Table

UNIQUE_SORT = "UNIQUE"


class Refused(Exception):
    """Nothing was written, because a condition was not met."""


class AlreadyExists(Refused):
    """There is an entity with this key."""


class NotUnique(Refused):
    """Another entity has this value, which must be unique."""


class Changed(Refused):
    """Somebody else changed or deleted the entity after it was read: read it again, and decide again."""


class Missing(Refused):
    """There is no such entity."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Members of a TransactWriteItems; the error for each member's failed condition; and what to do after."""

    members: list[Item] = field(default_factory=list)
    refusals: list[Refused] = field(default_factory=list)
    version: str | None = None
    written: Callable[[], None] = lambda: None

    def member(self, kind: str, parameters: dict[str, Any], refusal: Refused) -> None:
        """Add a member."""
        self.members.append({kind: parameters})
        self.refusals.append(refusal)


Write: TypeAlias = Callable[[Table, Runtime], Plan]
"""A write that was not performed yet; made by `create`, `update`, `delete`, `add` and `exists`."""


def create(entity: AnyEntity) -> Write:
    """Write a new entity. Refused with `AlreadyExists` or `NotUnique`."""

    def plan(table: Table, runtime: Runtime) -> Plan:
        schema = schema_of(type(entity))
        version = new_version(runtime)
        item = {**schema.encode(table, entity), VERSION: {"S": version}}
        planned = Plan(version=version, written=lambda: remember(entity, item))
        address = table.address(item)
        put = table.put(item, condition="attribute_not_exists(#pk)")
        planned.member("Put", put, AlreadyExists(f"{schema.name} {address}"))
        for value in _unique_values(schema, vars(entity)):
            _take(planned, table, value, address)
        return planned

    return plan


def update(entity: AnyEntity) -> Write:
    """Write the changes of an entity since it was read. Refused with `Changed` or `NotUnique`.

    Nothing is written if nothing was changed.
    """

    def plan(table: Table, runtime: Runtime) -> Plan:
        schema, item = schema_of(type(entity)), _read_before(entity)
        address = schema.address(entity)
        if address != table.address(item):
            raise ValueError(
                f"the key of {schema.name} {table.address(item)} was changed to {address}, "
                "which would be another item: create that, and delete this one"
            )
        changed, removed = schema.changes(table, entity, item)
        if not changed and not removed:
            return Plan()
        version = new_version(runtime)
        changed[VERSION] = {"S": version}
        after = {name: value for name, value in item.items() if name not in removed} | changed
        planned = Plan(version=version, written=lambda: remember(entity, after))
        planned.member(
            "Update",
            _update(table, item, changed, removed),
            Changed(f"{schema.name} {address} is not what it was when it was read"),
        )
        before = _unique_values(schema, vars(schema.decode(table, item)))
        now = _unique_values(schema, vars(entity))
        for value in before - now:
            _free(planned, table, value, address)
        for value in now - before:
            _take(planned, table, value, address)
        return planned

    return plan


def delete(entity: AnyEntity) -> Write:
    """Delete an entity that was read. Refused with `Changed`, even if somebody else deleted it."""

    def plan(table: Table, runtime: Runtime) -> Plan:
        schema, item = schema_of(type(entity)), _read_before(entity)
        address = table.address(item)
        planned = Plan(written=lambda: remember(entity, None))
        changed = Changed(f"{schema.name} {address} is not what it was when it was read")
        planned.member("Delete", table.at(address, **_unchanged(item)), changed)
        for value in _unique_values(schema, vars(schema.decode(table, item))):
            _free(planned, table, value, address)
        return planned

    return plan


def add(target: AnyEntity | Key[AnyEntity], **amounts: int | Decimal) -> Write:
    """Add to numbers of an entity, whatever its version; many may do so at once. Refused with `Missing`.

    The entity gets a new version, so that no update overwrites the sum unseen.
    """
    key = target if isinstance(target, Key) else key_of(target)

    def plan(table: Table, runtime: Runtime) -> Plan:
        schema = schema_of(key.kind)
        if not amounts:
            raise ValueError("add takes the amounts by the names of fields, as in add(photo, likes=1)")
        for name in amounts:
            if name not in schema.record.fields or schema.record.fields[name].codec.tag != "N":
                raise ValueError(f"{schema.name}.{name} is not a field with a number")
            if any(name in template.fields for template in (*schema.indexed.values(), *schema.unique)):
                raise ValueError(f"{schema.name}.{name} is in a key of an index: change it by an update")
        names = {f"a{place}": name for place, name in enumerate(amounts)}
        values: dict[str, Any] = {place: {"N": number_text(amounts[name])} for place, name in names.items()}
        sums = ", ".join(f"#{place} :{place}" for place in names)
        update = f"ADD {sums} SET #{VERSION} = :version"
        planned = Plan()
        planned.member(
            "Update",
            table.at(
                key.address, names, update=update, version=new_version(runtime), **values, **_there(schema)
            ),
            Missing(f"there is no {schema.name} {key.address}"),
        )
        return planned

    return plan


def exists(target: AnyEntity | Key[AnyEntity]) -> Write:
    """Write nothing, but refuse the transaction with `Missing` if there is no such entity."""
    key = target if isinstance(target, Key) else key_of(target)

    def plan(table: Table, runtime: Runtime) -> Plan:
        schema, planned = schema_of(key.kind), Plan()
        refusal = Missing(f"there is no {schema.name} {key.address}")
        planned.member("ConditionCheck", table.at(key.address, **_there(schema)), refusal)
        return planned

    return plan


def new_version(runtime: Runtime) -> str:
    """A version that no other write makes."""
    return runtime.token().replace("-", "")[:16]


def _there(schema: Schema) -> dict[str, Any]:
    """The condition that there is an entity of this class: see `Table.at`.

    An item without a kind, which another program wrote, is taken for one.
    """
    condition = f"attribute_exists(#pk) AND (attribute_not_exists(#{KIND}) OR #{KIND} = :kind)"
    return {"condition": condition, "kind": schema.name}


def _read_before(entity: AnyEntity) -> Item:
    item = item_of(entity)
    if item is None:
        raise ValueError(f"{entity!r} was neither read nor created: read it first, or create it")
    return item


def _unchanged(item: Item) -> dict[str, Any]:
    """The condition that an item has the version that it had: see `Table.at`."""
    seen = {"seen": item[VERSION]} if VERSION in item else {}
    condition = f"#{VERSION} = :seen" if seen else f"attribute_not_exists(#{VERSION})"
    return {"condition": f"attribute_exists(#pk) AND {condition}", **seen}


def _update(table: Table, item: Item, changed: Mapping[str, Item], removed: list[str]) -> dict[str, Any]:
    sets = {f"s{place}": name for place, name in enumerate(changed)}
    removes = {f"r{place}": name for place, name in enumerate(removed)}
    update = "SET " + ", ".join(f"#{place} = :{place}" for place in sets)
    if removes:
        update += " REMOVE " + ", ".join(f"#{place}" for place in removes)
    values: dict[str, Any] = {place: changed[name] for place, name in sets.items()}
    return table.at(table.address(item), sets | removes, update=update, **values, **_unchanged(item))


def _unique_values(schema: Schema, values: Mapping[str, Any]) -> set[str]:
    filled = {template.fill(values) for template in schema.unique}
    return {f"UNIQUE#{schema.name}#{text}" for text in filled if text is not None}


def _take(planned: Plan, table: Table, value: str, owner: Address) -> None:
    item = {
        **table.key(Address(value, UNIQUE_SORT)),
        "owner_partition": {"S": owner.partition},
        "owner_sort": {"S": owner.sort},
    }
    put = table.put(item, condition="attribute_not_exists(#pk)")
    planned.member("Put", put, NotUnique(value.removeprefix("UNIQUE#")))


def _free(planned: Plan, table: Table, value: str, owner: Address) -> None:
    delete = table.at(
        Address(value, UNIQUE_SORT),
        # (no item: the entity was written before its class had this unique value)
        condition="attribute_not_exists(#pk) OR (#owner_partition = :partition AND #owner_sort = :sort)",
        partition=owner.partition,
        sort=owner.sort,
    )
    planned.member("Delete", delete, Changed(f"{value.removeprefix('UNIQUE#')} belongs to another"))
