"""`python -m bench.large`: a durable store of many items against a small one, both after a restart.

Each store is filled over HTTP, stopped and started again. Then both take the same four loads from wrk, in
turn and several times, so that other work of the machine affects both: GetItem, PutItem over an existing
item, UpdateItem of a counter and Query of 20 items, all with keys drawn at random from the whole store. It
prints the load rate, the server's memory, the size on disk, the time to open the store, the medians of the
rates, and the ratios of the small store's rates to the large one's. Each load first runs until the caches are
full and its rate stops rising: in steps of `--warm-up` seconds, until two in a row are less than a twentieth
faster than the best before. The rate of the very first second shows a cold store.

With `--keep DIRECTORY` the filled stores stay there, and the next run uses them again.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bench import report
from bench.connection import send_all
from bench.load import SCRIPT, LoadError, find_wrk, run_wrk, write_requests
from bench.servers import Running, Server, ServerError, hashrange, running
from bench.suite import wait_until_idle
from bench.wire import HOST, CallError, Request, call, render

TABLE = "large"
# Items of one partition key.
GROUP = 100
QUERY_ITEMS = 20
REQUESTS_MAX = 100_000
RATIO_GOAL = 1.5
LOADERS = 8
BATCH = 25
_TEXT = "".join(random.Random(0).choices("abcdefghijklmnopqrstuvwxyz     ", k=20_000))
# A store is warm when this many steps of the warm-up in a row were not faster than the best by this factor.
RISE = 1.05
WARM_UP_STEPS_LEVEL = 2
WARM_UP_STEPS_MAX = 12
# The bytes of the key, the counter and the names of an item, by DynamoDB's count.
_OTHER_BYTES = 30

Json = dict[str, Any]
Maker = Callable[[int, int], Json]


def key_of(number: int) -> Json:
    return {"pk": {"S": f"group#{number // GROUP:010d}"}, "sk": {"N": str(number % GROUP)}}


def item_of(number: int, item_bytes: int) -> Json:
    """Item `number`, of about `item_bytes` by DynamoDB's count."""
    length = max(1, item_bytes - _OTHER_BYTES)
    start = number * 7_919 % (len(_TEXT) - min(length, len(_TEXT) - 1))
    return {**key_of(number), "count": {"N": "0"}, "note": {"S": _TEXT[start : start + length]}}


def _get(number: int, item_bytes: int) -> Json:
    return {"TableName": TABLE, "Key": key_of(number)}


def _put(number: int, item_bytes: int) -> Json:
    return {"TableName": TABLE, "Item": item_of(number, item_bytes)}


def _update(number: int, item_bytes: int) -> Json:
    return {
        "TableName": TABLE,
        "Key": key_of(number),
        "UpdateExpression": "ADD #count :one",
        "ExpressionAttributeNames": {"#count": "count"},
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }


def _query(number: int, item_bytes: int) -> Json:
    return {
        "TableName": TABLE,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": key_of(number)["pk"]},
        "Limit": QUERY_ITEMS,
    }


LOADS: dict[str, tuple[str, Maker]] = {
    "get": ("GetItem", _get),
    "put": ("PutItem", _put),
    "update": ("UpdateItem", _update),
    "query": ("Query", _query),
}


@dataclass(slots=True)
class Store:
    """The measurements of one store; rates are in requests a second."""

    items: int
    load_items_per_second: float = 0.0
    loaded_memory_bytes: int = 0
    disk_bytes: int = 0
    open_seconds: float = 0.0
    open_memory_bytes: int = 0
    memory_bytes: int = 0
    cold_rate: float = 0.0
    warm_up_seconds: dict[str, float] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    p99_us: dict[str, float] = field(default_factory=dict)


def batches(port: int, items: int, item_bytes: int) -> Iterator[bytes]:
    """The requests that fill the table. They write neighbouring items at very different times, as in real
    use."""
    groups = list(range(0, items, BATCH))
    random.Random(items).shuffle(groups)
    for first in groups:
        numbers = range(first, min(items, first + BATCH))
        puts = [{"PutRequest": {"Item": item_of(number, item_bytes)}} for number in numbers]
        yield render(Request("BatchWriteItem", {"RequestItems": {TABLE: puts}}), port)


def directory_bytes(directory: Path) -> int:
    """The disk space of the files of a directory."""
    return sum(path.stat().st_blocks * 512 for path in directory.rglob("*") if path.is_file())


def memory_bytes(pid: int) -> int:
    """The resident memory of a process."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) * 1024 if found else 0


def fill(started: Running, store: Store, item_bytes: int, note: Callable[[str], None]) -> None:
    """Make the table and fill it with the items of `store`."""
    schema = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
    types = [{"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "sk", "AttributeType": "N"}]
    create = {"TableName": TABLE, "KeySchema": schema, "AttributeDefinitions": types}
    call(started.port, Request("CreateTable", {**create, "BillingMode": "PAY_PER_REQUEST"}))
    start = noted = time.monotonic()

    def progress(answered: int) -> None:
        nonlocal noted
        if time.monotonic() - noted < 5:
            return
        noted = time.monotonic()
        done = answered * BATCH
        memory = memory_bytes(started.process.pid) >> 20
        note(f"  {done:12,} of {store.items:,} items  {done / (noted - start):9,.0f}/s  {memory:,} MiB")

    send_all(started.port, batches(started.port, store.items, item_bytes), LOADERS, note=progress)
    store.load_items_per_second = store.items / (time.monotonic() - start)
    store.loaded_memory_bytes = memory_bytes(started.process.pid)
    wait_until_idle(started)


@dataclass(slots=True)
class _Opened:
    """A server with a filled store, and its measurements in each round."""

    started: Running
    store: Store
    rates: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in LOADS})
    p99_us: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in LOADS})


def _prepare(opened: _Opened, item_bytes: int) -> None:
    """Check a few answers, and write the requests of all loads."""
    store, started = opened.store, opened.started
    (started.directory / "send.lua").write_text(SCRIPT)
    noise = random.Random(store.items)
    for name, (operation, make) in LOADS.items():
        numbers = [noise.randrange(store.items) for _ in range(REQUESTS_MAX)]
        for number in numbers[:3]:
            answer = call(started.port, Request(operation, make(number, item_bytes))).body
            _check(name, number, answer)
        requests = (Request(operation, make(number, item_bytes)) for number in numbers)
        path = started.directory / f"{name}.requests"
        write_requests(path, (render(request, started.port) for request in requests))


def _warm_up(opened: _Opened, name: str, load: tuple[str, Path], options: argparse.Namespace) -> float:
    """Send a load until its rate stops rising. Returns the seconds that this took."""
    script = opened.started.directory / "send.lua"
    start, best, level = time.monotonic(), 0.0, 0
    for _ in range(WARM_UP_STEPS_MAX):
        rate = run_wrk(*load, script, options.connections, options.warm_up).requests_per_second
        level = 0 if rate > best * RISE else level + 1
        if level == WARM_UP_STEPS_LEVEL:
            break
        best = max(rate, best)
    return time.monotonic() - start


def _measure(both: list[_Opened], options: argparse.Namespace, note: Callable[[str], None]) -> None:
    for opened in both:
        _prepare(opened, options.item_bytes)
    for name in options.loads:
        for number in range(options.rounds):
            for opened in both:
                directory = opened.started.directory
                load = (f"http://{HOST}:{opened.started.port}/", directory / f"{name}.requests")
                script = directory / "send.lua"
                if not number:
                    cold = run_wrk(*load, script, options.connections, 1).requests_per_second
                    opened.store.cold_rate = opened.store.cold_rate or cold
                    seconds = _warm_up(opened, name, load, options)
                    opened.store.warm_up_seconds[name] = seconds
                    note(f"  {name:8} {opened.store.items:12,} items  warm after {seconds:.0f} s")
                outcome = run_wrk(*load, script, options.connections, options.seconds)
                if outcome.status_errors or outcome.socket_errors:
                    raise LoadError(
                        f"{name}: {outcome.status_errors} errors, {outcome.socket_errors} of sockets"
                    )
                opened.rates[name].append(outcome.requests_per_second)
                opened.p99_us[name].append(outcome.p99_us)
                rate, p99_ms = outcome.requests_per_second, outcome.p99_us / 1000
                note(f"  {name:8} {opened.store.items:12,} items  {rate:10,.0f}/s  p99 {p99_ms:.2f} ms")
    for opened in both:
        store = opened.store
        store.rates = {name: median(found) for name, found in opened.rates.items() if found}
        store.p99_us = {name: median(found) for name, found in opened.p99_us.items() if found}
        store.memory_bytes = memory_bytes(opened.started.process.pid)


def _check(name: str, number: int, answer: Json) -> None:
    """Raises LoadError unless a read found the items of the store."""
    if name == "get" and answer.get("Item", {}).get("sk") != key_of(number)["sk"]:
        raise LoadError(f"item {number} was not found: {str(answer)[:200]}")
    if name == "query" and answer.get("Count", 0) < 1:
        raise LoadError(f"the group of item {number} was not found: {str(answer)[:200]}")


def measure_stores(
    server: Server, sizes: list[int], options: argparse.Namespace, note: Callable[[str], None]
) -> list[Store]:
    """Fill stores of these sizes, stop their servers, start them again, and measure."""
    with ExitStack() as stack:
        filled: list[tuple[Store, Path]] = []
        for items in sizes:
            if options.keep is None:
                directory = Path(tempfile.mkdtemp(prefix="hashrange-large-"))
                stack.callback(shutil.rmtree, directory, ignore_errors=True)
            else:
                directory = options.keep.resolve() / f"{items}-items-of-{options.item_bytes}-bytes"
                directory.mkdir(parents=True, exist_ok=True)
            store = Store(items)
            complete = directory / "filled"
            if not complete.exists():
                note(f"{items:,} items of {options.item_bytes} bytes")
                shutil.rmtree(directory / "data", ignore_errors=True)
                with running(server, directory) as started:
                    fill(started, store, options.item_bytes, note)
                note(f"  loaded at {store.load_items_per_second:,.0f} items/s")
                complete.touch()
            store.disk_bytes = directory_bytes(directory / "data")
            filled.append((store, directory))
        both: list[_Opened] = []
        for store, directory in filled:
            start = time.monotonic()
            started = stack.enter_context(running(server, directory))
            store.open_seconds = time.monotonic() - start
            store.open_memory_bytes = memory_bytes(started.process.pid)
            both.append(_Opened(started, store))
        _measure(both, options, note)
    return [store for store, _ in filled]


def render_stores(small: Store, large: Store) -> str:
    """Both stores in a table, and the verdict."""
    mebibyte = 1 << 20
    rows = [
        ["load, items/s", *(f"{store.load_items_per_second:,.0f}" for store in (small, large)), ""],
        [
            "memory after the load, MiB",
            *(f"{s.loaded_memory_bytes / mebibyte:,.0f}" for s in (small, large)),
            "",
        ],
        ["on disk, MiB", *(f"{store.disk_bytes / mebibyte:,.1f}" for store in (small, large)), ""],
        ["open, s", *(f"{store.open_seconds:.2f}" for store in (small, large)), ""],
        ["memory when open, MiB", *(f"{s.open_memory_bytes / mebibyte:,.0f}" for s in (small, large)), ""],
        [
            "memory at the end, MiB",
            *(f"{store.memory_bytes / mebibyte:,.0f}" for store in (small, large)),
            "",
        ],
        ["get, first second, requests/s", *(f"{store.cold_rate:,.0f}" for store in (small, large)), ""],
    ]
    for name in small.rates:
        warm = [f"{store.warm_up_seconds[name]:.0f}" for store in (small, large)]
        rows.append([f"{name}, warm after s", *warm, ""])
        rates = [f"{store.rates[name]:,.0f}" for store in (small, large)]
        rows.append([f"{name}, requests/s", *rates, f"{ratio(small, large, name):.2f}"])
        rows.append(
            [f"{name}, p99 ms", *(f"{store.p99_us[name] / 1000:.2f}" for store in (small, large)), ""]
        )
    heads = ["", f"{small.items:,} items", f"{large.items:,} items", "small / large"]
    missed = [name for name in small.rates if ratio(small, large, name) > RATIO_GOAL]
    verdict = f"MISSED by {', '.join(missed)}" if missed else "MET"
    return "\n".join(
        [*report.table(heads, rows), "", f"{verdict}: within {RATIO_GOAL} times of the small store."]
    )


def ratio(small: Store, large: Store, name: str) -> float:
    """The rate of the small store divided by the rate of the large one."""
    return small.rates[name] / large.rates[name] if large.rates[name] else float("inf")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.large", description="Measure a large durable store against a small one."
    )
    parser.add_argument("--items", type=int, default=10_000_000, metavar="N", help="of the large store")
    parser.add_argument("--small-items", type=int, default=10_000, metavar="N", help="of the small store")
    parser.add_argument("--item-bytes", type=int, default=500, metavar="N", help="the size of an item")
    parser.add_argument("--seconds", type=float, default=5, metavar="S", help="length of each measured run")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="measured runs of each load")
    parser.add_argument("--warm-up", type=float, default=10, metavar="S", help="a step of it")
    parser.add_argument("--loads", nargs="+", choices=list(LOADS), default=list(LOADS), help="only these")
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="keep the stores")
    parser.add_argument("--connections", type=int, default=64, metavar="N", help="of the load generator")
    parser.add_argument("--interpreted", action="store_true", help="not the compiled hot path")
    return parser


def main() -> int:
    parser = _parser()
    options = parser.parse_args()
    at_least_1 = ("items", "small_items", "item_bytes", "connections", "rounds")
    if min(getattr(options, name) for name in at_least_1) < 1:
        parser.error("--items, --small-items, --item-bytes, --connections and --rounds are at least 1")
    server = hashrange("fsync", interpreted=options.interpreted)

    def note(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    try:
        find_wrk()
        where = report.machine()
        small, large = measure_stores(server, [options.small_items, options.items], options, note)
    except (LoadError, ServerError, CallError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"Machine: {where}. {server.title}: {server.version()}.\n")
    print(render_stores(small, large))
    return 0 if all(ratio(small, large, name) <= RATIO_GOAL for name in small.rates) else 1


if __name__ == "__main__":
    sys.exit(main())
