"""The types that request shapes are written with.

A shape is a tree of frozen values: scalars with their constraints, lists, maps and structures. A
declaration reads as a small table:

    Structure("DeleteRequest", {"Key": required(KEY)})

This module looks at no request: `wire_types` checks the JSON types of a request by its shape, `constraints`
the values, and `quick` compiles a shape to tests for the hot path.

The shape of attribute values is recursive, so it has only a name: `ATTRIBUTE_VALUE` (see
`wire_types.ATTRIBUTE_VALUE_MEMBERS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

from hashrange.values import java_order

NAME_PATTERN: Final = "[a-zA-Z0-9_.-]+"


def enum_order(words: tuple[str, ...]) -> tuple[str, ...]:
    """The order in which DynamoDB prints the words of an enum.

    DynamoDB prints a hash set of 32 buckets. All eleven lists that were reported (from `[B, N, S]` to the
    thirteen comparison operators) have exactly this order, so other lists are printed by the same rule.
    Words that share a bucket are printed in the reverse order of their declaration.
    """
    return tuple(sorted(words, key=lambda word: (java_order.hash_code(word) & 31, -words.index(word))))


class String(msgspec.Struct, frozen=True):
    """Text; `minimum` and `maximum` count characters, `words` is the closed set of an enum.

    `names_table`: an ARN or the name of a table; a name must also satisfy the narrower rules of names, as
    must an empty text if `empty_is_name`. `length_first`: a violation of the length is reported before a
    violation of the pattern. `brief`: a violation shows the API's name of the member, and no value.
    """

    minimum: int | None = None
    maximum: int | None = None
    pattern: str | None = None
    words: tuple[str, ...] = ()
    names_table: bool = False
    empty_is_name: bool = False
    length_first: bool = False
    brief: bool = False


class Number(msgspec.Struct, frozen=True):
    """`kind` is the Java type named in messages: Integer, Long or Double. `cuts`: a fraction is cut off."""

    kind: str
    minimum: int | None = None
    maximum: int | None = None
    cuts: bool = False


class Boolean(msgspec.Struct, frozen=True):
    pass


class Blob(msgspec.Struct, frozen=True):
    """Base64 text."""


class Timestamp(msgspec.Struct, frozen=True):
    """Seconds since the epoch, with or without a fraction."""


class AttributeValue(msgspec.Struct, frozen=True):
    """One attribute value; its own rules belong to `values`."""


class List(msgspec.Struct, frozen=True):
    """`brief` as in `String`."""

    member: Shape
    minimum: int | None = None
    maximum: int | None = None
    brief: bool = False


class Map(msgspec.Struct, frozen=True):
    """`whole`: a bad size of a list in the map is reported for the map itself, as DynamoDB does for
    BatchWriteItem."""

    key: String
    value: Shape
    minimum: int | None = None
    maximum: int | None = None
    whole: bool = False


class Member(msgspec.Struct, frozen=True):
    """A required member of a structure; `required` makes it."""

    shape: Shape


class Structure:
    """`name` is the shape's name in the API model. `members` maps the names of `table` to shapes; `needed`
    are the names of the required members."""

    __slots__ = ("members", "name", "needed")

    def __init__(self, name: str, table: Mapping[str, Shape | Member]) -> None:
        self.name: Final = name
        self.members: Final = {
            name: member.shape if isinstance(member, Member) else member for name, member in table.items()
        }
        self.needed: Final = frozenset(name for name, member in table.items() if isinstance(member, Member))


Shape: TypeAlias = String | Number | Boolean | Blob | Timestamp | AttributeValue | List | Map | Structure
Members: TypeAlias = dict[str, Shape | Member]
"""The members of a structure, or some that several structures have."""


def required(shape: Shape) -> Member:
    return Member(shape)


def requests(tables: Mapping[str, Members]) -> dict[str, Structure]:
    """The shapes of requests by their operations: the one of PutItem is called PutItemInput."""
    return {operation: Structure(f"{operation}Input", table) for operation, table in tables.items()}


def enum(*words: str) -> String:
    return String(words=enum_order(words))


def integer(minimum: int | None = None, maximum: int | None = None) -> Number:
    return Number("Integer", minimum, maximum)


def long(minimum: int | None = None) -> Number:
    return Number("Long", minimum)


def camel(name: str) -> str:
    """A member's name as messages print it, in Java's form: `tableName` for `TableName`."""
    return name[0].lower() + name[1:]


TEXT: Final = String()
BOOLEAN: Final = Boolean()
BLOB: Final = Blob()
TIMESTAMP: Final = Timestamp()
LONG: Final = long()
INTEGER: Final = integer()
DOUBLE: Final = Number("Double")
ATTRIBUTE_VALUE: Final = AttributeValue()
