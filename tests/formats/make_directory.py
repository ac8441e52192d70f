"""Makes the data directories of earlier formats that the tests of migration start from.

    python tests/formats/make_directory.py ARCHIVE

is run with a Hashrange that writes the format wanted: version 0.1.0 (commit 9a443af) made `format-1.tar.xz`,
commit e060822 made `format-2.tar.xz`. The archive holds `data`, the directory, and `expected.json`, what the
program answered to the requests of `questions`, in a form that does not depend on the order of scans.

It uses only what all versions have. Everything that a directory can hold is there: all key types, local and
global indexes of all projections, a time to live, streams with one shard, several shards and after the end of
their table, an index and a time to live that are still being built, changes that wait for lagging indexes,
tokens and holds of transactions, a replica, and the space of a table that was deleted.
"""

from __future__ import annotations

import sys
import tarfile
from base64 import b64encode
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from hashrange.database import Database
from hashrange.settings import Settings
from hashrange.storage.embedded import EmbeddedEngine

NOW = 1_780_000_000.0
TOKEN = "a-token-of-before"
MANY = 1_200

Request = tuple[str, dict[str, Any]]


class Standing:
    """A clock that stands still."""

    def now(self) -> float:
        return NOW


def key(**types: str) -> dict[str, Any]:
    """The key of a table, and its attributes: `pk="S", sk="N"`."""
    return {
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": type_} for name, type_ in types.items()
        ],
        "KeySchema": [
            {"AttributeName": name, "KeyType": kind}
            for name, kind in zip(types, ("HASH", "RANGE"), strict=False)
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }


def index(name: str, projection: str, *keys: str, included: str = "") -> dict[str, Any]:
    shown: dict[str, Any] = {"ProjectionType": projection}
    if included:
        shown["NonKeyAttributes"] = [included]
    return {
        "IndexName": name,
        "KeySchema": [
            {"AttributeName": one, "KeyType": kind}
            for one, kind in zip(keys, ("HASH", "RANGE"), strict=False)
        ],
        "Projection": shown,
    }


def tables() -> list[Request]:
    """The tables, with all that they have from the start."""
    rich = key(pk="S", sk="N", l="S", g="S", b="B", n="N")
    rich["KeySchema"] = rich["KeySchema"][:2]
    rich["LocalSecondaryIndexes"] = [index("local", "KEYS_ONLY", "pk", "l"), index("whole", "ALL", "pk", "n")]
    rich["GlobalSecondaryIndexes"] = [
        index("everything", "ALL", "g", "sk"),
        index("binary", "INCLUDE", "b", included="x"),
        index("numbers", "KEYS_ONLY", "n", "l"),
        {
            "IndexName": "several",
            "KeySchema": [
                {"AttributeName": "g", "KeyType": "HASH"},
                {"AttributeName": "n", "KeyType": "HASH"},
                {"AttributeName": "l", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        },
    ]
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    return [
        ("CreateTable", {"TableName": "rich", **rich, "StreamSpecification": stream}),
        ("CreateTable", {"TableName": "by-number", **key(id="N")}),
        ("CreateTable", {"TableName": "by-binary", **key(id="B", at="B")}),
        ("CreateTable", {"TableName": "expiring", **key(pk="S")}),
        ("CreateTable", {"TableName": "many", **key(pk="S")}),
        ("CreateTable", {"TableName": "many-expiring", **key(pk="S")}),
        ("CreateTable", {"TableName": "gone", **key(pk="S"), "StreamSpecification": stream}),
        ("CreateTable", {"TableName": "dropped", **key(pk="S")}),
        ("CreateTable", {"TableName": "world", **key(pk="S"), "Tags": [{"Key": "team", "Value": "blue"}]}),
        (
            "UpdateTimeToLive",
            {"TableName": "expiring", "TimeToLiveSpecification": {"AttributeName": "ttl", "Enabled": True}},
        ),
    ]


def rich_item(number: int) -> dict[str, Any]:
    item: dict[str, Any] = {"pk": {"S": f"collection {number % 7}"}, "sk": {"N": str(number - 20)}}
    if number % 2:
        item["l"] = {"S": f"l{number % 5}"}
    if number % 3:
        item["g"] = {"S": f"g{number % 4}"}
    if number % 5:
        item["n"] = {"N": f"{number - 20}.5"}
    if number % 4 == 0:
        item["b"] = {"B": b64encode(bytes([number, 0, 255])).decode()}
    item["x"] = {"M": {"list": {"L": [{"N": str(number)}, {"NULL": True}]}, "set": {"SS": ["a", "b"]}}}
    return item


def writes() -> list[Request]:
    """What is in the tables."""
    numbers = ["0", "1", "-1", "251", "2388", "-251.5", "1" + "0" * 125, "0." + "0" * 129 + "1"]
    found = [("PutItem", {"TableName": "rich", "Item": rich_item(number)}) for number in range(40)]
    found += [
        ("DeleteItem", {"TableName": "rich", "Key": {"pk": {"S": "collection 1"}, "sk": {"N": "-19"}}}),
        (
            "UpdateItem",
            {
                "TableName": "rich",
                "Key": {"pk": {"S": "collection 2"}, "sk": {"N": "-18"}},
                "UpdateExpression": "SET g = :g REMOVE l",
                "ExpressionAttributeValues": {":g": {"S": "moved"}},
            },
        ),
    ]
    found += [("PutItem", {"TableName": "by-number", "Item": {"id": {"N": text}}}) for text in numbers]
    for number in range(20):
        sort = b64encode(bytes([number % 3, 0])).decode()
        item = {"id": {"B": b64encode(bytes([number])).decode()}, "at": {"B": sort}}
        found.append(("PutItem", {"TableName": "by-binary", "Item": item}))
        expires = {"ttl": {"N": str(int(NOW) + 1000 + number)}} if number % 4 else {}
        found.append(("PutItem", {"TableName": "expiring", "Item": {"pk": {"S": f"e{number}"}, **expires}}))
        for name in ("gone", "dropped", "world"):
            found.append(("PutItem", {"TableName": name, "Item": {"pk": {"S": f"{name} {number}"}}}))
    for start in range(0, MANY, 25):
        batch = [
            {
                "PutRequest": {
                    "Item": {"pk": {"S": f"{n}"}, "g": {"N": f"{n % 9}"}, "ttl": {"N": f"{NOW + n:.0f}"}}
                }
            }
            for n in range(start, start + 25)
        ]
        found.append(("BatchWriteItem", {"RequestItems": {"many": batch}}))
        found.append(("BatchWriteItem", {"RequestItems": {"many-expiring": batch}}))
    return found


def transaction() -> Request:
    put = {"Put": {"TableName": "world", "Item": {"pk": {"S": "by a transaction"}}}}
    return "TransactWriteItems", {"ClientRequestToken": TOKEN, "TransactItems": [put]}


def in_the_middle() -> list[Request]:
    """What is still under way when the program stops."""
    return [
        (
            "UpdateTable",
            {
                "TableName": "many",
                "AttributeDefinitions": [
                    {"AttributeName": "pk", "AttributeType": "S"},
                    {"AttributeName": "g", "AttributeType": "N"},
                ],
                "GlobalSecondaryIndexUpdates": [{"Create": index("new", "ALL", "g", "pk")}],
            },
        ),
        (
            "UpdateTimeToLive",
            {
                "TableName": "many-expiring",
                "TimeToLiveSpecification": {"AttributeName": "ttl", "Enabled": True},
            },
        ),
    ]


def questions() -> list[Request]:
    """What is asked of the directory before and after."""
    found: list[Request] = [("ListTables", {}), ("ListStreams", {})]
    for name in ("rich", "by-number", "by-binary", "expiring", "many", "many-expiring", "world"):
        found += [("DescribeTable", {"TableName": name}), ("Scan", {"TableName": name})]
    found += [("Scan", {"TableName": "rich", "IndexName": name}) for name in INDEXES]
    found.append(("DescribeTimeToLive", {"TableName": "expiring"}))
    return found


INDEXES = ("local", "whole", "everything", "binary", "numbers", "several")


def answers(database: Database) -> dict[str, Any]:
    """The answers to `questions`, and the records of all streams, by request."""
    found = {
        f"{name} {orjson.dumps(of).decode()}": _sorted(database.execute(name, of)) for name, of in questions()
    }
    for stream in database.execute("ListStreams", {})["Streams"]:
        arn = stream["StreamArn"]
        described = database.execute("DescribeStream", {"StreamArn": arn})["StreamDescription"]
        for shard in described["Shards"]:
            of = {"StreamArn": arn, "ShardId": shard["ShardId"]}
            start = database.execute("GetShardIterator", {**of, "ShardIteratorType": "TRIM_HORIZON"})
            read = database.execute("GetRecords", {"ShardIterator": start["ShardIterator"]})
            found[f"records of {shard['ShardId']}"] = orjson.loads(orjson.dumps(read["Records"]))
    return found


def _sorted(answer: dict[str, Any]) -> Any:
    shown = orjson.loads(orjson.dumps(answer))
    if "Items" in shown:
        shown["Items"].sort(key=orjson.dumps)
    return shown


def run(directory: Path, settings: Settings, requests: list[Request], sweeps: int = 0) -> dict[str, Any]:
    database = Database(EmbeddedEngine(directory), settings=settings, clock=Standing())
    try:
        for name, request in requests:
            database.execute(name, request)
            for _ in range(sweeps):
                database.sweep()
        return answers(database)
    finally:
        database.close()


def make(directory: Path) -> dict[str, Any]:
    """Make the directory; what the program answers last."""
    run(directory, Settings(), tables(), 1)
    sharded = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    run(
        directory,
        Settings(stream_shards=4),
        [("UpdateTable", {"TableName": "by-number", "StreamSpecification": sharded})],
    )
    replica = {"ReplicaUpdates": [{"Create": {"RegionName": "eu-west-1"}}]}
    run(
        directory,
        Settings(),
        [
            *writes(),
            transaction(),
            (
                "UpdateTable",
                {
                    "TableName": "world",
                    "StreamSpecification": {**sharded, "StreamViewType": "NEW_AND_OLD_IMAGES"},
                },
            ),
            ("UpdateTable", {"TableName": "world", **replica}),
            ("DeleteTable", {"TableName": "gone"}),
            ("DeleteTable", {"TableName": "dropped"}),
        ],
    )
    late = {**rich_item(21), "g": {"S": "late"}}
    lagging = [
        ("PutItem", {"TableName": "rich", "Item": late}),
        ("PutItem", {"TableName": "rich", "Item": rich_item(77)}),
    ]
    run(directory, Settings(gsi_delay_seconds=1e6), lagging)
    held = {"Put": {"TableName": "world", "Item": {"pk": {"S": "held"}}}}
    holding = [("TransactWriteItems", {"TransactItems": [held]})]
    run(directory, Settings(transaction_seconds=600.0, gsi_delay_seconds=1e6), [*holding, *in_the_middle()])
    # One sweep looks at a part of the items of `many` and `many-expiring`, which are more than one bite.
    return run(directory, Settings(transaction_seconds=600.0, gsi_delay_seconds=1e6), [("ListTables", {})], 1)


def main() -> None:
    archive = Path(sys.argv[1])
    with TemporaryDirectory() as scratch:
        expected = make(Path(scratch) / "data")
        for path in Path(scratch).rglob("LOG*"):
            path.unlink()
        (Path(scratch) / "expected.json").write_bytes(orjson.dumps(expected))
        with tarfile.open(archive, "w:xz") as tar:
            tar.add(Path(scratch) / "data", "data")
            tar.add(Path(scratch) / "expected.json", "expected.json")


if __name__ == "__main__":
    main()
