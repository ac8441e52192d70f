"""Queries of entities: the parameters of a Query from the templates of keys, and dataclasses for collections.

The caller gives values for the fields of the partition key's template, and then for the first fields of the
sort key's. The known part of the sort key becomes a range of texts: all that begin with it, or those from the
first key whose next field is `low` to the last whose next field is `high`.

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

_END: Final = "\U0010ffff"  # sorts after every text with the same beginning


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
) -> dict[str, Any] | None:
    """The parameters of a Query for entities of one class; None if `low` is above `high`."""
    partition, sort = _templates(table, kind, index)
    names = tuple(dict.fromkeys(partition.fields + (sort.fields if sort else ())))
    if not len(partition.fields) <= len(values) <= len(names):
        raise TypeError(
            f"a query of {schema_of(kind).name} takes {', '.join(names)}, "
            f"at least the first {len(partition.fields)}: {len(values)} were given"
        )
    values_by_field = _values_by_field(kind, names, values)
    bounds = None if sort is None else _bounds(sort, values_by_field, low, high)
    if bounds is not None and bounds[0] > bounds[1]:
        return None  # (DynamoDB refuses such a range)
    parameters = _query(table, index, _whole(partition, values_by_field), bounds, newest_first, consistent)
    if after is not None:
        parameters["ExclusiveStartKey"] = _position(table, after, index)
    return parameters


@dataclass(frozen=True, slots=True)
class EntityField:
    """A field of a dataclass for a collection: its class, and whether it takes a list or may be None."""

    name: str
    kind: type[AnyEntity]
    many: bool
    optional: bool


def fields_of(into: type[Any]) -> list[EntityField]:
    """The classes that the fields of a dataclass take."""
    fields = []
    hints = typing.get_type_hints(into)
    for field in dataclasses.fields(into):
        hint = hints[field.name]
        arguments = [argument for argument in typing.get_args(hint) if argument is not types.NoneType]
        many = typing.get_origin(hint) is list
        optional = typing.get_origin(hint) in (typing.Union, types.UnionType)
        fields.append(EntityField(field.name, arguments[0] if many or optional else hint, many, optional))
    if not fields:
        raise TypeError(f"{into.__name__} has no fields: give it some, as in photos: list[Photo]")
    return fields


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
        raise ValueError(f"the classes in {into.__name__} are not in one partition")
    if len(values) != len(partition.fields):
        raise TypeError(f"{partition.text!r} takes {', '.join(partition.fields)}: {len(values)} were given")
    values_by_field = _values_by_field(kinds[0], partition.fields, values)
    bounds = None
    if index is None or index.sort_key is not None:
        ranges = [_bounds(sort, values_by_field, None, None) for _, sort in templates if sort is not None]
        bounds = min(low for low, _ in ranges), max(high for _, high in ranges)
    return _query(table, index, _whole(partition, values_by_field), bounds, False, consistent)


def filled(into: type[C], fields: Sequence[EntityField], entities_: Sequence[AnyEntity]) -> C | None:
    """An instance of `into` with the entities; None if an entity that it needs is missing."""
    collected: dict[str, Any] = {}
    for field_ in fields:
        entities = [entity for entity in entities_ if type(entity) is field_.kind]
        if field_.many:
            collected[field_.name] = entities
        elif len(entities) > 1:
            raise ValueError(
                f"{into.__name__}.{field_.name} takes one {field_.kind.__name__}, "
                f"and there are {len(entities)}"
            )
        elif entities or field_.optional:
            collected[field_.name] = entities[0] if entities else None
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
    own = index or Index("", table.partition_key, table.sort_key)
    sort, values = "", {}
    if bounds is not None and own.sort_key is not None:
        low, high = bounds
        # (DynamoDB does not accept an empty text as a bound)
        sort = "#sk BETWEEN :low AND :high" if low else "#sk <= :high"
        values = {"low": low, "high": high} if low else {"high": high}
    return {
        **dataclasses.replace(table, partition_key=own.partition_key, sort_key=own.sort_key or "").query(
            partition, sort=sort, **values
        ),
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


def _values_by_field(kind: type[AnyEntity], names: Sequence[str], values: Sequence[object]) -> dict[str, Any]:
    """The values by the names of their fields. Raises TypeError for a value of the wrong type."""
    values_by_field = dict(zip(names, values, strict=False))
    for name, value in values_by_field.items():
        schema_of(kind).record.fields[name].codec.encode(value)
    return values_by_field


def _position(table: Table, after: AnyEntity | Key[AnyEntity], index: Index | None) -> Item:
    """The exclusive start key of a page that begins after an entity."""
    if isinstance(after, Key):
        if index is not None:
            raise ValueError("in an index only an entity says where it lies: give the entity itself")
        return table.key(after.address)
    item = item_of(after) or schema_of(type(after)).encode(table, after)
    names = (table.partition_key, table.sort_key, *(index.keys if index else ()))
    if missing := [name for name in names if name not in item]:
        raise ValueError(f"{key_of(after).address} is not in the index: it has no {missing[0]}")
    return {name: item[name] for name in names}


def _whole(template: Template, values_by_field: Mapping[str, Any]) -> str:
    text = template.fill(values_by_field)
    if text is None:
        raise ValueError(f"{template.text!r}: a field is None, and such entities are in no partition of it")
    return text


def _bounds(template: Template, values: Mapping[str, Any], low: object, high: object) -> tuple[str, str]:
    """The lowest and the highest sort key with these values."""
    begun = template.begin(values)
    if begun.next_field is None:
        if low is not None or high is not None:
            raise TypeError(f"{template.text!r} has no field left that low and high could bound")
        return begun.text, begun.text
    lowest = highest = begun.text
    width = template.width(begun.next_field)
    if low is not None:
        lowest += key_text(low, width) + begun.following
    if high is not None:
        highest += key_text(high, width) + begun.following
    # Other fields come behind the text that follows this one.
    if high is None or begun.following:
        highest += _END
    return lowest, highest
