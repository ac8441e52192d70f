"""The server on which the worst shapes play, and the tables that they need, filled when first asked for."""

from __future__ import annotations

import itertools
import json
import string
import time
from collections.abc import Iterable, Iterator
from typing import Any

from bench.connection import send_all
from bench.wire import Request, call, render

Json = dict[str, Any]

LISTS = "worst_lists"
TINY = "worst_tiny"
FEED = "worst_feed"
INDEXED = "worst_indexed"
STREAMED = "worst_streamed"
SMALL_CHANGES = "worst_small_changes"
WRITTEN = "worst_written"
FOUR_KEYS = "worst_four_keys"

LIST_ITEMS = 40
# A number of one digit takes 3 bytes in a list: this fills an item up to its limit of 400 KB.
LIST_LENGTH = 130_000
# More than a page of 1 MB of items of 10 bytes.
TINY_ITEMS = 110_000
TABLES_COUNT = 10_000
INDEX_COUNT = 20
TABLE_SECONDS_MAX = 60.0


def names(count: int, length: int = 3) -> list[str]:
    """Different attribute names of `length` letters."""
    letters = itertools.product(string.ascii_letters, repeat=length)
    return ["".join(some) for some in itertools.islice(letters, count)]


def many_attributes(count: int) -> Json:
    """`count` attributes of 3 bytes each: no attribute is smaller and yet has a name of its own."""
    return {name: {"S": ""} for name in names(count)}


def long_list(length: int = LIST_LENGTH) -> Json:
    return {"L": [{"N": "1"}] * length}


def keys_of(hash_key: str, sort_key: str | None = None) -> list[Json]:
    keys = [{"AttributeName": hash_key, "KeyType": "HASH"}]
    return keys + ([{"AttributeName": sort_key, "KeyType": "RANGE"}] if sort_key else [])


def table(name: str, attributes: dict[str, str], keys: list[Json], **more: Any) -> Json:
    """A CreateTable request; `attributes` gives the types of the key attributes."""
    return {
        "TableName": name,
        "AttributeDefinitions": [{"AttributeName": a, "AttributeType": t} for a, t in attributes.items()],
        "KeySchema": keys,
        "BillingMode": "PAY_PER_REQUEST",
        **more,
    }


def index(name: str, keys: list[Json], projection: str = "ALL") -> Json:
    return {"IndexName": name, "KeySchema": keys, "Projection": {"ProjectionType": projection}}


_STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
_CREATE: dict[str, Json] = {
    LISTS: table(LISTS, {"pk": "S", "sk": "N"}, keys_of("pk", "sk")),
    TINY: table(
        TINY,
        {"p": "S", "g": "S"},
        keys_of("p"),
        GlobalSecondaryIndexes=[index("all", keys_of("g")), index("keys", keys_of("g"), "KEYS_ONLY")],
    ),
    FEED: table(FEED, {"p": "S", "s": "N"}, keys_of("p", "s")),
    INDEXED: table(
        INDEXED,
        {"pk": "S", "g": "S"},
        keys_of("pk"),
        GlobalSecondaryIndexes=[index(f"by-g-{n}", keys_of("g")) for n in range(INDEX_COUNT)],
    ),
    STREAMED: table(STREAMED, {"pk": "S"}, keys_of("pk"), StreamSpecification=_STREAM),
    SMALL_CHANGES: table(SMALL_CHANGES, {"pk": "S"}, keys_of("pk"), StreamSpecification=_STREAM),
    WRITTEN: table(WRITTEN, {"pk": "S"}, keys_of("pk")),
    FOUR_KEYS: table(
        FOUR_KEYS,
        {"pk": "S", "a": "S", "b": "S", "c": "S", "d": "S"},
        keys_of("pk"),
        GlobalSecondaryIndexes=[
            index("four", [{"AttributeName": name, "KeyType": "HASH"} for name in "abcd"]),
        ],
    ),
}


class Stage:
    """A running server, and which tables it has."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.admin_port = port + 100
        self._filled: set[str] = set()

    def request(self, operation: str, body: Json) -> bytes:
        return render(Request(operation, body), self.port)

    def ask(self, operation: str, body: Json) -> Json:
        """Send a request and wait for its answer; raises bench.wire.CallError for an error."""
        return call(self.port, Request(operation, body)).body

    def need(self, *tables: str) -> None:
        """Create and fill the tables that are not there yet."""
        for name in tables:
            if name not in self._filled:
                self.create(_CREATE[name])
                send_all(self.port, self._items(name))
                self._filled.add(name)

    def need_many_tables(self) -> None:
        """Create ten thousand tables, every tenth with a stream."""
        if "many" in self._filled:
            return
        creates = (
            table(
                f"many_{n:05d}",
                {"pk": "S"},
                keys_of("pk"),
                **({} if n % 10 else {"StreamSpecification": _STREAM}),
            )
            for n in range(TABLES_COUNT)
        )
        send_all(self.port, (self.request("CreateTable", create) for create in creates))
        self._filled.add("many")

    def create(self, create: Json) -> None:
        """Create a table and wait until it is active."""
        self.ask("CreateTable", create)
        deadline = time.monotonic() + TABLE_SECONDS_MAX
        while time.monotonic() < deadline:
            if (
                self.ask("DescribeTable", {"TableName": create["TableName"]})["Table"]["TableStatus"]
                == "ACTIVE"
            ):
                return
            time.sleep(0.02)
        raise TimeoutError(f"{create['TableName']} was not active after {TABLE_SECONDS_MAX:.0f} s")

    def _items(self, name: str) -> Iterator[bytes]:
        """The requests that fill a table."""
        if name == LISTS:
            rest = json.dumps(long_list(), separators=(",", ":"))
            marked = {"pk": {"S": "l"}, "sk": {"N": "0"}, "l": "LIST"}
            for number in range(LIST_ITEMS):
                body: Json = {"TableName": LISTS, "Item": {**marked, "sk": {"N": str(number)}}}
                yield _spliced(self.request("PutItem", body), b'"LIST"', rest.encode())
        elif name == TINY:
            yield from self._batches(TINY, ({"p": {"S": str(n)}, "g": {"S": "x"}} for n in range(TINY_ITEMS)))
        elif name == FEED:
            feed = ({"p": {"S": "f"}, "s": {"N": str(n)}, "a": {"N": "1"}} for n in range(TINY_ITEMS))
            yield from self._batches(FEED, feed)
        elif name == STREAMED:
            item = many_attributes(120_000)
            for number in range(8):
                body = {"TableName": STREAMED, "Item": {**item, "pk": {"S": str(number)}}}
                yield self.request("PutItem", body)
        elif name == SMALL_CHANGES:
            yield from self._batches(SMALL_CHANGES, ({"pk": {"S": str(n)}} for n in range(20_000)))
        elif name == WRITTEN:
            items = ({"pk": {"S": f"t{n}"}, "note": {"S": "x" * 40_000}} for n in range(100))
            yield from self._batches(WRITTEN, items)
            yield from self._batches(WRITTEN, ({"pk": {"S": f"u{n}"}} for n in range(100)))

    def _batches(self, name: str, items: Iterable[Json]) -> Iterator[bytes]:
        rest = iter(items)
        while chunk := list(itertools.islice(rest, 25)):
            puts = [{"PutRequest": {"Item": item}} for item in chunk]
            yield self.request("BatchWriteItem", {"RequestItems": {name: puts}})


def _spliced(request: bytes, mark: bytes, value: bytes) -> bytes:
    """A rendered request with a value in place of a mark: to encode such a value each time takes long."""
    head, _, body = request.partition(b"\r\n\r\n")
    whole = body.replace(mark, value)
    head = head.replace(b"Content-Length: %d" % len(body), b"Content-Length: %d" % len(whole))
    return head + b"\r\n\r\n" + whole
