"""Rounds of `hashrange serve --copy-to` a bad bucket (`bad_s3`), which is killed while clients write.

Each write is a transaction: client c puts its item number n, notes n as its last one, and moves money between
two accounts. Meanwhile somebody asks `/health` for the lag. After each kill the copy is restored, and judged:

    what has to be there   with --copy-ack every write that was acknowledged; without it every one that was
                           acknowledged before the moment that the gauge once named
    a moment               what is there is the state of one moment: nothing is missing that was acknowledged
                           before something began that is there, and no transaction is there in part

In the end the server starts again with a bucket that is well, ships all, and ends: nothing may be missing.
"""

from __future__ import annotations

import http.client
import shutil
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from threading import Event, Thread
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

import bad_s3
from consistency.client import Client
from consistency.history import History
from crash.api_level import scan
from hashrange.database import Database
from hashrange.tables.inspection.check import check
from hashrange_replication.failures import CopyError
from hashrange_replication.place import Place, place_of
from hashrange_replication.restore import restore
from hashrange_replication.verify import verify
from serving import Server, serving
from worlds import table_of

CLIENTS: Final = 3
ACCOUNTS: Final = 4
TABLE: Final = "writes"
PHASE_SECONDS: Final = 1.2
POLL_SECONDS: Final = 0.02
SLACK_SECONDS: Final = 0.005
"""The gauge shows milliseconds."""
END_SECONDS_MAX: Final = 60.0


@dataclass(slots=True)
class Found:
    """What a restored directory holds: the numbers of each client, and what else has to agree with them."""

    has_table: bool = False
    numbers: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    last: dict[int, int] = field(default_factory=dict)
    money: int = 0
    problems: list[str] = field(default_factory=list)


def found_in(directory: Path) -> Found:
    found = Found()
    with Database.open(directory) as database:
        found.problems = [str(problem) for problem in check(database.engine)]
        found.has_table = TABLE in database.execute("ListTables", {})["TableNames"]
        for item in scan(database, TABLE) if found.has_table else ():
            kind, _, rest = item["p"]["S"].partition(" ")
            if kind == "write":
                client, number = map(int, rest.split())
                found.numbers[client].add(number)
            elif kind == "last":
                found.last[int(rest)] = int(item["n"]["N"])
            else:
                found.money += int(item["n"]["N"])
    return found


def judge(history: History, bound: float, found: Found) -> list[str]:
    """What is wrong with a restored directory, where all has to be that was acknowledged before `bound`."""
    wrong = list(found.problems)
    writes = history.of("writes")
    there = [one for one in writes if one.arguments["n"] in found.numbers[one.client]]
    began = max((one.invoked for one in there), default=0.0)
    for one in writes:
        is_there = one.arguments["n"] in found.numbers[one.client]
        if one.status == "ok" and not is_there and one.ended < bound:
            wrong.append(f"lost: {one}, acknowledged before {bound:.6f}")
        if one.status == "ok" and not is_there and one.ended < began:
            wrong.append(f"a hole: {one}, acknowledged before something began that is there, at {began:.6f}")
        if one.status == "failed" and is_there:
            wrong.append(f"refused, and there: {one}")
    tables = [one for one in history.of("table") if one.status == "ok" and one.ended < bound]
    if tables and not found.has_table:
        wrong.append(f"lost: {tables[0]}")
    last = {client: max(numbers) for client, numbers in found.numbers.items() if numbers}
    if last != found.last or found.money:
        wrong.append(f"a transaction in part: {last}, {found.last}, {found.money}")
    return wrong


class ServerRound:
    """A round in a folder. `counts` says what happened."""

    def __init__(self, folder: Path, seed: int, *, acks: bool) -> None:
        self.counts: dict[str, int] = defaultdict(int)
        self._seed = seed
        self._chance = Random(seed)
        self._folder = folder
        self._acks = acks
        self._history = History()
        self._numbers = [0] * CLIENTS
        self._bound = 0.0

    def play(self, lives: int) -> None:
        """Raises AssertionError."""
        with bad_s3.serving(self._chance) as (endpoint, store):
            place = place_of(f"s3://{bad_s3.BUCKET}/copy", endpoint)
            options = ["--data-dir", str(self._folder / "data"), "--copy-to", place.shown]
            options += ["--s3-endpoint", endpoint, *(["--copy-ack"] if self._acks else [])]
            try:
                for _ in range(lives):
                    store.mood = "well" if self._acks else self._chance.choice(("well", "bad", "away"))
                    with serving(*options) as server, self._working(server):
                        self._hurt(store)
                        server.kill()
                    self.counts["kills"] += 1
                    store.mood = "well"
                    self._judge(place)
                self._end(place, options)
            except BaseException as error:
                error.add_note(
                    f"seed {self._seed}, acks {self._acks}, in {self._folder}: {dict(self.counts)}"
                )
                raise
            for what, number in store.faults.items():
                self.counts[what] += number
        for status, number in self._history.counts().items():
            self.counts[f"writes {status}"] += number

    def _hurt(self, store: bad_s3.Store) -> None:
        """Let the bucket be in some moods."""
        for _ in range(self._chance.randint(1, 4)):
            store.ends.wait(self._chance.uniform(0, PHASE_SECONDS))
            store.mood = self._chance.choice(("well", "bad", "bad", "away"))
        store.ends.wait(self._chance.uniform(0, PHASE_SECONDS))

    @contextmanager
    def _working(self, server: Server) -> Iterator[None]:
        """Let clients write, and somebody look at the gauge."""
        stop = Event()
        boss = Client(-1, [server.endpoint], Random(), self._history)
        with boss.recorded("table", "create") as operation:
            tables = boss.call("ListTables")["TableNames"]
            operation.result = tables or boss.call("CreateTable", **table_of(TABLE, "p"))
        boss.close()
        tasks = [partial(self._write, number, server, stop) for number in range(CLIENTS)]
        threads = [Thread(target=task) for task in (*tasks, partial(self._look, server, stop))]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    def _write(self, number: int, server: Server, stop: Event) -> None:
        random = Random(f"{self._seed} {number} {self._numbers[number]}")
        client = Client(number, [server.endpoint], random, self._history)
        while not stop.is_set():
            self._numbers[number] += 1
            n = self._numbers[number]
            one, other = random.sample(range(ACCOUNTS), 2)
            writes = [
                {"Put": {"TableName": TABLE, "Item": {"p": {"S": f"write {number} {n}"}}}},
                {"Put": {"TableName": TABLE, "Item": {"p": {"S": f"last {number}"}, "n": {"N": str(n)}}}},
                _add(f"account {one}", n),
                _add(f"account {other}", -n),
            ]
            with client.recorded("writes", "write", n=n):
                client.call("TransactWriteItems", TransactItems=writes)
            stop.wait(random.uniform(0, 0.01))
        client.close()

    def _look(self, server: Server, stop: Event) -> None:
        while not stop.is_set():
            asked = monotonic()
            try:
                shown = health(server)
            except (OSError, http.client.HTTPException):
                return  # it was killed
            self.counts["looks"] += 1
            if not self._acks:
                self._bound = max(self._bound, asked - shown["lag_seconds"] - SLACK_SECONDS)
            stop.wait(POLL_SECONDS)

    def _judge(self, place: Place, *, is_whole: bool = False) -> None:
        directory = self._folder / "restored"
        shutil.rmtree(directory, ignore_errors=True)
        found = Found()
        try:
            restored = restore(place, directory, None, owner="of a restore")
        except CopyError as error:
            assert "has no base" in str(error) or "no server has shipped" in str(error), error
            self.counts["no base"] += 1
        else:
            found = found_in(directory)
            self.counts["restores"] += 1
            self.counts["batches replayed"] += restored.batches
            assert verify(place, None).problems == []
        all_ = self._acks or is_whole
        wrong = judge(self._history, float("inf") if all_ else self._bound, found)
        assert not wrong, wrong[:3]
        acknowledged = [one for one in self._history.of("writes") if one.status == "ok"]
        self.counts["not in the copy"] += sum(
            one.arguments["n"] not in found.numbers[one.client] for one in acknowledged
        )

    def _end(self, place: Place, options: list[str]) -> None:
        with serving(*options) as server:
            until = monotonic() + END_SECONDS_MAX
            while health(server)["lag_seconds"]:
                assert monotonic() < until, health(server)
                Event().wait(POLL_SECONDS)
        self._judge(place, is_whole=True)


def _add(account: str, amount: int) -> dict[str, Any]:
    return {
        "Update": {
            "TableName": TABLE,
            "Key": {"p": {"S": account}},
            "UpdateExpression": "ADD n :n",
            "ExpressionAttributeValues": {":n": {"N": str(amount)}},
        }
    }


def health(server: Server) -> dict[str, Any]:
    """What the server says of its copy."""
    place = urlsplit(server.admin)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=20)
    try:
        connection.request("GET", "/health")
        shown: dict[str, Any] = orjson.loads(connection.getresponse().read())["of_rings"]["replication"]
    finally:
        connection.close()
    return shown
