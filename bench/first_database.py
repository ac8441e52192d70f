"""`python -m bench.first_database`: what the first database of a process costs, beyond boto3.

Each run is a new process that has imported boto3, and has made a client if the row says so. The time is the
CPU time of `import hashrange` and of the first database: the best and the median of the runs.

boto3 leaves some sixty thousand objects, and a full garbage collection that is due within the next thousand
objects of any program. So each run collects the garbage before it starts the clock; the last column shows how
long that took. Python's compiled bytecode is in a folder of its own, as in an installed package.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from typing import Final

from bench.report import table
from bench.servers import ROOT

_CLIENT: Final = (
    "boto3.client('dynamodb', region_name='us-east-1', aws_access_key_id='x', aws_secret_access_key='x')"
)
_FIRST: Final = {
    "Database.in_memory()": ("None", "hashrange.Database.in_memory()"),
    "local()": ("None", "hashrange.local().__enter__()"),
    "local(), after a client was made": (_CLIENT, "hashrange.local().__enter__()"),
}
_RUN: Final = """
import gc
import time
import boto3
client = {client}
began = time.process_time()
gc.collect()
collected = time.process_time()
import hashrange
first = {first}
print(time.process_time() - collected, collected - began)
"""


def measured(client: str, first: str, runs: int, cache: str) -> list[tuple[float, float]]:
    """The seconds of each run: of the first database, and of the collection before it."""
    known = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    known |= {"PYTHONPYCACHEPREFIX": cache}
    found = []
    for number in range(runs + 1):
        done = subprocess.run(
            [sys.executable, "-c", _RUN.format(client=client, first=first)],
            env=known,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        if number > 0:  # the first run compiles the bytecode
            seconds, collecting = map(float, done.stdout.split())
            found.append((seconds, collecting))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.first_database", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="runs of each (default: 20)")
    runs = parser.parse_args().runs
    rows = []
    with tempfile.TemporaryDirectory(prefix="hashrange-bytecode-") as cache:
        for title, (client, first) in _FIRST.items():
            found = measured(client, first, runs, cache)
            seconds, collecting = zip(*found, strict=True)
            shown = min(seconds), statistics.median(seconds), min(collecting)
            rows.append([title, *(f"{one * 1e3:.1f}" for one in shown)])
    print(f"Python {platform.python_version()}, {platform.machine()}, {runs} runs\n")
    print("\n".join(table(["CPU time, ms", "best", "median", "collection before"], rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
