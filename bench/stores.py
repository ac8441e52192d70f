"""How many bodies a second the engines commit: `python -m bench.stores [--postgres URL] [--engines 2]`.

It calls the engine as the server does: one event loop submits many bodies at a time, and each outcome submits
the next body. Values are random bytes, because equal ones shrink PostgreSQL's log. With
`--engines 2` two processes share the store. Figures are for comparing rows of one run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from random import Random
from typing import Any, Final

from hashrange.storage.api import Engine, Reader, Transaction
from hashrange.storage.capabilities import Remote

SPACE: Final = 70
VALUE_BYTES: Final = 400
KEYS: Final = 100_000
UNDER_WAY: Final = 64

Body = Callable[[Any], Any]


def _place(number: int) -> bytes:
    return b"%024d" % number


def _putter(random: Random) -> Body:
    place, value = _place(random.randrange(KEYS)), random.randbytes(VALUE_BYTES)

    def put(txn: Transaction) -> None:
        old = txn.get(SPACE, place, b"")
        txn.put(SPACE, place, b"", value)
        if old is None:
            txn.count(SPACE, 1, len(value))

    return put


def _getter(random: Random) -> Body:
    place = _place(random.randrange(KEYS))

    def get(reader: Reader) -> bytes | None:
        return reader.get(SPACE, place, b"")

    return get


def _counter(random: Random, counters: int) -> Body:
    place = _place(KEYS + random.randrange(counters))

    def add(txn: Transaction) -> int:
        value = int(txn.get(SPACE, place, b"") or b"0") + 1
        txn.put(SPACE, place, b"", b"%d" % value)
        return value

    return add


WORKLOADS: Final[dict[str, tuple[bool, Callable[[Random], Body]]]] = {
    "put": (True, _putter),
    "get": (False, _getter),
    "counter, 100,000 keys": (True, lambda random: _counter(random, KEYS)),
    "counter, 500 keys": (True, lambda random: _counter(random, 500)),
    "counter, one key": (True, lambda random: _counter(random, 1)),
}


def _open(store: str, schema: str) -> Engine:
    if store.startswith("/"):
        from hashrange.storage.embedded import EmbeddedEngine

        return EmbeddedEngine(store)
    from hashrange_postgres import PostgresEngine

    return PostgresEngine(store, schema=schema)


def void(_: object) -> None:
    """The engine's `deliver` returns nothing."""


async def _measure(engine: Engine, workload: str, seconds: float, seed: int) -> tuple[int, float, float]:
    """Bodies, seconds, and CPU seconds of this process."""
    writes, make = WORKLOADS[workload]
    submit = engine.submit if writes else engine.submit_read
    loop = asyncio.get_running_loop()
    engine.loop.use(lambda callback: void(loop.call_soon_threadsafe(callback)), loop.call_soon)
    random = Random(seed)
    ended = loop.create_future()
    done = under_way = 0
    end = time.perf_counter() + seconds

    def tell(result: Any, error: Exception | None) -> None:
        nonlocal done, under_way
        if error is not None and not ended.done():
            ended.set_exception(error)
            return
        done += 1
        under_way -= 1
        if time.perf_counter() < end:
            loop.call_soon(begin)
        elif not under_way and not ended.done():
            ended.set_result(None)

    def begin() -> None:
        nonlocal under_way
        under_way += 1
        submit(make(random), tell)

    began, cpu = time.perf_counter(), time.process_time()
    for _ in range(UNDER_WAY):
        begin()
    await ended
    return done, time.perf_counter() - began, time.process_time() - cpu


def _run(store: str, schema: str, seconds: float, seed: int, barrier: Any, results: Any) -> None:
    engine = _open(store, schema)
    for workload in WORKLOADS:
        before = engine.counts() if isinstance(engine, Remote) else {}
        barrier.wait()
        bodies, took, cpu = asyncio.run(_measure(engine, workload, seconds, seed))
        after = engine.counts() if isinstance(engine, Remote) else {}
        counts = {name: after[name] - before[name] for name in after}
        results.put((workload, bodies, took, cpu, counts))
        barrier.wait()
    engine.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", metavar="URL")
    parser.add_argument("--engines", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    context = get_context("spawn")
    print(f"{os.cpu_count()} cores, {UNDER_WAY} bodies under way in each of {options.engines} processes")
    with tempfile.TemporaryDirectory() as directory:
        store, schema = options.postgres or directory, f"bench_{os.getpid()}"
        barrier, results = context.Barrier(options.engines), context.Queue()
        processes = [
            context.Process(target=_run, args=(store, schema, options.seconds, seed, barrier, results))
            for seed in range(options.engines)
        ]
        for process in processes:
            process.start()
        for _ in WORKLOADS:
            found = [results.get() for _ in processes]
            rate = sum(bodies / took for _, bodies, took, _, _ in found)
            bodies = sum(one[1] for one in found)
            cpu = sum(one[3] for one in found) / bodies * 1e6
            counts = {name: sum(one[4][name] for one in found) for name in found[0][4]}
            shown = ", ".join(f"{count / bodies:.4f} {name}" for name, count in counts.items() if count)
            print(f"{found[0][0]:24} {rate:9,.0f}/s  {cpu:6.1f} us CPU of the process  {shown}")
        for process in processes:
            process.join()


if __name__ == "__main__":
    main()
