"""How fast tables are imported, backed up, restored and exported, and how much memory that takes.

    python -m bench.history --items 2000000 --writers 16

Imports a table of items of 0.5 KB into a durable server, compares puts on a table with point-in-time recovery
with puts on a table without it, and then backs the table up, restores it from the backup and to a moment, and
exports it, while writers put items into it. Prints for each the items a second, the CPU time of an item, and
the server's peak memory meanwhile.

The server runs with the Python that starts this: use that of `make compile` for the compiled hot path.
"""

from __future__ import annotations

import argparse
import json
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.connection import Connection, send_all
from bench.imports import BUCKET, item_of, request, write
from bench.report import table
from bench.servers import cpu_us, peak
from bench.wire import HOST, CallError, Request, call, render

TABLE: Final = "imported"
POLL_SECONDS: Final = 0.1
PUTS: Final = 10_000
PUT_ROUNDS: Final = 6
WRITER_SECONDS: Final = 0.02
ANSWER_SECONDS_MAX: Final = 60.0
START_SECONDS_MAX: Final = 40.0
RECOVERY: Final = {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.history", description=__doc__)
    parser.add_argument("--items", type=int, default=200_000, metavar="N", help="items (default: 200,000)")
    parser.add_argument("--writers", type=int, default=0, metavar="N", help="connections that put meanwhile")
    parser.add_argument("--cache-mib", type=int, default=128, metavar="N", help="of the store (default: 128)")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="hashrange-history-") as name:
        directory = Path(name)
        (directory / "s3" / BUCKET / "in").mkdir(parents=True)
        write(directory / "s3" / BUCKET / "in" / "items", options.items, "DYNAMODB_JSON", "NONE")
        with served(directory, options.cache_mib) as (port, pid):
            head, *rows = measure(port, pid, options.items, options.writers)
            print("\n".join(table(head, rows)))


@contextmanager
def served(directory: Path, cache_mib: int) -> Iterator[tuple[int, int]]:
    """A durable server in a process of its own: its port and its pid."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
    command = [sys.executable, "-m", "hashrange", "serve", "--port", str(port), "--admin-port", "0"]
    command += ["--data-dir", str(directory / "data"), "--s3-dir", str(directory / "s3")]
    command += ["--cache", f"{cache_mib}MiB"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            with suppress(OSError, CallError):
                call(port, Request("ListTables", {}))
                break
            if time.monotonic() > deadline or server.poll() is not None:
                raise SystemExit("the server did not start")
            time.sleep(POLL_SECONDS)
        yield port, server.pid
    finally:
        server.terminate()
        server.wait()


def measure(port: int, pid: int, count: int, writers: int) -> Iterator[tuple[str, ...]]:
    """The rows of the table, its head first."""
    yield "", "items/s", "CPU, us an item", "memory, MiB", "puts/s meanwhile"

    def ask(operation: str, **body: Any) -> dict[str, Any]:
        return call(port, Request(operation, body)).body

    written = Writers(port, count)
    timed = Timing(pid, count, written)
    yield timed(
        "import",
        lambda: ask("ImportTable", **in_folder())["ImportTableDescription"]["ImportArn"],
        lambda arn: ask("DescribeImport", ImportArn=arn)["ImportTableDescription"]["ImportStatus"],
        "COMPLETED",
    )
    plain, recovered = put_times(port, pid, ask)
    timed.put_us = recovered.cpu_us
    yield from of_puts(plain, recovered, peak(pid))
    ask("UpdateContinuousBackups", TableName=TABLE, **RECOVERY)
    arn = ask("DescribeTable", TableName=TABLE)["Table"]["TableArn"]
    with written.working(writers):
        yield timed(
            "backup",
            lambda: ask("CreateBackup", TableName=TABLE, BackupName="bench")["BackupDetails"]["BackupArn"],
            lambda made: ask("DescribeBackup", BackupArn=made)["BackupDescription"]["BackupDetails"][
                "BackupStatus"
            ],
            "AVAILABLE",
        )
        backup = ask("ListBackups")["BackupSummaries"][0]["BackupArn"]
        yield timed(
            "restore from the backup",
            lambda: ask("RestoreTableFromBackup", TargetTableName="from-backup", BackupArn=backup),
            lambda _: ask("DescribeTable", TableName="from-backup")["Table"]["TableStatus"],
            "ACTIVE",
        )
        yield timed(
            "restore to a moment",
            lambda: ask(
                "RestoreTableToPointInTime",
                SourceTableName=TABLE, TargetTableName="of-moment", UseLatestRestorableTime=True,
            ),
            lambda _: ask("DescribeTable", TableName="of-moment")["Table"]["TableStatus"],
            "ACTIVE",
        )
        yield timed(
            "full export",
            lambda: ask("ExportTableToPointInTime", TableArn=arn, S3Bucket=BUCKET, S3Prefix="out")[
                "ExportDescription"
            ]["ExportArn"],
            lambda made: ask("DescribeExport", ExportArn=made)["ExportDescription"]["ExportStatus"],
            "COMPLETED",
        )
    for name in ("from-backup", "of-moment"):
        found = ask("DescribeTable", TableName=name)["Table"]["ItemCount"]
        assert found == count, f"{name} has {found} items"


class Timing:
    """Makes the rows of the table. `put_us` is the CPU time of one of the writers' puts."""

    def __init__(self, pid: int, items: int, written: Writers) -> None:
        self._pid = pid
        self._items = items
        self._written = written
        self.put_us = 0.0

    def __call__(
        self, what: str, begin: Callable[[], Any], state: Callable[[Any], str], until: str
    ) -> tuple[str, ...]:
        """Begin a piece of work, and wait until its state is `until`."""
        note(what)
        forget_peak(self._pid)
        used, began, put_before = cpu_us(self._pid), time.perf_counter(), self._written.count
        begun = begin()
        while (found := state(begun)) != until:
            if found in ("FAILED", "CANCELLED"):
                raise SystemExit(f"{what}: {found}")
            time.sleep(POLL_SECONDS)
        took = time.perf_counter() - began
        puts = self._written.count - put_before
        # The CPU time of the writers is not that of the work.
        shown_us = (cpu_us(self._pid) - used - puts * self.put_us) / self._items
        rate, memory = self._items / took, peak(self._pid)
        return what, f"{rate:,.0f}", f"{shown_us:.1f}", f"{memory:,.0f}", f"{puts / took:,.0f}"


def in_folder() -> dict[str, Any]:
    given = request("DYNAMODB_JSON", "NONE", indexed=False)
    return {**given, "S3BucketSource": {"S3Bucket": BUCKET, "S3KeyPrefix": "in/"}}


class Puts:
    """The puts of one table, round by round."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.used_us: list[float] = []

    @property
    def rate(self) -> float:
        return PUTS / statistics.median(self.seconds)

    @property
    def cpu_us(self) -> float:
        return statistics.median(self.used_us) / PUTS


def of_puts(plain: Puts, recovered: Puts, megabytes: float) -> Iterator[tuple[str, ...]]:
    for title, one in (("puts without recovery", plain), ("puts with recovery", recovered)):
        yield title, f"{one.rate:,.0f}", f"{one.cpu_us:.1f}", f"{megabytes:,.0f}", ""
    ratio = f"{plain.rate / recovered.rate:.2f}x", f"{recovered.cpu_us / plain.cpu_us:.2f}x"
    yield "with against without: time, CPU", *ratio, "", ""


def put_times(port: int, pid: int, ask: Callable[..., Any]) -> tuple[Puts, Puts]:
    """Replace the items of two tables in turns; the second has recovery."""
    note("puts")
    found = {"without": Puts(), "with": Puts()}
    for name in found:
        ask(
            "CreateTable",
            TableName=name,
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
    requests = {
        name: [
            render(Request("PutItem", {"TableName": name, "Item": item_of(number)}), port)
            for number in range(PUTS)
        ]
        for name in found
    }
    for sent in requests.values():
        send_all(port, sent, connections=16)
    ask("UpdateContinuousBackups", TableName="with", **RECOVERY)
    for turn in range(PUT_ROUNDS):
        for name, puts in sorted(found.items(), reverse=turn % 2 == 0):
            used, began = cpu_us(pid), time.perf_counter()
            send_all(port, requests[name], connections=16)
            puts.seconds.append(time.perf_counter() - began)
            puts.used_us.append(cpu_us(pid) - used)
    return found["without"], found["with"]


class Writers:
    """Connections that replace items of the table, each a few dozen a second."""

    def __init__(self, port: int, items: int) -> None:
        self._port = port
        self._items = items
        self.count = 0

    @contextmanager
    def working(self, writers: int) -> Iterator[None]:
        stop = threading.Event()
        threads = [threading.Thread(target=self._write, args=(one, stop)) for one in range(writers)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    def _write(self, number: int, stop: threading.Event) -> None:
        with Connection(self._port, ANSWER_SECONDS_MAX) as connection:
            while not stop.wait(WRITER_SECONDS):
                number = (number * 7919 + 1) % self._items
                put = {"TableName": TABLE, "Item": item_of(number)}
                connection.send(render(Request("PutItem", put), self._port))
                status, _, body = connection.answer()
                if status != 200:
                    raise ValueError(json.loads(body))
                self.count += 1


def forget_peak(pid: int) -> None:
    """Reset the kernel's record of a process's peak memory."""
    with suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def note(what: str) -> None:
    print(f"{what} ...", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
