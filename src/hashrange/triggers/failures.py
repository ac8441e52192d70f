"""Destinations of records that a trigger gave up: a file of JSON lines, or a table.

A line of the file, or the attribute `failure` of an item, is Lambda's on-failure record together with the
records themselves, because a stream keeps records only for a day.

    {"requestContext": {"requestId", "functionArn", "condition", "approximateInvokeCount"},
     "version": "1.0", "timestamp": …,
     "DDBStreamBatchInfo": {"shardId", "startSequenceNumber", "endSequenceNumber", "batchSize", "streamArn",
                            "approximateArrivalOfFirstRecord", "approximateArrivalOfLastRecord"},
     "Records": […]}

Source: Lambda Developer Guide, "Retaining discarded records for a DynamoDB event source".
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol

import orjson

from hashrange.files.durable import sync, sync_directory
from hashrange.triggers.checkpoints import create_table
from hashrange.triggers.delivery import Reason
from hashrange.triggers.events import Record, created_at, sequence_of
from hashrange.triggers.source import Clients

TABLE_PREFIX: Final = "table:"


class Destination(Protocol):
    """Stores failures. Implementations: `FailureFile`, `FailureTable`."""

    def keep(self, failure: dict[str, Any]) -> None:
        """Keep one failure; it must be durable when this returns."""
        ...


class FailureFile:
    """A file to which each failure is appended as a line of JSON."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def keep(self, failure: dict[str, Any]) -> None:
        with self._path.open("ab") as file:
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

    def keep(self, failure: dict[str, Any]) -> None:
        batch = failure["DDBStreamBatchInfo"]
        # If a failure is stored again after a restart, it replaces its first item.
        name = f"{failure['requestContext']['functionArn']}/{batch['shardId']}/{batch['startSequenceNumber']}"
        item = {
            "id": {"S": name},
            "condition": {"S": failure["requestContext"]["condition"]},
            "timestamp": {"S": failure["timestamp"]},
            "failure": {"S": orjson.dumps(failure).decode()},
        }
        self._client.put_item(TableName=self._table, Item=item)


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
