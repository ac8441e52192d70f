"""The streams of the tables, which a consumer reads through all faults; and tables and indexes at the end.

The records that the consumer saw, in the order of their sequence numbers, have to make the table: each record
fits the item that the ones before it left, so none is missing, there twice, or in the wrong place. A write of
unknown outcome is in the stream if and only if it is in the table. A write that ended before another began
comes before it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from threading import Event
from typing import Any, Final

from consistency import registers, tables, transfers
from consistency.client import AWAY_SECONDS, Client
from consistency.history import Anomaly, Operation
from consistency.tables import KEY, names_in_order

NAME: Final = "streams"
FINISH_SECONDS_MAX: Final = 15.0
"""How long a write whose client has gone may still be under way."""

Record = dict[str, Any]


class Streams:
    """A consumer of the streams of all shards of tables."""

    name = NAME

    def __init__(self, client: Client, names: Sequence[str]) -> None:
        self._client = client
        self._arns = {name: self._arn(name) for name in names}
        self._iterators: dict[tuple[str, str], str | None] = {}
        self._seen: dict[str, list[Record]] = {name: [] for name in names}

    def _arn(self, name: str) -> str:
        described = self._client.call_until_answered("DescribeTable", TableName=name)
        arn: str = described["Table"]["LatestStreamArn"]
        return arn

    def follow(self, stop: Event) -> None:
        """Read what comes, until `stop` is set."""
        while not stop.is_set():
            self._read()
            time.sleep(AWAY_SECONDS)

    def _read(self) -> int:
        """Read a page of each shard; returns the number of records."""
        count = 0
        for name, arn in self._arns.items():
            described = self._client.call_until_answered("DescribeStream", StreamArn=arn)
            for shard in described["StreamDescription"]["Shards"]:
                place = (name, shard["ShardId"])
                if place not in self._iterators:
                    start = {"StreamArn": arn, "ShardId": place[1], "ShardIteratorType": "TRIM_HORIZON"}
                    answer = self._client.call_until_answered("GetShardIterator", **start)
                    self._iterators[place] = answer["ShardIterator"]
                count += self._read_page(*place)
        return count

    def _read_page(self, name: str, shard: str) -> int:
        iterator = self._iterators[name, shard]
        if iterator is None:
            return 0  # read to its end
        begun = time.monotonic()
        page = self._client.call_until_answered("GetRecords", ShardIterator=iterator)
        self._iterators[name, shard] = page.get("NextShardIterator")
        found = [_short(record) for record in page["Records"]]
        if found:
            self._seen[name] += found
            self._client.saw(NAME, "records", found, begun, time.monotonic(), table=name, shard=shard)
        return len(found)

    def finish(self) -> None:
        """Read all, and then the tables and their indexes, until no write of unknown outcome takes place in
        between."""
        until = time.monotonic() + FINISH_SECONDS_MAX
        for name, seen in self._seen.items():
            while True:
                while self._read():
                    pass
                begun = time.monotonic()
                content = tables.content(self._client, name)
                agrees = fold(seen)[0] == content["items"] and not tables.disagreements(content)
                if agrees or time.monotonic() > until:
                    break
                time.sleep(AWAY_SECONDS)
            self._client.saw(NAME, "table", content, begun, time.monotonic(), table=name)


def _short(record: dict[str, Any]) -> Record:
    change = record["dynamodb"]
    return {
        "number": change["SequenceNumber"],
        "time": change["ApproximateCreationDateTime"],
        "event": record["eventName"],
        "key": change["Keys"][KEY]["S"],
        "old": change.get("OldImage"),
        "new": change.get("NewImage"),
    }


def _number(record: Record) -> int:
    return int(record["number"])


def records_of(operations: Sequence[Operation], table: str) -> list[Record]:
    """The records of a table's stream that were read, in the order of their sequence numbers."""
    pages = [operation for operation in operations if operation.action == "records"]
    found = [record for page in pages if page.arguments["table"] == table for record in page.result]
    return sorted(found, key=_number)


def fold(records: Sequence[Record]) -> tuple[dict[str, Any], list[Anomaly]]:
    """The table that records make, and those that do not fit the ones before them."""
    table: dict[str, Any] = {}
    anomalies = []
    for record in sorted(records, key=_number):
        old, new, key = record["old"], record["new"], record["key"]
        event = "INSERT" if old is None else "REMOVE" if new is None else "MODIFY"
        if old != table.get(key):
            details = f"before {record}\n    the records make {table.get(key)}"
            anomalies.append(Anomaly("gap in a stream", details))
        elif record["event"] != event or old == new:
            anomalies.append(Anomaly("wrong record", f"{record}"))
        table.pop(key, None)
        if new is not None:
            table[key] = new
    return table, anomalies


def judge(operations: Sequence[Operation]) -> list[Anomaly]:
    """The anomalies of the streams in a whole history."""
    anomalies = []
    of_streams = [operation for operation in operations if operation.workload == NAME]
    by_shard: dict[tuple[str, str], list[Record]] = {}
    for page in of_streams:
        if page.action == "records":
            place = (page.arguments["table"], page.arguments["shard"])
            by_shard.setdefault(place, []).extend(page.result)
    for place, of_shard in by_shard.items():
        for one, other in pairwise(of_shard):
            if _number(one) >= _number(other) or one["time"] > other["time"]:
                details = f"{place} gave {other}\n    after {one}"
                anomalies.append(Anomaly("out of order", details))
    for end in of_streams:
        if end.action != "table":
            continue
        records = records_of(of_streams, end.arguments["table"])
        made, gaps = fold(records)
        anomalies += gaps
        different = tables.difference(made, end.result["items"])
        if different:
            anomalies.append(Anomaly("wrong end", f"the records do not make the table: {different}"))
        anomalies += [Anomaly("wrong index", text) for text in tables.disagreements(end.result)]
        anomalies += _out_of_time(operations, records)
    return anomalies


def _out_of_time(operations: Sequence[Operation], records: Sequence[Record]) -> list[Anomaly]:
    """Records that come after the record of a write that began later than theirs had ended."""
    writes = {_mark(operation): operation for operation in operations if operation.status != "failed"}
    anomalies = []
    last: Operation | None = None
    for record in records:
        new = record["new"] or {}
        write = writes.get((record["key"], new.get("value", new.get("times", {})).get("N")))
        if write is None:
            continue
        if last is not None and write.ended < last.invoked:
            details = f"the record of the first comes later:{names_in_order([write, last])}"
            anomalies.append(Anomaly("out of time", details))
        if last is None or write.invoked > last.invoked:
            last = write
    return anomalies


def _mark(operation: Operation) -> tuple[str, str] | None:
    """The key and the number that only this write writes, if there is such a number."""
    if operation.workload == registers.NAME and "value" in operation.arguments:
        return operation.arguments["key"], str(operation.arguments["value"])
    if operation.workload == transfers.NAME and operation.action == "transfer":
        return operation.arguments["receipt"], "1"
    return None
