"""`python -m bench.shares get put`: what a request takes of the processor, and of which part of the system.

Microseconds of CPU on the event loop's thread and on the others, in the program and in the kernel; how often
the threads wait; and the system calls. The durable server runs under the load of `bench`, compiled if `make
compile` did that. CPU times and waits are those of /proc. The calls are counted in a second run by `perf
trace` (Debian: apt-get install linux-perf; it needs root). It makes the server slower, so that more requests
than usual share a call. Without perf the calls are left out.

The other threads are the commit thread, workers and RocksDB's. `bench.layers` splits the event loop's time in
the program further, by instructions, and `bench.profiling` by functions.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from bench.load import LoadError, find_wrk
from bench.report import table
from bench.servers import TICK_US, Running, ServerError, hashrange, running, stat_fields
from bench.suite import Prepared, prepare, run_once
from bench.wire import CallError
from bench.workloads import WORKLOADS

WARM_UP_SECONDS = 1
CALLS_SHOWN = 7

_CALL = re.compile(r"^ +(\w+) +(\d+) +\d+ +[\d.]+ +[\d.]+ ")


@dataclass(frozen=True, slots=True)
class Used:
    """What threads have used: CPU time in the program and in the kernel, in microseconds, and their waits."""

    user_us: float = 0.0
    kernel_us: float = 0.0
    waits: float = 0.0

    def less(self, before: Used) -> Used:
        return Used(
            self.user_us - before.user_us, self.kernel_us - before.kernel_us, self.waits - before.waits
        )

    def plus(self, other: Used) -> Used:
        return Used(
            self.user_us + other.user_us, self.kernel_us + other.kernel_us, self.waits + other.waits
        )

    def of_each(self, requests: int) -> Used:
        return Used(self.user_us / requests, self.kernel_us / requests, self.waits / requests)


@dataclass(frozen=True, slots=True)
class Shares:
    """What the requests of a run used: on the event loop, on the other threads; and their system calls, each
    with how many of it were made for one request."""

    requests: int
    requests_per_second: float
    loop: Used
    others: Used
    calls: dict[str, float]


def used(pid: int) -> tuple[Used, Used]:
    """What the main thread of a process, and all others together, have used."""
    main = others = Used()
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # a thread may end meanwhile
            fields = stat_fields((task / "stat").read_text())
            status = (task / "status").read_text()
            waits = int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
            one = Used(int(fields[11]) * TICK_US, int(fields[12]) * TICK_US, waits)
            if task.name == str(pid):
                main = one
            else:
                others = others.plus(one)
    return main, others


def parse_calls(summary: str) -> Counter[str]:
    """The system calls in the summary of `perf trace`, of all threads together."""
    calls: Counter[str] = Counter()
    for line in summary.splitlines():
        match = _CALL.match(line)
        if match is not None:
            calls[match[1]] += int(match[2])
    return calls


def _calls(started: Running, prepared: Prepared, connections: int, seconds: float) -> dict[str, float]:
    perf = shutil.which("perf")
    if perf is None:
        return {}
    summary = started.directory / "calls.txt"
    command = [perf, "trace", "--summary", f"--pid={started.process.pid}", f"--output={summary}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as tracer:
        run = run_once(started, prepared, connections, seconds)
        tracer.send_signal(signal.SIGINT)  # then it writes the summary
        tracer.wait(60)
    if not summary.exists():
        return {}
    counted = parse_calls(summary.read_text(errors="replace"))
    return {name: number / run.outcome.requests for name, number in counted.items()}


def measure(workload: str, connections: int, seconds: float) -> Shares:
    """Load a server with one workload. Raises LoadError, ServerError, CallError."""
    with (
        tempfile.TemporaryDirectory(prefix="hashrange-shares-") as directory,
        running(hashrange("fsync"), Path(directory)) as started,
    ):
        prepared = prepare(started, WORKLOADS[workload], set())
        run_once(started, prepared, connections, WARM_UP_SECONDS)
        before = used(started.process.pid)
        outcome = run_once(started, prepared, connections, seconds).outcome
        loop, others = (
            now.less(then) for now, then in zip(used(started.process.pid), before, strict=True)
        )
        calls = _calls(started, prepared, connections, WARM_UP_SECONDS)
    return Shares(max(1, outcome.requests), outcome.requests_per_second, loop, others, calls)


def render(measured: dict[str, Shares]) -> str:
    """The table, in Markdown: a column for each workload."""
    shares = list(measured.values())
    rows = [["requests/s", *(f"{one.requests_per_second:,.0f}" for one in shares)]]
    rows += _rows("event loop", [one.loop.of_each(one.requests) for one in shares])
    rows += _rows("other threads", [one.others.of_each(one.requests) for one in shares])
    total: Counter[str] = Counter()
    for one in shares:
        total.update(one.calls)
    names = [name for name, _ in total.most_common(CALLS_SHOWN)]
    rows += [[f"calls of {name}", *(f"{one.calls.get(name, 0):.3f}" for one in shares)] for name in names]
    if names:
        rest = [sum(number for name, number in one.calls.items() if name not in names) for one in shares]
        rows.append(["other system calls", *(f"{number:.3f}" for number in rest)])
    return "\n".join(table(["of one request", *measured], rows))


def _rows(threads: str, shares: list[Used]) -> list[list[str]]:
    return [
        [f"{threads}, the program, us of CPU", *(f"{one.user_us:.1f}" for one in shares)],
        [f"{threads}, the kernel, us of CPU", *(f"{one.kernel_us:.1f}" for one in shares)],
        [f"{threads}, waits", *(f"{one.waits:.3f}" for one in shares)],
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.shares", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("workloads", nargs="+", metavar="WORKLOAD", choices=sorted(WORKLOADS))
    parser.add_argument("--connections", type=int, default=64, metavar="N", help="(default: 64)")
    parser.add_argument("--seconds", type=int, default=5, metavar="S", help="(default: 5)")
    given = parser.parse_args(arguments)
    measured: dict[str, Shares] = {}
    try:
        find_wrk()
        for workload in given.workloads:
            print(f"measuring {workload} ...", file=sys.stderr)
            measured[workload] = measure(workload, given.connections, given.seconds)
    except (LoadError, ServerError, CallError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(render(measured))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
