"""Destinations of records that a trigger gave up: a file of JSON lines, or a table.

A line of the file, or the attribute `failure` of an item, is Lambda's on-failure record together with the
records themselves, because a stream keeps records only for a day.

    {"requestContext": {"requestId", "functionArn", "condition", "approximateInvokeCount"},
     "version": "1.0", "timestamp": …,
     "DDBStreamBatchInfo": {"shardId", "startSequenceNumber", "endSequenceNumber", "batchSize", "streamArn",
                            "approximateArrivalOfFirstRecord", "approximateArrivalOfLastRecord"},
     "Records": […]}

A failure that is larger than an item may be is cut: the attribute `failure` has the first part of its text,
and `parts` says how many there are. The others are in the items `ID/2`, `ID/3` and so on.

Source: Lambda Developer Guide, "Retaining discarded records for a DynamoDB event source".
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol

import orjson

from hashrange.cli.remote.clients import Clients
from hashrange.files.durable import private, sync, sync_directory
from hashrange_triggers.checkpoints import create_table
from hashrange_triggers.delivery import Reason
from hashrange_triggers.events import Record, created_at, sequence_of

TABLE_PREFIX: Final = "table:"
_PART_CHARS: Final = 100_000
"""An item of this many characters has less than 400 KB, whatever the characters are."""


class NotStored(Exception):
    """A destination stores no failure now, for example because its table is gone or its disk is full."""


class Destination(Protocol):
    """Stores failures. Implementations: `FailureFile`, `FailureTable`."""

    def store(self, failure: dict[str, Any]) -> None:
        """Store one failure, which must be durable when this returns."""
        ...


class FailureFile:
    """A file to which each failure is appended as a line of JSON."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def store(self, failure: dict[str, Any]) -> None:
        with open(self._path, "ab", opener=private) as file:
            file.write(orjson.dumps(failure) + b"\n")
            file.flush()
            sync(file.fileno())
        sync_directory(self._path.absolute().parent)  # after a crash the file's name must exist as well


class FailureTable:
    """A table with the partition key `id`; created on demand."""

    def __init__(self, clients: Clients, table: str) -> None:
        self._client = clients.dynamodb
        self._table = table
        create_table(self._client, table, {"id": "HASH"})

    def store(self, failure: dict[str, Any]) -> None:
        batch = failure["DDBStreamBatchInfo"]
        # If a failure is stored again after a restart, it replaces its first item.
        name = f"{failure['requestContext']['functionArn']}/{batch['shardId']}/{batch['startSequenceNumber']}"
        text = orjson.dumps(failure).decode()
        parts = [text[start : start + _PART_CHARS] for start in range(0, len(text), _PART_CHARS)]
        for number, part in enumerate(parts[1:], 2):
            self._put(f"{name}/{number}", failure={"S": part})
        more = {"parts": {"N": str(len(parts))}} if len(parts) > 1 else {}
        # Last, so that a reader that finds this item finds the others.
        self._put(
            name,
            condition={"S": failure["requestContext"]["condition"]},
            timestamp={"S": failure["timestamp"]},
            failure={"S": parts[0]},
            **more,
        )

    def _put(self, name: str, **attributes: dict[str, str]) -> None:
        self._client.put_item(TableName=self._table, Item={"id": {"S": name}, **attributes})


def destination(clients: Clients, where: str) -> Destination:
    """The destination that `where` names: ``table:NAME``, or the path of a file."""
    if where.startswith(TABLE_PREFIX):
        return FailureTable(clients, where.removeprefix(TABLE_PREFIX))
    return FailureFile(Path(where))


def describe(
    function: str, shard_id: str, records: list[Record], reason: Reason, calls: int, now: float
) -> dict[str, Any]:
    """The on-failure record of `records`, which were given up."""
    return {
        "requestContext": {
            "requestId": records[0]["eventID"],
            "functionArn": function,
            "condition": reason,
            "approximateInvokeCount": calls,
        },
        "version": "1.0",
        "timestamp": _time(now),
        "DDBStreamBatchInfo": {
            "shardId": shard_id,
            "startSequenceNumber": sequence_of(records[0]),
            "endSequenceNumber": sequence_of(records[-1]),
            "approximateArrivalOfFirstRecord": _time(created_at(records[0])),
            "approximateArrivalOfLastRecord": _time(created_at(records[-1])),
            "batchSize": len(records),
            "streamArn": records[0]["eventSourceARN"],
        },
        "Records": records,
    }


def _time(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
