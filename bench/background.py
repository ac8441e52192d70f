"""The background work on a large table: its speed from start to end, and the latency of concurrent gets.

    python -m bench.background --items 1000000

Fills and serves a table. Then the server builds an index and the expiry queue, expires every item and deletes
the table. For each of these it prints the items a second in the first and in the last tenth, and the latency
of a client that meanwhile reads another table, with one get every few milliseconds.

The server runs with the Python that starts this: use that of `make compile` for the compiled hot path. Unlike
the rest of the harness it imports hashrange, to fill the table fast.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.wire import Request, call, render
from hashrange.clock import SystemClock
from hashrange.database import Database, Settings
from hashrange.storage.api import Transaction
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Table
from hashrange.tables.items import keys, records
from hashrange.tables.items.item_change import ItemChange, Occasion
from hashrange.tables.writes import applying
from hashrange.values import Item, item_size

LOAD_ITEMS: Final = 1_000
GET_SECONDS: Final = 0.005
POLL_SECONDS: Final = 0.1
ROOM_SECONDS_MAX: Final = 60.0
TABLE: Final = "large"
OTHER: Final = "other"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.background", description=__doc__)
    parser.add_argument("--items", type=int, default=300_000, help="items in the table (0.5 KB each)")
    count = parser.parse_args().items
    with tempfile.TemporaryDirectory(prefix="hashrange-bench-") as name:
        directory = Path(name) / "data"
        load(directory, count)
        print(f"{count} items, {room(directory) // 2**20} MiB on disk")
        with served(directory) as (port, admin):
            measure(port, admin, directory, count)


# -- Loading ----------------------------------------------------------------------------------------------


def load(directory: Path, count: int) -> None:
    """Fill a store with the large table, whose items have all expired, and with the table that is read."""
    engine = EmbeddedEngine(directory)
    database = Database(engine)
    for name in (TABLE, OTHER):
        database.execute("CreateTable", create(name))
    now = SystemClock().now()
    occasion = Occasion(now, Settings())
    for name, size in ((TABLE, count), (OTHER, LOAD_ITEMS)):
        for start in range(0, size, LOAD_ITEMS):
            numbers = range(start, min(start + LOAD_ITEMS, size))
            engine.write(partial(put, name=name, numbers=numbers, occasion=occasion))
    database.close()


def create(name: str) -> dict[str, Any]:
    return {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
    }


def put(txn: Transaction, name: str, numbers: range, occasion: Occasion) -> None:
    table: Table = catalog.open_any(txn, name, "")
    for number in numbers:
        item: Item = {
            "p": {"S": f"item-{number:09}"},
            "g": {"S": f"group-{number * 7919 % 100_003}"},
            "ttl": {"N": str(int(occasion.now) - 100)},
            "v": {"S": random.Random(number).randbytes(200).hex()},
        }
        address = keys.address_of_item(table.key, item)
        record = records.pack(item, item_size(item))
        applying.apply(txn, ItemChange(table, *address, None, None, record, item), occasion)


def room(directory: Path) -> int:
    """The bytes that a directory occupies."""
    total = 0
    for path in directory.rglob("*"):
        try:
            total += path.stat().st_blocks * 512
        except FileNotFoundError:  # a compaction has deleted it
            continue
    return total


# -- Serving ----------------------------------------------------------------------------------------------


@contextmanager
def served(directory: Path) -> Iterator[tuple[int, int]]:
    """A server of the store in a process of its own: its port and that of its admin plane."""
    port, admin = free_port(), free_port()
    command = [sys.executable, "-m", "hashrange", "serve", "--data-dir", str(directory)]
    process = subprocess.Popen(
        [*command, "--port", str(port), "--admin-port", str(admin)], stdout=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                call(port, Request("ListTables", {}))
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(POLL_SECONDS)
        yield port, admin
    finally:
        process.terminate()
        process.wait(60)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def state(admin: int) -> dict[str, Any]:
    """The table as the admin plane shows it."""
    connection = http.client.HTTPConnection("127.0.0.1", admin, timeout=60)
    connection.request("GET", "/v1/tables")
    rows = json.loads(connection.getresponse().read())["tables"]
    connection.close()
    return next((row for row in rows if row["name"] == TABLE), {})


# -- Measuring --------------------------------------------------------------------------------------------


@dataclass
class Gets:
    """A client that reads the other table, one get at a time with a pause between them, until it is
    stopped."""

    port: int
    seconds: list[float] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port)) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            number = 0
            while not self.stopping.wait(GET_SECONDS):
                number = (number + 7) % LOAD_ITEMS
                get = Request("GetItem", {"TableName": OTHER, "Key": {"p": {"S": f"item-{number:09}"}}})
                began = time.perf_counter()
                client.sendall(render(get, self.port))
                answer = b""
                while not answer.endswith(b"}}}"):
                    answer += client.recv(65_536)
                self.seconds.append(time.perf_counter() - began)

    def percentile(self, share: float) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1_000


@contextmanager
def gets_meanwhile(port: int, work: str) -> Iterator[None]:
    gets = Gets(port)
    thread = threading.Thread(target=gets.run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        gets.stopping.set()
        thread.join(10)
        shares = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
        shown = ", ".join(f"{name} {gets.percentile(share):.2f} ms" for name, share in shares.items())
        print(f"  {len(gets.seconds)} gets meanwhile ({work}): {shown}", flush=True)


def watch(work: str, port: int, total: int, done: Callable[[], float]) -> None:
    """Wait until `done` is 1, and print the rates in the first and in the last tenth."""
    began = time.monotonic()
    progress = [(0.0, began)]
    with gets_meanwhile(port, work):
        while progress[-1][0] < 1:
            time.sleep(POLL_SECONDS)
            progress.append((done(), time.monotonic()))
    seconds = progress[-1][1] - began
    first = next(((share, at) for share, at in progress if share >= 0.1), progress[-1])
    last = next(((share, at) for share, at in reversed(progress) if share <= 0.9), progress[0])
    early = first[0] * total / max(first[1] - began, 1e-9)
    late = (1 - last[0]) * total / max(progress[-1][1] - last[1], 1e-9)
    print(
        f"{work}: {seconds:.1f} s, {total / seconds:,.0f}/s; first tenth {early:,.0f}/s, last {late:,.0f}/s"
    )


def measure(port: int, admin: int, directory: Path, count: int) -> None:
    with gets_meanwhile(port, "nothing"):
        time.sleep(2)
    index = {
        "IndexName": "by-g",
        "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }
    request = {
        "TableName": TABLE,
        "AttributeDefinitions": [{"AttributeName": "g", "AttributeType": "S"}],
        "GlobalSecondaryIndexUpdates": [{"Create": index}],
    }
    call(port, Request("UpdateTable", request))
    watch("index", port, count, lambda: float(state(admin)["indexes"][0]["progress"]))
    ttl = {"AttributeName": "ttl", "Enabled": True}
    call(port, Request("UpdateTimeToLive", {"TableName": TABLE, "TimeToLiveSpecification": ttl}))
    watch("expiry queue", port, count, lambda: float(state(admin)["time_to_live"]["progress"]))
    half = count // 2
    watch("expiry", port, half, lambda: min((count - state(admin)["items"]) / half, 1.0))
    before = room(directory)
    call(port, Request("DeleteTable", {"TableName": TABLE}))
    began = time.monotonic()
    with gets_meanwhile(port, "giving room back"):
        while (left := room(directory)) > before / 5 and time.monotonic() - began < ROOM_SECONDS_MAX:
            time.sleep(POLL_SECONDS)
    seconds = time.monotonic() - began
    print(f"deleted: {before // 2**20} MiB on disk, {left // 2**20} after {seconds:.1f} s")


if __name__ == "__main__":
    main()
