"""The least IAM policies that a pair needs, one for each side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hashrange_sync.deciding import SideName
from hashrange_sync.settings import Pair, Place, Settings

_READ = ("DescribeTable", "DescribeTimeToLive", "Scan", "BatchGetItem")
_STREAM = ("DescribeStream", "GetShardIterator", "GetRecords")
_WRITE = ("PutItem", "UpdateItem", "DeleteItem")
_BATCH = ("PartiQLInsert", "PartiQLUpdate")
_STATE = ("DescribeTable", "CreateTable", "GetItem", "BatchGetItem", "Query", "Scan", *_WRITE)
_DEFINE = ("CreateTable", "UpdateTable", "UpdateTimeToLive")


def policy(settings: Settings, side: SideName, *, definitions: bool = False) -> dict[str, Any]:
    """The policy document of a side; with what `--definitions` needs."""
    place = settings.cloud if side == "cloud" else settings.edge
    statements: list[Mapping[str, Any]] = []
    for pair in settings.pairs:
        statements += _of_pair(pair, side, place, definitions=definitions)
    return {"Version": "2012-10-17", "Statement": statements}


def _of_pair(pair: Pair, side: SideName, place: Place, *, definitions: bool) -> list[Mapping[str, Any]]:
    name = pair.cloud_name if side == "cloud" else pair.edge_name
    own, other = ("down", "up") if side == "cloud" else ("up", "down")
    table = _arn(place, name)
    writes = [*_WRITE, *(_BATCH if side == "cloud" else ())] if pair.direction != own else []
    actions = [*_READ, *writes, *(_DEFINE if definitions else ())]
    found: list[Mapping[str, Any]] = [_allowed(actions, [table])]
    if pair.direction != other:
        found.append(_allowed(_STREAM, [f"{table}/stream/*"]))
    if side == "edge":
        found.append(_allowed(_STATE, [_arn(place, pair.state_table), _arn(place, pair.conflict_table)]))
    return found


def _arn(place: Place, table: str) -> str:
    return f"arn:aws:dynamodb:{place.region or '*'}:*:table/{table}"


def _allowed(actions: Any, resources: list[str]) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": [f"dynamodb:{action}" for action in actions], "Resource": resources}
