"""One server after the other under the same load: fill the tables, check, warm up, run, check again.

A cell is one (server, workload, connections). Its figures count only with `problem` None: the sample of
answers was right before the run, every answer of the run was a 200 of the usual size, the counters grew by
the number of requests answered, and what was written can be read back.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import workloads as shapes
from bench.connection import send_all
from bench.equals import measure
from bench.load import SCRIPT, LoadError, Outcome, run_wrk, write_requests
from bench.servers import Running, Server, ServerError, cpu_us, machine_cpu_us, running
from bench.streams import StreamError, pages, stream_arn
from bench.wire import HOST, CallError, Request, call, render
from bench.workloads import Workload

SAMPLE_SIZE = 8
# Answers of one workload vary by a few digits and by a few items of a scan's filter.
ANSWER_SIZE_TOLERANCE = 0.10
# A run is repeated, as often as the plan allows, if other programs took more than this share of all cores.
OTHERS_SHARE_QUIET = 0.10
EQUALS_SECONDS = 1.0
IDLE_PROBE_SECONDS = 0.1
IDLE_SHARE = 0.2
IDLE_WAIT_SECONDS_MAX = 5.0


@dataclass(frozen=True, slots=True)
class Plan:
    """The runs for each server."""

    workloads: tuple[str, ...]
    connections: tuple[int, ...]
    seconds: float
    warm_up_seconds: float
    retries: int = 0


@dataclass(frozen=True, slots=True)
class Cell:
    """The result of one (server, workload, connections); the figures are 0 where it could not run.

    `server_cpu_us` and `generator_cpu_us` are per request; `others_share` is what other programs took of
    all cores meanwhile, 0 to 1; `slowest_share` is what the slowest connection got, of the mean of all.
    """

    server: str
    durability: str
    workload: str
    connections: int
    requests_per_second: float = 0.0
    p50_us: float = 0.0
    p99_us: float = 0.0
    p999_us: float = 0.0
    server_cpu_us: float = 0.0
    generator_cpu_us: float = 0.0
    others_share: float = 0.0
    slowest_share: float = 1.0
    requests: int = 0
    problem: str | None = None

    @property
    def title(self) -> str:
        return f"{self.server} {self.durability}"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the generator, and the CPU time in it, in microseconds."""

    outcome: Outcome
    server_cpu_us: int
    others_share: float


@dataclass(frozen=True, slots=True)
class Prepared:
    """A workload that passed its check on a running server."""

    workload: Workload
    requests: list[Request]
    request_file: Path
    script: Path
    answer_bytes: float


def run_server(server: Server, plan: Plan, note: Callable[[str], None]) -> list[Cell]:
    """Every cell of one server. A fault of the server raises nothing here: it becomes the cells' problem."""
    cells: list[Cell] = []
    with tempfile.TemporaryDirectory(prefix="hashrange-bench-") as directory:
        try:
            loaded: set[str] = set()
            if server.is_reopened:
                with running(server, Path(directory)) as started:
                    _load_ahead(started, plan, loaded, note)
            with running(server, Path(directory)) as started:
                for name in plan.workloads:
                    for cell in _run_workload(started, shapes.WORKLOADS[name], plan, loaded):
                        note(_line(cell))
                        cells.append(cell)
        except ServerError as error:
            note(str(error))
    return cells


def _load_ahead(started: Running, plan: Plan, loaded: set[str], note: Callable[[str], None]) -> None:
    """Fill the tables of all workloads, so that the server is measured on a store that it opened."""
    for table in dict.fromkeys(t for name in plan.workloads for t in shapes.WORKLOADS[name].tables):
        try:
            load_table(started.port, table)
        except (CallError, StreamError, OSError, ValueError) as error:
            note(f"{started.server.title}: {table} could not be filled before the restart: {error}")
            return
        loaded.add(table)
    wait_until_idle(started)


def prepare(started: Running, workload: Workload, loaded: set[str]) -> Prepared:
    """Fill the tables that are not in `loaded` yet, check a sample of answers, write the request file.

    Raises CallError or OSError where the server refuses, StreamError where it has no streams and the workload
    needs them, and LoadError where an answer is wrong.
    """

    def ask(request: Request) -> dict[str, Any]:
        return call(started.port, request).body

    for table in workload.tables:
        if table not in loaded:
            load_table(started.port, table)
            loaded.add(table)
    requests = workload.requests() if workload.asked is None else workload.asked(ask)
    sample = requests[:: max(1, len(requests) // SAMPLE_SIZE)][:SAMPLE_SIZE]
    sizes: list[int] = []
    for request in sample:
        answer = call(started.port, request)
        problem = workload.check(request, answer.body)
        if problem is not None:
            raise LoadError(f"wrong answer: {problem}")
        sizes.append(answer.wire_bytes)
    if workload.recorded is not None:
        pages(ask, workload.recorded, 1)
    request_file = started.directory / f"{workload.name}.requests"
    write_requests(request_file, (render(request, started.port) for request in requests))
    script = started.directory / "send.lua"
    script.write_text(SCRIPT)
    return Prepared(workload, requests, request_file, script, sum(sizes) / len(sizes))


def load_table(port: int, name: str) -> None:
    """Create a table and put its items in."""
    call(port, shapes.TABLES[name].create)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        described = call(port, Request("DescribeTable", {"TableName": name})).body
        if described["Table"]["TableStatus"] == "ACTIVE":
            break
        time.sleep(0.02)
    settled = shapes.TABLES[name].settled
    if settled is not None:
        call(port, settled)
    if "StreamSpecification" in shapes.TABLES[name].create.body:
        stream_arn(lambda request: call(port, request).body, name)
    if shapes.TABLES[name].is_large:
        send_all(port, (render(request, port) for request in shapes.loading(name)))
        return
    for request in shapes.loading(name):
        if call(port, request).body.get("UnprocessedItems"):
            raise CallError("BatchWriteItem left items unprocessed while loading")


def run_once(started: Running, prepared: Prepared, connections: int, seconds: float) -> Run:
    """Run the generator once, when the server is idle."""
    wait_until_idle(started)
    url = f"http://{HOST}:{started.port}/"
    began, all_before, server_before = time.monotonic(), machine_cpu_us(), cpu_us(started.process.pid)
    outcome = run_wrk(url, prepared.request_file, prepared.script, connections, seconds)
    server = cpu_us(started.process.pid) - server_before
    others = machine_cpu_us() - all_before - server - outcome.generator_cpu_us
    cores_us = (time.monotonic() - began) * (os.cpu_count() or 1) * 1e6
    return Run(outcome, server, max(0.0, others / cores_us))


def wait_until_idle(started: Running) -> None:
    """Let a slow server finish the requests of the last run, because their CPU time would count for the
    next."""
    previous = cpu_us(started.process.pid)
    deadline = time.monotonic() + IDLE_WAIT_SECONDS_MAX
    while time.monotonic() < deadline:
        time.sleep(IDLE_PROBE_SECONDS)
        now = cpu_us(started.process.pid)
        if now - previous <= IDLE_PROBE_SECONDS * 1e6 * IDLE_SHARE:
            return
        previous = now


def _run_workload(started: Running, workload: Workload, plan: Plan, loaded: set[str]) -> Iterator[Cell]:
    server = started.server
    try:
        prepared = prepare(started, workload, loaded)
    except (CallError, LoadError, StreamError, OSError, ValueError) as error:
        for connections in plan.connections:
            yield Cell(server.name, server.durability, workload.name, connections, problem=str(error))
        return
    for turn, connections in enumerate(plan.connections):
        warm_up = plan.warm_up_seconds * (1 if turn else server.warm_up_factor)
        try:
            yield quietest(
                _run_cell(started, prepared, connections, plan.seconds, 0 if again else warm_up)
                for again in range(1 + plan.retries)
            )
        except (CallError, LoadError, OSError) as error:
            yield Cell(server.name, server.durability, workload.name, connections, problem=str(error))


def quietest(runs: Iterable[Cell]) -> Cell:
    """The first run that other programs did not disturb, or that has a problem; else the least disturbed
    one."""
    seen = []
    for cell in runs:
        if cell.problem is not None or cell.others_share <= OTHERS_SHARE_QUIET:
            return cell
        seen.append(cell)
    return min(seen, key=lambda cell: cell.others_share)


def _run_cell(
    started: Running, prepared: Prepared, connections: int, seconds: float, warm_up_seconds: float
) -> Cell:
    workload = prepared.workload
    if warm_up_seconds > 0:
        run_once(started, prepared, connections, warm_up_seconds)
    total_before = settled_total(started.port, workload.counters)
    run = run_once(started, prepared, connections, seconds)
    outcome = run.outcome
    total_after = settled_total(started.port, workload.counters)
    problem = find_problem(outcome, prepared.answer_bytes)
    if problem is None and workload.counters:
        problem = find_miscount(total_after - total_before, outcome.requests, connections)
    if problem is None:
        problem = _find_lost(started.port, prepared, outcome.requests)
    share = 1.0
    if problem is None and connections > 1:
        requests = [render(request, started.port) for request in prepared.requests]
        share = measure(workload.name, started.port, requests, connections, EQUALS_SECONDS).slowest_share
    answered = max(1, outcome.requests)
    return Cell(
        server=started.server.name,
        durability=started.server.durability,
        workload=workload.name,
        connections=connections,
        requests_per_second=outcome.requests_per_second,
        p50_us=outcome.p50_us,
        p99_us=outcome.p99_us,
        p999_us=outcome.p999_us,
        server_cpu_us=run.server_cpu_us / answered,
        generator_cpu_us=outcome.generator_cpu_us / answered,
        others_share=run.others_share,
        slowest_share=share,
        requests=outcome.requests,
        problem=problem,
    )


def settled_total(port: int, counters: Sequence[str]) -> int:
    """The sum of the counters, once the requests that the generator left in flight no longer change it."""
    if not counters:
        return 0
    previous = -1
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        reads = shapes.counter_reads(tuple(counters))
        total = sum(shapes.counter_total(call(port, read).body) for read in reads)
        if total == previous:
            return total
        previous = total
        time.sleep(0.05)
    raise CallError("the counters went on growing after the run")


def find_problem(outcome: Outcome, answer_bytes: float) -> str | None:
    """The problem of a run, as far as the generator saw one; a run with a problem does not count."""
    if outcome.requests == 0:
        return "nothing was answered"
    if outcome.status_errors:
        return f"{outcome.status_errors} of {outcome.requests} answers were errors"
    if outcome.socket_errors or outcome.timeouts:
        return f"{outcome.socket_errors} socket errors, {outcome.timeouts} timeouts"
    seen = outcome.bytes / outcome.requests
    if not math.isclose(seen, answer_bytes, rel_tol=ANSWER_SIZE_TOLERANCE):
        return f"answers of {seen:.0f} bytes where the checked ones have {answer_bytes:.0f}"
    return None


def find_miscount(grown: int, answered: int, connections: int) -> str | None:
    """The problem with a counter's growth, if any. Requests in flight at the end may have counted or not."""
    if answered <= grown <= answered + connections:
        return None
    return f"counters grew by {grown} in {answered} answered requests"


def _find_lost(port: int, prepared: Prepared, answered: int) -> str | None:
    written = prepared.workload.written
    if written is None:
        return None
    # The generator starts at the file's start, so these were sent, and all but the last few answered.
    for request in prepared.requests[: min(SAMPLE_SIZE, max(1, answered // 2))]:
        for table, wanted in written(request):
            found: dict[str, Any] = call(port, shapes.read_back(table, wanted)).body.get("Item", {})
            if not shapes.same_item(found, wanted):
                return f"{wanted['pk']['S']} was written and cannot be read back"
    return None


def _line(cell: Cell) -> str:
    where = f"{cell.title:22} {cell.workload:14} {cell.connections:3} connections"
    if cell.problem is not None and not cell.requests:
        return f"{where}  n/a: {cell.problem[:120]}"
    figures = (
        f"{cell.requests_per_second:9.0f}/s"
        f"  p50 {cell.p50_us / 1000:7.2f} ms  p99 {cell.p99_us / 1000:7.2f}  p99.9 {cell.p999_us / 1000:7.2f}"
        f"  server CPU {cell.server_cpu_us:7.1f} us  generator {cell.generator_cpu_us:5.1f} us"
        f"  others {cell.others_share:3.0%}"
    )
    return f"{where} {figures}" + (f"  PROBLEM: {cell.problem[:120]}" if cell.problem else "")
