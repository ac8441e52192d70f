"""A table to be created: the request of CreateTable, its time to live, and its first items.

    declare("orders", "pk, sk:N", indexes={"by-customer": "customer, placed:N"}, ttl="until")

A key is written as its attributes, the partition key first; an attribute without a type after its name has
the type S.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hashrange.interchange.descriptions import IncompleteDescription, create_request
from hashrange.shapes import OPERATIONS
from hashrange.testing.tables.forms import DeclarationError, DocumentPlace

Request = dict[str, Any]
Item = dict[str, Any]
Setting = tuple[str, Request]
"""An operation, and its request without the table's name; members that are None are absent."""

_TYPES: Final = ("S", "N", "B")


@dataclass(frozen=True, slots=True)
class Declaration:
    """`create` is the request of CreateTable, `ttl` the attribute of the time to live or None, `items` are in
    the form of the wire.

    `settings` are the other operations that follow CreateTable, `stream_policy` is the resource policy of the
    table's stream, and `replicas` has the members of the UpdateTable requests that make replicas in other
    regions. `notes` say what was declared and has no effect.
    """

    create: Request
    ttl: str | None = None
    items: tuple[Item, ...] = ()
    settings: tuple[Setting, ...] = ()
    stream_policy: str | None = None
    replicas: tuple[Request, ...] = ()
    notes: Sequence[str] = ()

    @property
    def name(self) -> str:
        """The table's name."""
        name: str = self.create["TableName"]
        return name


def declare(
    name: str,
    key: str,
    *,
    indexes: Mapping[str, str] | None = None,
    local_indexes: Mapping[str, str] | None = None,
    stream: str | None = None,
    ttl: str | None = None,
    items: Iterable[Item] = (),
    **members: Any,
) -> Declaration:
    """A table with a key such as ``"pk"`` or ``"pk, sk:N"``; keys of indexes are written in the same way.

    Indexes project all attributes. `stream` is a StreamViewType, `ttl` the attribute of the time to live.
    `members` are other members of CreateTable, unchanged. Raises DeclarationError for a key that cannot be
    read, and for a member that CreateTable does not have.
    """
    check_names(members, OPERATIONS["CreateTable"].members)
    types: dict[str, str] = {}
    create: Request = {"TableName": name, "KeySchema": _schema(key, types), "BillingMode": "PAY_PER_REQUEST"}
    for member, given in (("GlobalSecondaryIndexes", indexes), ("LocalSecondaryIndexes", local_indexes)):
        if given:
            create[member] = [
                {
                    "IndexName": index,
                    "KeySchema": _schema(text, types),
                    "Projection": {"ProjectionType": "ALL"},
                }
                for index, text in given.items()
            ]
    if stream is not None:
        create["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": stream}
    create["AttributeDefinitions"] = [
        {"AttributeName": attribute, "AttributeType": type_} for attribute, type_ in types.items()
    ]
    return Declaration(create | members, ttl, tuple(items))


SHORT_MEMBERS: Final = ("name", "key", "indexes", "local_indexes", "stream", "ttl", "items")
"""The parameters of `declare`."""


def check_names(given: Iterable[str], known: Iterable[str]) -> None:
    """Raise DeclarationError for a name that is neither in `known` nor one of `SHORT_MEMBERS`.

    DynamoDB ignores members that it does not know, so a misspelt member would have no effect.
    """
    allowed = (*SHORT_MEMBERS, *known)
    for name in given:
        if name not in allowed:
            lower = {name_.lower(): name_ for name_ in allowed}
            near = difflib.get_close_matches(name.lower(), lower, 1)
            hint = (
                f"did you mean {lower[near[0]]!r}?"
                if near
                else f"there are {', '.join(SHORT_MEMBERS)}, and the members of CreateTable."
            )
            raise DeclarationError(f"A table is not declared by {name!r}; {hint}")


def _schema(key: str, types: dict[str, str]) -> list[dict[str, str]]:
    """The KeySchema of a key; the types of its attributes go into `types`."""
    schema = []
    for position, part in enumerate(key.split(",")):
        attribute, _, type_ = (part_text.strip() for part_text in part.partition(":"))
        type_ = type_ or types.get(attribute, "S")
        if not attribute or type_ not in _TYPES or types.get(attribute, type_) != type_ or position > 1:
            raise DeclarationError(
                f"{key!r} is not a key: write its partition key, and its sort key if there is one, with "
                'their types S, N or B, as in "pk" and "pk, sk:N". An attribute has one type in a table.'
            )
        types[attribute] = type_
        schema.append({"AttributeName": attribute, "KeyType": "RANGE" if position else "HASH"})
    return schema


def of_request(given: Mapping[str, Any], place: DocumentPlace) -> Request:
    """The request of CreateTable in a request or in an answer of DescribeTable, which are at `place`. Raises
    DeclarationError."""
    try:
        return create_request(given)
    except IncompleteDescription as error:
        raise place.error(str(error)) from error
