"""The list of tables."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from hashrange.server.admin.application import subject_of
from hashrange.server.admin.tables import TABLES_PER_PAGE
from hashrange_console import looks
from hashrange_console.reach import Refused, View
from hashrange_console.tables.filling import offered

_EXAMPLE: Final = {
    "TableName": "orders",
    "KeySchema": [
        {"AttributeName": "customer", "KeyType": "HASH"},
        {"AttributeName": "placed", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "customer", "AttributeType": "S"},
        {"AttributeName": "placed", "AttributeType": "S"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
}


@dataclass(frozen=True, slots=True)
class ListedTable:
    """A table in the list. `keys` are the names and types of its keys, `extras` the features that are on."""

    name: str
    scope: str
    about: dict[str, Any]
    keys: list[tuple[str, str, str]]
    extras: list[tuple[str, str]]

    @property
    def href(self) -> str:
        return looks.href(f"/console/t/{self.name}", scope=self.scope)

    @property
    def definition(self) -> str:
        return looks.href(f"/console/t/{self.name}/about", scope=self.scope)

    @property
    def busy(self) -> bool:
        return is_busy(self.about)


async def page(view: View) -> Response:
    """All tables."""
    rows = [await _row(view, about) for about in await _overview(view)]
    example = view.code("CreateTable", dict(_EXAMPLE))
    listing = view.code("ListTables", {})
    return await looks.page(
        "tables/list.html",
        view=view,
        rows=rows,
        demo=await offered(view) if not rows and not view.read_only else None,
        example=example,
        code=listing,
    )


async def _overview(view: View) -> list[dict[str, Any]]:
    """What `GET /v1/tables` of the admin plane shows."""
    database = subject_of(view.request).database
    tables: list[dict[str, Any]] = []
    after = ""
    while page := database.overview(after, TABLES_PER_PAGE):
        tables += page
        after = page[-1]["name"]
        await asyncio.sleep(0)
    return tables


async def _row(view: View, about: dict[str, Any]) -> ListedTable:
    scope, _, name = about["name"].rpartition("/")
    own = View(view.request, scope)
    try:
        described = (await own.read("DescribeTable", {"TableName": name}))["Table"]
    except Refused:
        # Deleted meanwhile.
        described = {}
    return ListedTable(name, scope, about, keys_of(described), _extras(about))


def keys_of(described: dict[str, Any], index: str = "") -> list[tuple[str, str, str]]:
    """The keys of a table, or of one of its indexes: name, kind of key, type."""
    types = {
        definition["AttributeName"]: definition["AttributeType"]
        for definition in described.get("AttributeDefinitions", ())
    }
    schema = described.get("KeySchema", [])
    if index:
        indexes = indexes_of(described)
        if index not in indexes:
            raise Refused(f"There is no index {index}.", "ResourceNotFoundException")
        schema = indexes[index]["KeySchema"]
    return [(key["AttributeName"], key["KeyType"], types[key["AttributeName"]]) for key in schema]


def indexes_of(described: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The indexes of a table by name."""
    both = [*described.get("GlobalSecondaryIndexes", ()), *described.get("LocalSecondaryIndexes", ())]
    return {index["IndexName"]: index for index in both}


def is_busy(about: dict[str, Any]) -> bool:
    """Whether a table, as the overview has it, will change by itself soon: something is being built, or its
    state changes."""
    building = any(index["progress"] < 1 or index["status"] != "ACTIVE" for index in about["indexes"])
    ttl = about["time_to_live"]
    waits = ttl is not None and ttl["status"] != "ENABLED"
    return about["status"] != "ACTIVE" or building or waits or about["restore"] is not None


def _extras(about: dict[str, Any]) -> list[tuple[str, str]]:
    """The features of a table that are on, with their progress while they are built: name and detail."""
    extras = []
    if indexes := about["indexes"]:
        details = [
            f"{index['name']} ({index['kind']}, {looks.size(index['bytes'])}{_progress(index)})"
            for index in indexes
        ]
        slowest = min(indexes, key=lambda index: float(index["progress"]))
        label = f"{len(indexes)} index{'es' * (len(indexes) > 1)}{_progress(slowest)}"
        extras.append((label, ", ".join(details)))
    if (ttl := about["time_to_live"]) is not None:
        extras.append((f"TTL{_progress(ttl)}", f"attribute {ttl['attribute']}"))
    if (stream := about["stream"]) is not None:
        extras.append(("stream", stream["view_type"].replace("_", " ").lower()))
    if about["history"] is not None and "pitr" in about["history"]["holds"]:
        extras.append(("recovery", "the past of its items is kept"))
    if (restore := about["restore"]) is not None:
        extras.append((f"restoring, {restore['progress']:.0%}", f"from {restore['source']}"))
    return extras


def _progress(part: dict[str, Any]) -> str:
    return f", {part['progress']:.0%} built" if part["progress"] < 1 else ""
