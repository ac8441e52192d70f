"""Vector searches: how long they take and how much memory they need, beside numpy and usearch alone.

    python -m bench.vectors --items 100000 --dimensions 768 --data-dir /tmp/vectors

Fills a table with vectors that resemble embeddings, adds a vector index, and searches in this process: first
with nothing in memory, then again and again, also with a filter, and right after writes; meanwhile another
thread reads items, and the longest wait of these is reported, with the processor time that this process had
meanwhile. If usearch is installed, the searches follow through a graph, with the share of the nearest that
they find. For comparison it gives the time of the product and the partition of the same matrix in numpy, and
of usearch by itself. A data directory is filled once, and searched again by later runs. Imports hashrange, to
fill the table fast.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hashrange.database import Database
from hashrange.settings import ALL_VECTORS, Settings
from hashrange.storage.api import Transaction
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.definitions import catalog
from hashrange.tables.items import keys, records
from hashrange.tables.items.item_change import ItemChange, Occasion
from hashrange.tables.writes import applying
from hashrange.values import Item, item_size
from hashrange.vectors import graph

LOAD_ITEMS: Final = 500
NAME: Final = "vectors"
STEP: Final = 1e-4
"""The numbers of vectors are rounded to this."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.vectors", description=__doc__)
    parser.add_argument("--items", type=int, default=20_000, help="vectors in the index")
    parser.add_argument("--dimensions", type=int, default=256)
    parser.add_argument("--searches", type=int, default=200, help="how many are timed of each kind")
    parser.add_argument("--top", type=int, default=10, help="TopK")
    parser.add_argument("--distance", default="COSINE", choices=["COSINE", "EUCLIDEAN", "DOT_PRODUCT"])
    parser.add_argument("--memory", action="store_true", help="keep the table in memory, not on disk")
    parser.add_argument("--data-dir", type=Path, help="fill this directory, or search what it holds")
    parser.add_argument("--graph", action=argparse.BooleanOptionalAction, default=graph.is_installed(),
                        help="also search through a graph of usearch")  # fmt: skip
    options = parser.parse_args()
    matrix, queries = embeddings(options.items, options.searches, options.dimensions)
    size = f"{options.items} vectors of {options.dimensions} dimensions"
    print(f"{size}, {options.distance}, top {options.top}")
    with opened(options, bytes_max=6 * matrix.nbytes) as database:
        if NAME not in database.execute("ListTables", {})["TableNames"]:
            create(database, options.dimensions, options.distance)
            spent = timed(lambda: load(database, matrix))
            print(f"filling: {options.items / spent:,.0f} items a second")
        spent = timed(lambda: search(database, queries[0], options.top))
        print(f"first search: {spent:.2f} s ({options.items / spent:,.0f} vectors a second)")
        kept = database._kept["vectors"]
        print(f"memory: {kept.size / 2**20:,.0f} MiB, of which floats {matrix.nbytes / 2**20:,.0f} MiB")
        with beside(database, "exact searches"):
            exact = measure(database, "searches", queries, options.top)
        measure(database, "with a filter", queries, options.top, "1")
        after: list[float] = []
        for number, query in enumerate(queries):
            put(database, number, matrix[number])
            after.append(timed(partial(search, database, query, options.top)))
        show("each after a write", after)
        if options.graph:
            through_a_graph(database, queries, matrix, options, exact)
    show("numpy alone", [timed(partial(alone, matrix, query, options.top)) for query in queries])
    if options.graph:
        usearch_alone(queries, matrix, options.top)


def embeddings(count: int, searches: int, dimensions: int) -> tuple[Any, Any]:
    """Vectors that resemble those of a model, and others to search for: in clusters, with 64 directions that
    matter. Of vectors that are random in all directions no graph finds many."""
    chance = np.random.default_rng(1)
    directions = chance.normal(size=(64, dimensions))
    centres = chance.normal(size=(max(1, count // 100), 64))
    chosen = centres[chance.integers(0, len(centres), count + searches)]
    inner = chosen + 0.5 * chance.normal(size=chosen.shape)
    rows = np.empty((len(inner), dimensions), np.float32)
    for start in range(0, len(rows), 10_000):
        part = inner[start : start + 10_000] @ directions
        rows[start : start + 10_000] = part + chance.normal(size=part.shape)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows = np.rint(rows / STEP).astype(np.float32) * np.float32(STEP)
    return rows[:count], rows[count:]


def through_a_graph(
    database: Database, queries: Any, matrix: Any, options: argparse.Namespace, exact: list[list[float]]
) -> None:
    """The same searches after the graph was made, and how many of the exact results they find."""
    kept = database._kept["vectors"]
    with beside(database, "making the graph"):
        spent = timed(database.settle)
    print(f"making the graph: {spent:.1f} s ({options.items / spent:,.0f} vectors a second)")
    print(f"memory with the graph: {kept.size / 2**20:,.0f} MiB")
    with beside(database, "searches through the graph"):
        scores = measure(database, "through the graph", queries, options.top)
    hits = sum(len(set(own) & set(right)) for own, right in zip(scores, exact, strict=True))
    print(f"recall@{options.top}: {hits / len(queries) / options.top:.3f}")
    after = []
    for number, query in enumerate(queries):
        put(database, number, matrix[number])
        after.append(timed(partial(search, database, query, options.top)))
    show("through the graph, each after a write", after)


def usearch_alone(queries: Any, matrix: Any, top: int) -> None:
    """What a search through usearch costs at least."""
    from usearch.index import Index

    index: Any = Index(ndim=matrix.shape[1], metric="cos", dtype="bf16", expansion_search=128)
    spent = timed(lambda: index.add(np.arange(len(matrix)), matrix, threads=1))
    print(f"usearch alone: {spent:.1f} s to make, {index.memory_usage / 2**20:,.0f} MiB")
    show("usearch alone", [timed(partial(index.search, query, 4 * top, threads=1)) for query in queries])


@contextmanager
def opened(options: argparse.Namespace, *, bytes_max: int) -> Iterator[Database]:
    """A database whose searches may keep so many bytes."""
    settings = Settings(
        vector_memory_bytes=bytes_max, vector_exact_max=1_000 if options.graph else ALL_VECTORS
    )
    with tempfile.TemporaryDirectory(prefix="hashrange-bench-") as name:
        directory = options.data_dir or Path(name) / "data"
        engine: Any = MemoryEngine() if options.memory else EmbeddedEngine(directory)
        with Database(engine, settings=settings) as database:
            yield database


@contextmanager
def beside(database: Database, what: str) -> Iterator[None]:
    """Meanwhile, read items on another thread, and tell how long it had to wait. If this process had hardly
    any processor time during the longest wait, the reader waited for other programs."""
    waits: list[tuple[float, float]] = []
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            had = time.process_time()
            spent = timed(partial(get, database, len(waits) % 100))
            waits.append((spent, time.process_time() - had))

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    p99 = np.percentile([spent for spent, _ in waits], 99) * 1e3
    longest, had = (1e3 * seconds for seconds in max(waits))
    print(f"  beside {what}: {len(waits)} reads of items, p99 {p99:.2f} ms, the longest {longest:.2f} ms, "
          f"in which this process had {had:.2f} ms of processor time")  # fmt: skip


def measure(
    database: Database, what: str, queries: Any, top: int, kind: str | None = None
) -> list[list[float]]:
    """Search for each vector, and show how long that took; returns the scores."""
    scores: list[list[float]] = []

    def ask(query: Any) -> None:
        scores.append(search(database, query, top, kind))

    show(what, [timed(partial(ask, query)) for query in queries])
    return scores


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


def member_of(number: int) -> dict[str, str]:
    """The number of a vector that is so many times `STEP`."""
    text = f"{number * STEP:.4f}".rstrip("0").rstrip(".")
    return {"N": "0" if text == "-0" else text}


# Making these texts for each vector takes longer than the rest of the filling.
MEMBERS: Final = {number: member_of(number) for number in range(-10_000, 10_001)}


def item_of(number: int, vector: Any) -> Item:
    members = [MEMBERS[step] for step in np.rint(vector / STEP).astype(int).tolist()]
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
            applying.apply(txn, ItemChange(table, *address, None, None, record, item), occasion)

    for start in range(0, len(matrix), LOAD_ITEMS):
        database.engine.write(partial(write, start=start))


def put(database: Database, number: int, vector: Any) -> None:
    database.execute("PutItem", {"TableName": NAME, "Item": item_of(number, vector)})


def get(database: Database, number: int) -> None:
    key = {"pk": {"N": str(number)}}
    database.execute("GetItem", {"TableName": NAME, "Key": key, "ProjectionExpression": "kind"})


def search(database: Database, query: Any, top: int, kind: str | None = None) -> list[float]:
    """The scores of one search; it must find `top` items."""
    request: dict[str, Any] = {
        "TableName": NAME,
        "IndexName": NAME,
        "SearchVector": [{"N": f"{x:.6f}"} for x in query.tolist()],
        "TopK": top,
    }
    if kind is not None:
        request["SearchConditionExpression"] = "kind = :k"
        request["ExpressionAttributeValues"] = {":k": {"S": kind}}
    results = database.execute("SearchVectors", request)["SearchResults"]
    assert len(results) == top
    return [result["Score"] for result in results]


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
