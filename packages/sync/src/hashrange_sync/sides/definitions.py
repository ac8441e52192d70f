"""What the two tables of a pair must be, and how they differ.

Both need the same key, and each side whose changes are followed a stream with both images. Other differences
are only told; `align` makes what can be made: a table that is missing, a stream, a global index, a time to
live.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hashrange_sync.deciding import SideName
from hashrange_sync.errors import Missing, SyncError
from hashrange_sync.sides.calls import GONE, Side

_VIEW: Final = "NEW_AND_OLD_IMAGES"
_POLLS_MAX: Final = 600
_REMEDY: Final = "`--definitions` makes both alike"


@dataclass(frozen=True, slots=True)
class Table:
    """A table as one side describes it. `id` is another one for each table that is made; `stream` is the ARN
    of its stream, "" if it is off or without both images; `shown` is the description itself."""

    id: str
    key: tuple[tuple[str, str, str], ...]
    stream: str
    expiry: str
    items: int
    bytes: int
    shown: Mapping[str, Any] = field(repr=False)

    @property
    def key_names(self) -> list[str]:
        """The key attributes, the partition key first."""
        return [name for name, _, _ in self.key]

    @property
    def indexes(self) -> dict[str, Any]:
        """The global indexes by name, as CreateTable takes them."""
        return {one["IndexName"]: _index(one) for one in self.shown.get("GlobalSecondaryIndexes", ())}


def described(side: Side) -> Table | None:
    """The table of a side; None if it is not there. Raises `SyncError`."""
    try:
        shown = side.call("describe_table", TableName=side.table)["Table"]
    except Missing:
        return None
    kinds = {one["AttributeName"]: one["AttributeType"] for one in shown["AttributeDefinitions"]}
    key = tuple(
        (one["AttributeName"], one["KeyType"], kinds[one["AttributeName"]]) for one in shown["KeySchema"]
    )
    stream = shown.get("StreamSpecification", {})
    has_both = stream.get("StreamEnabled") and stream.get("StreamViewType") == _VIEW
    expiry = side.call("describe_time_to_live", TableName=side.table)["TimeToLiveDescription"]
    is_on = expiry.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
    return Table(
        str(shown.get("TableId") or shown.get("CreationDateTime")),
        key,
        shown.get("LatestStreamArn", "") if has_both else "",
        expiry.get("AttributeName", "") if is_on else "",
        shown.get("ItemCount", 0),
        shown.get("TableSizeBytes", 0),
        shown,
    )


def _index(shown: Mapping[str, Any]) -> dict[str, Any]:
    return {name: shown[name] for name in ("IndexName", "KeySchema", "Projection")}


def needed(side: Side) -> Table:
    """The table of a side. Raises `SyncError` if it is not there."""
    table = described(side)
    if table is None:
        raise Missing(f"The {side.name} has no table {side.table}; {_REMEDY} if it never had one. {GONE}")
    return table


def check(
    tables: Mapping[SideName, Table], followed: Sequence[SideName], sides: Mapping[SideName, Side]
) -> None:
    """Raises `SyncError` if the pair cannot be kept equal."""
    cloud, edge = tables["cloud"], tables["edge"]
    if cloud.id == edge.id:
        raise SyncError(f"Both sides are the same table {sides['edge'].table}; name another place or table.")
    if cloud.key != edge.key:
        raise SyncError(
            f"The keys differ: the cloud's {sides['cloud'].table} has {_shown_key(cloud)}, the edge's "
            f"{sides['edge'].table} has {_shown_key(edge)}. Only tables with the same key can be kept equal."
        )
    for name in followed:
        if not tables[name].stream:
            raise SyncError(
                f"The stream of the {name}'s table {sides[name].table} is off, or lacks images. Switch it on "
                f"with {_VIEW}, or let `hashrange sync run --definitions` do that."
            )


def _shown_key(table: Table) -> str:
    return ", ".join(f"{name} ({kind}, {type_})" for name, kind, type_ in table.key)


def told(tables: Mapping[SideName, Table]) -> list[str]:
    """How the tables differ in what does not stop the pair."""
    cloud, edge = tables["cloud"], tables["edge"]
    found = []
    for name in sorted(cloud.indexes.keys() ^ edge.indexes.keys()):
        there = "cloud" if name in cloud.indexes else "edge"
        found.append(f"only the {there} has the index {name}")
    found += [
        f"the index {name} differs"
        for name in sorted(cloud.indexes.keys() & edge.indexes.keys())
        if cloud.indexes[name] != edge.indexes[name]
    ]
    local = [
        {one["IndexName"] for one in table.shown.get("LocalSecondaryIndexes", ())} for table in (cloud, edge)
    ]
    found += [f"only one side has the local index {name}" for name in sorted(local[0] ^ local[1])]
    if cloud.expiry != edge.expiry:
        found.append(
            f"the time to live is {cloud.expiry or 'off'} in the cloud, {edge.expiry or 'off'} at the edge"
        )
    return found


def align(
    sides: Mapping[SideName, Side], followed: Sequence[SideName], wait: Callable[[float], object]
) -> list[str]:
    """Make both tables alike where that can be done. Returns what was done. Raises `SyncError`."""
    done: list[str] = []
    tables = {name: described(side) for name, side in sides.items()}
    for name, other in _PAIRS:
        model = tables[other]
        if tables[name] is None and model is not None:
            create(sides[name], _like(model, sides[name].table), wait)
            tables[name] = needed(sides[name])
            done.append(f"made the {name}'s table {sides[name].table}")
    for name, side in sides.items():
        table = tables[name] or needed(side)
        if name in followed and not table.stream:
            if table.shown.get("StreamSpecification", {}).get("StreamEnabled"):
                _update(side, wait, StreamSpecification={"StreamEnabled": False})
            _update(side, wait, StreamSpecification={"StreamEnabled": True, "StreamViewType": _VIEW})
            done.append(f"switched on the stream of the {name}'s table")
    for name, other in _PAIRS:
        mine, model = needed(sides[name]), needed(sides[other])
        for index in model.indexes.keys() - mine.indexes.keys():
            definitions = _attributes(model, [model.indexes[index]])
            update = [{"Create": model.indexes[index]}]
            _update(sides[name], wait, AttributeDefinitions=definitions, GlobalSecondaryIndexUpdates=update)
            done.append(f"made the index {index} of the {name}'s table")
        if model.expiry and not mine.expiry:
            sides[name].call(
                "update_time_to_live",
                TableName=sides[name].table,
                TimeToLiveSpecification={"Enabled": True, "AttributeName": model.expiry},
            )
            done.append(f"set the time to live of the {name}'s table to {model.expiry}")
    return done


_PAIRS: Final[tuple[tuple[SideName, SideName], ...]] = (("edge", "cloud"), ("cloud", "edge"))


def _like(model: Table, name: str) -> dict[str, Any]:
    indexes = list(model.indexes.values())
    local = [_index(one) for one in model.shown.get("LocalSecondaryIndexes", ())]
    made: dict[str, Any] = {
        "TableName": name,
        "KeySchema": model.shown["KeySchema"],
        "AttributeDefinitions": _attributes(model, [model.shown, *indexes, *local]),
        "BillingMode": "PAY_PER_REQUEST",
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": _VIEW},
    }
    made |= {"GlobalSecondaryIndexes": indexes} if indexes else {}
    made |= {"LocalSecondaryIndexes": local} if local else {}
    return made


def _attributes(model: Table, keyed: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    names = {one["AttributeName"] for part in keyed for one in part["KeySchema"]}
    return [one for one in model.shown["AttributeDefinitions"] if one["AttributeName"] in names]


def create(side: Side, definition: Mapping[str, Any], wait: Callable[[float], object]) -> None:
    """Make a table, and wait until it can be used. Raises `SyncError`."""
    side.call("create_table", **definition)
    _active(side, definition["TableName"], wait)


def _update(side: Side, wait: Callable[[float], object], **change: Any) -> None:
    side.call("update_table", TableName=side.table, **change)
    _active(side, side.table, wait)


def _active(side: Side, table: str, wait: Callable[[float], object]) -> None:
    for _ in range(_POLLS_MAX):
        shown = side.call("describe_table", TableName=table)["Table"]
        indexes = [one.get("IndexStatus", "ACTIVE") for one in shown.get("GlobalSecondaryIndexes", ())]
        if {shown["TableStatus"], *indexes} == {"ACTIVE"}:
            return
        wait(1.0)
    raise SyncError(f"The {side.name}'s table {table} is still not ACTIVE; look there, then try again.")


def create_if_missing(side: Side, name: str, key: Sequence[str], wait: Callable[[float], object]) -> None:
    """Make a table whose key attributes are texts, unless it is there. Raises `SyncError`."""
    try:
        shown = side.call("describe_table", TableName=name)["Table"]
    except Missing:
        definition = {
            "TableName": name,
            "AttributeDefinitions": [{"AttributeName": one, "AttributeType": "S"} for one in key],
            "KeySchema": [
                {"AttributeName": one, "KeyType": kind}
                for one, kind in zip(key, ("HASH", "RANGE"), strict=False)
            ],
            "BillingMode": "PAY_PER_REQUEST",
        }
        create(side, definition, wait)
    else:
        if shown["TableStatus"] != "ACTIVE":
            _active(side, name, wait)
