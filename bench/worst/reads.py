"""The reads that cost most: pages full of tiny items, long filters over long lists, large answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.worst import stage as tables
from bench.worst.registry import shape
from bench.worst.stage import (
    FEED,
    FOUR_KEYS,
    LIST_ITEMS,
    LISTS,
    SMALL_CHANGES,
    STREAMED,
    TINY,
    WRITTEN,
    Stage,
)

Json = dict[str, Any]

# With the ORs between them as many as an expression may have: 300 operators.
CONTAINS_COUNT = 150
IN_LISTS = 9
IN_OPERANDS = 100


def contains_filter() -> Json:
    """A condition that looks for 150 numbers in a list `l` and finds none."""
    return {
        "expression": " OR ".join(f"contains(l,:{n})" for n in range(CONTAINS_COUNT)),
        "values": {f":{n}": {"N": f"{n}.5"} for n in range(CONTAINS_COUNT)},
    }


def in_filter(attribute: str) -> Json:
    """A condition with as many and as long INs as it may have, none of which holds."""
    operands = ",".join(f":{n}" for n in range(IN_OPERANDS))
    return {
        "expression": " OR ".join([f"{attribute} IN ({operands})"] * IN_LISTS),
        "values": {f":{n}": {"S": f"none {n}"} for n in range(IN_OPERANDS)},
    }


def _query_lists(**more: Any) -> Json:
    values = {":pk": {"S": "l"}, **more.pop("ExpressionAttributeValues", {})}
    condition = {"KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": values}
    return {"TableName": LISTS, **condition, **more}


@shape("Query of 3 items of 400 KB with a filter of 150 contains")
def query_contains(stage: Stage) -> Sequence[bytes]:
    stage.need(LISTS)
    found = contains_filter()
    body = _query_lists(
        Limit=3, FilterExpression=found["expression"], ExpressionAttributeValues=found["values"]
    )
    return [stage.request("Query", body)]


@shape("Query of 3 items of 400 KB, their lists compared with one of the same length")
def query_equal_lists(stage: Stage) -> Sequence[bytes]:
    stage.need(LISTS)
    value = {"L": [{"N": "1"}] * (tables.LIST_LENGTH - 1) + [{"N": "2"}]}
    return [
        stage.request(
            "Query",
            _query_lists(
                Limit=3,
                FilterExpression=" OR ".join(["l = :l"] * 150),
                ExpressionAttributeValues={":l": value},
            ),
        )
    ]


@shape("Scan of 1 MB of tiny items with 9 INs of 100 operands")
def scan_in(stage: Stage) -> Sequence[bytes]:
    stage.need(TINY)
    found = in_filter("g")
    body = {"TableName": TINY, "FilterExpression": found["expression"]}
    return [stage.request("Scan", {**body, "ExpressionAttributeValues": found["values"]})]


def _scan(stage: Stage, **more: Any) -> Sequence[bytes]:
    stage.need(TINY)
    return [stage.request("Scan", {"TableName": TINY, **more})]


@shape("Scan of 1 MB of 10-byte items")
def scan_tiny(stage: Stage) -> Sequence[bytes]:
    return _scan(stage)


@shape("the same with a filter that lets all through")
def scan_tiny_filtered(stage: Stage) -> Sequence[bytes]:
    return _scan(stage, FilterExpression="g = :x", ExpressionAttributeValues={":x": {"S": "x"}})


@shape("the same with a projection")
def scan_tiny_projected(stage: Stage) -> Sequence[bytes]:
    return _scan(stage, ProjectionExpression="p, q.r[1]")


@shape("the same, counted only")
def scan_tiny_count(stage: Stage) -> Sequence[bytes]:
    return _scan(stage, Select="COUNT")


@shape("Scan of 1 MB of an index with all attributes")
def scan_index_all(stage: Stage) -> Sequence[bytes]:
    return _scan(stage, IndexName="all")


@shape("Scan of 1 MB of an index of keys, filtered")
def scan_index_keys(stage: Stage) -> Sequence[bytes]:
    values = {":x": {"S": "x"}}
    return _scan(stage, IndexName="keys", FilterExpression="g = :x", ExpressionAttributeValues=values)


@shape("Query of 1 MB of an index with all attributes, in reverse")
def query_index_all(stage: Stage) -> Sequence[bytes]:
    stage.need(TINY)
    body = {"TableName": TINY, "IndexName": "all", "KeyConditionExpression": "g = :x"}
    return [
        stage.request(
            "Query", {**body, "ScanIndexForward": False, "ExpressionAttributeValues": {":x": {"S": "x"}}}
        )
    ]


def _query_feed(stage: Stage, **more: Any) -> Sequence[bytes]:
    stage.need(FEED)
    values = {":f": {"S": "f"}, **more.pop("ExpressionAttributeValues", {})}
    body = {"TableName": FEED, "KeyConditionExpression": "p = :f", "ExpressionAttributeValues": values}
    return [stage.request("Query", {**body, **more})]


@shape("Query of 1 MB of 9-byte items")
def query_tiny(stage: Stage) -> Sequence[bytes]:
    return _query_feed(stage)


@shape("the same with a filter and a projection")
def query_tiny_filtered(stage: Stage) -> Sequence[bytes]:
    values = {":zero": {"N": "0"}}
    more = {"FilterExpression": "a > :zero AND attribute_exists(a)", "ProjectionExpression": "s"}
    return _query_feed(stage, **more, ExpressionAttributeValues=values)


@shape("Scan with a legacy ScanFilter: an IN of 100")
def scan_legacy_filter(stage: Stage) -> Sequence[bytes]:
    operands = [{"S": f"none {n}"} for n in range(IN_OPERANDS)]
    return _scan(stage, ScanFilter={"g": {"ComparisonOperator": "IN", "AttributeValueList": operands}})


@shape("GetItem of 400 KB: a list of 130,000 numbers, projected by 180 paths")
def get_projected(stage: Stage) -> Sequence[bytes]:
    stage.need(LISTS)
    paths = ",".join(f"l[{n * 700}]" for n in range(180))
    key = {"pk": {"S": "l"}, "sk": {"N": "1"}}
    return [stage.request("GetItem", {"TableName": LISTS, "Key": key, "ProjectionExpression": paths})]


@shape("BatchGetItem of 16 MB: 40 items of 400 KB of tiny numbers", is_large=True)
def batch_get_large(stage: Stage) -> Sequence[bytes]:
    stage.need(LISTS)
    keys = [{"pk": {"S": "l"}, "sk": {"N": str(n)}} for n in range(LIST_ITEMS)]
    return [stage.request("BatchGetItem", {"RequestItems": {LISTS: {"Keys": keys}}})]


@shape("the same with a projection", is_large=True)
def batch_get_projected(stage: Stage) -> Sequence[bytes]:
    stage.need(LISTS)
    keys = [{"pk": {"S": "l"}, "sk": {"N": str(n)}} for n in range(LIST_ITEMS)]
    wanted = {LISTS: {"Keys": keys, "ProjectionExpression": "l[0], l[129999], pk"}}
    return [stage.request("BatchGetItem", {"RequestItems": wanted})]


@shape("TransactGetItems of 100 items, 4 MB")
def transact_get_large(stage: Stage) -> Sequence[bytes]:
    stage.need(WRITTEN)
    gets = [{"Get": {"TableName": WRITTEN, "Key": {"pk": {"S": f"t{n}"}}}} for n in range(100)]
    return [stage.request("TransactGetItems", {"TransactItems": gets})]


@shape("SELECT with an IN of 50 keys")
def statement_in_keys(stage: Stage) -> Sequence[bytes]:
    stage.need(TINY)
    keys = ",".join(f"'{n * 1_000}'" for n in range(50))
    return [stage.request("ExecuteStatement", {"Statement": f"SELECT * FROM {TINY} WHERE p IN [{keys}]"})]


@shape("SELECT over tiny items with 150 ORs")
def statement_or(stage: Stage) -> Sequence[bytes]:
    stage.need(TINY)
    where = " OR ".join(f"g = 'none {n}'" for n in range(150))
    return [stage.request("ExecuteStatement", {"Statement": f"SELECT * FROM {TINY} WHERE {where}"})]


@shape("SELECT with 70 ORs of keys")
def statement_or_keys(stage: Stage) -> Sequence[bytes]:
    stage.need(FEED)
    where = " OR ".join(f"p = 'f' AND s > {n}" for n in range(70))
    return [stage.request("ExecuteStatement", {"Statement": f"SELECT * FROM {FEED} WHERE {where}"})]


@shape("SELECT with an IN of 26 values on each of four key attributes, on an empty index")
def statement_in_product(stage: Stage) -> Sequence[bytes]:
    stage.need(FOUR_KEYS)
    values = ",".join(f"'{letter}'" for letter in "abcdefghijklmnopqrstuvwxyz")
    where = " AND ".join(f"{name} IN [{values}]" for name in "abcd")
    statement = f'SELECT * FROM "{FOUR_KEYS}"."four" WHERE {where}'
    return [stage.request("ExecuteStatement", {"Statement": statement})]


@shape("BatchExecuteStatement: 25 SELECTs of 400 KB each", is_large=True)
def batch_statement(stage: Stage) -> Sequence[bytes]:
    stage.need(LISTS)
    statements = [{"Statement": f"SELECT * FROM {LISTS} WHERE pk = 'l' AND sk = {n}"} for n in range(25)]
    return [stage.request("BatchExecuteStatement", {"Statements": statements})]


def _stream_page(stage: Stage, table: str) -> Sequence[bytes]:
    stage.need(table)
    arn = stage.ask("DescribeTable", {"TableName": table})["Table"]["LatestStreamArn"]
    shard = stage.ask("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"][0]["ShardId"]
    where = {"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
    iterator = stage.ask("GetShardIterator", where)["ShardIterator"]
    return [stage.request("GetRecords", {"ShardIterator": iterator})]


@shape("GetRecords: a page of 1 MB of images of 120,000 attributes")
def get_records_large(stage: Stage) -> Sequence[bytes]:
    return _stream_page(stage, STREAMED)


@shape("GetRecords: 1,000 small records")
def get_records_small(stage: Stage) -> Sequence[bytes]:
    return _stream_page(stage, SMALL_CHANGES)


@shape("ListTables with 10,000 tables")
def list_tables(stage: Stage) -> Sequence[bytes]:
    stage.need_many_tables()
    return [stage.request("ListTables", {})]


@shape("DescribeTable with 10,000 tables")
def describe_table(stage: Stage) -> Sequence[bytes]:
    stage.need_many_tables()
    return [stage.request("DescribeTable", {"TableName": f"many_{n:05d}"}) for n in range(0, 10_000, 100)]


@shape("ListStreams with 10,000 tables")
def list_streams(stage: Stage) -> Sequence[bytes]:
    stage.need_many_tables()
    return [stage.request("ListStreams", {}), stage.request("ListStreams", {"TableName": "many_09990"})]


def _admin(stage: Stage, path: str) -> Sequence[bytes]:
    stage.need_many_tables()
    return [f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{stage.admin_port}\r\n\r\n".encode()]


@shape("GET /metrics of the admin plane with 10,000 tables", to_admin_plane=True)
def admin_metrics(stage: Stage) -> Sequence[bytes]:
    return _admin(stage, "/metrics")


@shape("GET /v1/tables of the admin plane with 10,000 tables", to_admin_plane=True)
def admin_tables(stage: Stage) -> Sequence[bytes]:
    return _admin(stage, "/v1/tables")
