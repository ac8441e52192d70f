"""`python -m bench.profiling WORKLOAD`: where Hashrange's CPU time goes, in us per request by function.

The load of `bench` runs while py-spy samples the server without stopping it. A function's share of the
samples times the CPU time per request (from /proc) is its us per request; "self" is time with the function
on top of the Python stack, so it includes the C code that it called directly (orjson, RocksDB, sockets).
py-spy leaves out threads that wait, but counts a thread that waits for the GIL as busy: --gil counts only
the thread that holds it. Sampling itself costs some CPU: compare functions, take totals from `bench`.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.load import LoadError
from bench.report import table
from bench.servers import PEERS, SERVERS, Running, ServerError, running
from bench.suite import prepare, run_once
from bench.wire import CallError
from bench.workloads import WORKLOADS

WARM_UP_SECONDS = 1


@dataclass(frozen=True, slots=True)
class Profile:
    """Samples by function, on top of a stack and anywhere in it; and their total number."""

    own: Counter[str]
    total: Counter[str]
    samples: int


def parse_stacks(lines: Iterable[str]) -> Profile:
    """A profile of py-spy's raw format: `outer (file:line);inner (file:line) count`."""
    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    samples = 0
    for line in lines:
        stack, _, count_text = line.strip().rpartition(" ")
        if not stack or not count_text.isdigit():
            continue
        count = int(count_text)
        frames = [_function(frame) for frame in stack.split(";")]
        samples += count
        own[frames[-1]] += count
        for function in set(frames):
            total[function] += count
    return Profile(own, total, samples)


def _function(frame: str) -> str:
    """`name (path:line)` without the line, so that the samples of one function add up."""
    if frame.endswith(")") and ":" in frame:
        return frame.rpartition(":")[0] + ")"
    return frame


def render(profile: Profile, cpu_us_per_request: float, rows: int) -> str:
    """A table of the functions with the most time of their own, in us per request."""
    if not profile.samples:
        return "py-spy took no samples"
    share_us = cpu_us_per_request / profile.samples
    lines = [
        [function, f"{count * share_us:.2f}", f"{profile.total[function] * share_us:.2f}"]
        for function, count in profile.own.most_common(rows)
    ]
    return "\n".join(table(["function", "self us/request", "with callees"], lines))


def find_py_spy() -> str:
    """The path of py-spy, from bench/peers/ or PATH. Raises LoadError if it is missing."""
    installed = PEERS / "py-spy" / "bin" / "py-spy"
    path = str(installed) if installed.exists() else shutil.which("py-spy")
    if path is None:
        raise LoadError("py-spy is not installed: python -m bench.install py-spy")
    return path


def profile_server(
    started: Running, workload: str, connections: int, seconds: int, rows: int, gil: bool
) -> str:
    """Load the server with one workload, sample it meanwhile, and return the table."""
    prepared = prepare(started, WORKLOADS[workload], set())
    run_once(started, prepared, connections, WARM_UP_SECONDS)
    raw = started.directory / "stacks.txt"
    command = [find_py_spy(), "record", "--nonblocking", "--format=raw", "--rate=500", "--threads"]
    command += [f"--duration={seconds}", f"--output={raw}", f"--pid={started.process.pid}"]
    with subprocess.Popen(
        [*command, *(["--gil"] if gil else [])],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as sampler:
        # Longer than the sampling, so that no sample falls on an idle server.
        run = run_once(started, prepared, connections, seconds + 1)
        _, errors = sampler.communicate(timeout=60)
    if sampler.returncode != 0:
        raise LoadError(f"py-spy exited with {sampler.returncode}: {errors[-500:]}")
    cpu_us_per_request = run.server_cpu_us / max(1, run.outcome.requests)
    rate = f"{run.outcome.requests_per_second:,.0f} requests/s, {cpu_us_per_request:.1f} us of CPU each"
    head = f"{started.server.title}, {workload}, {connections} connections: {rate} (while sampled)"
    with raw.open(encoding="utf-8", errors="replace") as lines:
        return f"{head}\n\n{render(parse_stacks(lines), cpu_us_per_request, rows)}"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.profiling", description="Hashrange's CPU time per request, by function."
    )
    parser.add_argument("workload", choices=list(WORKLOADS), metavar="WORKLOAD", help=", ".join(WORKLOADS))
    parser.add_argument("--connections", type=int, default=64, metavar="N", help="(default: 64)")
    parser.add_argument("--seconds", type=int, default=5, metavar="S", help="sampling time (default: 5)")
    parser.add_argument("--rows", type=int, default=40, metavar="N", help="functions to print (default: 40)")
    parser.add_argument("--memory", action="store_true", help="the server in memory, not durable")
    parser.add_argument("--gil", action="store_true", help="count only threads that hold the GIL")
    options = parser.parse_args()
    durability = "memory" if options.memory else "fsync"
    server = next(one for one in SERVERS if one.name == "hashrange" and one.durability == durability)
    try:
        find_py_spy()
        with (
            tempfile.TemporaryDirectory(prefix="hashrange-bench-") as directory,
            running(server, Path(directory)) as started,
        ):
            arguments = (options.workload, options.connections, options.seconds, options.rows, options.gil)
            print(profile_server(started, *arguments))
    except (LoadError, ServerError, CallError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
