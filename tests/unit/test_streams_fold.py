"""Folding the stream of a random history gives the table, whatever wrote it, on both engines, over restarts.

The steps of a history write their number into the items, so the order of the records over all shards can be
held against the order of the commits.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import worlds
from doses import examples
from hashrange.errors import ConditionalCheckFailedException, TransactionCanceledException
from hashrange.storage.api import Engine
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine
from worlds import create, expiry_of

TABLE = "history"
SHARD_SECONDS = 600.0

keys = st.sampled_from("abcdefgh")
values = st.sampled_from(
    [
        {"N": "1"},
        {"N": "1.0"},
        {"S": "x"},
        {"SS": ["p", "q"]},
        {"SS": ["q", "p"]},
        {"M": {"k": {"N": "2.50"}}},
    ]
)
lifetimes = st.one_of(st.none(), st.integers(-5, 400))
write = st.one_of(
    st.tuples(st.just("put"), keys, values, lifetimes),
    st.tuples(st.just("update"), keys, values, st.none()),
    st.tuples(st.just("delete"), keys, st.none(), st.none()),
)
step = st.one_of(
    st.tuples(st.just("single"), st.lists(write, min_size=1, max_size=1)),
    st.tuples(st.just("fails"), st.lists(write, min_size=1, max_size=1)),
    st.tuples(st.just("batch"), st.lists(write, min_size=1, max_size=5)),
    st.tuples(st.just("transaction"), st.lists(write, min_size=1, max_size=5)),
    st.tuples(st.just("failing transaction"), st.lists(write, min_size=1, max_size=4)),
    st.tuples(st.just("statements"), st.lists(write, min_size=1, max_size=3)),
    st.tuples(st.just("statement transaction"), st.lists(write, min_size=1, max_size=3)),
    st.tuples(st.just("pass"), st.integers(1, 700)),
    st.tuples(st.just("restart"), st.none()),
)


class History(worlds.World):
    """A database to which a random history happens."""

    def __init__(self, open_engine: Callable[[], Engine], shard_count: int, restarts: bool) -> None:
        super().__init__(open_engine, stream_shards=shard_count, stream_shard_seconds=SHARD_SECONDS)
        self.restarts = restarts
        self.step = 0
        create(self.database, TABLE, "id", indexes={"by_step": "id, v:N"}, stream="NEW_AND_OLD_IMAGES")
        self("UpdateTimeToLive", **expiry_of(TABLE))

    def happen(self, kind: str, content: Any) -> None:
        self.step += 1
        if kind == "pass":
            self.advance(content)
        elif kind == "restart":
            if self.restarts:
                self.reopen()
        elif kind == "batch":
            self._batch(content)
        elif kind == "statements":
            # Those that fail, as an insert of a key that is there, are answered beside the others.
            self("BatchExecuteStatement", Statements=self._statements(content))
        elif kind == "statement transaction":
            with suppress(TransactionCanceledException):
                self("ExecuteTransaction", TransactStatements=self._statements(content))
        elif kind in ("single", "fails"):
            self._single(*content[0], fails=kind == "fails")
        else:
            self._transaction(content, fails=kind == "failing transaction")

    def _item(self, key: str, value: Any, lifetime: int | None) -> dict[str, Any]:
        item = {"id": {"S": key}, "value": value, "v": {"N": str(self.step)}}
        if lifetime is not None:
            item["ttl"] = {"N": str(int(self.clock.now()) + lifetime)}
        return item

    def _request(self, action: str, key: str, value: Any, lifetime: int | None) -> tuple[str, dict[str, Any]]:
        if action == "put":
            return "Put", {"TableName": TABLE, "Item": self._item(key, value, lifetime)}
        if action == "delete":
            return "Delete", {"TableName": TABLE, "Key": {"id": {"S": key}}}
        return "Update", {
            "TableName": TABLE,
            "Key": {"id": {"S": key}},
            "UpdateExpression": "SET #value = :value, v = :step",
            "ExpressionAttributeNames": {"#value": "value"},
            "ExpressionAttributeValues": {":value": value, ":step": {"N": str(self.step)}},
        }

    def _single(self, action: str, key: str, value: Any, lifetime: int | None, *, fails: bool) -> None:
        name, request = self._request(action, key, value, lifetime)
        if fails:
            request["ConditionExpression"] = "attribute_exists(nothing)"
        with suppress(ConditionalCheckFailedException):
            self(f"{name}Item", **request)

    def _batch(self, writes: list[Any]) -> None:
        requests = {}
        for action, key, value, lifetime in writes:
            if action == "delete":
                requests[key] = {"DeleteRequest": {"Key": {"id": {"S": key}}}}
            else:
                requests[key] = {"PutRequest": {"Item": self._item(key, value, lifetime)}}
        self("BatchWriteItem", RequestItems={TABLE: list(requests.values())})

    def _statements(self, writes: list[Any]) -> list[dict[str, Any]]:
        statements = {}
        for action, key, value, lifetime in writes:
            if action == "put":
                item = self._item(key, value, lifetime)
                members = ", ".join(f"'{name}': ?" for name in item)
                text, parameters = f"INSERT INTO {TABLE} VALUE {{{members}}}", list(item.values())
            elif action == "delete":
                text, parameters = f"DELETE FROM {TABLE} WHERE id = ?", [{"S": key}]
            else:
                text = f'UPDATE {TABLE} SET "value" = ? SET v = ? WHERE id = ?'
                parameters = [value, {"N": str(self.step)}, {"S": key}]
            statements[key] = {"Statement": text, "Parameters": parameters}
        return list(statements.values())

    def _transaction(self, writes: list[Any], *, fails: bool) -> None:
        parts = {}
        for action, key, value, lifetime in writes:
            name, request = self._request(action, key, value, lifetime)
            parts[key] = {name: request}
        if fails:
            check = {
                "TableName": TABLE,
                "Key": {"id": {"S": "none"}},
                "ConditionExpression": "attribute_exists(id)",
            }
            parts["none"] = {"ConditionCheck": check}
        with suppress(TransactionCanceledException):
            self("TransactWriteItems", TransactItems=list(parts.values()))

    def shards(self) -> list[list[dict[str, Any]]]:
        """The records of each shard."""
        arn = self("ListStreams")["Streams"][0]["StreamArn"]
        found = []
        for shard in self("DescribeStream", StreamArn=arn)["StreamDescription"]["Shards"]:
            place = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
            iterator = self("GetShardIterator", **place)["ShardIterator"]
            records: list[dict[str, Any]] = []
            while iterator is not None:
                page = self("GetRecords", ShardIterator=iterator, Limit=7)
                records += page["Records"]
                iterator = page.get("NextShardIterator") if page["Records"] else None
            found.append(records)
        return found

    def items(self) -> dict[str, Any]:
        """The table, by key."""
        return {item["id"]["S"]: item for item in self("Scan", TableName=TABLE)["Items"]}


def sequence(record: dict[str, Any]) -> int:
    return int(record["dynamodb"]["SequenceNumber"])


def fold(records: list[dict[str, Any]]) -> dict[str, Any]:
    """The table that records make; each has to fit the ones before it."""
    table: dict[str, Any] = {}
    for record in records:
        change = record["dynamodb"]
        key = change["Keys"]["id"]["S"]
        old, new = change.get("OldImage"), change.get("NewImage")
        assert old == table.get(key)
        assert old != new
        assert record["eventName"] == ("INSERT" if old is None else "REMOVE" if new is None else "MODIFY")
        if new is None:
            del table[key]
        else:
            table[key] = new
    return table


def play(history: History, steps: list[Any]) -> None:
    for kind, content in steps:
        history.happen(kind, content)
    shards = history.shards()
    for records in shards:
        numbers = [sequence(record) for record in records]
        assert numbers == sorted(set(numbers))
    records = sorted((record for records in shards for record in records), key=sequence)
    assert len({sequence(record) for record in records}) == len(records)
    assert fold(records) == history.items()
    # In commit order over all shards: what a later step wrote comes later.
    written = [
        int(record["dynamodb"]["NewImage"]["v"]["N"])
        for record in records
        if "NewImage" in record["dynamodb"]
    ]
    assert written == sorted(written)
    assert all(("userIdentity" in record) <= (record["eventName"] == "REMOVE") for record in records)
    history.database.close()


@given(steps=st.lists(step, min_size=25, max_size=60), shard_count=st.integers(1, 4))
@settings(max_examples=examples(75))
def test_the_stream_folds_to_the_table_in_memory(steps: list[Any], shard_count: int) -> None:
    play(History(MemoryEngine, shard_count, restarts=False), steps)


@given(steps=st.lists(step, min_size=15, max_size=40), shard_count=st.integers(1, 3))
@settings(max_examples=examples(25))
def test_the_stream_folds_to_the_table_on_disk(steps: list[Any], shard_count: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        play(History(lambda: EmbeddedEngine(path), shard_count, restarts=True), steps)


def test_a_fold_notices_a_missing_record() -> None:
    history = History(MemoryEngine, 1, restarts=False)
    for kind in ("single", "single"):
        history.happen(kind, [("put", "a", {"S": str(history.step)}, None)])
    (records,) = history.shards()
    assert fold(records) == history.items()
    with pytest.raises(AssertionError):
        fold(records[1:])
