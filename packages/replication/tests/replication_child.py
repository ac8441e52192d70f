"""A process that writes and ships until it is killed: `test_kills`.

It writes the numbers from the last one on, each in a body of its own, and prints each that is acknowledged.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from hashrange.storage.api import Transaction
from hashrange.storage.embedded import EmbeddedEngine
from hashrange_replication.place import place_of
from hashrange_replication.running import Copying, Options

SPACE = 5
PARTITION = b"p"
VALUE_BYTES = 2_000


def numbers(engine: EmbeddedEngine) -> list[int]:
    """The numbers that a store holds."""
    return engine.read(lambda reader: [int.from_bytes(sort) for sort, _ in reader.scan(SPACE, PARTITION)])


def main(directory: Path, folder: str, acks: bool) -> None:
    # Small limits: kills also hit flushes, and batches that do not go through the log.
    engine = EmbeddedEngine(directory, write_buffer_bytes=256 * 1024, logged_bytes_max=VALUE_BYTES * 3)
    copying = Copying(
        engine,
        directory,
        place_of(folder),
        None,
        Options(acks=acks),
        where="a child",
        clock=time.time,
        now=time.monotonic,
        random=os.urandom,
    )
    copying.begin()
    copying.start()
    number = max(numbers(engine), default=-1) + 1
    while True:

        def body(txn: Transaction, number: int = number) -> None:
            for copy in range(1 + number % 5 // 4 * 4):
                txn.put(SPACE + 1 + copy, PARTITION, number.to_bytes(8), bytes(VALUE_BYTES))
            txn.put(SPACE, PARTITION, number.to_bytes(8), b"")
            txn.count(SPACE, 1, 8)

        engine.write(body)
        print(number, flush=True)
        number += 1
        copying.shipper.wake.set()  # ship at once: a second is long in this test


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "acks")
