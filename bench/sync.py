"""How fast `hashrange sync` is: `python -m bench.sync [--items 100000] [--rtt 20]`.

Two servers with data directories, and a process that keeps a table of each equal. The cloud's is behind a
network of some milliseconds (`bench.delaying`). It prints

    changes    how many changes a second are passed on after an outage: up, down, and both ways at once
    lag        how long a write takes to the other side, at some rates of writes to each side
    copy       the first copy of a table, down and up, beside `hashrange import` of the same items
    gap        the comparison of equal tables with 100 differences, after a stream has lost changes

with the CPU time and the peak memory of the process. Knows only the API and the command line.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import orjson

from bench.connection import Connection, send_all
from bench.imports import item_of
from bench.report import table as markdown
from bench.servers import ROOT, Running, Used, hashrange, running, until_end
from bench.wire import HOST, Request, call, render

DIRECTIONS: Final = {"up": ["edge"], "down": ["cloud"], "both": ["cloud", "edge"]}
"""By direction, the sides that are written."""
POLL_SECONDS: Final = 0.01
QUIET_SECONDS: Final = 20.0
"""A change that does not come in so long a time was lost."""
KEYS: Final = 2_500
WRITERS: Final = 4
DIFFERENCES: Final = 100


def _cells(used: Used) -> list[str]:
    """The last cells of a row."""
    return [f"{used.cpu:.1f}", f"{used.memory:.0f}"]


class World:
    """Two servers, the network before the cloud, and the settings of a pair of tables."""

    def __init__(self, folder: Path, cloud: Running, edge: Running, far: int) -> None:
        self.folder = folder
        self.sides = {"cloud": cloud, "edge": edge}
        self.far = far
        self._numbers = itertools.count()

    def call(self, side: str, operation: str, **body: Any) -> dict[str, Any]:
        """The answer of a side, without the network."""
        return call(self.sides[side].port, Request(operation, body)).body

    def tables(self, sides: tuple[str, ...] = ("cloud", "edge")) -> str:
        """A new table on these sides."""
        name = f"table-{next(self._numbers)}"
        for side in sides:
            self.call(
                side,
                "CreateTable",
                TableName=name,
                AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
                KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
                BillingMode="PAY_PER_REQUEST",
                StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
            )
        return name

    def settings(self, table: str, direction: str) -> Path:
        """The settings file of a pair."""
        file = self.folder / f"{table}.toml"
        file.write_text(
            f'poll = 0.1\n[cloud]\nendpoint = "http://{HOST}:{self.far}"\nregion = "us-east-1"\n'
            f'[edge]\nendpoint = "http://{HOST}:{self.sides["edge"].port}"\nregion = "us-east-1"\n'
            f'[[pairs]]\ntable = "{table}"\ndirection = "{direction}"\n'
        )
        return file

    def command(self, *arguments: str) -> subprocess.Popen[bytes]:
        """A command of Hashrange, as this Python runs it."""
        environment = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}
        log = (self.folder / "commands.log").open("ab")
        with log:
            command = [sys.executable, "-m", "hashrange", *arguments]
            return subprocess.Popen(command, env=os.environ | environment, stdout=log, stderr=log)

    def done(self, *arguments: str) -> tuple[float, Used]:
        """How many seconds a command took, and what it used."""
        began = time.monotonic()
        process = self.command(*arguments)
        used = until_end(process)
        assert process.returncode == 0, (self.folder / "commands.log").read_text()[-2000:]
        return time.monotonic() - began, used

    @contextmanager
    def syncing(self, file: Path) -> Iterator[list[Used]]:
        """A sync that runs; what it has used is in the list afterwards."""
        process = self.command("sync", "run", str(file))
        used: list[Used] = []
        try:
            yield used
        finally:
            process.send_signal(signal.SIGTERM)
            used.append(until_end(process))

    def count(self, side: str, table: str) -> int:
        """How many items a table has."""
        found = 0
        start: dict[str, Any] = {}
        while True:
            page = self.call(side, "Scan", TableName=table, Select="COUNT", ConsistentRead=True, **start)
            found += int(page["Count"])
            if "LastEvaluatedKey" not in page:
                return found
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


class Arrivals(threading.Thread):
    """Follows the stream of a side, and tells each change that came from the other one."""

    def __init__(
        self, world: World, side: str, table: str, note: Callable[[str, float, float], None]
    ) -> None:
        super().__init__(daemon=True)
        self._connection = Connection(world.sides[side].port, 30.0)
        self._port = world.sides[side].port
        self._own = side
        self._note = note
        self._ended = threading.Event()
        arn = world.call(side, "DescribeTable", TableName=table)["Table"]["LatestStreamArn"]
        self._iterators = [
            self._ask(
                "GetShardIterator", StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="LATEST"
            )["ShardIterator"]
            for shard in self._ask("DescribeStream", StreamArn=arn)["StreamDescription"]["Shards"]
        ]
        self.start()

    def _ask(self, operation: str, **body: Any) -> Any:
        self._connection.send(render(Request(operation, body), self._port))
        status, _, answer = self._connection.answer()
        assert status == 200, answer
        return orjson.loads(answer)

    def run(self) -> None:
        while not self._ended.wait(POLL_SECONDS):
            for place, iterator in enumerate(self._iterators):
                page = self._ask("GetRecords", ShardIterator=iterator, Limit=1000)
                self._iterators[place] = page["NextShardIterator"]
                now = time.time()
                for record in page["Records"]:
                    image = record["dynamodb"].get("NewImage", {})
                    if image and image["from"]["S"] != self._own:
                        self._note(image["pk"]["S"], float(image["at"]["N"]), now)

    def end(self) -> None:
        self._ended.set()
        self.join()


class Lags:
    """The writes under way, and how long those took that have arrived. A later state of an item stands for
    the earlier ones."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.first = self.last = 0.0
        self._waiting: dict[str, list[float]] = defaultdict(list)
        self._lock = threading.Lock()

    def written(self, key: str, at: float) -> None:
        with self._lock:
            self._waiting[key].append(at)

    def arrived(self, key: str, at: float, now: float) -> None:
        with self._lock:
            self.first, self.last = self.first or now, now
            self.seconds += [now - one for one in self._waiting[key] if one <= at]
            self._waiting[key] = [one for one in self._waiting[key] if one > at]

    def wait_for(self, count: int) -> None:
        """Wait until so many writes have arrived."""
        seen, changed = -1, time.monotonic()
        while len(self.seconds) < count:
            if len(self.seconds) != seen:
                seen, changed = len(self.seconds), time.monotonic()
            assert time.monotonic() - changed < QUIET_SECONDS + 20, f"{seen} of {count} have arrived"
            time.sleep(0.02)

    def at(self, share: float) -> float:
        """The lag, in milliseconds, that this share of the writes did not exceed."""
        return statistics.quantiles(self.seconds, n=1000, method="inclusive")[round(share * 1000) - 1] * 1e3


def _put(table: str, side: str, number: int, at: float) -> Request:
    item = item_of(number) | {"pk": {"S": f"{side}-{number}"}, "from": {"S": side}, "at": {"N": f"{at:.6f}"}}
    return Request("PutItem", {"TableName": table, "Item": item})


def _write(world: World, table: str, side: str, number: int, rate: float, seconds: float, lags: Lags) -> None:
    """Put random items at a rate, on one of `WRITERS` connections, which have different items."""
    port, chance, began = world.sides[side].port, random.Random(number), time.monotonic()
    with Connection(port, 30.0) as connection:
        for turn in range(int(rate * seconds)):
            late = began + turn / rate - time.monotonic()
            if late > 0:
                time.sleep(late)
            at = round(time.time(), 6)
            request = _put(table, side, chance.randrange(KEYS) * WRITERS + number, at)
            lags.written(request.body["Item"]["pk"]["S"], at)
            connection.send(render(request, port))
            status, _, answer = connection.answer()
            assert status == 200, answer


def changes(world: World, count: int) -> list[list[str]]:
    """How fast changes are passed on that were made while the sync did not run."""
    rows = []
    for direction, sides in DIRECTIONS.items():
        table = world.tables()
        file = world.settings(table, direction)
        world.done("sync", "once", str(file))
        lags = Lags()
        others = [
            Arrivals(world, "edge" if side == "cloud" else "cloud", table, lags.arrived) for side in sides
        ]
        for side in sides:
            port = world.sides[side].port
            puts = [_put(table, side, number, 1.0) for number in range(count // len(sides))]
            for put in puts:
                lags.written(put.body["Item"]["pk"]["S"], 1.0)
            send_all(port, (render(put, port) for put in puts))
        with world.syncing(file) as used:
            lags.wait_for(count // len(sides) * len(sides))
        for other in others:
            other.end()
        rows.append([direction, f"{count / (lags.last - lags.first):,.0f}", *_cells(used[0])])
    return rows


def lag(world: World, rates: list[int], seconds: float) -> list[list[str]]:
    """How long writes take to the other side."""
    rows = []
    for rate, (direction, sides) in itertools.product(rates, DIRECTIONS.items()):
        table = world.tables()
        file = world.settings(table, direction)
        world.done("sync", "once", str(file))
        lags = Lags()
        others = [
            Arrivals(world, "edge" if side == "cloud" else "cloud", table, lags.arrived) for side in sides
        ]
        each = rate / len(sides) / WRITERS
        with world.syncing(file) as used:
            for side in sides:
                first = _put(table, side, 0, 1.0)
                lags.written(first.body["Item"]["pk"]["S"], 1.0)
                world.call(side, "PutItem", **first.body)
            lags.wait_for(len(sides))
            lags.seconds.clear()
            writers = [
                threading.Thread(target=_write, args=(world, table, side, number, each, seconds, lags))
                for side in sides
                for number in range(WRITERS)
            ]
            began = time.monotonic()
            for writer in writers:
                writer.start()
            for writer in writers:
                writer.join()
            took = time.monotonic() - began
            count = int(each * seconds) * WRITERS * len(sides)
            lags.wait_for(count)
        for other in others:
            other.end()
        figures = [f"{lags.at(0.5):,.0f}", f"{lags.at(0.99):,.0f}"]
        rows.append([f"{direction} {rate}", f"{count / took:,.0f}", *figures, *_cells(used[0])])
    return rows


def copy(world: World, items: int) -> tuple[list[list[str]], str, Path]:
    """First copies. Returns the rows, and a table that both sides have now with its settings."""
    source = world.folder / "items.json"
    with source.open("wb") as written:
        for number in range(items):
            written.write(orjson.dumps({"Item": item_of(number)}) + b"\n")
    rows = []
    for direction, [side] in (("down", ["cloud"]), ("up", ["edge"])):
        table = world.tables()
        file = world.settings(table, "both")
        endpoint = f"http://{HOST}:{world.sides[side].port}"
        took, used = world.done("import", table, str(source), "--endpoint-url", endpoint)
        rows.append([f"import to the {side}", f"{items / took:,.0f}", *_cells(used)])
        took, used = world.done("sync", "once", str(file))
        rows.append([f"first copy, {direction}", f"{items / took:,.0f}", *_cells(used)])
        assert world.count("cloud", table) == world.count("edge", table) == items
    return rows, table, file


def gap(world: World, table: str, file: Path, items: int) -> list[list[str]]:
    """The comparison of two tables whose changes are no longer in the streams."""
    for number in range(DIFFERENCES // 2):
        world.call("cloud", "PutItem", **_put(table, "cloud", number, 1.0).body)
        key = {"pk": item_of(number * 7)["pk"]}
        world.call("edge", "DeleteItem", TableName=table, Key=key)
    # (as if a shard were gone that was not read to its end)
    lost = {"id": {"S": "s#cloud"}, "part": {"S": "lost"}, "done": {"BOOL": False}, "after": {"S": "1"}}
    world.call("edge", "PutItem", TableName=f"hashrange-sync.{table}", Item=lost)
    took, used = world.done("sync", "once", str(file))
    assert world.count("cloud", table) == world.count("edge", table) == items
    return [[f"{items:,} items", f"{items / took:,.0f}", *_cells(used)]]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.sync", description="How fast `hashrange sync` is.")
    parser.add_argument("--rtt", type=float, default=20.0, metavar="MS", help="the cloud's (default: 20)")
    parser.add_argument("--items", type=int, default=100_000, metavar="N", help="to copy (default: 100,000)")
    parser.add_argument("--changes", type=int, default=20_000, metavar="N", help="(default: 20,000)")
    parser.add_argument("--rates", default="100,500,1000", metavar="RATES", help="writes a second for lags")
    parser.add_argument("--seconds", type=float, default=10.0, metavar="S", help="of writes (default: 10)")
    parser.add_argument(
        "--only", default="changes,lag,copy", metavar="PARTS", help="some of changes,lag,copy"
    )
    return parser


def main() -> int:
    options = _parser().parse_args()
    parts = set(options.only.split(","))
    cpu = ["CPU s", "peak MB"]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hashrange-bench-")))
        started = []
        for name in ("cloud", "edge"):
            (folder / name).mkdir()
            started.append(stack.enter_context(running(hashrange("fsync"), folder / name)))
        proxy = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-m", "bench.delaying", str(started[0].port), str(options.rtt)],
                stdout=subprocess.PIPE,
                cwd=ROOT,
            )
        )
        stack.callback(proxy.terminate)
        assert proxy.stdout is not None
        world = World(folder, started[0], started[1], int(proxy.stdout.readline()))
        print(f"Hashrange {started[0].server.version()}, {options.rtt:g} ms to the cloud\n", flush=True)
        if "changes" in parts:
            rows = changes(world, options.changes)
            print("\n".join(markdown(["changes", "a second", *cpu], rows)), "\n", flush=True)
        if "lag" in parts:
            rows = lag(world, [int(rate) for rate in options.rates.split(",")], options.seconds)
            head = ["writes a second", "reached", "p50 ms", "p99 ms", *cpu]
            print("\n".join(markdown(head, rows)), "\n", flush=True)
        if "copy" in parts:
            rows, table, file = copy(world, options.items)
            rows += gap(world, table, file, options.items)
            print("\n".join(markdown(["copy", "items/s", *cpu], rows)), "\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
