"""Queries of entities: the parameters of a Query from the templates of keys, and dataclasses for collections.

The fields of a partition key's template, and after them those of the sort key's, are given as values. What is
known of the sort key becomes a range of texts: all that begins with it, or, of the field that comes next, all
from `low` to `high`.

Refuses to send requests.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from hashrange_patterns.entities.model import AnyEntity, Key, item_of, key_of, schema_of
from hashrange_patterns.entities.templates import Template, key_text
from hashrange_patterns.tables import Index, Item, Table

C = TypeVar("C")

_END: Final = "\U0010ffff"  # sorts behind everything that begins alike


def query_of(
    table: Table,
    kind: type[AnyEntity],
    values: Sequence[object],
    index: Index | None,
    low: object,
    high: object,
    newest_first: bool,
    after: AnyEntity | Key[AnyEntity] | None,
    consistent: bool,
) -> dict[str, Any]:
    """The parameters of a Query for entities of one class."""
    partition, sort = _templates(table, kind, index)
    names = tuple(dict.fromkeys(partition.fields + (sort.fields if sort else ())))
    if not len(partition.fields) <= len(values) <= len(names):
        raise TypeError(
            f"a query of {schema_of(kind).name} takes {', '.join(names)}, "
            f"at least the first {len(partition.fields)}: {len(values)} were given"
        )
    given = _given(kind, names, values)
    bounds = None if sort is None else _bounds(sort, given, low, high)
    parameters = _query(table, index, _whole(partition, given), bounds, newest_first, consistent)
    if after is not None:
        parameters["ExclusiveStartKey"] = _position(table, after, index)
    return parameters


@dataclass(frozen=True, slots=True)
class Wanted:
    """A field of a dataclass for a collection: its class, and whether it takes many or may do without."""

    name: str
    kind: type[AnyEntity]
    many: bool
    optional: bool


def fields_of(into: type[Any]) -> list[Wanted]:
    """What the fields of a dataclass take."""
    wanted = []
    hints = typing.get_type_hints(into)
    for field in dataclasses.fields(into):
        hint = hints[field.name]
        arguments = [one for one in typing.get_args(hint) if one is not types.NoneType]
        many = typing.get_origin(hint) is list
        optional = typing.get_origin(hint) in (typing.Union, types.UnionType)
        wanted.append(Wanted(field.name, arguments[0] if many or optional else hint, many, optional))
    if not wanted:
        raise TypeError(f"{into.__name__} has no fields: give it some, as in photos: list[Photo]")
    return wanted


def collection_query(
    table: Table,
    into: type[Any],
    kinds: Sequence[type[AnyEntity]],
    values: Sequence[object],
    index: Index | None,
    consistent: bool,
) -> dict[str, Any]:
    """The parameters of a Query for all entities of `kinds` in one partition."""
    templates = [_templates(table, kind, index) for kind in kinds]
    partition = templates[0][0]
    if any(other.text != partition.text for other, _ in templates):
        raise ValueError(f"the classes in {into.__name__} do not lie in one partition")
    if len(values) != len(partition.fields):
        raise TypeError(f"{partition.text!r} takes {', '.join(partition.fields)}: {len(values)} were given")
    given = _given(kinds[0], partition.fields, values)
    bounds = None
    if index is None or index.sort_key is not None:
        ranges = [_bounds(sort, given, None, None) for _, sort in templates if sort is not None]
        bounds = min(low for low, _ in ranges), max(high for _, high in ranges)
    return _query(table, index, _whole(partition, given), bounds, False, consistent)


def filled(into: type[C], wanted: Sequence[Wanted], found: Sequence[AnyEntity]) -> C | None:
    """An instance of `into` with the entities that were found; None if it lacks one that it needs."""
    collected: dict[str, Any] = {}
    for one in wanted:
        entities = [entity for entity in found if type(entity) is one.kind]
        if one.many:
            collected[one.name] = entities
        elif len(entities) > 1:
            raise ValueError(
                f"{into.__name__}.{one.name} takes one {one.kind.__name__}, and there are {len(entities)}"
            )
        elif entities or one.optional:
            collected[one.name] = entities[0] if entities else None
        else:
            return None
    return into(**collected)


def _query(
    table: Table,
    index: Index | None,
    partition: str,
    bounds: tuple[str, str] | None,
    newest_first: bool,
    consistent: bool,
) -> dict[str, Any]:
    names = {"#pk": index.partition_key if index else table.partition_key}
    values: Item = {":pk": {"S": partition}}
    condition = "#pk = :pk"
    sort = index.sort_key if index else table.sort_key
    if bounds is not None and sort is not None:
        names["#sk"] = sort
        values[":high"] = {"S": bounds[1]}
        if bounds[0]:
            values[":low"] = {"S": bounds[0]}
            condition += " AND #sk BETWEEN :low AND :high"
        else:
            # (DynamoDB takes no empty text as a bound)
            condition += " AND #sk <= :high"
    return {
        "TableName": table.name,
        "KeyConditionExpression": condition,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
        "ScanIndexForward": not newest_first,
        **({"IndexName": index.name} if index else {"ConsistentRead": consistent}),
    }


def _templates(table: Table, kind: type[AnyEntity], index: Index | None) -> tuple[Template, Template | None]:
    """The templates of the keys of the table, or of an index."""
    schema = schema_of(kind)
    if index is None:
        return schema.partition, schema.sort
    sort = None if index.sort_key is None else schema.template(table, index.sort_key)
    return schema.template(table, index.partition_key), sort


def _given(kind: type[AnyEntity], names: Sequence[str], values: Sequence[object]) -> dict[str, Any]:
    """The values by the names of their fields. Raises TypeError for one of another type than its field."""
    given = dict(zip(names, values, strict=False))
    for name, value in given.items():
        schema_of(kind).record.fields[name].codec.encode(value)
    return given


def _position(table: Table, after: AnyEntity | Key[AnyEntity], index: Index | None) -> Item:
    """The exclusive start key behind an entity."""
    if isinstance(after, Key):
        if index is not None:
            raise ValueError("in an index only an entity says where it lies: give the entity itself")
        return table.key(after.address)
    item = item_of(after) or schema_of(type(after)).encode(table, after)
    names = (table.partition_key, table.sort_key, *(index.keys if index else ()))
    if missing := [name for name in names if name not in item]:
        raise ValueError(f"{key_of(after).address} is not in the index: it has no {missing[0]}")
    return {name: item[name] for name in names}


def _whole(template: Template, given: Mapping[str, Any]) -> str:
    text = template.fill(given)
    if text is None:
        raise ValueError(f"{template.text!r}: a field is None, and such entities are in no partition of it")
    return text


def _bounds(template: Template, given: Mapping[str, Any], low: object, high: object) -> tuple[str, str]:
    """The first and the last sort key with these values."""
    begun = template.begin(given)
    if begun.next_field is None:
        if low is not None or high is not None:
            raise TypeError(f"{template.text!r} has no field left that low and high could bound")
        return begun.text, begun.text
    width = template.width(begun.next_field)
    lowest = begun.text if low is None else begun.text + key_text(low, width)
    highest = begun.text if high is None else begun.text + key_text(high, width)
    # (what begins with the highest value belongs to it, unless the value is the end of the key)
    if high is None or template.begin({**given, begun.next_field: high}).text != highest:
        highest += _END
    return lowest, highest
