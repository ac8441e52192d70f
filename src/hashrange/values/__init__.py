"""Attribute values: the typed JSON of the wire, from end to end.

A value is a dict with one member, whose name is the type: ``{"S": "x"}``, ``{"N": "42"}``,
``{"B": "base64"}``, ``{"BOOL": true}``, ``{"NULL": true}``, ``{"L": [value, …]}``,
``{"M": {name: value}}``, ``{"SS" | "NS" | "BS": [text, …]}``. An item is a dict of name to value.

    numbers     38-digit numbers as normalised text: parse, render, arithmetic, size
    attributes  validation, normalisation and size in one walk
    compare     equality and order of values
    java_order  the order in which Java's hash maps list names
"""

from hashrange.values import numbers
from hashrange.values.attributes import (
    AttributeValue,
    Item,
    admit_item,
    admit_members,
    admit_value,
    check_names,
    decode_binary,
    in_order,
    item_size,
    kind,
    levels,
    size_within,
    value_size,
)
from hashrange.values.compare import canonical, equal, order

__all__ = [
    "AttributeValue",
    "Item",
    "admit_item",
    "admit_members",
    "admit_value",
    "canonical",
    "check_names",
    "decode_binary",
    "equal",
    "in_order",
    "item_size",
    "kind",
    "levels",
    "numbers",
    "order",
    "size_within",
    "value_size",
]
