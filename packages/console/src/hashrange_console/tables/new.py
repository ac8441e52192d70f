"""A form for a new table, the request that it stands for, and the demo table beside it."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec
from starlette.responses import Response

from hashrange.server.admin.application import json, read_json
from hashrange_console import looks
from hashrange_console.reach import Refused, View
from hashrange_console.tables.changes import Part, definitions, projection, schema, throughput
from hashrange_console.tables.filling import offered

_WAITS_MAX: Final = 100
_WAIT_SECONDS: Final = 0.1


class Index(msgspec.Struct, forbid_unknown_fields=True):
    """An index of a new table. A local one has the partition key of its table. `parts` are as those of
    `changes.AddIndex`."""

    name: str
    kind: str = "global"
    partition: str = ""
    partition_type: str = "S"
    sort: str = ""
    sort_type: str = "S"
    parts: list[Part] = []
    projection: str = "ALL"
    include: str = ""


class NewTable(msgspec.Struct, forbid_unknown_fields=True):
    """A new table as the form has it; `preview`: only show its request as code. The indexes of a provisioned
    table get the same units as the table. `ttl` is the attribute of time to live, "" for none."""

    name: str
    partition: str
    partition_type: str = "S"
    sort: str = ""
    sort_type: str = "S"
    mode: str = "PAY_PER_REQUEST"
    read_units: str = ""
    write_units: str = ""
    indexes: list[Index] = []
    stream: str = ""
    ttl: str = ""
    recovery: bool = False
    protected: bool = False
    preview: bool = False


async def page(view: View) -> Response:
    """The form, and the demo table."""
    return await looks.page(
        "tables/new.html",
        view=view,
        home=view.full_scope,
        demo=None if view.read_only else await offered(view),
    )


async def create(view: View) -> Response:
    """Create a table, and answer with the address of its definition; or its request as code."""
    form = await read_json(view.request, NewTable)
    request, settings = creation(form), _settings(form)
    if form.preview:
        code = view.code("CreateTable", request)
        for operation, setting in settings:
            code = [(language, f"{text}\n{more}") for (language, text), (_, more) in zip(
                code, view.code(operation, setting), strict=True)]
        return json({"code": code})
    await view.change("CreateTable", request)
    if settings:
        await _is_active(view, form.name)
    for operation, setting in settings:
        await view.change(operation, setting)
    href = looks.href(f"/console/t/{form.name}/about", scope=view.scope)
    return json({"said": f"The table {form.name} was created.", "href": href})


def _settings(form: NewTable) -> list[tuple[str, dict[str, Any]]]:
    """The requests for what CreateTable does not take."""
    found: list[tuple[str, dict[str, Any]]] = []
    if form.ttl:
        setting: dict[str, Any] = {"AttributeName": form.ttl, "Enabled": True}
        found.append(("UpdateTimeToLive", {"TableName": form.name, "TimeToLiveSpecification": setting}))
    if form.recovery:
        setting = {"PointInTimeRecoveryEnabled": True}
        request = {"TableName": form.name, "PointInTimeRecoverySpecification": setting}
        found.append(("UpdateContinuousBackups", request))
    return found


async def _is_active(view: View, table: str) -> None:
    """Wait until a new table takes changes, for some seconds at most."""
    for _ in range(_WAITS_MAX):
        described = await view.read("DescribeTable", {"TableName": table})
        if described["Table"]["TableStatus"] == "ACTIVE":
            return
        await asyncio.sleep(_WAIT_SECONDS)


def creation(form: NewTable) -> dict[str, Any]:
    """The CreateTable of a form. Raises `Refused`."""
    types: dict[str, str] = {}
    keys = schema(types, form.partition, form.partition_type, form.sort, form.sort_type)
    units = throughput(form.read_units, form.write_units) if form.mode == "PROVISIONED" else None
    indexes: dict[str, list[dict[str, Any]]] = {"LocalSecondaryIndexes": [], "GlobalSecondaryIndexes": []}
    for index in form.indexes:
        about = _index(form, index, types)
        if index.kind == "global" and units is not None:
            about["ProvisionedThroughput"] = units
        indexes[f"{index.kind.title()}SecondaryIndexes"].append(about)
    request: dict[str, Any] = {
        "TableName": form.name,
        "KeySchema": keys,
        "AttributeDefinitions": definitions(types),
        **{member: members for member, members in indexes.items() if members},
        "BillingMode": form.mode,
    }
    if units is not None:
        request["ProvisionedThroughput"] = units
    if form.stream:
        request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": form.stream}
    if form.protected:
        request["DeletionProtectionEnabled"] = True
    return request


def _index(form: NewTable, index: Index, types: dict[str, str]) -> dict[str, Any]:
    """An index as a CreateTable has it, without its units. Raises `Refused`."""
    if index.kind not in ("global", "local"):
        raise Refused(f"An index is global or local, and not {index.kind!r}.")
    partition, kind = index.partition, index.partition_type
    if index.kind == "local" and index.parts:
        raise Refused(f"The local index {index.name} has the partition key of its table and one sort key.")
    if index.kind == "local":
        partition, kind = form.partition, form.partition_type
    return {
        "IndexName": index.name,
        "KeySchema": schema(types, partition, kind, index.sort, index.sort_type, index.parts),
        "Projection": projection(index.projection, index.include),
    }
