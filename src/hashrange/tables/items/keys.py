"""An item's primary key: its rules, and the storage address that follows from it.

`address_of_key` takes a request's `Key`, which holds the key and nothing else; `address_of_item` takes a
whole item. Their errors differ, as DynamoDB's do.
"""

from __future__ import annotations

from hashrange import encoding
from hashrange.errors import INVALID, KEY_MISMATCH, TopLevelError, ValidationException
from hashrange.limits import PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX
from hashrange.tables.definitions.table import KeyAttribute, KeySchema, Table
from hashrange.values import AttributeValue, Item, kind, value_size

_EMPTY_KEY = (
    "One or more parameter values are not valid. "
    "The AttributeValue for a key attribute cannot contain an empty {what} value. Key: {name}"
)

TOO_LONG_PARTITION_KEY = f"{INVALID}Size of hashkey has exceeded the maximum size limit of2048 bytes"
TOO_LONG_SORT_KEY = f"{INVALID}Aggregated size of all range keys has exceeded the size limit of 1024 bytes"

_NOT_SCALAR = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed:"


def address_of_key(schema: KeySchema, key: Item) -> tuple[bytes, bytes]:
    """The `(partition, sort)` of a request's `Key`, which must hold exactly the key attributes."""
    partition_attribute = schema.partition[0]
    value = key.get(partition_attribute.name)
    if value is None or partition_attribute.type not in value:
        raise ValidationException(KEY_MISMATCH)
    if not schema.sort:
        if len(key) != 1:
            raise ValidationException(KEY_MISMATCH)
        return encoding.partition_of_one(checked(value, partition_attribute, is_sort=False)), b""
    sort_attribute = schema.sort[0]
    sort_value = key.get(sort_attribute.name)
    if sort_value is None or sort_attribute.type not in sort_value or len(key) != 2:
        raise ValidationException(KEY_MISMATCH)
    return (
        encoding.partition_of_one(checked(value, partition_attribute, is_sort=False)),
        encoding.pack_sort(checked(sort_value, sort_attribute, is_sort=True)),
    )


def address_of_item(schema: KeySchema, item: Item) -> tuple[bytes, bytes]:
    """The `(partition, sort)` of a whole item."""
    partition_attribute = schema.partition[0]
    partition = encoding.partition_of_one(_required(item, partition_attribute, is_sort=False))
    if not schema.sort:
        return partition, b""
    return partition, encoding.pack_sort(_required(item, schema.sort[0], is_sort=True))


def check_scalars(table: Table, nested: frozenset[str]) -> None:
    """Raise `ValidationException` if an expression's path leads into a key attribute of the table or an
    index.

    The wording is that of DynamoDB Local; [report] dynoxide's list of what the service checks.
    """
    if not nested:
        return
    for attribute in table.key.attributes():
        if attribute.name in nested:
            raise ValidationException(f"{_NOT_SCALAR} Key: {attribute.name}")
    for index in table.indexes:
        for attribute in index.attributes():
            if attribute.name in nested:
                raise ValidationException(f"{_NOT_SCALAR} IndexKey: {attribute.name}")


def key_of(schema: KeySchema, item: Item) -> Item:
    """The key attributes of an item."""
    return {attribute.name: item[attribute.name] for attribute in schema.attributes()}


def _required(item: Item, attribute: KeyAttribute, *, is_sort: bool) -> AttributeValue:
    value = item.get(attribute.name)
    if value is None:
        raise ValidationException(f"{INVALID}Missing the key {attribute.name} in the item")
    if attribute.type not in value:
        raise ValidationException(
            f"{INVALID}Type mismatch for key {attribute.name} expected: {attribute.type} "
            f"actual: {kind(value)}"
        )
    return checked(value, attribute, is_sort=is_sort)


def checked(value: AttributeValue, attribute: KeyAttribute, *, is_sort: bool) -> AttributeValue:
    """A key value of the right type, refused if it is empty or too long."""
    if attribute.type == "N":
        return value
    content = value[attribute.type]
    if not content:
        type_name = "string" if attribute.type == "S" else "binary"
        raise TopLevelError(_EMPTY_KEY.format(what=type_name, name=attribute.name))
    # UTF-8 takes at most 4 bytes per character, base64 more than one per byte: short keys need no measuring.
    if len(content) * 4 > SORT_KEY_BYTES_MAX:
        check_key_size(value, is_sort=is_sort)
    return value


def check_key_size(value: AttributeValue, *, is_sort: bool) -> None:
    """Raise `ValidationException` if a key value is too long."""
    size = value_size(value)
    if is_sort and size > SORT_KEY_BYTES_MAX:
        raise ValidationException(TOO_LONG_SORT_KEY)
    if not is_sort and size > PARTITION_KEY_BYTES_MAX:
        raise ValidationException(TOO_LONG_PARTITION_KEY)
