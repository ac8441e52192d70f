"""Histories of random transactions on lists, by threads over several engines that share a store.

Each list is a record, and a second record counts its appends, so that a body reads and writes several
records. `consistency.serializability` judges the histories.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import count
from random import Random
from threading import Event, Thread
from time import monotonic
from typing import Any, Final

from consistency import serializability
from consistency.history import Anomaly
from consistency.serializability import Append, Read, Transaction
from hashrange.storage.api import Engine, Reader
from hashrange.storage.api import Transaction as StoreTransaction
from hashrange.storage.failures import CommitFailed, CommitUnknown, StorageError

SPACE: Final = 70
_LIST: Final = b"list"
_COUNT: Final = b"count"


def _place(key: int) -> bytes:
    return b"%024d" % key


def _values(stored: bytes | None) -> list[int]:
    return [value for (value,) in struct.iter_unpack(">I", stored or b"")]


def read_list(reader: Reader, key: int) -> list[int]:
    """A list; its count must be right."""
    values = _values(reader.get(SPACE, _place(key), _LIST))
    counted = int(reader.get(SPACE, _place(key), _COUNT) or b"0")
    assert counted == len(values), f"list {key} has {len(values)} values, and its count is {counted}"
    return values


def _append(txn: StoreTransaction, key: int, value: int, before: list[int]) -> None:
    stored = b"".join(struct.pack(">I", one) for one in (*before, value))
    txn.put(SPACE, _place(key), _LIST, stored)
    txn.put(SPACE, _place(key), _COUNT, b"%d" % (len(before) + 1))
    txn.count(SPACE, 1, 4)


class Run:
    """Random transactions on `lists` lists over the engines, until `stop`, or `transactions` for a thread."""

    def __init__(self, engines: Sequence[Engine], *, lists: int, seed: int, transactions: int) -> None:
        self.engines = engines
        self.lists = lists
        self.seed = seed
        self.transactions = transactions
        self.history: list[Transaction] = []
        self.stop = Event()
        self.surprises: list[BaseException] = []
        self._values = count(1)
        self._committed = 0
        self._one_committed = Event()

    def committed(self) -> int:
        """How many transactions were acknowledged so far."""
        return self._committed

    def wait_a_little(self) -> None:
        """Let the threads run until one of them has committed a transaction, 10 seconds at most."""
        self._one_committed.clear()
        self._one_committed.wait(10)

    def run(self, threads_per_engine: int, meanwhile: Callable[[], None] | None = None) -> None:
        """Run all threads to their end; with `meanwhile`, call it and stop the threads when it returns."""
        threads = [
            Thread(target=self._work, args=(engine, self.seed * 1_000 + number * len(self.engines) + at))
            for at, engine in enumerate(self.engines)
            for number in range(threads_per_engine)
        ]
        for thread in threads:
            thread.start()
        try:
            if meanwhile is not None:
                meanwhile()
                self.stop.set()
        except BaseException:
            self.stop.set()
            raise
        finally:
            for thread in threads:
                thread.join()
        if self.surprises:
            raise self.surprises[0]

    def _work(self, engine: Engine, seed: int) -> None:
        random = Random(seed)
        done = 0
        try:
            while not self.stop.is_set() and done < self.transactions:
                self._one(engine, random)
                done += 1
        except BaseException as error:
            self.surprises.append(error)

    def _one(self, engine: Engine, random: Random) -> None:
        looked_at = random.sample(range(self.lists), random.randint(1, min(3, self.lists)))
        appended_to = [key for key in looked_at if random.random() < 0.7]
        appends = {key: next(self._values) for key in appended_to}
        made = Transaction([Append(key, value) for key, value in appends.items()], monotonic())
        by_read = not appended_to and random.random() < 0.5

        def body(txn: Any) -> dict[int, list[int]]:
            seen: dict[int, list[int]] = {}
            for key in looked_at:
                seen[key] = read_list(txn, key)
                if key in appends:
                    _append(txn, key, appends[key], seen[key])
            return seen

        self.history.append(made)
        try:
            seen = engine.read(body) if by_read else engine.write(body)
        except CommitUnknown as error:
            made.error = str(error)
            return
        except (CommitFailed, StorageError) as error:
            made.status, made.error = "failed", str(error)
        else:
            made.steps = [*(Read(key, values) for key, values in seen.items()), *made.steps]
            made.status = "ok"
            self._committed += 1
            self._one_committed.set()
        made.ended = monotonic()

    def final(self, engine: Engine) -> dict[int, list[int]]:
        """The lists at the end, which become the last reads of the history."""
        began = monotonic()
        lists = engine.read(lambda reader: {key: read_list(reader, key) for key in range(self.lists)})
        reads = [Read(key, values) for key, values in lists.items()]
        self.history.append(Transaction([*reads], began, monotonic(), "ok"))
        return lists

    def anomalies(self) -> list[Anomaly]:
        """What is wrong with the history."""
        return serializability.judge(self.history)
