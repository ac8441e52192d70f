"""The run: sends mutations to a server over pipelined connections, checks every answer, shrinks failures.

Requests go out in lines of LINE on each of two connections in turn: while the server works on one line, the
next line is drawn. Each EPOCH the control item is checked, all tables are made again and the memory is read,
so that the memory is compared at moments when the server holds the same data.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median

from bench.connection import Closed, Connection
from bench.servers import cpu_us
from bench.wire import CallError
from hostile.answers import find_fault, is_refusal, outcome_of
from hostile.mutations import Mutation, Mutator, head_of
from hostile.seeds import Seeds
from hostile.server import Target, error_lines, place_of
from hostile.shrinking import shrink

LINE = 32
EPOCH = 20_000
HANG_SECONDS = 30.0
FAILURES_KEPT_MAX = 100
# The share of the epochs, at the start, that does not count for memory: caches and write buffers fill.
WARM_UP_SHARE = 0.3
GROWTH_BYTES_MAX = 64 << 20
NOTE_SECONDS = 10.0
# Text that repeats ten times or more in a row is shown as <text*count>.
_REPEATED = re.compile(r"(.{1,20}?)\1{9,}")


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure: its kind, its place in the server's log, and a request that shows it."""

    fault: str
    operation: str
    place: str
    request: bytes
    alone: bool

    def __str__(self) -> str:
        how = "" if self.alone else " (not when sent alone)"
        shown = _REPEATED.sub(
            lambda found: f"<{found[1]}*{len(found[0]) // len(found[1])}>", repr(self.request)
        )
        return f"{self.fault}: {self.operation}{how}\n    {self.place}\n    {shown[:1_500]}"


@dataclass(slots=True)
class Tally:
    """The tally of a run."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: dict[tuple[str, ...], Failure] = field(default_factory=dict)
    failed: Counter[tuple[str, ...]] = field(default_factory=Counter)
    memory: list[int] = field(default_factory=list)
    log_errors: list[str] = field(default_factory=list)
    own_cpu_us: float = 0.0
    server_cpu_us: float = 0.0

    @property
    def is_good(self) -> bool:
        return not self.failures and not self.log_errors and self.growth_bytes() <= self.growth_bytes_max()

    def growth_bytes(self) -> int:
        """How much the memory grew after the warm-up, by the median of the last fifth of the epochs."""
        if len(self.memory) < 10:
            return 0
        warm = self.memory[int(len(self.memory) * WARM_UP_SHARE)]
        return int(median(self.memory[-len(self.memory) // 5 :])) - warm

    def growth_bytes_max(self) -> int:
        return GROWTH_BYTES_MAX


class Run:
    """Sends mutations to one server."""

    def __init__(self, target: Target, seed: int, note: Callable[[str], None]) -> None:
        self.target = target
        self.seed = seed
        self.note = note
        self.seeds = Seeds()
        self.tally = Tally()

    def play(self, mutations: int) -> Tally:
        """Send this number of mutations, and count their outcomes in the tally."""
        done, start, noted = 0, time.monotonic(), time.monotonic()
        pid = self.target.started.process.pid
        own_start, server_start = time.process_time(), cpu_us(pid)
        epoch = 0
        while done < mutations:
            self.seeds.set_streams(self.target.renew_tables())
            mutator = Mutator(self.seeds, f"{self.seed}/{epoch}")
            until = min(mutations, done + EPOCH)
            lines = [_Line(self), _Line(self)]
            while done < until:
                line = lines[0]
                lines.reverse()
                line.settle()
                done += line.send([mutator.draw() for _ in range(min(LINE, until - done))])
                if time.monotonic() - noted > NOTE_SECONDS:
                    noted = time.monotonic()
                    self.note(self._progress(done, mutations, noted - start))
            for line in lines:
                line.settle()
                line.close()
            self.end_epoch()
            epoch += 1
        self.tally.own_cpu_us = (time.process_time() - own_start) * 1e6 / mutations
        self.tally.server_cpu_us = (cpu_us(pid) - server_start) / mutations
        return self.tally

    def end_epoch(self) -> None:
        """Check the control item, the log and the memory."""
        try:
            self.target.check_control()
        except (AssertionError, CallError, OSError) as error:
            self.keep(Failure(f"control: {error}", "", "", b"", False))
        self._look_at_log()
        self.tally.memory.append(self.target.memory_bytes())

    def _look_at_log(self) -> None:
        """Note errors in the log that belong to no known failure, such as those of the background work."""
        log = self.target.new_log()
        known = {failure.place for failure in self.tally.failures.values()}
        for part in log.split("Traceback ")[1:]:
            place = place_of(part)
            if place not in known:
                known.add(place)
                self.tally.log_errors.append(f"{place}\nTraceback {part[:3_000]}")
        if "Traceback" not in log and (lines := error_lines(log)):
            self.tally.log_errors += lines[:10]

    def _progress(self, done: int, mutations: int, seconds: float) -> str:
        memory = self.target.memory_bytes() >> 20
        failed = sum(self.tally.failed.values())
        failures = f"{failed} failed, {len(self.tally.failures)} kinds"
        return f"{done:,} of {mutations:,}  {done / seconds:,.0f}/s  {memory} MiB  {failures}"

    # -- failures --

    def judge(self, mutation: Mutation, status: int, head: bytes, body: bytes) -> None:
        self.tally.outcomes[mutation.operation, outcome_of(status, body)] += 1
        fault = find_fault(mutation.kind, mutation.sent, status, head, body, mutation.operation)
        if fault is not None:
            self.fail(mutation, fault)

    def fail(self, mutation: Mutation, fault: str) -> None:
        """Send the request again alone and find its place in the log; if it is new, shrink it and keep it."""
        seen = self.tally.failed.total()
        if seen > 2_000:
            # There are so many that examining each would take longer than the run.
            self.tally.failed[fault, mutation.operation] += 1
            return
        self._look_at_log_for(mutation, fault)

    def _look_at_log_for(self, mutation: Mutation, fault: str) -> None:
        before = place_of(self.target.new_log())
        alone = self.fault_of(mutation)
        place = place_of(self.target.new_log()) or before
        name = _general(fault)
        key = (name, place) if place else (name, mutation.operation)
        self.tally.failed[key] += 1
        if key in self.tally.failures or len(self.tally.failures) >= FAILURES_KEPT_MAX:
            return
        request = mutation.sent
        if alone is not None and mutation.kind in ("values", "text"):

            def fails(body: bytes) -> bool:
                smaller = Mutation(
                    mutation.kind, mutation.operation, head_of(mutation.operation, len(body)), body
                )
                found = self.fault_of(smaller)
                return (
                    found is not None and _general(found) == name and place_of(self.target.new_log()) == place
                )

            request = (
                shrink(mutation.body, fails)
                if place or name == "an error that is too long"
                else mutation.body
            )
        failure = Failure(fault, mutation.operation, place, request, alone is not None)
        self.tally.failures[key] = failure
        self.note(str(failure))

    def keep(self, failure: Failure) -> None:
        key = (failure.fault, failure.operation)
        self.tally.failed[key] += 1
        self.tally.failures.setdefault(key, failure)
        self.note(str(failure))

    def fault_of(self, mutation: Mutation) -> str | None:
        """What is wrong with the answer to a request that is sent alone."""
        try:
            with Connection(self.target.port, HANG_SECONDS) as connection:
                connection.send(mutation.sent)
                if mutation.kind == "framing":
                    return self.read_to_end(mutation, connection)
                return find_fault(mutation.kind, mutation.sent, *connection.answer(), mutation.operation)
        except TimeoutError:
            return "no answer"
        except OSError as error:
            return f"the connection ended: {type(error).__name__}"

    def read_to_end(self, mutation: Mutation, connection: Connection) -> str | None:
        """Read every answer to broken HTTP until the server closes the connection; return a fault. Raises
        TimeoutError if the server does not close it."""
        with suppress(OSError):
            connection.end()
        fault = None
        try:
            while True:
                status, head, body = connection.answer()
                if status != 100:
                    operation = mutation.operation
                    fault = fault or find_fault("framing", mutation.sent, status, head, body, operation)
                    self.tally.outcomes["(framing)", outcome_of(status, body)] += 1
        except TimeoutError:
            return "no answer"
        except (OSError, ValueError):
            return fault


class _Line:
    """A connection with a line of requests under way."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._connection: Connection | None = None
        self._waiting: list[Mutation] = []

    def send(self, mutations: list[Mutation]) -> int:
        """Send the mutations of valid HTTP in one write, and each of the others on a connection of its
        own."""
        valid = [mutation for mutation in mutations if mutation.kind != "framing"]
        self._start(valid)
        for mutation in mutations:
            if mutation.kind == "framing":
                fault = self.run.fault_of(mutation)
                if fault is not None:
                    self.run.fail(mutation, fault)
        return len(mutations)

    def _start(self, mutations: list[Mutation]) -> None:
        self._waiting = mutations
        if not mutations:
            return
        self._connection = self._connection or Connection(self.run.target.port, HANG_SECONDS)
        # Answers may be large; answers that nobody reads must block neither the server nor us.
        with suppress(OSError):
            self._connection.send(b"".join(mutation.sent for mutation in mutations))

    def settle(self) -> None:
        """Receive the answers to the line. Requests after a refusal of HTTP are sent again."""
        while self._waiting:
            assert self._connection is not None
            mutation = self._waiting.pop(0)
            try:
                status, head, body = self._connection.answer()
            except TimeoutError:
                self._lose(mutation, "no answer")
                continue
            except (Closed, OSError) as error:
                self._lose(mutation, f"the connection ended: {type(error).__name__}")
                continue
            self.run.judge(mutation, status, head, body)
            if is_refusal(status, head, body) or b"\r\nConnection: close\r\n" in head:
                self.close()
                self._start(self._waiting)

    def _lose(self, mutation: Mutation, fault: str) -> None:
        self.close()
        self.run.fail(mutation, fault)
        self._start(self._waiting)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def _general(fault: str) -> str:
    """A fault without its numbers, so that faults of one kind are counted together."""
    return "an error that is too long" if fault.startswith("an error of") else fault
