"""The crash test of the storage engine: the child's work, and what must hold after it was killed.

Body number i of worker w, all in one transaction:

    GROUPS   partition w   records (i, 0), (i, 1), …; those of body i - KEPT are deleted again
    COUNTER  one record    its number goes up by one
    LOG      one record    "w i number", appended

The log says which bodies were done, so the check finds a body that was done in part.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from threading import Semaphore, Thread

from hashrange.storage.api import Reader, Transaction
from hashrange.storage.embedded import EmbeddedEngine

GROUPS, COUNTER, LOG = 1, 2, 3
P = b"p"
KEPT = 20
WRITERS = 2
SUBMITTERS = 2
IN_FLIGHT = 16
LARGE_BYTES = 6_000

Acknowledge = Callable[[str], None]


def records_of(number: int) -> int:
    """The number of records that body `number` of a worker puts."""
    return 1 + number % 7


def body_of(worker: int, number: int) -> Callable[[Transaction], int]:
    """The body; it returns its sequence number."""
    partition = b"%d" % worker

    def body(txn: Transaction) -> int:
        for index in range(records_of(number)):
            txn.put(GROUPS, partition, number.to_bytes(4, "big") + bytes((index,)), b"%d" % number * 50)
        change = records_of(number)
        old = number - KEPT
        if old >= 0:
            for index in range(records_of(old)):
                txn.delete(GROUPS, partition, old.to_bytes(4, "big") + bytes((index,)))
            change -= records_of(old)
        txn.count(GROUPS, change, 100 * change)
        count = int(txn.get(COUNTER, P, b"") or b"0") + 1
        txn.put(COUNTER, P, b"", b"%d" % count)
        txn.append(LOG, P, b"%d %d %d" % (worker, number, count))
        return int.from_bytes(next(txn.scan(LOG, P, reverse=True))[0], "big")

    return body


def numbers_done(reader: Reader) -> dict[int, int]:
    """The number of bodies that each worker has done."""
    done: dict[int, int] = defaultdict(int)
    for _, value in reader.scan(LOG, P):
        done[int(value.split()[0])] += 1
    return done


def run(directory: str, acknowledge: Acknowledge) -> None:
    """Write and acknowledge until killed."""
    # Small limits, so that kills also hit flushes, and batches that are too large for the log.
    engine = EmbeddedEngine(directory, write_buffer_bytes=256 * 1024, logged_bytes_max=LARGE_BYTES)
    done = engine.read(numbers_done)

    def write(worker: int) -> None:
        number = done[worker]
        while True:
            sequence = engine.write(body_of(worker, number))
            acknowledge(f"{worker} {number} {sequence}")
            number += 1

    def submit(worker: int) -> None:
        number = done[worker]
        room = Semaphore(IN_FLIGHT)
        errors: list[Exception] = []

        def receiver(number: int) -> Callable[[int, Exception | None], None]:
            def receive(sequence: int, error: Exception | None) -> None:
                if error is not None:
                    errors.append(error)
                else:
                    acknowledge(f"{worker} {number} {sequence}")
                room.release()

            return receive

        while True:
            room.acquire()
            if errors:
                raise errors[0]
            engine.submit(body_of(worker, number), receiver(number))
            number += 1

    threads = [Thread(target=write, args=(worker,)) for worker in range(WRITERS)]
    threads += [Thread(target=submit, args=(WRITERS + worker,)) for worker in range(SUBMITTERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def check(directory: str, acknowledged: list[str]) -> int:
    """Assert that the store holds every acknowledged body, and none in part; return how many it holds."""
    engine = EmbeddedEngine(directory)
    try:
        return engine.read(lambda reader: check_reader(reader, acknowledged))
    finally:
        engine.close()


def check_reader(reader: Reader, acknowledged: list[str]) -> int:
    logged: dict[tuple[int, int], int] = {}
    done: dict[int, int] = defaultdict(int)
    for count, (sort, value) in enumerate(reader.scan(LOG, P), 1):
        worker, number, counted = (int(word) for word in value.split())
        assert counted == count, "the log is not in commit order, or a body was lost in the middle"
        assert number == done[worker], "a worker's bodies are not in order"
        done[worker] += 1
        logged[worker, number] = int.from_bytes(sort, "big")
    for line in acknowledged:
        worker, number, sequence = (int(word) for word in line.split())
        assert logged.get((worker, number)) == sequence, f"acknowledged, but not there: {line}"

    expected = []
    for worker, bodies in done.items():
        for number in range(max(0, bodies - KEPT), bodies):
            for index in range(records_of(number)):
                sort = number.to_bytes(4, "big") + bytes((index,))
                expected.append((b"%d" % worker, sort, b"%d" % number * 50))
    assert list(reader.scan_space(GROUPS)) == sorted(expected), "a body took effect in part"
    assert reader.totals(GROUPS) == (len(expected), 100 * len(expected))
    assert int(reader.get(COUNTER, P, b"") or b"0") == len(logged)
    return len(logged)
