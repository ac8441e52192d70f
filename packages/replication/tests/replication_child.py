"""A process that writes and ships, or follows, until it is killed: `test_kills`, `test_standby_kills`.

    python -m replication_child DIRECTORY FOLDER acks|none            writes
    python -m replication_child DIRECTORY FOLDER acks|none standby    follows; writes when it is promoted

It writes the numbers from the last one on, each in a body of its own, and prints each that is acknowledged. A
standby says "agreed" when the primary has agreed to it, and is promoted by a line of its input; it answers
with "promoted" and how many numbers it holds then.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from threading import Event, Thread

from hashrange.storage.api import Transaction
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.failures import StorageError
from hashrange_replication import lease
from hashrange_replication.failures import CopyError
from hashrange_replication.place import place_of
from hashrange_replication.running import Copying, Options, Setup
from hashrange_replication.standby.following import Standby
from hashrange_replication.standby.opening import make_ready

SPACE = 5
PARTITION = b"p"
VALUE_BYTES = 2_000


def numbers(engine: EmbeddedEngine) -> list[int]:
    """The numbers that a store holds."""
    return engine.read(lambda reader: [int.from_bytes(sort) for sort, _ in reader.scan(SPACE, PARTITION)])


def opened(directory: Path) -> EmbeddedEngine:
    # Small limits: kills also hit flushes, and batches that do not go through the log.
    return EmbeddedEngine(directory, write_buffer_bytes=256 * 1024, logged_bytes_max=VALUE_BYTES * 3)


def renew(copying: Copying) -> None:
    """Renew the lease often, so that it agrees to a standby soon."""
    while not Event().wait(0.3):
        copying.keep_lease()


def write(engine: EmbeddedEngine, copying: Copying) -> None:
    """Write until the process is killed, or was overtaken."""
    Thread(target=renew, args=(copying,), daemon=True).start()
    number = max(numbers(engine), default=-1) + 1
    while copying.lease.fenced is None:

        def body(txn: Transaction, number: int = number) -> None:
            for copy in range(1 + number % 5 // 4 * 4):
                txn.put(SPACE + 1 + copy, PARTITION, number.to_bytes(8), bytes(VALUE_BYTES))
            if txn.get(SPACE, PARTITION, number.to_bytes(8)) is None:
                txn.count(SPACE, 1, 8)
            txn.put(SPACE, PARTITION, number.to_bytes(8), b"")

        try:
            engine.write(body)
        except StorageError:
            copying.lease.renew()  # (it raises Fenced)
            continue
        print(number, flush=True)
        number += 1
        copying.shipper.wake.set()  # ship at once: a second is long in this test
    copying.lease.renew()  # (it raises Fenced, also where the other thread has learned it)


def main(directory: Path, folder: str, acks: bool, follows: bool) -> None:
    place = place_of(folder)
    setup = Setup(
        directory=directory,
        place=place,
        options=Options(acks=acks),
        where="a child",
        clock=time.time,
        now=time.monotonic,
        random=os.urandom,
    )
    if not follows:
        engine = opened(directory)
        copying = Copying(engine, setup)
        copying.begin()
        copying.start()
        write(engine, copying)
        return
    make_ready(place, directory, None, os.urandom)
    engine = opened(directory)
    standby = Standby(engine, setup)
    standby.begin()
    wanted, is_agreed = Event(), False

    def hear() -> None:
        sys.stdin.readline()
        wanted.set()

    Thread(target=hear, daemon=True).start()
    while not wanted.wait(0.02):
        standby.step()
        if standby.is_agreed and not is_agreed:
            is_agreed = True
            print("agreed", flush=True)
    copying = standby.promote()
    print("promoted", len(numbers(engine)), flush=True)
    copying.start()
    write(engine, copying)


if __name__ == "__main__":
    # Short terms: a round lasts as long as they do.
    lease.TTL_SECONDS, lease.MARGIN_SECONDS = 2.0, 0.2  # type: ignore[misc]
    try:
        main(Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "acks", sys.argv[4:] == ["standby"])
    except CopyError as error:
        print("over:", error, flush=True)
