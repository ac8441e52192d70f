"""Kill the worker, and the server, at random moments under load: no change is lost and none counts twice.

HASHRANGE_TRIGGER_KILLS says how often (`make trigger-kills ROUNDS=100`).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

import hashrange_triggers as triggers
from hashrange_triggers.source import PAGE_RECORDS_MAX, Cursor, shards_of, table_streams
from serving import serving
from triggers.view_totals import TOTALS, VIEWS, count
from worlds import table_of

KILLS = int(os.environ.get("HASHRANGE_TRIGGER_KILLS", "10"))
TESTS = Path(__file__).resolve().parents[1]
WRITERS = 2
NAME = "view-totals"


def create_tables(client: Any) -> None:
    for name, key in ((VIEWS, "event"), (TOTALS, "name")):
        client.create_table(**table_of(name, key, stream="NEW_AND_OLD_IMAGES"))


class Load:
    """Threads that write views, some of them twice, until they are stopped; and the views written."""

    def __init__(self, clients: Callable[[], triggers.Clients], seed: int) -> None:
        self.written: set[tuple[str, str]] = set()
        self._clients, self._stop, self._lock = clients, threading.Event(), threading.Condition()
        self._threads = [
            threading.Thread(target=self._write, args=(number, random.Random(seed + number)))
            for number in range(WRITERS)
        ]

    def _write(self, writer: int, chance: random.Random) -> None:
        client = self._clients().dynamodb
        number = 0
        while not self._stop.wait(0.004):
            number += 1
            event = f"{writer}-{chance.randint(max(0, number - 3), number)}"
            page = f"/article/{hash(event) % 5}"
            item = {"event": {"S": event}, "page": {"S": page}, "number": {"N": str(number)}}
            try:
                client.put_item(TableName=VIEWS, Item=item)
            except (BotoCoreError, ClientError):
                continue  # the server was killed; nobody knows whether it was written
            with self._lock:
                self.written.add((event, page))
                self._lock.notify_all()

    def wait_for(self, views: int) -> None:
        """Wait until this number of further views is written."""
        goal = len(self.written) + views
        with self._lock:
            assert self._lock.wait_for(lambda: len(self.written) >= goal, timeout=60)

    @contextmanager
    def running(self) -> Iterator[Load]:
        for thread in self._threads:
            thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join()


def scan(client: Any, table: str) -> list[dict[str, Any]]:
    pages = client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
    return [item for page in pages for item in page["Items"]]


def run_worker(endpoint: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "VIEW_TOTALS_ENDPOINT": endpoint,
        "PYTHONPATH": os.pathsep.join([*sys.path, str(TESTS)]),
    }
    command = [
        sys.executable,
        "-m",
        "hashrange",
        "trigger",
        "run",
        "--table",
        VIEWS,
        "--endpoint-url",
        endpoint,
    ]
    command += ["--name", NAME, "--batch-size", "7", "--poll-interval", "0.01", "triggers.view_totals:count"]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )


def kill_after_lines(worker: subprocess.Popen[str], lines: int) -> list[str]:
    """Let a worker run until it has processed this number of records, then kill it; returns the records'
    ids."""
    assert worker.stdout is not None
    with worker.stdout:
        seen = [line for _, line in zip(range(lines), worker.stdout, strict=False)]
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        assert len(seen) == lines, "the worker ended by itself"
        return seen + list(worker.stdout)


def test_totals_are_exact_when_the_worker_is_killed_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(4)
    processed: Counter[str] = Counter()
    with serving("--data-dir", str(tmp_path)) as server:
        clients = triggers.connect(server.endpoint)
        create_tables(clients.dynamodb)
        with Load(lambda: triggers.connect(server.endpoint), seed=1).running() as load:
            for _ in range(KILLS):
                worker = run_worker(server.endpoint)
                processed.update(kill_after_lines(worker, chance.randint(1, 40)))

        # The last one reads to the end.
        monkeypatch.setenv("VIEW_TOTALS_ENDPOINT", server.endpoint)
        batching = triggers.Batching(poll_interval=60.0)
        options = triggers.Options(NAME, batching)
        last = triggers.Worker(clients, VIEWS, lambda event, context: count(event), options, threads=False)
        while last.cycle() == 0.0:
            pass
        totals = {item["name"]["S"]: item for item in scan(clients.dynamodb, TOTALS)}
        clients.dynamodb.close()
        clients.streams.close()

    expected = Counter(page for _, page in load.written)
    assert sum(expected.values()) > KILLS
    assert {page: int(totals[f"page {page}"]["total"]["N"]) for page in expected} == expected
    assert sum(name.startswith("event ") for name in totals) == len(load.written)
    # The kills hit: some records were processed, and then again by the next worker.
    assert KILLS < 10 or max(processed.values()) > 1


def stream_of(clients: triggers.Clients, table: str) -> list[dict[str, Any]]:
    """All records of a table's stream, shard by shard."""
    found: list[dict[str, Any]] = []
    (stream,), _ = table_streams(clients, table)
    for shard in shards_of(clients, stream.arn)[0]:
        cursor = Cursor(clients, stream.arn, shard.id)
        while len(read := cursor.read()) == PAGE_RECORDS_MAX:
            found += read
        found += read
    return found


def test_the_stream_folds_to_the_table_after_the_server_was_killed(tmp_path: Path, unused_port: int) -> None:
    options = ("--data-dir", str(tmp_path), "--port", str(unused_port), "--stream-shards", "3")
    endpoint = f"http://127.0.0.1:{unused_port}"
    with serving(*options) as server:
        clients = triggers.connect(endpoint)
        create_tables(clients.dynamodb)
        server.kill()
    chance = random.Random(5)
    with Load(lambda: triggers.connect(endpoint), seed=2).running() as load:
        for _ in range(max(3, KILLS // 3)):
            with serving(*options) as server:
                load.wait_for(chance.randint(5, 60))
                server.kill()
    with serving(*options):
        clients = triggers.connect(endpoint)
        table = {item["event"]["S"]: item for item in scan(clients.dynamodb, VIEWS)}
        records = stream_of(clients, VIEWS)
        clients.dynamodb.close()
        clients.streams.close()

    folded: dict[str, Any] = {}
    for record in records:
        change = record["dynamodb"]
        assert change.get("OldImage") == folded.get(change["Keys"]["event"]["S"])
        folded[change["Keys"]["event"]["S"]] = change["NewImage"]
    assert folded == table
    assert {event for event, _ in load.written} <= folded.keys()
    sequences = [int(record["dynamodb"]["SequenceNumber"]) for record in records]
    assert len(set(sequences)) == len(sequences)
