"""The definition of a table: keys, indexes, billing, time to live, stream, recovery, tags, and how far its
builds have come. The same as code: the request that describes it, and those that would make it again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from hashrange.clock import show_moment
from hashrange.server.admin.application import subject_of
from hashrange_console import looks
from hashrange_console.reach import View
from hashrange_console.tables.details import recovery_of, tags_of, time_to_live_of
from hashrange_console.tables.listing import is_busy, keys_of

_KEPT: Final = ("AttributeDefinitions", "TableName", "KeySchema")
_USUAL_KEY: Final = ":alias/aws/dynamodb"
_UNITS: Final = ("ReadCapacityUnits", "WriteCapacityUnits")


@dataclass(frozen=True, slots=True)
class IndexRow:
    """An index as the page shows it. `progress` is the part that is built, from 0 to 1."""

    name: str
    kind: str
    keys: list[tuple[str, str, str]]
    projection: str
    status: str
    progress: float
    entries: int
    size_bytes: int
    units: str

    @property
    def busy(self) -> bool:
        return self.status != "active" or self.progress < 1


async def page(view: View) -> Response:
    """The page of a table's definition."""
    table = view.request.path_params["table"]
    described = (await view.read("DescribeTable", {"TableName": table}))["Table"]
    known = subject_of(view.request).database.overview_of(view.full_name(table))
    ttl = await time_to_live_of(view, table)
    recovery = await recovery_of(view, table)
    tags = await tags_of(view, described["TableArn"])
    busy = known is not None and (is_busy(known) or ttl["status"].endswith("ING"))
    return await looks.page(
        "tables/about.html",
        view=view,
        table=table,
        described=described,
        created=show_moment(described["CreationDateTime"]),
        keys=keys_of(described),
        indexes=_indexes(described, known),
        mode=mode_of(described),
        ttl=ttl | {"progress": _share(known, "time_to_live")},
        restore=known["restore"] if known is not None else None,
        stream=described.get("StreamSpecification", {}).get("StreamViewType", ""),
        recovery=recovery,
        tags=tags,
        busy=busy,
        codes=_codes(view, described, ttl, recovery, tags),
    )


def mode_of(described: dict[str, Any]) -> str:
    """The billing mode of a table."""
    return str(described.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED"))


def _share(known: dict[str, Any] | None, part: str) -> float:
    """How much of a part of a table is built, from 0 to 1."""
    about = known[part] if known is not None else None
    return float(about["progress"]) if about is not None else 1.0


def _indexes(described: dict[str, Any], known: dict[str, Any] | None) -> list[IndexRow]:
    progress = {index["name"]: index["progress"] for index in known["indexes"]} if known is not None else {}
    rows = []
    for member, kind in (("GlobalSecondaryIndexes", "global"), ("LocalSecondaryIndexes", "local")):
        for index in described.get(member, ()):
            name = index["IndexName"]
            units = index.get("ProvisionedThroughput", {})
            provisioned = kind == "global" and units.get("ReadCapacityUnits")
            rows.append(
                IndexRow(
                    name,
                    kind,
                    keys_of(described, name),
                    _projection(index["Projection"]),
                    index.get("IndexStatus", "ACTIVE").lower(),
                    progress.get(name, 1.0),
                    index.get("ItemCount", 0),
                    index.get("IndexSizeBytes", 0),
                    " / ".join(str(units[unit]) for unit in _UNITS) if provisioned else "",
                )
            )
    return rows


def _projection(projection: dict[str, Any]) -> str:
    match projection["ProjectionType"]:
        case "ALL":
            return "all attributes"
        case "KEYS_ONLY":
            return "keys only"
        case _:
            return "keys and " + ", ".join(projection.get("NonKeyAttributes", ()))


def creation(described: dict[str, Any], tags: list[dict[str, str]]) -> dict[str, Any]:
    """The CreateTable that makes a table with this description again, without its items."""
    mode = mode_of(described)
    sent: dict[str, Any] = {member: described[member] for member in _KEPT}
    if local := described.get("LocalSecondaryIndexes"):
        members = ("IndexName", "KeySchema", "Projection")
        sent["LocalSecondaryIndexes"] = [{name: index[name] for name in members} for index in local]
    if indexes := described.get("GlobalSecondaryIndexes"):
        sent["GlobalSecondaryIndexes"] = [_index_again(index, mode) for index in indexes]
    sent["BillingMode"] = mode
    sent |= _capacity(described, mode)
    if "StreamSpecification" in described:
        sent["StreamSpecification"] = described["StreamSpecification"]
    if "TableClassSummary" in described:
        sent["TableClass"] = described["TableClassSummary"]["TableClass"]
    if described.get("SSEDescription", {}).get("Status") in ("ENABLED", "ENABLING"):
        about = described["SSEDescription"]
        sent["SSESpecification"] = {"Enabled": True, "SSEType": about["SSEType"]}
        key = about.get("KMSMasterKeyArn", _USUAL_KEY)
        if not key.endswith(_USUAL_KEY):
            sent["SSESpecification"]["KMSMasterKeyId"] = key
    if described.get("DeletionProtectionEnabled"):
        sent["DeletionProtectionEnabled"] = True
    if tags:
        sent["Tags"] = tags
    return sent


def _index_again(index: dict[str, Any], mode: str) -> dict[str, Any]:
    members = ("IndexName", "KeySchema", "Projection")
    return {name: index[name] for name in members} | _capacity(index, mode)


def _capacity(about: dict[str, Any], mode: str) -> dict[str, Any]:
    """The capacity of a table or an index, as a request has it."""
    if mode == "PROVISIONED":
        return {"ProvisionedThroughput": {unit: about["ProvisionedThroughput"][unit] for unit in _UNITS}}
    return {"OnDemandThroughput": about["OnDemandThroughput"]} if "OnDemandThroughput" in about else {}


def _codes(
    view: View,
    described: dict[str, Any],
    ttl: dict[str, Any],
    recovery: dict[str, Any] | None,
    tags: list[dict[str, str]],
) -> list[tuple[str, list[tuple[str, str]]]]:
    """Requests as code, each with a title: those of this page, and those that make such a table."""
    name = described["TableName"]
    steps: list[tuple[str, str, dict[str, Any]]] = [
        ("This page as code", "DescribeTable", {"TableName": name}),
        ("A table like this as code", "CreateTable", creation(described, tags)),
    ]
    if ttl["attribute"]:
        setting = {"AttributeName": ttl["attribute"], "Enabled": True}
        sent = {"TableName": name, "TimeToLiveSpecification": setting}
        steps.append(("Its time to live as code", "UpdateTimeToLive", sent))
    if recovery is not None:
        setting = {"PointInTimeRecoveryEnabled": True}
        if recovery["days"] is not None:
            setting["RecoveryPeriodInDays"] = recovery["days"]
        sent = {"TableName": name, "PointInTimeRecoverySpecification": setting}
        steps.append(("Its recovery as code", "UpdateContinuousBackups", sent))
    return [(title, view.code(operation, sent)) for title, operation, sent in steps]
