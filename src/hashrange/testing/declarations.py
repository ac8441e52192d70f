"""A table to be created, the short form in which tests declare it, and how it is made.

    declare("orders", "pk, sk:N", indexes={"by-customer": "customer, placed:N"}, ttl="until")

A key is written as its attributes, the partition key first; an attribute without a type after its name has
the type S. Tables from files of other programs are those of the ring `templates`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from hashrange.shapes import OPERATIONS

if TYPE_CHECKING:
    from hashrange.database import Database

Request = dict[str, Any]
Item = dict[str, Any]
Setting = tuple[str, Request]
"""An operation, and its request without the table's name; members that are None are absent."""

Execute = Callable[[str, Request], Request]

_TYPES: Final = ("S", "N", "B")


class DeclarationError(ValueError):
    """A declaration of tables or items cannot be read; the text says what is wrong with it."""


class DeclarationWarning(UserWarning):
    """A part of a declaration has no effect in this database; the text says which, and why."""


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


def make(
    database: Database,
    execute: Execute,
    load: Callable[[str, tuple[Item, ...]], object],
    declared: Declaration,
) -> list[str]:
    """Make a table through `execute`, and put its items with `load`. Returns what has no effect.

    A table that something has to follow is ACTIVE at once, whatever the settings say. Raises
    `hashrange.errors.ServiceError`.
    """
    notes = list(declared.notes)
    follows = bool(declared.ttl or declared.settings or declared.stream_policy or declared.replicas)
    with _at_once(database, follows or bool(declared.items)):
        made = execute("CreateTable", declared.create)["TableDescription"]
        if declared.ttl is not None:
            specification = {"AttributeName": declared.ttl, "Enabled": True}
            execute(
                "UpdateTimeToLive", {"TableName": declared.name, "TimeToLiveSpecification": specification}
            )
        for operation, members in declared.settings:
            execute(operation, {"TableName": declared.name, **members})
        if declared.stream_policy is not None and "LatestStreamArn" in made:
            policy = {"ResourceArn": made["LatestStreamArn"], "Policy": declared.stream_policy}
            execute("PutResourcePolicy", policy)
        hindrance = _hindrance(database, declared) if declared.replicas else ""
        if hindrance:
            notes.append(f"its replicas in {_regions(declared)} are not made: {hindrance}")
        else:
            for members in declared.replicas:
                execute("UpdateTable", {"TableName": declared.name, **members})
    load(declared.name, declared.items)
    return notes


def _hindrance(database: Database, declared: Declaration) -> str:
    """Why a table cannot have replicas here; "" if it can."""
    if database.settings.separate_regions:
        return (
            "each region of this database has its own tables. Give it the setting separate_regions=False, as "
            "hashrange.local(shared_regions=True) does."
        )
    if declared.create["BillingMode"] == "PROVISIONED":
        return "a table with provisioned capacity gets none, because nothing scales it here."
    return ""


def _regions(declared: Declaration) -> str:
    updates = [update["Create"] for members in declared.replicas for update in members["ReplicaUpdates"]]
    return ", ".join(str(create["RegionName"]) for create in updates)


@contextmanager
def _at_once(database: Database, wanted: bool) -> Iterator[None]:
    """Let tables change their states at once meanwhile."""
    settings = database.settings
    if wanted and (settings.create_seconds or settings.update_seconds):
        database.settings = replace(settings, create_seconds=0.0, update_seconds=0.0)
    try:
        yield
    finally:
        database.settings = settings
