"""`python -m bench.watching`: what requests cost while somebody records, throttles, delays or looks at them.

It reads and executes requests of the wire in one process, without sockets, and turns each way of watching on
and off in turns. The result is the ratio of CPU times of all threads to those without watching: the median of
many short turns, so that a machine with other work gives about the same ratios as a quiet one.
`python -m bench.instructions --with` counts instructions instead, of a whole server.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import orjson

from bench.report import table
from bench.workloads import item
from hashrange import form
from hashrange.database import Database
from hashrange.protocol import Call, Wire, encode_result
from hashrange_lab.heat import Heat
from hashrange_lab.recordings.recording import Recording

ITEMS = 500
HEADERS = {
    b"content-type": b"application/x-amz-json-1.0",
    b"x-amz-date": b"20260101T000000Z",
    b"authorization": b"AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/dynamodb/aws4_request, "
    b"SignedHeaders=host;x-amz-date, Signature=" + b"0" * 64,
}

Watching = Callable[[Database, Path], AbstractContextManager[Any]]


@contextmanager
def throttled(database: Database, folder: Path) -> Iterator[None]:
    """All tables are throttled; none has so much load that a request is refused."""
    database.lab.throttling.reset()
    database.lab.throttling.set(True)
    yield
    database.lab.throttling.set(False)


@contextmanager
def eventual(database: Database, folder: Path) -> Iterator[None]:
    """Reads lag by two seconds."""
    database.lab.eventual.set(2)
    yield
    database.lab.eventual.set(0)


@contextmanager
def looked(database: Database, folder: Path) -> Iterator[None]:
    """`hashrange top` looks."""
    heat = Heat(database, lambda: False)
    heat.begin()
    heat.learn(every=True)
    yield
    heat.end()


def recorded(database: Database, folder: Path) -> AbstractContextManager[Any]:
    """All requests are recorded, with their values."""
    return Recording(database, folder / "load")


def hashed(database: Database, folder: Path) -> AbstractContextManager[Any]:
    """All requests are recorded, with hashes of their values."""
    return Recording(database, folder / "load", hashed=True)


WAYS: dict[str, Watching] = {
    "--throttle": throttled,
    "--eventual-reads 2": eventual,
    "top": looked,
    "--record": recorded,
    "--record --record-values hashed": hashed,
}


def measure(operation: str, requests: list[dict[str, Any]], turns: int) -> dict[str, float]:
    """The ratio of each way of watching, for the requests of an operation."""
    with Database.in_memory() as database:
        database.execute(
            "CreateTable",
            {
                "TableName": "items",
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
        wire = Wire(region="us-east-1", account_id="000000000000", observers=database.observers)
        headers = HEADERS | {b"x-amz-target": f"DynamoDB_20120810.{operation}".encode()}
        bodies = [orjson.dumps(request) for request in requests]
        for number in range(ITEMS):
            database.execute("PutItem", {"TableName": "items", "Item": dict(item(number))})
        ratios: dict[str, list[float]] = {name: [] for name in WAYS}
        for _ in range(turns):
            before = _seconds(database, wire, headers, bodies)
            for name, watch in WAYS.items():
                with tempfile.TemporaryDirectory() as folder:
                    began = process_time()
                    with watch(database, Path(folder)):
                        seconds = _seconds(database, wire, headers, bodies)
                    # A recording has to be written to its end.
                    seconds = process_time() - began if "record" in name else seconds
                after = _seconds(database, wire, headers, bodies)
                ratios[name].append(seconds / ((before + after) / 2))
                before = after
        return {name: median(found) for name, found in ratios.items()}


def _seconds(database: Database, wire: Wire, headers: dict[bytes, bytes], bodies: list[bytes]) -> float:
    began = process_time()
    for body in bodies:
        call = wire.read(b"POST", b"/", headers, body)
        assert isinstance(call, Call)
        encode_result(database.execute(call.operation, call.request, call.caller))
    return process_time() - began


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.watching", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--turns", type=int, default=20, help="how often each way is measured (20)")
    parser.add_argument("--requests", type=int, default=1_000, help="the requests of a turn (1000)")
    given = parser.parse_args(arguments)
    numbers = [number % ITEMS for number in range(given.requests)]
    gets = [{"TableName": "items", "Key": {"pk": item(number)["pk"]}} for number in numbers]
    puts = [{"TableName": "items", "Item": item(number)} for number in numbers]
    get = measure("GetItem", gets, given.turns)
    put = measure("PutItem", puts, given.turns)
    rows = [[name, f"{get[name]:.2f}", f"{put[name]:.2f}"] for name in WAYS]
    print(f"CPU time, times that without watching, hot path {form()}")
    print("\n".join(table(["while on", "GetItem", "PutItem"], rows)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
