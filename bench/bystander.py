"""`python -m bench.bystander`: how long other clients wait while one client sends the worst allowed requests.

One client sends the requests of a shape (bench/worst), another sends a GetItem every few milliseconds on a
connection of its own, a third an UpdateItem of another item. For each shape and way of sending it prints how
long the shape's own requests took, and the worst and the 99th-percentile wait of the two bystanders.

Each bystander is a process of its own, so that the sender's work in Python does not count. The waits are
corrected for requests that could not be sent: a wait of 1 s counts as the waits of all requests that would
have been sent in that time. A third bystander asks a peer, a process that only answers. Its worst wait
("peer") is that of the machine, whose cores the sender, the servers and the bystanders share. The first row
has no sender. A second table shows 64 connections that all send the same request (`bench.equals`).
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from statistics import median

from bench import report
from bench.connection import RECEIVED_BYTES, Closed, Connection
from bench.equals import P99_MEDIANS_MAX, Equals, measure
from bench.servers import Running, ServerError, hashrange, running
from bench.suite import load_table
from bench.wire import HOST, CallError
from bench.wire import render as rendered
from bench.workloads import WORKLOADS
from bench.worst import SHAPES, WAYS, Shape, Stage

TABLE = "bystander"
GOAL_MS = 50.0
# The goal beside requests and answers of more than 1 MB, up to the 16 MB that the protocol allows.
LARGE_GOAL_MS = 300.0
LARGE_REQUEST_BYTES = 1 << 20
GET_INTERVAL_SECONDS = 0.003
UPDATE_INTERVAL_SECONDS = 0.005
CONNECTIONS = 8
# How many connections send the same request; one kind of request follows the other.
EQUALS = 64
EQUALS_SEND = ("get", "query-last-10", "batch-get")
PIPELINED = 100
# The maximum of unanswered request bytes on one connection.
PIPELINED_BYTES_MAX = 64 << 20
LEAVING_INTERVAL_SECONDS = 0.05
LEAVERS_MAX = 20
# A server has recovered when this many probes in a row are answered within the goal's time.
WELL_PROBES = 3


@dataclass(frozen=True, slots=True)
class Waits:
    """A bystander's waits in milliseconds, and how many of its requests failed."""

    worst_ms: float
    p99_ms: float
    failed: int = 0


@dataclass(slots=True)
class Sent:
    """The outcomes of a shape's own requests: seconds of the answered ones, and statuses or errors."""

    seconds: list[float] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Row:
    """One shape, sent in one way. `note`: anything else that happened; `is_large`: its requests are large."""

    shape: str
    way: str
    sent: Sent
    get: Waits
    update: Waits
    peer: Waits
    note: str = ""
    is_large: bool = False

    @property
    def badness(self) -> float:
        """The worst wait in units of its goal."""
        goal_ms = LARGE_GOAL_MS if self.is_large else GOAL_MS
        return max(self.get.worst_ms, self.update.worst_ms) / goal_ms


def summarize(waits_seconds: Sequence[float], interval_seconds: float, failed: int = 0) -> Waits:
    """Worst and p99 of waits, including those of requests that could not be sent during a longer wait."""
    filled: list[float] = []
    for wait in waits_seconds:
        while wait > 0:
            filled.append(wait)
            wait -= interval_seconds
    filled.sort()
    if not filled:
        return Waits(0.0, 0.0, failed)
    return Waits(filled[-1] * 1e3, filled[int(len(filled) * 0.99)] * 1e3, failed)


def _watch(port: int, request: bytes, interval_seconds: float, cap_seconds: float, pipe: Pipe) -> None:
    """A bystander, in a process of its own: sends until a message arrives on the pipe, then returns the
    waits."""
    waits: list[float] = []
    failed = 0
    connection: Connection | None = None
    pipe.send("ready")
    while not pipe.poll():
        start = time.perf_counter()
        try:
            connection = connection or Connection(port, cap_seconds)
            connection.send(request)
            if connection.answer()[0] != 200:
                failed += 1
        except OSError:
            failed += 1
            if connection is not None:
                connection.close()
            connection = None
        waits.append(time.perf_counter() - start)
        time.sleep(max(0.0, interval_seconds - waits[-1]))
    pipe.send((waits, failed))


def _answer_all(pipe: Pipe) -> None:
    """The peer, in a process of its own: sends its port, then answers every request."""
    with socket.create_server((HOST, 0)) as listener:
        pipe.send(listener.getsockname()[1])
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with connection, contextlib.suppress(OSError):
                while connection.recv(RECEIVED_BYTES):
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


@contextlib.contextmanager
def peer() -> Iterator[int]:
    """The port of a peer that runs until the block ends."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_answer_all, args=(there,), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.kill()


@contextlib.contextmanager
def watching(
    port: int, request: bytes, interval_seconds: float, cap_seconds: float, found: Callable[[Waits], None]
) -> Iterator[None]:
    """Run a bystander until the block ends; then `found` gets its waits."""
    here, there = multiprocessing.Pipe()
    arguments = (port, request, interval_seconds, cap_seconds, there)
    process = multiprocessing.Process(target=_watch, args=arguments, daemon=True)
    process.start()
    here.recv()
    try:
        yield
    finally:
        here.send("stop")
        if here.poll(cap_seconds + 5):
            waits, failed = here.recv()
            found(summarize(waits, interval_seconds, failed))
        process.join(1)
        process.kill()


def _send_in_turn(port: int, requests: Sequence[bytes], until: float, cap: float, sent: Sent) -> None:
    """Send one request after the other on one connection; open it again if the server closes it."""
    connection: Connection | None = None
    turn = 0
    while turn == 0 or time.monotonic() < until:
        request = requests[turn % len(requests)]
        turn += 1
        start = time.monotonic()
        try:
            connection = connection or Connection(port, max(0.1, cap - start))
            connection.set_timeout(cap - start)
            connection.send(request)
            status = connection.answer()[0]
        except OSError as error:
            sent.outcomes[_named(error)] += 1
            if connection is not None:
                connection.close()
            connection = None
            if not isinstance(error, Closed):
                return
        else:
            sent.outcomes[str(status)] += 1
            sent.seconds.append(time.monotonic() - start)
    if connection is not None:
        connection.close()


def _send_pipelined(port: int, requests: Sequence[bytes], until: float, cap: float, sent: Sent) -> None:
    """Send many requests at once on one connection; a request's time runs from the first byte of them all."""
    total = sum(map(len, requests)) / len(requests)
    count = max(2, min(PIPELINED, int(PIPELINED_BYTES_MAX / total)))
    line = [requests[turn % len(requests)] for turn in range(count)]
    start = time.monotonic()
    with contextlib.suppress(OSError), Connection(port, max(0.1, cap - start)) as connection:

        def send() -> None:
            with contextlib.suppress(OSError):
                for request in line:
                    connection.send(request)

        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        try:
            for _ in line:
                connection.set_timeout(cap - time.monotonic())
                sent.outcomes[str(connection.answer()[0])] += 1
                sent.seconds.append(time.monotonic() - start)
        except OSError as error:
            sent.outcomes[_named(error)] += 1


def _send_and_leave(port: int, requests: Sequence[bytes], until: float, cap: float, sent: Sent) -> None:
    """Send requests, closing the connection as soon as each is sent."""
    for turn in range(LEAVERS_MAX):
        if turn and time.monotonic() >= until:
            return
        try:
            with Connection(port, max(0.1, cap - time.monotonic())) as connection:
                connection.send(requests[turn % len(requests)])
            sent.outcomes["left"] += 1
        except OSError as error:
            sent.outcomes[_named(error)] += 1
        time.sleep(LEAVING_INTERVAL_SECONDS)


def _named(error: OSError) -> str:
    return "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__


Sender = Callable[[int, Sequence[bytes], float, float, Sent], None]
_SENDERS: dict[str, tuple[Sender, int]] = {
    "single": (_send_in_turn, 1),
    "pipelined": (_send_pipelined, 1),
    "connections": (_send_in_turn, CONNECTIONS),
    "leaving": (_send_and_leave, 1),
}


class Bench:
    """A server with the bystanders' table and those of the shapes, and the port of a peer."""

    def __init__(self, started: Running, peer_port: int, seconds: float, cap_seconds: float) -> None:
        self.started = started
        self.peer_port = peer_port
        self.seconds = seconds
        self.cap_seconds = cap_seconds
        self.stage = Stage(started.port)
        self._set_up()

    def _set_up(self) -> None:
        key = [{"AttributeName": "pk", "KeyType": "HASH"}]
        definitions = [{"AttributeName": "pk", "AttributeType": "S"}]
        create = {"TableName": TABLE, "KeySchema": key, "AttributeDefinitions": definitions}
        self.stage.create({**create, "BillingMode": "PAY_PER_REQUEST"})
        for name in ("read", "written"):
            item = {"pk": {"S": name}, "note": {"S": "x" * 500}, "count": {"N": "0"}}
            self.stage.ask("PutItem", {"TableName": TABLE, "Item": item})
        self.get = self.stage.request("GetItem", {"TableName": TABLE, "Key": {"pk": {"S": "read"}}})
        update = {
            "UpdateExpression": "ADD #count :one",
            "ExpressionAttributeNames": {"#count": "count"},
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
        body = {"TableName": TABLE, "Key": {"pk": {"S": "written"}}, **update}
        self.update = self.stage.request("UpdateItem", body)

    def quiet(self) -> Row:
        """The bystanders alone."""
        return self._measure("(nobody sends)", "", Sent(), lambda: time.sleep(self.seconds))

    def play(self, shape: Shape, way: str) -> Row:
        """Send a shape in one way while the bystanders run."""
        sent = Sent()
        try:
            requests = shape.requests(self.stage)
        except (CallError, OSError, ValueError, LookupError) as error:
            none = Waits(0, 0)
            return Row(shape.name, way, sent, none, none, none, f"could not be set up: {error}")
        port = self.stage.admin_port if shape.to_admin_plane else self.started.port
        send, count = _SENDERS[way]

        def attack() -> None:
            start = time.monotonic()
            until, cap = start + self.seconds, start + self.cap_seconds
            arguments = (port, requests, until, cap, sent)
            threads = [threading.Thread(target=send, args=arguments, daemon=True) for _ in range(count)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(max(0.1, cap + 2 - time.monotonic()))

        is_large = shape.is_large or max(map(len, requests)) > LARGE_REQUEST_BYTES
        return replace(self._measure(shape.name, way, sent, attack), is_large=is_large)

    def _measure(self, name: str, way: str, sent: Sent, attack: Callable[[], None]) -> Row:
        found: dict[str, Waits] = {}
        port, cap = self.started.port, self.cap_seconds
        bystanders = [
            ("get", port, self.get, GET_INTERVAL_SECONDS),
            ("update", port, self.update, UPDATE_INTERVAL_SECONDS),
            ("peer", self.peer_port, self.get, GET_INTERVAL_SECONDS),
        ]
        with contextlib.ExitStack() as stack:
            for of, at, request, interval in bystanders:
                stack.enter_context(watching(at, request, interval, cap, partial(found.__setitem__, of)))
            time.sleep(0.1)
            attack()
            well = self.is_well()
        missing = Waits(cap * 1e3, cap * 1e3, 1)
        note = "" if well else f"not well again {cap:.0f} s later"
        get, update, peer_waits = (found.get(of, missing) for of, *_ in bystanders)
        return Row(name, way, sent, get, update, peer_waits, note)

    def is_well(self) -> bool:
        """Wait until GetItems are answered within the goal's time again; False if the cap comes first."""
        deadline = time.monotonic() + self.cap_seconds
        in_a_row = 0
        while in_a_row < WELL_PROBES and (left := deadline - time.monotonic()) > 0:
            start = time.monotonic()
            with contextlib.suppress(OSError), Connection(self.started.port, left) as connection:
                connection.send(self.get)
                connection.answer()
                in_a_row = in_a_row + 1 if time.monotonic() - start < GOAL_MS / 1e3 else 0
            time.sleep(0.02)
        return in_a_row == WELL_PROBES


def render(rows: Sequence[Row]) -> str:
    """The rows as a table, worst first, and the verdict."""
    cells = []
    for row in sorted(rows, key=lambda row: -row.badness):
        own = (
            [f"{median(row.sent.seconds):.2f}", f"{max(row.sent.seconds):.2f}"]
            if row.sent.seconds
            else ["-", "-"]
        )
        outcomes = ", ".join(f"{name}: {count}" for name, count in row.sent.outcomes.most_common(3))
        failed = row.get.failed + row.update.failed
        waits = [row.get.worst_ms, row.get.p99_ms, row.update.worst_ms, row.update.p99_ms, row.peer.worst_ms]
        note = row.note + (f" {failed} bystanders failed" if failed else "")
        cells.append([row.shape, row.way, *own, *(f"{wait:,.0f}" for wait in waits), outcomes, note.strip()])
    heads = ["shape", "way", "own median s", "own worst s", "get worst ms", "get p99", "update worst ms"]
    lines = report.table([*heads, "update p99", "peer worst ms", "answers", "note"], cells)
    return "\n".join([*lines, "", verdict(rows)])


def is_met(row: Row) -> bool:
    """Whether a row could be measured, and meets the goal."""
    return row.badness <= 1 and not row.note and not row.get.failed and not row.update.failed


def verdict(rows: Sequence[Row]) -> str:
    missed = [row for row in rows if not is_met(row)]
    goal = (
        f"both wait {GOAL_MS:.0f} ms at the worst, and {LARGE_GOAL_MS:.0f} ms beside requests of more than "
        "1 MB"
    )
    if not missed:
        return f"MET in all {len(rows)} rows: {goal}."
    return f"MISSED in {len(missed)} of {len(rows)} rows: {goal}."


def play_all(
    shapes: Sequence[Shape], ways: Sequence[str], options: argparse.Namespace, note: Callable[[str], None]
) -> list[Row]:
    """Every shape in every way; a server that does not recover is replaced by a new one."""
    server = hashrange("memory" if options.memory else "fsync", interpreted=options.interpreted)
    note(f"{server.title}: {server.version()}")
    planned = [(shape, way) for shape in shapes for way in shape.ways if way in ways]
    rows: list[Row] = []
    while planned or not rows:
        with (
            tempfile.TemporaryDirectory(prefix="hashrange-bystander-") as directory,
            running(server, Path(directory)) as started,
            peer() as peer_port,
        ):
            bench = Bench(started, peer_port, options.seconds, options.cap)
            if not rows:
                rows.append(bench.quiet())
                note(_line(rows[-1]))
            while planned:
                rows.append(bench.play(*planned.pop(0)))
                note(_line(rows[-1]))
                if rows[-1].note.startswith("not well") or started.process.poll() is not None:
                    break
    return rows


def _equals(started: Running, seconds: float) -> list[Equals]:
    """The waits of many connections that all send the same request."""
    rows: list[Equals] = []
    for name in EQUALS_SEND:
        workload = WORKLOADS[name]
        for table in workload.tables:
            if not any(table in WORKLOADS[row.name].tables for row in rows):
                load_table(started.port, table)
        requests = [rendered(request, started.port) for request in workload.requests()]
        rows.append(measure(name, started.port, requests, EQUALS, seconds))
    return rows


def render_equals(rows: Sequence[Equals]) -> str:
    """The rows of equal connections as a table, and the verdict."""
    cells = [
        [
            row.name,
            f"{row.p50_ms:.1f}",
            f"{row.p99_ms:.1f}",
            f"{row.p99_ms / row.p50_ms:.1f}",
            f"{row.worst_ms:.1f}",
            f"{row.slowest_share:.0%}",
        ]
        for row in rows
    ]
    heads = ["all send", "p50 ms", "p99 ms", "p99 / p50", "worst ms", "slowest connection"]
    missed = [row.name for row in rows if not row.is_met]
    goal = f"where {EQUALS} connections send the same, p99 is at most {P99_MEDIANS_MAX:.0f} medians."
    verdict = f"MISSED by {', '.join(missed)}: {goal}" if missed else f"MET in all {len(rows)} rows: {goal}"
    return "\n".join([*report.table(heads, cells), "", verdict])


def play_equals(options: argparse.Namespace) -> list[Equals]:
    """Measure many connections that send the same request, on a server of their own."""
    server = hashrange("memory" if options.memory else "fsync", interpreted=options.interpreted)
    with (
        tempfile.TemporaryDirectory(prefix="hashrange-bystander-") as directory,
        running(server, Path(directory)) as started,
    ):
        return _equals(started, options.seconds)


def _line(row: Row) -> str:
    own = f"{max(row.sent.seconds):6.2f} s" if row.sent.seconds else "       -"
    waits = (
        f"get {row.get.worst_ms:8,.1f} ms (p99 {row.get.p99_ms:8,.1f})  update {row.update.worst_ms:8,.1f} ms"
    )
    outcomes = ", ".join(f"{name}: {count}" for name, count in row.sent.outcomes.most_common(3))
    mark = "ok    " if is_met(row) else "MISSED"
    waits += f"  peer {row.peer.worst_ms:6,.1f} ms"
    return f"{row.shape:26} {row.way:11} {mark} own {own}  {waits}  {outcomes} {row.note}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.bystander",
        description="Measure how long other clients wait while one client sends the worst allowed requests.",
    )
    parser.add_argument("--shape", action="append", metavar="NAME", help="a shape to send (default: all)")
    parser.add_argument("--way", action="append", choices=WAYS, help="a way to send it (default: all)")
    parser.add_argument("--list", action="store_true", help="list the shapes, and stop")
    parser.add_argument(
        "--equals", action="store_true", help="only the connections that send the same request"
    )
    parser.add_argument(
        "--seconds", type=float, default=2.0, metavar="S", help="how long each row sends (default: 2)"
    )
    parser.add_argument(
        "--cap", type=float, default=20.0, metavar="S", help="the longest wait for one row (default: 20)"
    )
    parser.add_argument("--memory", action="store_true", help="a server without a data directory")
    parser.add_argument("--interpreted", action="store_true", help="not the compiled hot path")
    return parser


def main() -> int:
    parser = _parser()
    options = parser.parse_args()
    if options.list:
        for shape in SHAPES.values():
            print(f"{shape.name:26} {shape.summary}")
        return 0
    unknown = [name for name in options.shape or () if name not in SHAPES]
    if unknown:
        parser.error(f"unknown shape: {', '.join(unknown)}; --list names them")
    shapes = [SHAPES[name] for name in options.shape or SHAPES]
    rows: list[Row] = []
    try:
        if not options.equals:
            rows = play_all(
                shapes, options.way or WAYS, options, lambda line: print(line, file=sys.stderr, flush=True)
            )
        same = play_equals(options)
    except (ServerError, CallError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"Machine: {report.machine()}.\n")
    if rows:
        print(render(rows) + "\n")
    print(render_equals(same))
    return 0 if all(is_met(row) for row in rows) and all(row.is_met for row in same) else 1


if __name__ == "__main__":
    sys.exit(main())
