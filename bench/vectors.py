"""Vector searches: how long the first and later ones take, and the memory they need, beside numpy alone.

    python -m bench.vectors --items 100000 --dimensions 256

Fills a table with random vectors, adds a vector index, and searches in this process: first with nothing in
memory, then again and again, also with a filter, and right after writes. For comparison it gives the time of
the product and the partition of the same matrix in numpy. Imports hashrange, to fill the table fast.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hashrange.database import Database
from hashrange.settings import Settings
from hashrange.storage.api import Transaction
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.data import items, keys, records
from hashrange.tables.data.item_change import ItemChange, Occasion
from hashrange.tables.definitions import catalog
from hashrange.values import Item, item_size

LOAD_ITEMS: Final = 500
NAME: Final = "vectors"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.vectors", description=__doc__)
    parser.add_argument("--items", type=int, default=20_000, help="vectors in the index")
    parser.add_argument("--dimensions", type=int, default=256)
    parser.add_argument("--searches", type=int, default=200, help="how many are timed of each kind")
    parser.add_argument("--top", type=int, default=10, help="TopK")
    parser.add_argument("--distance", default="COSINE", choices=["COSINE", "EUCLIDEAN", "DOT_PRODUCT"])
    parser.add_argument("--memory", action="store_true", help="keep the table in memory, not on disk")
    options = parser.parse_args()
    chance = np.random.default_rng(1)
    matrix = chance.normal(size=(options.items, options.dimensions)).astype(np.float32)
    queries = chance.normal(size=(options.searches, options.dimensions)).astype(np.float32)
    size = f"{options.items} vectors of {options.dimensions} dimensions"
    print(f"{size}, {options.distance}, top {options.top}")
    with opened(memory=options.memory, bytes_max=4 * matrix.nbytes) as database:
        create(database, options.dimensions, options.distance)
        spent = timed(lambda: load(database, matrix))
        print(f"filling: {options.items / spent:,.0f} items a second")
        spent = timed(lambda: search(database, queries[0], options.top))
        print(f"first search: {spent:.2f} s ({options.items / spent:,.0f} vectors a second)")
        kept = database._kept["vectors"].size
        print(f"memory: {kept / 2**20:,.0f} MiB, of which floats {matrix.nbytes / 2**20:,.0f} MiB")
        show("searches", [timed(partial(search, database, query, options.top)) for query in queries])
        filtered = [timed(partial(search, database, query, options.top, "1")) for query in queries]
        show("with a filter", filtered)
        after: list[float] = []
        for number, query in enumerate(queries):
            put(database, number, query)
            after.append(timed(partial(search, database, query, options.top)))
        show("each after a write", after)
    show("numpy alone", [timed(partial(alone, matrix, query, options.top)) for query in queries])


@contextmanager
def opened(*, memory: bool, bytes_max: int) -> Iterator[Database]:
    """A database whose searches may keep so many bytes."""
    settings = Settings(vector_memory_bytes=bytes_max)
    with tempfile.TemporaryDirectory(prefix="hashrange-bench-") as name:
        engine: Any = MemoryEngine() if memory else EmbeddedEngine(Path(name) / "data")
        with Database(engine, settings=settings) as database:
            yield database


def create(database: Database, dimensions: int, distance: str) -> None:
    """The table and its index."""
    types = {"pk": "N", "kind": "S"}
    request = {
        "TableName": NAME,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": n, "AttributeType": t} for n, t in types.items()],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "VectorIndexes": [
            {
                "IndexName": NAME,
                "VectorAttribute": {"AttributeName": "v"},
                "SearchSchema": [{"AttributeName": "kind", "SearchSchemaElementType": "INLINE_FILTER"}],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
                "Dimensions": dimensions,
                "DistanceFunction": distance,
            }
        ],
    }
    database.execute("CreateTable", request)


def item_of(number: int, vector: Any) -> Item:
    members = [{"N": f"{x:.6f}".rstrip("0").rstrip(".")} for x in vector.tolist()]
    return {"pk": {"N": str(number)}, "kind": {"S": str(number % 10)}, "v": {"L": members}}


def load(database: Database, matrix: Any) -> None:
    """Write all items, past the parsing of requests."""
    occasion = Occasion(database.clock.now(), database.settings)

    def write(txn: Transaction, start: int) -> None:
        table = catalog.find_full(txn, NAME)
        assert table is not None
        for number, vector in enumerate(matrix[start : start + LOAD_ITEMS], start):
            item = item_of(number, vector)
            record = records.pack(item, item_size(item))
            address = keys.address_of_item(table.key, item)
            items.apply(txn, ItemChange(table, *address, None, None, record, item), occasion)

    for start in range(0, len(matrix), LOAD_ITEMS):
        database.engine.write(partial(write, start=start))


def put(database: Database, number: int, vector: Any) -> None:
    database.execute("PutItem", {"TableName": NAME, "Item": item_of(number, vector)})


def search(database: Database, query: Any, top: int, kind: str | None = None) -> None:
    """One search; it must find `top` items."""
    request: dict[str, Any] = {
        "TableName": NAME,
        "IndexName": NAME,
        "SearchVector": [{"N": f"{x:.6f}"} for x in query.tolist()],
        "TopK": top,
    }
    if kind is not None:
        request["SearchConditionExpression"] = "kind = :k"
        request["ExpressionAttributeValues"] = {":k": {"S": kind}}
    found = database.execute("SearchVectors", request)["SearchResults"]
    assert len(found) == top


def alone(matrix: Any, query: Any, top: int) -> Any:
    """What a search costs at least."""
    return np.argpartition(matrix @ query, -top)[-top:]


def timed(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def show(what: str, seconds: list[float]) -> None:
    p50, p99 = np.percentile(seconds, [50, 99]) * 1e3
    print(f"{what}: p50 {p50:.2f} ms, p99 {p99:.2f} ms")


if __name__ == "__main__":
    main()
