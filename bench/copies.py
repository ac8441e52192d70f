"""How many records a second `hashrange copy` moves: `python -m bench.copies [--records 1000000]`.

It starts a PostgreSQL of its own in a temporary directory, fills a data directory with records like those of
small items, and copies them to PostgreSQL, back, and to another directory. The time is that of the whole
command: starting, copying, reading back and comparing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Final

from bench.postgres import cluster
from bench.report import machine, table
from hashrange.storage.api import Transaction
from hashrange.storage.embedded import EmbeddedEngine

SCHEMA: Final = "bench_copies"
SPACE: Final = 70
VALUE_BYTES: Final = 100
_RECORDS_PER_BODY: Final = 5_000


def fill(directory: Path, records: int) -> None:
    """Make a store with this number of records."""
    random = Random(0)
    engine = EmbeddedEngine(directory)

    def body(txn: Transaction) -> None:
        for _ in range(_RECORDS_PER_BODY):
            txn.put(SPACE, random.randbytes(24), random.randbytes(8), random.randbytes(VALUE_BYTES))
        txn.count(SPACE, _RECORDS_PER_BODY, _RECORDS_PER_BODY * VALUE_BYTES)

    for _ in range(records // _RECORDS_PER_BODY):
        engine.write(body)
    engine.close()


def copy(origin: str, target: str) -> float:
    """Copy a store; returns the seconds that it took."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "hashrange", "copy", origin, target]
    given = ["--from-schema", SCHEMA, "--to-schema", SCHEMA]
    subprocess.run([*command, *given], check=True)
    return time.perf_counter() - began


def main() -> None:
    shown = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shown)
    parser.add_argument("--records", type=int, default=1_000_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hashrange-copies-") as scratch, cluster([]) as one:
        words = dict(word.split("=", 1) for word in one.url.split())
        url = f"postgresql://{words['user']}@/{words['dbname']}?host={words['host']}"
        first, back, third = (str(Path(scratch) / name) for name in ("first", "back", "third"))
        fill(Path(first), given.records)
        rows = []
        for name, origin, target in (
            ("directory to PostgreSQL", first, url),
            ("PostgreSQL to directory", url, back),
            ("directory to directory", back, third),
        ):
            seconds = copy(origin, target)
            rows.append([name, f"{seconds:.1f}", f"{given.records / seconds:,.0f}"])
    print(machine())
    print("\n".join(table(["copy", "seconds", "records a second"], rows)))


if __name__ == "__main__":
    main()
