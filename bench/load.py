"""The load generator: wrk, fed from a file of ready-made requests.

wrk sends the file's requests in turn, again and again, on every connection: a closed loop, one request in
flight per connection. It is one C thread with a small Lua function, so that it uses little of the cores that
it shares with the server. It counts statuses but does not read bodies; `suite` checks bodies before and
after, and compares the mean answer size of the run with that of the checked answers.

It knows nothing of DynamoDB.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

# After this mark the script prints one line of JSON; the mark distinguishes it from wrk's own output.
RESULT_MARK = "BENCH-RESULT "

# A request in the file is "<length>\n<bytes>". `response` is deliberately not defined: wrk would then build
# a Lua table of headers for every answer, which costs more CPU than the fastest servers here.
SCRIPT = (
    """\
local requests, count, turn = {}, 0, 0

function init(arguments)
  local file = assert(io.open(arguments[1], "rb"))
  while true do
    local length = file:read("*l")
    if length == nil then break end
    count = count + 1
    requests[count] = file:read(tonumber(length))
  end
  file:close()
end

function request()
  turn = turn % count + 1
  return requests[turn]
end

function done(summary, latency, rates)
  local e = summary.errors
  io.write(string.format(
    '%s{"requests":%d,"duration_us":%d,"bytes":%d,'
    .. '"p50_us":%d,"p99_us":%d,"p999_us":%d,"max_us":%d,'
    .. '"status_errors":%d,"socket_errors":%d,"timeouts":%d}\\n',
    "RESULT_MARK", summary.requests, summary.duration, summary.bytes, latency:percentile(50),
    latency:percentile(99), latency:percentile(99.9), latency.max,
    e.status, e.connect + e.read + e.write, e.timeout))
end
"""
).replace("RESULT_MARK", RESULT_MARK)


class LoadError(Exception):
    """wrk is missing, or did not print an outcome."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one run of wrk. Latencies are wrk's own, in microseconds."""

    requests: int
    duration_us: int
    bytes: int
    p50_us: int
    p99_us: int
    p999_us: int
    max_us: int
    status_errors: int
    socket_errors: int
    timeouts: int
    generator_cpu_us: int

    @property
    def requests_per_second(self) -> float:
        return self.requests * 1e6 / self.duration_us if self.duration_us else 0.0


def find_wrk() -> str:
    """The path of wrk. Raises LoadError, which says what to do, if it is not installed."""
    path = shutil.which("wrk")
    if path is None:
        raise LoadError("wrk is not installed (Debian, Ubuntu: apt-get install wrk; macOS: brew install wrk)")
    return path


def write_requests(path: Path, requests: Iterable[bytes]) -> None:
    """The request file, as SCRIPT reads it."""
    with path.open("wb") as file:
        for request in requests:
            file.write(b"%d\n" % len(request))
            file.write(request)


def parse_outcome(output: str, generator_cpu_us: int = 0) -> Outcome:
    """The outcome in the output of wrk. Raises LoadError if there is none."""
    for line in output.splitlines():
        if line.startswith(RESULT_MARK):
            return Outcome(**json.loads(line.removeprefix(RESULT_MARK)), generator_cpu_us=generator_cpu_us)
    raise LoadError(f"wrk gave no result: {output[-500:]}")


def run_wrk(url: str, request_file: Path, script: Path, connections: int, seconds: float) -> Outcome:
    """Run wrk once and wait for it. `seconds` is rounded up to whole ones, wrk's unit."""
    whole_seconds = max(1, round(seconds))
    command = [
        find_wrk(),
        "--threads=1",
        f"--connections={connections}",
        f"--duration={whole_seconds}s",
        # A long time-out, so that a slow server shows as slow and not as failing.
        "--timeout=20s",
        f"--script={script}",
        url,
        "--",
        str(request_file),
    ]
    before = _children_cpu_us()
    finished = subprocess.run(
        command, capture_output=True, text=True, timeout=whole_seconds + 60, check=False
    )
    if finished.returncode != 0:
        raise LoadError(f"wrk exited with {finished.returncode}: {finished.stderr[-500:]}")
    return parse_outcome(finished.stdout, _children_cpu_us() - before)


def _children_cpu_us() -> int:
    # This counts only children that have ended: wrk, but not the server, which still runs.
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((usage.ru_utime + usage.ru_stime) * 1e6)
