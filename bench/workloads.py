"""The workloads: their tables, their requests, and the checks of their answers.

Items are 1 KB in DynamoDB's sense, of 13 attributes of mixed types, as single-table programs write them.
Requests are made from a fixed seed: every server gets the same bytes in the same order.

Knows no server and no load generator; a workload that reads a stream asks for its requests.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from bench.streams import Ask, pages
from bench.wire import Request

Value = dict[str, Any]
Item = dict[str, Value]

ITEMS = "bench_items"
FEED = "bench_feed"
WRITTEN = "bench_written"
COUNTERS = "bench_counters"
STREAMED = "bench_streamed"
RECOVERABLE = "bench_recoverable"
FOLLOWED = "bench_followed"
LARGE = "bench_large"

ITEM_COUNT = 2_000
FEED_COUNT = 20
FEED_LENGTH = 100
WRITTEN_COUNT = 10_000
COUNTER_COUNT = 1_000
HOT_COUNTER = "hot"
# 500 MB, where the server's cache of blocks has 128.
LARGE_COUNT = 1_000_000
LARGE_REQUEST_COUNT = 100_000
_LARGE_NOTE_BYTES = 440
SPREAD_COUNTERS: tuple[str, ...] = tuple(f"counter#{n:05d}" for n in range(COUNTER_COUNT))
REQUEST_COUNT = 2_000
BUCKETS = 50
# The length of the text that pads `item` to 1,024 bytes by DynamoDB's count.
_NOTE_BYTES = 741
_TEXT = "".join(random.Random(0).choices("abcdefghijklmnopqrstuvwxyz     ", k=20_000))

# A page of a stream: its records are inserts of 1 KB items.
PAGE_RECORDS = 100

BATCH_GET_SIZE = 25
BATCH_WRITE_SIZE = 25


@dataclass(frozen=True, slots=True)
class Table:
    """A table and the items it holds before any run; a large one is filled over several connections.
    `settled` is a request that changes it before it is filled."""

    create: Request
    items: Callable[[], Iterator[Item]]
    is_large: bool = False
    settled: Request | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """One kind of request, sent over and over.

    `check(request, answer)` returns what is wrong with an answer, or None. `counters` are keys in COUNTERS;
    every successful request adds one to exactly one of them, so their sum must grow by the number of
    requests. `written(request)` returns items that must be in their tables after the run. `asked` makes the
    requests in place of `requests` if the server has to be asked for names in them. `recorded` is a table
    whose stream must hold records after the sample was sent. `baseline` is the workload that differs from
    this one in one thing, so that the ratio shows the price of this thing; `records` is the number of
    records in an answer.
    """

    name: str
    summary: str
    tables: tuple[str, ...]
    requests: Callable[[], list[Request]]
    check: Callable[[Request, dict[str, Any]], str | None]
    writes: bool = False
    counters: tuple[str, ...] = ()
    written: Callable[[Request], list[tuple[str, Item]]] | None = None
    asked: Callable[[Ask], list[Request]] | None = None
    recorded: str | None = None
    baseline: str | None = None
    records: int = 0


def item(number: int, prefix: str = "item") -> Item:
    """Item `number`: 13 attributes, about 1,024 bytes."""
    noise = random.Random(number)
    start = noise.randrange(len(_TEXT) - _NOTE_BYTES)
    return {
        "pk": {"S": f"{prefix}#{number:08d}"},
        "type": {"S": "order"},
        "bucket": {"N": str(number % BUCKETS)},
        "customer": {"S": f"customer#{noise.randrange(10**9):09d}"},
        "email": {"S": f"user{noise.randrange(10**6):06d}@example.com"},
        "amount": {"N": f"{noise.randrange(1, 10**5)}.{noise.randrange(1, 10)}"},
        "created": {"N": str(1_760_000_000 + number)},
        "active": {"BOOL": number % 2 == 0},
        "referrer": {"NULL": True},
        "tags": {"SS": [f"tag-{n}" for n in sorted(noise.sample(range(100, 1000), 4))]},
        "lines": {
            "L": [{"M": {"sku": {"S": f"sku-{n:04d}"}, "quantity": {"N": str(n + 1)}}} for n in range(3)]
        },
        "address": {"M": {"city": {"S": "Springfield"}, "zip": {"S": f"{noise.randrange(10**5):05d}"}}},
        "note": {"S": _TEXT[start : start + _NOTE_BYTES]},
    }


def feed_item(feed: int, position: int) -> Item:
    """Entry `position` of a feed: the same 1 KB under a partition key and a number sort key."""
    entry = item(feed * FEED_LENGTH + position)
    return {**entry, "pk": {"S": f"feed#{feed:04d}"}, "sk": {"N": str(position)}}


def large_item(number: int) -> Item:
    """Item `number` of the large table: about 512 bytes."""
    start = number * 7_919 % (len(_TEXT) - _LARGE_NOTE_BYTES)
    return {
        "pk": {"S": f"large#{number:010d}"},
        "created": {"N": str(1_760_000_000 + number)},
        "note": {"S": _TEXT[start : start + _LARGE_NOTE_BYTES]},
    }


def _table(
    name: str, items: Callable[[], Iterator[Item]], *, sort_key: bool = False, stream: bool = False
) -> Table:
    schema = [{"AttributeName": "pk", "KeyType": "HASH"}]
    definitions = [{"AttributeName": "pk", "AttributeType": "S"}]
    if sort_key:
        schema.append({"AttributeName": "sk", "KeyType": "RANGE"})
        definitions.append({"AttributeName": "sk", "AttributeType": "N"})
    request: dict[str, Any] = {
        "TableName": name,
        "KeySchema": schema,
        "AttributeDefinitions": definitions,
        "BillingMode": "PAY_PER_REQUEST",
    }
    if stream:
        request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    return Table(Request("CreateTable", request), items)


TABLES: dict[str, Table] = {
    ITEMS: _table(ITEMS, lambda: (item(n) for n in range(ITEM_COUNT))),
    FEED: _table(
        FEED, lambda: (feed_item(f, p) for f in range(FEED_COUNT) for p in range(FEED_LENGTH)), sort_key=True
    ),
    WRITTEN: _table(WRITTEN, lambda: iter(())),
    COUNTERS: _table(
        COUNTERS, lambda: ({"pk": {"S": key}, "count": {"N": "0"}} for key in (HOT_COUNTER, *SPREAD_COUNTERS))
    ),
    STREAMED: _table(STREAMED, lambda: iter(()), stream=True),
    RECOVERABLE: replace(
        _table(RECOVERABLE, lambda: iter(())),
        settled=Request(
            "UpdateContinuousBackups",
            {
                "TableName": RECOVERABLE,
                "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
            },
        ),
    ),
    FOLLOWED: _table(FOLLOWED, lambda: (item(n, "followed") for n in range(ITEM_COUNT)), stream=True),
}


def set_large_count(count: int) -> None:
    """Set the number of items of the large table."""
    TABLES[LARGE] = replace(_table(LARGE, lambda: (large_item(n) for n in range(count))), is_large=True)
    WORKLOADS["get-large"] = Workload(
        "get-large",
        f"GetItem from {count:,} items of 0.5 KB, at random",
        (LARGE,),
        lambda: _large_gets(count),
        _check_large_get,
    )


def _large_gets(count: int) -> list[Request]:
    noise = random.Random(count)
    return [
        Request("GetItem", {"TableName": LARGE, "Key": {"pk": large_item(noise.randrange(count))["pk"]}})
        for _ in range(LARGE_REQUEST_COUNT)
    ]


def _check_large_get(request: Request, answer: dict[str, Any]) -> str | None:
    wanted = large_item(int(request.body["Key"]["pk"]["S"].rpartition("#")[2]))
    return None if same_item(answer.get("Item", {}), wanted) else "the item is not the one stored"


def loading(table: str) -> Iterator[Request]:
    """The BatchWriteItem requests that fill a table."""
    items = TABLES[table].items()
    while chunk := list(islice(items, BATCH_WRITE_SIZE)):
        yield _batch_write(table, chunk)


def counter_reads(keys: tuple[str, ...]) -> Iterator[Request]:
    """Consistent reads of the counters, one request per hundred."""
    for start in range(0, len(keys), 100):
        wanted = [{"pk": {"S": key}} for key in keys[start : start + 100]]
        yield Request("BatchGetItem", {"RequestItems": {COUNTERS: {"Keys": wanted, "ConsistentRead": True}}})


def counter_total(answer: dict[str, Any]) -> int:
    """The sum of the counters in an answer to one of `counter_reads`."""
    return sum(int(found["count"]["N"]) for found in answer["Responses"][COUNTERS])


def read_back(table: str, wanted: Item) -> Request:
    """A consistent GetItem of an item."""
    return Request("GetItem", {"TableName": table, "Key": {"pk": wanted["pk"]}, "ConsistentRead": True})


def same_item(left: Item, right: Item) -> bool:
    """Whether two items are one: sets without order, numbers by value."""
    same: bool = _canonical(left) == _canonical(right)
    return same


def _canonical(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"N"}:
            return {"N": float(value["N"])}
        if set(value) <= {"SS", "NS", "BS"} and value:
            return {kind: sorted(members) for kind, members in value.items()}
        return {name: _canonical(member) for name, member in value.items()}
    return [_canonical(member) for member in value] if isinstance(value, list) else value


def _batch_write(table: str, items: list[Item]) -> Request:
    puts = [{"PutRequest": {"Item": entry}} for entry in items]
    return Request("BatchWriteItem", {"RequestItems": {table: puts}})


def _shuffled(count: int) -> list[int]:
    numbers = list(range(count))
    random.Random(count).shuffle(numbers)
    return numbers


def _gets() -> list[Request]:
    return [
        Request("GetItem", {"TableName": ITEMS, "Key": {"pk": item(n)["pk"]}}) for n in _shuffled(ITEM_COUNT)
    ]


def _check_get(request: Request, answer: dict[str, Any]) -> str | None:
    wanted = item(int(request.body["Key"]["pk"]["S"].rpartition("#")[2]))
    return None if same_item(answer.get("Item", {}), wanted) else "the item is not the one stored"


def _puts(table: str) -> Callable[[], list[Request]]:
    return lambda: [
        Request("PutItem", {"TableName": table, "Item": item(n, "put")}) for n in _shuffled(WRITTEN_COUNT)
    ]


def _conditional_puts() -> list[Request]:
    condition = {
        "ConditionExpression": "attribute_exists(pk) AND #bucket = :bucket",
        "ExpressionAttributeNames": {"#bucket": "bucket"},
    }
    requests = []
    for number in _shuffled(ITEM_COUNT):
        entry = item(number)
        values = {"ExpressionAttributeValues": {":bucket": entry["bucket"]}}
        requests.append(Request("PutItem", {"TableName": ITEMS, "Item": entry, **condition, **values}))
    return requests


def _check_empty(request: Request, answer: dict[str, Any]) -> str | None:
    return None if not any(answer.values()) else f"expected an empty answer, got {str(answer)[:100]}"


def _put_items(request: Request) -> list[tuple[str, Item]]:
    return [(request.body["TableName"], request.body["Item"])]


def _increment(key: str) -> dict[str, Any]:
    return {
        "TableName": COUNTERS,
        "Key": {"pk": {"S": key}},
        "UpdateExpression": "ADD #count :one",
        "ExpressionAttributeNames": {"#count": "count"},
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }


def _updates(keys: tuple[str, ...]) -> Callable[[], list[Request]]:
    returns = {"ReturnValues": "UPDATED_NEW"}
    return lambda: [Request("UpdateItem", _increment(key) | returns) for key in keys]


def _check_update(request: Request, answer: dict[str, Any]) -> str | None:
    attributes = answer.get("Attributes", {})
    good = list(attributes) == ["count"] and attributes["count"].get("N", "").isdigit()
    return None if good else f"expected the new count, got {str(answer)[:100]}"


def _transactions() -> list[Request]:
    requests = []
    for turn, number in enumerate(_shuffled(WRITTEN_COUNT)):
        put = {"Put": {"TableName": WRITTEN, "Item": item(number, "transact")}}
        update = {"Update": _increment(SPREAD_COUNTERS[turn % COUNTER_COUNT])}
        requests.append(Request("TransactWriteItems", {"TransactItems": [put, update]}))
    return requests


def _transact_items(request: Request) -> list[tuple[str, Item]]:
    return [(WRITTEN, request.body["TransactItems"][0]["Put"]["Item"])]


def _queries_forward() -> list[Request]:
    return [
        Request(
            "Query",
            {
                "TableName": FEED,
                "KeyConditionExpression": "pk = :pk AND sk >= :low",
                "ExpressionAttributeValues": {
                    ":pk": {"S": f"feed#{turn % FEED_COUNT:04d}"},
                    ":low": {"N": str(turn * 7 % (FEED_LENGTH // 2))},
                },
                "Limit": 50,
            },
        )
        for turn in range(REQUEST_COUNT)
    ]


def _queries_reverse() -> list[Request]:
    return [
        Request(
            "Query",
            {
                "TableName": FEED,
                "KeyConditionExpression": "pk = :pk",
                "ExpressionAttributeValues": {":pk": {"S": f"feed#{turn % FEED_COUNT:04d}"}},
                "ScanIndexForward": False,
                "Limit": 10,
            },
        )
        for turn in range(REQUEST_COUNT)
    ]


def _check_query(request: Request, answer: dict[str, Any]) -> str | None:
    values = request.body["ExpressionAttributeValues"]
    feed = int(values[":pk"]["S"].rpartition("#")[2])
    limit = request.body["Limit"]
    if request.body.get("ScanIndexForward", True):
        low = int(values[":low"]["N"])
        positions = range(low, low + limit)
    else:
        positions = range(FEED_LENGTH - 1, FEED_LENGTH - 1 - limit, -1)
    found = answer.get("Items", [])
    if len(found) != limit or answer.get("Count") != limit:
        return f"expected {limit} items, got {len(found)}"
    wanted = (feed_item(feed, position) for position in positions)
    good = all(same_item(one, other) for one, other in zip(found, wanted, strict=True))
    return None if good else "the items are not those stored, in order"


def _batch_gets() -> list[Request]:
    requests = []
    noise = random.Random(25)
    for _ in range(REQUEST_COUNT // 2):
        numbers = noise.sample(range(ITEM_COUNT), BATCH_GET_SIZE)
        keys = [{"pk": item(n)["pk"]} for n in numbers]
        requests.append(Request("BatchGetItem", {"RequestItems": {ITEMS: {"Keys": keys}}}))
    return requests


def _check_batch_get(request: Request, answer: dict[str, Any]) -> str | None:
    keys = {key["pk"]["S"] for key in request.body["RequestItems"][ITEMS]["Keys"]}
    found = {entry["pk"]["S"]: entry for entry in answer.get("Responses", {}).get(ITEMS, [])}
    if set(found) != keys or answer.get("UnprocessedKeys"):
        return f"expected {len(keys)} items, got {len(found)}"
    good = all(same_item(entry, item(int(key.rpartition("#")[2]))) for key, entry in found.items())
    return None if good else "the items are not those stored"


def _batch_writes() -> list[Request]:
    numbers = _shuffled(WRITTEN_COUNT)
    return [
        _batch_write(WRITTEN, [item(n, "batch") for n in numbers[start : start + BATCH_WRITE_SIZE]])
        for start in range(0, WRITTEN_COUNT, BATCH_WRITE_SIZE)
    ]


def _check_batch_write(request: Request, answer: dict[str, Any]) -> str | None:
    return "some items were left unprocessed" if answer.get("UnprocessedItems") else None


def _batch_items(request: Request) -> list[tuple[str, Item]]:
    return [(WRITTEN, entry["PutRequest"]["Item"]) for entry in request.body["RequestItems"][WRITTEN]]


def _scans() -> list[Request]:
    return [
        Request(
            "Scan",
            {
                "TableName": ITEMS,
                "FilterExpression": "#bucket = :bucket AND created > :zero",
                "ExpressionAttributeNames": {"#bucket": "bucket"},
                "ExpressionAttributeValues": {":bucket": {"N": str(bucket)}, ":zero": {"N": "0"}},
            },
        )
        for bucket in range(BUCKETS)
    ]


def _check_scan(request: Request, answer: dict[str, Any]) -> str | None:
    bucket = request.body["ExpressionAttributeValues"][":bucket"]
    # A page ends within the item that reaches 1 MB: 1,024 items of 1 KB, give or take how a server counts.
    if not 900 <= answer.get("ScannedCount", 0) <= 1_150 or "LastEvaluatedKey" not in answer:
        return f"expected a page of 1 MB, got {answer.get('ScannedCount')} items of it"
    good = all(entry["bucket"] == bucket for entry in answer["Items"])
    return None if good and answer["Items"] else "the filter let others through, or nothing"


def _check_records(request: Request, answer: dict[str, Any]) -> str | None:
    records = answer.get("Records", [])
    if len(records) != request.body["Limit"]:
        return f"expected {request.body['Limit']} records, got {len(records)}"
    for record in records:
        image = record["dynamodb"].get("NewImage", {})
        number = image.get("pk", {}).get("S", "#-1").rpartition("#")[2]
        if record["eventName"] != "INSERT" or not same_item(image, item(int(number), "followed")):
            return "a record is not the insertion of an item"
    return None


WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        Workload("get", "GetItem, eventually consistent", (ITEMS,), _gets, _check_get),
        Workload(
            "put",
            "PutItem over 10,000 keys",
            (WRITTEN,),
            _puts(WRITTEN),
            _check_empty,
            writes=True,
            written=_put_items,
        ),
        Workload(
            "put-stream",
            "the same on a table with a stream of both images",
            (STREAMED,),
            _puts(STREAMED),
            _check_empty,
            writes=True,
            written=_put_items,
            recorded=STREAMED,
            baseline="put",
        ),
        Workload(
            "put-pitr",
            "the same on a table with point-in-time recovery",
            (RECOVERABLE,),
            _puts(RECOVERABLE),
            _check_empty,
            writes=True,
            written=_put_items,
            baseline="put",
        ),
        Workload(
            "update-hot",
            "UpdateItem ADD on one counter, UPDATED_NEW",
            (COUNTERS,),
            _updates((HOT_COUNTER,)),
            _check_update,
            writes=True,
            counters=(HOT_COUNTER,),
        ),
        Workload(
            "update-spread",
            "the same over 1,000 counters",
            (COUNTERS,),
            _updates(SPREAD_COUNTERS),
            _check_update,
            writes=True,
            counters=SPREAD_COUNTERS,
        ),
        Workload(
            "put-if",
            "PutItem with a condition that holds",
            (ITEMS,),
            _conditional_puts,
            _check_empty,
            writes=True,
            written=_put_items,
        ),
        Workload(
            "transact",
            "TransactWriteItems: a put and one of 1,000 counters",
            (WRITTEN, COUNTERS),
            _transactions,
            _check_empty,
            writes=True,
            counters=SPREAD_COUNTERS,
            written=_transact_items,
        ),
        Workload("query-50", "Query, 50 items forward", (FEED,), _queries_forward, _check_query),
        Workload("query-last-10", "Query, the last 10 in reverse", (FEED,), _queries_reverse, _check_query),
        Workload("batch-get", "BatchGetItem of 25", (ITEMS,), _batch_gets, _check_batch_get),
        Workload(
            "batch-write",
            "BatchWriteItem of 25",
            (WRITTEN,),
            _batch_writes,
            _check_batch_write,
            writes=True,
            written=_batch_items,
        ),
        Workload("scan", "Scan of a 1 MB page, filter keeps 1 in 50", (ITEMS,), _scans, _check_scan),
        Workload(
            "get-records",
            f"GetRecords, pages of {PAGE_RECORDS} inserts",
            (FOLLOWED,),
            list,
            _check_records,
            asked=lambda ask: pages(ask, FOLLOWED, PAGE_RECORDS),
            records=PAGE_RECORDS,
        ),
    )
}

# The workloads of "all". The large table takes long to fill, so its workload has to be named.
USUAL_WORKLOADS: tuple[str, ...] = tuple(WORKLOADS)
set_large_count(LARGE_COUNT)
