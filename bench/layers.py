"""`python -m bench.layers get put`: on which layers of the server the instructions of a request are spent.

The server runs under valgrind as for `bench.instructions`, and the instructions of the functions at which
one layer calls the next are subtracted from each other, so that every instruction counts once. The last row
is the floor: a server on the same event loop and HTTP parser that answers every request with the same bytes
(`bench.floor`), with the requests and the answers' size of the first workload. "Beside requests" are timers
and the background work, whose share falls with the number of requests that are counted.

It needs the compiled hot path (`make compile`) and valgrind. The kernel's instructions do not count.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from bench.callgraph import Callgraph, parse
from bench.instructions import DISTINCT_REQUESTS, dumped, prepared, served
from bench.report import table
from bench.servers import COMPILED, ROOT
from bench.wire import call, render
from bench.workloads import WORKLOADS

_HTTP = "CPyDef_http___Connection___"
_DATABASE = "CPyDef_database___"
_ENGINE = "CPyDef_embedded___engine___EmbeddedEngine___"
_BODIES = "CPyDef_embedded___bodies___"
_READS = tuple(
    f"{_BODIES}{name}"
    for name in (
        "ViewReader___get", "LayeredTransaction___get", "LayeredTransaction___put",
        "LayeredTransaction___count", "records__Range_gen_____mypyc_generator_helper__", "_Range",
    )
)  # fmt: skip

ROWS = (
    "event loop",
    "HTTP parser and its callbacks",
    "connection: order, turns",
    "protocol: headers, JSON",
    "hand over to the database",
    "shape and context",
    "operation: prepare",
    "operation: body",
    "records: read and write",
    "engine: batch, outcomes",
    "answer: JSON, head, metrics",
    "commit thread",
    "beside requests",
)


def layers(graph: Callgraph) -> list[int]:
    """The instructions of each of ROWS. Raises ValueError if the graph is not that of a compiled server."""
    received, complete = graph.of(f"{_HTTP}data_received"), graph.of(f"{_HTTP}on_message_complete")
    if not received:
        raise ValueError("the server does not run compiled: `make compile` makes .venv/compiled/bin/python")
    read, start = graph.of("CPyDef_protocol___Wire___read_into"), graph.of("CPyDef_plane___Exchange___start")
    ready = graph.of(f"{_DATABASE}Database____make_ready")
    run = graph.of("CPyDef_execution___Execution___run")
    submit = graph.of(f"{_ENGINE}submit", f"{_ENGINE}submit_read")
    prepare = sum(count for name, count in graph.with_callees.items() if _is_prepare(name))
    encode, done = graph.of("CPyDef_plane___Exchange___encode"), graph.of("CPyDef_plane___Exchange___done")
    stored = graph.of(*_READS)
    delivered = graph.of("CPyDef_loops___Loop____run")
    committed = graph.of("CPyDef_group_commit___Commits____run")
    loop = graph.of("uv_run") - graph.of("uv__run_timers")
    counts = [
        loop - received - delivered,
        received - complete,
        complete - read - start,
        read,
        start - ready - submit,
        ready - prepare,
        prepare,
        run - encode - stored,
        stored,
        submit + delivered - run - done,
        encode + done,
        committed,
    ]
    return [*counts, graph.total - sum(counts)]


def _is_prepare(name: str) -> bool:
    # Each operation has a module with a function `prepare`. Those of expressions and the database are others.
    other = name.startswith((_DATABASE, "CPyDef_preparing"))
    return name.startswith("CPyDef_") and name.endswith("___prepare") and not other


def floor_of(requests: int, python: Path, workload: str, answer_bytes: int) -> float:
    """The instructions of a request to a server that always answers the same."""
    serve = [str(python), str(ROOT / "bench" / "floor.py"), str(answer_bytes)]

    def prepare(port: int) -> list[bytes]:
        return [render(request, port) for request in WORKLOADS[workload].requests()[:DISTINCT_REQUESTS]]

    with tempfile.TemporaryDirectory(prefix="hashrange-layers-") as folder:
        dump = dumped(serve, folder, prepare, requests)
        with dump.open(errors="replace") as lines:
            return parse(lines).of("uv_run") / requests


def count(python: Path, workload: str, requests: int) -> tuple[list[float], int]:
    """The instructions of a request in each of ROWS, and the bytes of an answer."""
    answer_bytes = 0

    def prepare(port: int) -> list[bytes]:
        nonlocal answer_bytes
        encoded = prepared(workload, port)
        answer_bytes = call(port, WORKLOADS[workload].requests()[0]).wire_bytes
        return encoded

    with tempfile.TemporaryDirectory(prefix="hashrange-layers-") as folder:
        dump = dumped(served(python, folder), folder, prepare, requests)
        with dump.open(errors="replace") as lines:
            return [number / requests for number in layers(parse(lines))], answer_bytes


def rendered(floor: float, counted: dict[str, list[float]]) -> str:
    """The table, in Markdown."""
    rows = [[name, *(f"{numbers[at]:,.0f}" for numbers in counted.values())] for at, name in enumerate(ROWS)]
    rows.append(["in all", *(f"{sum(numbers):,.0f}" for numbers in counted.values())])
    rows.append(["the floor, without what is beside requests", *[f"{floor:,.0f}"] * len(counted)])
    return "\n".join(table(["instructions of a request", *counted], rows))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.layers", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("workloads", nargs="+", metavar="WORKLOAD", choices=sorted(WORKLOADS))
    parser.add_argument("--python", type=Path, default=COMPILED / "bin" / "python", help="the interpreter")
    parser.add_argument("--requests", type=int, default=2000, help="how many are counted (2000)")
    given = parser.parse_args(arguments)
    if shutil.which("valgrind") is None:
        print("valgrind is not installed (Debian, Ubuntu: apt-get install valgrind)", file=sys.stderr)
        return 2
    if not given.python.exists():
        print(f"{given.python} does not exist; `make compile` makes it", file=sys.stderr)
        return 2
    counted: dict[str, list[float]] = {}
    sizes: dict[str, int] = {}
    for name in given.workloads:
        print(f"counting {name} ...", file=sys.stderr)
        counted[name], sizes[name] = count(given.python, name, given.requests)
    first = given.workloads[0]
    print("counting the floor ...", file=sys.stderr)
    print(rendered(floor_of(given.requests, given.python, first, sizes[first]), counted))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
