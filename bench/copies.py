"""What copies take: `python -m bench.copies stores | puts | size`.

    stores   records a second of `hashrange copy`, between directories and a PostgreSQL of its own
    puts     CPU and rate of puts with `serve --copy-to` a folder, beside those without
    size     the first base, verify and restore of a large store, beside `cp` and zstd; and how fast a standby
             that stood still takes in what was committed meanwhile, a twentieth of the store

Of `stores` the time is that of the whole command: starting, copying, reading back and comparing. `puts` sends
to two servers at the same time, one that ships and one that does not, so that whatever else the machine does
hurts both; the CPU is that of the whole process, until it has shipped all. `size` also shows the memory of
the process.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import median
from typing import Final, NamedTuple
from urllib.request import urlopen

from bench.load import SCRIPT, run_wrk, write_requests
from bench.postgres import cluster
from bench.report import machine, table
from bench.servers import (
    COMPILED,
    Running,
    Server,
    cpu_us,
    free_port,
    hashrange,
    peak,
    running,
    until_end,
)
from bench.wire import Request, call, render
from hashrange.storage.api import Transaction
from hashrange.storage.embedded import EmbeddedEngine
from hashrange_replication.place import place_of
from hashrange_replication.status import status

SCHEMA: Final = "bench_copies"
SPACE: Final = 70
VALUE_BYTES: Final = 100
_RECORDS_PER_BODY: Final = 5_000


def fill(directory: Path, records: int, value: Callable[[Random], bytes]) -> None:
    """Make a store with this number of records."""
    engine = EmbeddedEngine(directory)
    fill_store(engine, records, value)
    engine.close()


def fill_store(engine: EmbeddedEngine, records: int, value: Callable[[Random], bytes], seed: int = 0) -> None:
    """Put so many records, of other keys for each seed."""
    random = Random(seed)

    def body(txn: Transaction) -> None:
        size = 0
        for _ in range(_RECORDS_PER_BODY):
            made = value(random)
            size += len(made)
            txn.put(SPACE, random.randbytes(24), random.randbytes(8), made)
        txn.count(SPACE, _RECORDS_PER_BODY, size)

    for _ in range(records // _RECORDS_PER_BODY):
        engine.write(body)


# -- Stores -----------------------------------------------------------------------------------------------


def copy(origin: str, target: str) -> float:
    """Copy a store; returns the seconds that it took."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "hashrange", "copy", origin, target]
    given = ["--from-schema", SCHEMA, "--to-schema", SCHEMA]
    subprocess.run([*command, *given], check=True)
    return time.perf_counter() - began


def stores(scratch: Path, given: argparse.Namespace) -> list[str]:
    with cluster([]) as one:
        words = dict(word.split("=", 1) for word in one.url.split())
        url = f"postgresql://{words['user']}@/{words['dbname']}?host={words['host']}"
        first, back, third = (str(scratch / name) for name in ("first", "back", "third"))
        fill(Path(first), given.records, lambda random: random.randbytes(VALUE_BYTES))
        rows = []
        for name, origin, target in (
            ("directory to PostgreSQL", first, url),
            ("PostgreSQL to directory", url, back),
            ("directory to directory", back, third),
        ):
            seconds = copy(origin, target)
            rows.append([name, f"{seconds:.1f}", f"{given.records / seconds:,.0f}"])
    return table(["copy", "seconds", "records a second"], rows)


# -- Puts -------------------------------------------------------------------------------------------------

_WORDS: Final = [
    "".join(Random(number).choices(string.ascii_lowercase, k=2 + number % 9)) for number in range(2_000)
]
_LETTERS: Final = string.ascii_letters + string.digits
_PUTS: Final = 10_000
_SETTLE_SECONDS: Final = 1.5


def _words(random: Random, length: int) -> str:
    return " ".join(random.choices(_WORDS, k=length // 4))[:length]


def _random_text(random: Random, length: int) -> str:
    return "".join(random.choices(_LETTERS, k=length))


KINDS: Final[dict[str, tuple[Callable[[Random, int], str], int]]] = {
    "0.1 KB of words": (_words, 90),
    "1 KB of words": (_words, 1_000),
    "1 KB of random text": (_random_text, 1_000),
}


def put_requests(kind: str) -> Iterator[Request]:
    make, length = KINDS[kind]
    random = Random(kind)
    for number in range(_PUTS):
        item = {"p": {"S": f"item-{number:06}"}, "v": {"S": make(random, length)}}
        yield Request("PutItem", {"TableName": "puts", "Item": item})


class Run(NamedTuple):
    """CPU in microseconds a put, and puts a second."""

    cpu: float
    rate: float


def _copying(server: Server) -> Server:
    def command(port: int, directory: Path) -> list[str]:
        return [*server.command(port, directory), "--copy-to", str(directory / "copy")]

    return replace(server, name="copying", command=command)


def _put(started: Running, kind: str, seconds: float, connections: int) -> Run:
    script, file = started.directory / "wrk.lua", started.directory / "requests"
    script.write_text(SCRIPT)
    write_requests(file, (render(request, started.port) for request in put_requests(kind)))
    before = cpu_us(started.process.pid)
    outcome = run_wrk(f"http://127.0.0.1:{started.port}", file, script, connections, seconds)
    time.sleep(_SETTLE_SECONDS)
    spent = cpu_us(started.process.pid) - before
    assert not outcome.status_errors, outcome
    return Run(spent / outcome.requests, outcome.requests_per_second)


def puts(scratch: Path, given: argparse.Namespace) -> list[str]:
    plain = hashrange("fsync")
    print(plain.version())
    create = {
        "TableName": "puts",
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
    }
    rows = []
    with ExitStack() as stack:
        started = []
        for server in (plain, _copying(plain)):
            folder = scratch / server.name
            folder.mkdir()
            started.append(stack.enter_context(running(server, folder)))
            call(started[-1].port, Request("CreateTable", create))
        for kind in KINDS:
            runs: list[tuple[Run, Run]] = []
            for _ in range(given.rounds):
                with ThreadPoolExecutor(2) as pool:
                    both = [pool.submit(_put, one, kind, given.seconds, given.connections) for one in started]
                    runs.append((both[0].result(), both[1].result()))
            cpu = [median(both[which].cpu for both in runs) for which in (0, 1)]
            share = [with_.cpu / without.cpu for without, with_ in runs]
            rate = median(with_.rate / without.rate for without, with_ in runs)
            spread = f"{median(share):.3f} ({min(share):.2f} to {max(share):.2f})"
            rows.append([kind, f"{cpu[0]:.1f}", f"{cpu[1]:.1f}", spread, f"{rate:.3f}"])
            print(rows[-1], flush=True)
    return table(["items", "CPU us a put", "with a copy", "ratio of CPU", "ratio of puts a second"], rows)


# -- Size -------------------------------------------------------------------------------------------------


_LOOK_SECONDS: Final = 0.02


class Took(NamedTuple):
    """What a program took. `memory` is its greatest resident set in MiB."""

    seconds: float
    cpu: float
    memory: float


def took(command: list[str], **environment: str) -> Took:
    """Run a program to its end."""
    began = time.perf_counter()
    child = subprocess.Popen(command, env=os.environ | environment, stdout=subprocess.DEVNULL)
    used = until_end(child)
    assert child.returncode == 0, command
    return Took(time.perf_counter() - began, *used)


_SHIPPED: Final = """
import os, sys, time
from pathlib import Path
from bench.copies import fill_store, large_value
from hashrange.storage.embedded import EmbeddedEngine
from hashrange_replication.place import place_of
from hashrange_replication.running import Copying, Setup
engine = EmbeddedEngine(sys.argv[1])
setup = Setup(directory=Path(sys.argv[1]), place=place_of(sys.argv[2], make=True), where="a benchmark",
    clock=time.time, now=time.monotonic, random=os.urandom)
copying = Copying(engine, setup)
copying.begin()
if len(sys.argv) == 3:
    copying.bases.make()
else:
    copying.start()
    fill_store(engine, int(sys.argv[3]), large_value, seed=1)
copying.close()
engine.close()
"""
"""Makes the first base of a store; or writes so many records more, and ships them."""


def large_value(random: Random) -> bytes:
    """1 KB, of which a third is as good as random."""
    return _words(random, 700).encode() + random.randbytes(300)


def catch_up(python: list[str], store: Path, copied: Path, scratch: Path, records: int) -> Took:
    """A standby that is stopped while the primary writes: from its continuation to the last commit."""
    place = place_of(str(copied))

    port, admin_port = free_port(), free_port()

    def is_level() -> bool:
        with urlopen(f"http://127.0.0.1:{admin_port}/health") as answer:
            health = json.load(answer)
        return bool(health["of_rings"]["replication"].get("last_commit") == last)

    directory = scratch / "standby"
    arguments = ["--copy", str(copied), "--data-dir", str(directory), "--port", str(port)]
    arguments += ["--admin-port", str(admin_port)]
    standby = subprocess.Popen([*python, "-m", "hashrange", "standby", *arguments], stdout=subprocess.DEVNULL)
    try:
        while not status(place, None, time.time())["standbys"]:
            time.sleep(_LOOK_SECONDS)
        standby.send_signal(signal.SIGSTOP)
        took([*python, "-c", _SHIPPED, str(store), str(copied), str(records)])
        last = status(place, None, time.time())["last_commit"]
        cpu, began = cpu_us(standby.pid), time.perf_counter()
        standby.send_signal(signal.SIGCONT)
        while not is_level():
            time.sleep(_LOOK_SECONDS)
        seconds = time.perf_counter() - began
        return Took(seconds, (cpu_us(standby.pid) - cpu) / 1e6, peak(standby.pid))
    finally:
        standby.send_signal(signal.SIGCONT)
        standby.terminate()
        standby.wait()


def size(scratch: Path, given: argparse.Namespace) -> list[str]:
    store, copied = scratch / "store", scratch / "copied"
    fill(store, int(given.gib * 1e6), large_value)
    bytes_ = sum(path.stat().st_size for path in store.rglob("*") if path.is_file())
    python = [str(COMPILED / "bin" / "python") if COMPILED.exists() else sys.executable]
    replica = [*python, "-m", "hashrange", "replica"]
    programs = {
        "the first base": [*python, "-c", _SHIPPED, str(store), str(copied)],
        "replica verify": [*replica, "verify", "--copy", str(copied)],
        "replica restore": [*replica, "restore", "--copy", str(copied), "--data-dir", str(scratch / "back")],
        "cp -r, sync": ["sh", "-c", f"cp -r {store} {scratch}/cp && sync -f {scratch}/cp"],
        "tar, zstd -1, sync": [
            "sh",
            "-c",
            f"tar c {store} | zstd -1 -q -o {scratch}/tar && sync -f {scratch}/tar",
        ],
    }
    rows = []

    def add(name: str, done: Took, megabytes: float) -> None:
        rates = [f"{megabytes / done.seconds:.0f}", f"{megabytes / done.cpu:.0f}"]
        rows.append([name, f"{done.seconds:.1f}", *rates, f"{done.memory:.0f}"])
        print(rows[-1], flush=True)

    for name, command in programs.items():
        add(name, took(command), bytes_ / 1e6)
        for made in (scratch / "cp", scratch / "tar"):
            shutil.rmtree(made, ignore_errors=True)
            made.unlink(missing_ok=True)
    more = int(given.gib * 1e6 / 20)
    add("a standby catches up", catch_up(python, store, copied, scratch, more), more / 1e3)
    print(f"{bytes_ / 1e6:.0f} MB on disk, of {given.gib:g} million items of 1 KB")
    return table(["", "seconds", "MB/s", "MB in a second of CPU", "memory, MiB"], rows)


def main() -> None:
    shown = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="bench.copies", description=__doc__, formatter_class=shown)
    kinds = {"stores": stores, "puts": puts, "size": size}
    parser.add_argument("kind", choices=kinds)
    parser.add_argument("--records", type=int, default=1_000_000, help="of stores")
    parser.add_argument("--rounds", type=int, default=6, help="of puts")
    parser.add_argument("--seconds", type=float, default=5, help="of each round of puts")
    parser.add_argument("--connections", type=int, default=16, help="of puts")
    parser.add_argument("--gib", type=float, default=1, help="of size, about")
    parser.add_argument("--scratch", type=Path, help="where to make directories")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hashrange-copies-", dir=given.scratch) as scratch:
        where = machine()
        rows = kinds[given.kind](Path(scratch), given)
    print(where)
    print("\n".join(rows))


if __name__ == "__main__":
    main()
