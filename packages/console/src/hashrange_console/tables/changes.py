"""Changes of a table: indexes, billing, time to live, stream, recovery, tags, protection, deletion.

Each is a form of a page. What it sends is one request of DynamoDB's API, which the form can show as code
before it is sent. What DynamoDB refuses is answered with its own words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec
from starlette.responses import Response

from hashrange.server.admin.application import json, read_json
from hashrange_console.pages import Action, Answer
from hashrange_console.reach import Refused, View
from hashrange_console.tables.about import mode_of


@dataclass(frozen=True, slots=True)
class Step:
    """A request that a form asks for, and what to say when it is done. `href` is where to go then, "" to
    stay."""

    operation: str
    request: dict[str, Any]
    said: str
    href: str = ""


class Asks(Protocol):
    """What was sent by a form."""

    preview: bool

    async def step(self, view: View) -> Step:
        """The request of the form. Raises `Refused` for what cannot be one."""


class Form(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What every form sends: the table, and whether its request is only shown as code."""

    table: str
    preview: bool = False


class Part(msgspec.Struct, forbid_unknown_fields=True):
    """A further attribute of an index's key: of its partition key (`HASH`) or its sort key (`RANGE`)."""

    attribute: str
    role: str = "HASH"
    type: str = "S"


class AddIndex(Form, kw_only=True):
    """A new global index: its name, keys with types ("" for no sort key), and what it holds. `parts` are the
    attributes of its key after the first of the partition key and the first of the sort key."""

    name: str
    partition: str
    partition_type: str = "S"
    sort: str = ""
    sort_type: str = "S"
    parts: list[Part] = []
    projection: str = "ALL"
    include: str = ""
    read_units: str = ""
    write_units: str = ""

    async def step(self, view: View) -> Step:
        types: dict[str, str] = {}
        index: dict[str, Any] = {
            "IndexName": self.name,
            "KeySchema": schema(
                types, self.partition, self.partition_type, self.sort, self.sort_type, self.parts
            ),
            "Projection": projection(self.projection, self.include),
        }
        if self.read_units or self.write_units:
            index["ProvisionedThroughput"] = throughput(self.read_units, self.write_units)
        request = {
            "TableName": self.table,
            "AttributeDefinitions": definitions(types),
            "GlobalSecondaryIndexUpdates": [{"Create": index}],
        }
        return Step("UpdateTable", request, f"The index {self.name} is being built.")


class DropIndex(Form, kw_only=True):
    """A global index to delete."""

    name: str

    async def step(self, view: View) -> Step:
        updates = [{"Delete": {"IndexName": self.name}}]
        request = {"TableName": self.table, "GlobalSecondaryIndexUpdates": updates}
        return Step("UpdateTable", request, f"The index {self.name} is being deleted.")


class Billing(Form, kw_only=True):
    """The billing mode, and the units of the provisioned one. A table that becomes provisioned gives each of
    its indexes the same units."""

    mode: str
    read_units: str = ""
    write_units: str = ""

    async def step(self, view: View) -> Step:
        request: dict[str, Any] = {"TableName": self.table, "BillingMode": self.mode}
        if self.mode == "PROVISIONED":
            units = throughput(self.read_units, self.write_units)
            request["ProvisionedThroughput"] = units
            described = (await view.read("DescribeTable", {"TableName": self.table}))["Table"]
            indexes = described.get("GlobalSecondaryIndexes", ())
            if mode_of(described) != "PROVISIONED" and indexes:
                request["GlobalSecondaryIndexUpdates"] = [
                    {"Update": {"IndexName": index["IndexName"], "ProvisionedThroughput": units}}
                    for index in indexes
                ]
        return Step("UpdateTable", request, "The billing was changed.")


class TimeToLive(Form, kw_only=True):
    """Time to live, on or off, with its attribute."""

    attribute: str
    on: bool

    async def step(self, view: View) -> Step:
        setting = {"AttributeName": self.attribute, "Enabled": self.on}
        request = {"TableName": self.table, "TimeToLiveSpecification": setting}
        if self.on:
            said = f"Items expire at the time in their attribute {self.attribute}."
        else:
            said = "Items no longer expire."
        return Step("UpdateTimeToLive", request, said)


class Stream(Form, kw_only=True):
    """The stream with what its records hold, "" to turn it off."""

    view_type: str

    async def step(self, view: View) -> Step:
        setting: dict[str, Any] = {"StreamEnabled": bool(self.view_type)}
        if self.view_type:
            setting["StreamViewType"] = self.view_type
        said = f"The stream is {'on' if self.view_type else 'off'}."
        return Step("UpdateTable", {"TableName": self.table, "StreamSpecification": setting}, said)


class Recovery(Form, kw_only=True):
    """Point-in-time recovery, on or off, and for how many days ("": the most)."""

    on: bool
    days: str = ""

    async def step(self, view: View) -> Step:
        setting: dict[str, Any] = {"PointInTimeRecoveryEnabled": self.on}
        if self.days:
            setting["RecoveryPeriodInDays"] = number(self.days, "days")
        request = {"TableName": self.table, "PointInTimeRecoverySpecification": setting}
        said = "From now on the past is kept." if self.on else "The past is kept no longer."
        return Step("UpdateContinuousBackups", request, said)


class AddTag(Form, kw_only=True):
    """A tag to add, or to give another value."""

    key: str
    value: str = ""

    async def step(self, view: View) -> Step:
        tags = [{"Key": self.key, "Value": self.value}]
        request = {"ResourceArn": await _arn(view, self.table), "Tags": tags}
        return Step("TagResource", request, f"The table has the tag {self.key}.")


class RemoveTag(Form, kw_only=True):
    """A tag to remove."""

    key: str

    async def step(self, view: View) -> Step:
        request = {"ResourceArn": await _arn(view, self.table), "TagKeys": [self.key]}
        return Step("UntagResource", request, f"The tag {self.key} was removed.")


class Protection(Form, kw_only=True):
    """Whether the table is protected from deletion."""

    on: bool

    async def step(self, view: View) -> Step:
        request = {"TableName": self.table, "DeletionProtectionEnabled": self.on}
        said = f"The table {'cannot' if self.on else 'can'} be deleted."
        return Step("UpdateTable", request, said)


class DeleteTable(Form, kw_only=True):
    """A table to delete, and its name as the user typed it."""

    typed: str = ""

    async def step(self, view: View) -> Step:
        if not self.preview and self.typed != self.table:
            raise Refused(f"Type the name of the table, {self.table}, to delete it with all its items.")
        said = f"The deletion of the table {self.table} has begun."
        return Step("DeleteTable", {"TableName": self.table}, said, "/console")


_FORMS: Final[tuple[tuple[str, str, type[Asks]], ...]] = (
    ("/console/add-index", "Add an index to a table.", AddIndex),
    ("/console/drop-index", "Delete an index.", DropIndex),
    ("/console/billing", "Change the billing mode of a table, or its units.", Billing),
    ("/console/time-to-live", "Turn time to live on or off.", TimeToLive),
    ("/console/stream", "Turn the stream of a table on or off.", Stream),
    ("/console/recovery", "Turn point-in-time recovery on or off.", Recovery),
    ("/console/tag", "Tag a table.", AddTag),
    ("/console/untag", "Remove a tag.", RemoveTag),
    ("/console/protection", "Protect a table from deletion, or no longer.", Protection),
    ("/console/delete-table", "Delete a table.", DeleteTable),
)


def answer(shape: type[Asks]) -> Answer:
    """The answer to a form: its request as code, or what was done."""

    async def answered(view: View) -> Response:
        form = await read_json(view.request, shape)
        step = await form.step(view)
        if form.preview:
            return json({"code": view.code(step.operation, step.request)})
        await view.change(step.operation, step.request)
        return json({"said": step.said, "href": step.href})

    return answered


PARTS: Final = tuple(Action(path, about, answer(shape), shape) for path, about, shape in _FORMS)


def schema(
    types: dict[str, str],
    partition: str,
    partition_type: str,
    sort: str,
    sort_type: str,
    parts: Sequence[Part] = (),
) -> list[dict[str, str]]:
    """The KeySchema of a table or an index, all of the partition key first. Notes the types of its attributes
    in `types`, and raises `Refused` if an attribute has two."""
    keys = []
    named = [Part(partition, "HASH", partition_type)]
    if sort:
        named.append(Part(sort, "RANGE", sort_type))
    for part in sorted([*named, *parts], key=lambda part: part.role):
        name, role, kind = part.attribute, part.role, part.type
        if types.setdefault(name, kind) != kind:
            raise Refused(f"The attribute {name} has one type in all keys: choose {types[name]} or {kind}.")
        keys.append({"AttributeName": name, "KeyType": role})
    return keys


def definitions(types: dict[str, str]) -> list[dict[str, str]]:
    """The AttributeDefinitions of some attributes with their types."""
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


def projection(kind: str, include: str) -> dict[str, Any]:
    """A Projection. `include` has the names of the attributes, separated by commas."""
    if kind != "INCLUDE":
        return {"ProjectionType": kind}
    names = [name.strip() for name in include.split(",") if name.strip()]
    return {"ProjectionType": kind, "NonKeyAttributes": names}


def throughput(read_units: str, write_units: str) -> dict[str, int]:
    """The ProvisionedThroughput of what a form says."""
    return {
        "ReadCapacityUnits": number(read_units, "read units"),
        "WriteCapacityUnits": number(write_units, "write units"),
    }


def number(text: str, what: str) -> int:
    """A whole number that a user typed. Raises `Refused`."""
    if not (text.strip().isascii() and text.strip().isdecimal() and len(text) <= 12):
        raise Refused(f"The {what} are a whole number, such as 5.")
    return int(text)


async def _arn(view: View, table: str) -> str:
    described = await view.read("DescribeTable", {"TableName": table})
    return str(described["Table"]["TableArn"])
