"""`python -m bench.instructions WORKLOAD`: how many machine instructions the server takes for a request.

On a shared machine requests per second vary by half from run to run; the number of instructions varies by
less than one percent. So this shows small losses that `bench` cannot see. With `--against` another build
takes the same load, and the ratio is printed; `--functions` prints the most expensive functions of both.
`--with=--throttle` counts a server with such options too, and prints the ratio to the server without them;
`--with=top` one whose requests `hashrange top` looks at.

The server runs under valgrind's callgrind (Debian, Ubuntu: apt-get install valgrind), which makes it some
fifty times slower. So the clock that measures turns and latencies is stopped: otherwise every request would
seem to take too long. All threads count, so that the work of timers is included and grows with the length of
the run: if two totals differ by a few percent, compare the functions. The kernel's instructions do not count.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path

from bench import signing, wire
from bench.connection import send_all
from bench.report import table
from bench.servers import COMPILED
from bench.wire import Request, Sign, call, render
from bench.workloads import TABLES, WORKLOADS, loading

CONNECTIONS = 64
WARM_UP_REQUESTS = 400
START_SECONDS_MAX = 120
ANSWER_SECONDS_MAX = 120
DISTINCT_REQUESTS = 500
LOOKED = "top"

_SERVE = (
    "import itertools, runpy, sys, time; time.perf_counter = itertools.repeat(1.0).__next__; "
    "sys.argv[0] = 'hashrange'; runpy.run_module('hashrange', run_name='__main__')"
)
_TOTALS = re.compile(r"^totals: (\d+)", re.MULTILINE)
_FUNCTION = re.compile(r"^ *([\d,]+) \([ \d.]+%\) .*?\bCPyDef_(\w+) \[")


@dataclass(frozen=True, slots=True)
class Counted:
    """The instructions of one request, in all and by function with its callees."""

    in_all: float
    by_function: dict[str, float]


def count(python: Path, workload: str, requests: int, options: str = "") -> Counted:
    """Run the server of an interpreter under a load, and count instructions. `options` are those of the
    server; `LOOKED`: somebody looks at its requests. Raises FileNotFoundError, TimeoutError."""
    with tempfile.TemporaryDirectory(prefix="hashrange-instructions-") as folder:
        serve, sign = served(python, folder), None
        if options != LOOKED:
            serve += shlex.split(options.replace("FOLDER", folder))
        if "--auth" in serve:
            signing.write_users(Path(folder) / "users.json")
            sign = signing.signed
        prepare = partial(prepared, workload, sign=sign)
        dump = dumped(serve, folder, prepare, requests, is_looked_at=options == LOOKED)
        totals = _TOTALS.findall(dump.read_text(errors="replace"))
        return Counted(max(map(int, totals)) / requests, _functions(dump, requests))


def served(python: Path, folder: str) -> list[str]:
    """The command of Hashrange's server, with a new data directory in `folder`."""
    return [str(python), "-c", _SERVE, "serve", "--port", "0", "--data-dir", str(Path(folder) / "data")]


def dumped(
    serve: list[str],
    folder: str,
    prepare: Callable[[int], list[bytes]],
    requests: int,
    *,
    is_looked_at: bool = False,
) -> Path:
    """Run a server under valgrind, send so many requests, and return callgrind's file, which is in `folder`.

    `prepare` makes the requests for the server at a port; they are sent again and again. `is_looked_at`:
    somebody looks at the heat on the admin plane before. Raises FileNotFoundError, TimeoutError.
    """
    out = Path(folder) / "callgrind"
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *serve]
    # Equal hashes, so that dicts take equally long in each run.
    environment = os.environ | {"PYTHONHASHSEED": "0", "PYTHONPATH": ""}
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, cwd=folder
    )
    try:
        port, admin_url = _started(server)
        if is_looked_at:
            urllib.request.urlopen(f"{admin_url}/v1/heat", timeout=START_SECONDS_MAX).close()
        encoded = prepare(port)
        _send(port, islice(cycle(encoded), WARM_UP_REQUESTS))
        _control(server, "--zero")
        _send(port, islice(cycle(encoded), requests))
        _control(server, "--dump")
    finally:
        server.kill()
        server.wait()
    return max(Path(folder).glob("callgrind*"), key=lambda path: path.stat().st_mtime_ns)


def _started(server: subprocess.Popen[bytes]) -> tuple[int, str]:
    """The port of the server, and the URL of its admin plane; "" for a server without one."""
    assert server.stdout is not None
    log: list[str] = []
    ended = threading.Timer(START_SECONDS_MAX, server.kill)
    ended.start()
    try:
        for line in server.stdout:
            log.append(line.decode(errors="replace"))
            match = re.search(r"http://127\.0\.0\.1:(\d+)", log[-1])
            admin = re.search(r"\badmin\W+(http://[^\s\"',]+)", log[-1])
            if match:
                # Keep reading, so that the server never waits for a reader of its log.
                threading.Thread(target=server.stdout.read, daemon=True).start()
                return int(match[1]), admin[1] if admin else ""
    finally:
        ended.cancel()
    raise TimeoutError("the server did not start:\n" + "".join(log)[-2000:])


def prepared(name: str, port: int, sign: Sign | None = None) -> list[bytes]:
    """Make and fill the tables of a workload; return its requests as bytes. `sign` makes their signatures."""
    with wire.signed_by(port, sign):
        workload = WORKLOADS[name]
        for one in workload.tables:
            call(port, TABLES[one].create)
            settled = TABLES[one].settled
            if settled is not None:
                call(port, settled)
            for request in loading(one):
                call(port, request)

        def ask(request: Request) -> dict[str, object]:
            return call(port, request).body

        requests: Iterable[Request] = workload.asked(ask) if workload.asked else workload.requests()
        return [render(request, port) for request in islice(requests, DISTINCT_REQUESTS)]


def _send(port: int, requests: Iterator[bytes]) -> None:
    # One request under way on each connection, as wrk does.
    send_all(port, requests, CONNECTIONS, under_way=1, timeout_seconds=ANSWER_SECONDS_MAX)


def _control(server: subprocess.Popen[bytes], action: str) -> None:
    subprocess.run(["callgrind_control", action, str(server.pid)], check=True, capture_output=True)


def _functions(dump: Path, requests: int) -> dict[str, float]:
    command = ["callgrind_annotate", "--inclusive=yes", "--threshold=100", str(dump)]
    return parse_functions(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout, requests
    )


def parse_functions(text: str, requests: int) -> dict[str, float]:
    """The compiled functions of callgrind_annotate's list, with the instructions of one of `requests`."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        match = _FUNCTION.match(line)
        if match and match[2] not in found:
            found[match[2]] = int(match[1].replace(",", "")) / requests
    return found


def render_totals(counted: dict[str, list[Counted]]) -> str:
    """A row for each workload: the instructions of a request; beside another build, the ratio to it."""
    heads = ["workload", "instructions a request"]
    if any(len(builds) == 2 for builds in counted.values()):
        heads += ["against", "ratio"]
    rows = []
    for name, builds in counted.items():
        row = [name, *(f"{build.in_all:,.0f}" for build in builds)]
        if len(builds) == 2:
            row.append(f"{builds[0].in_all / builds[1].in_all:.3f}")
        rows.append(row + [""] * (len(heads) - len(row)))
    return "\n".join(table(heads, rows))


def render_functions(builds: list[Counted], rows: int) -> str:
    """The compiled functions with most instructions, their callees included; beside those of the other
    build."""
    names = sorted(builds[0].by_function, key=lambda name: -builds[0].by_function[name])[:rows]
    shown = [[name, *(f"{build.by_function.get(name, 0):,.0f}" for build in builds)] for name in names]
    return "\n".join(table(["function", "with callees", "against"][: 1 + len(builds)], shown))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("workloads", nargs="+", metavar="WORKLOAD", choices=sorted(WORKLOADS))
    parser.add_argument(
        "--python",
        type=Path,
        default=COMPILED / "bin" / "python",
        help="an interpreter with hashrange installed (the one that `make compile` made)",
    )
    parser.add_argument("--against", type=Path, help="the interpreter of another build, to compare with")
    parser.add_argument("--requests", type=int, default=2000, help="how many are counted (2000)")
    parser.add_argument(
        "--functions", type=int, default=0, metavar="ROWS", help="show the most expensive compiled functions"
    )
    parser.add_argument(
        "--with",
        dest="options",
        action="append",
        default=[],
        metavar="OPTIONS",
        help="count a server with these options too, such as --with=--throttle, "
        "--with='--record FOLDER/load' or --with='--auth strict --users FOLDER/users.json', for which the "
        f"requests are signed; {LOOKED}: one whose requests are looked at; may be repeated",
    )
    given = parser.parse_args(arguments)
    if shutil.which("valgrind") is None:
        print("valgrind is not installed (Debian, Ubuntu: apt-get install valgrind)", file=sys.stderr)
        return 2
    pythons = [given.python, *([given.against] if given.against else [])]
    for python in pythons:
        if not python.exists():
            print(f"{python} does not exist; `make compile` makes .venv/compiled/bin/python", file=sys.stderr)
            return 2
    counted: dict[str, list[Counted]] = {}
    for name in given.workloads:
        print(f"counting {name} ...", file=sys.stderr)
        counted[name] = [count(python, name, given.requests) for python in pythons]
        if given.functions:
            print(render_functions(counted[name], given.functions))
        for options in given.options:
            print(f"counting {name} with {options} ...", file=sys.stderr)
            with_options = count(given.python, name, given.requests, options)
            counted[f"{name} {options}"] = [with_options, counted[name][0]]
    print(render_totals(counted))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
