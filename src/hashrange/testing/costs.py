"""`pytest --dynamodb-costs`: shows at the end which tests' requests to databases of this process cost most,
which lines of the tests sent them, and what the run would cost on AWS.

It records every request to every `hashrange.Database` of the run, including those behind a server in this
process, and adds them up for each test and its fixtures. It also works with pytest-xdist: the reports carry
the sums. Without the option it is not loaded (`plugin`).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from decimal import Decimal
from typing import Any, Final

import pytest

from hashrange.costs.record import Record
from hashrange.costs.table import aligned, number
from hashrange.prices import UnknownRegion, dollars, published
from hashrange.watching.interest import record_everywhere

_PROPERTY: Final = "dynamodb_costs"
_LINES: Final = "dynamodb_costs_of_lines"
_COLUMNS: Final = (
    "read units", "write units", "requests", "scans", "read", "returned", "retries", "errors",
)  # fmt: skip
_LINES_MAX: Final = 500
"""The most lines of one test that are told apart."""
_RUNS: Final = 1_000_000

_Line = list[float]
"""The read units, the write units and the requests of a line."""


class CostsOfTests:
    """The plugin for a run with the option. It shows at most `most` tests and lines, with the prices of
    `region`."""

    def __init__(self, most: int, region: str) -> None:
        self._most = most
        self._region = region
        self._lock = threading.Lock()
        self._path = ""
        self._name = ""
        self._sums: dict[str, float] = {}
        self._lines: dict[str, _Line] = {}
        self._tests: dict[str, dict[str, float]] = {}
        self._lines_of_all: dict[str, _Line] = {}

    def line(self) -> str:
        """The innermost line of the running test's file that leads to this call; "" if there is none, as for
        a request that came over HTTP."""
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self._path:
            frame = frame.f_back  # type: ignore[assignment]
        return "" if frame is None else f"{self._name}:{frame.f_lineno}"

    def add(self, record: Record) -> None:
        """Add a request to the sums of the test that is running, and of its line."""
        with self._lock:
            added = (
                record.read_units,
                record.write_units,
                1,
                record.is_scan,
                record.read_items or 0,
                record.returned_items or 0,
                record.attempt > 1,
                record.error != "",
            )
            for name, more in zip(_COLUMNS, added, strict=True):
                self._sums[name] = self._sums.get(name, 0) + more
            is_known = record.line in self._lines or len(self._lines) < _LINES_MAX
            if record.units and record.line and is_known:
                _add(self._lines, record.line, [record.read_units, record.write_units, 1])

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionstart(self) -> Generator[None, None, None]:
        record_everywhere(self, True)
        yield

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self) -> Generator[None, None, None]:
        record_everywhere(self, False)
        yield

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        with self._lock:
            self._sums, self._lines = {}, {}
            self._path, self._name = str(item.path), item.nodeid.partition("::")[0]
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        if call.when == "teardown" and self._sums:
            with self._lock:
                item.user_properties.append((_PROPERTY, dict(self._sums)))
                item.user_properties.append((_LINES, dict(self._lines)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            for name, sums in report.user_properties:
                if name == _PROPERTY and isinstance(sums, dict):
                    self._tests[report.nodeid] = sums
                elif name == _LINES and isinstance(sums, dict):
                    for line, units in sums.items():
                        _add(self._lines_of_all, line, units)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._tests:
            return
        terminalreporter.section(f"DynamoDB: the most expensive of {len(self._tests)} tests")
        by_units = sorted(self._tests.items(), key=lambda entry: (-_units(entry[1]), entry[0]))
        most_expensive = by_units[: self._most]
        rows = [[*_COLUMNS, "cost", "test"]]
        rows += [
            [*(number(sums[name]) for name in _COLUMNS), self._cost(*_reads_and_writes(sums)), nodeid]
            for nodeid, sums in most_expensive
        ]
        self._write(terminalreporter, rows)
        self._write_lines(terminalreporter)
        reads, writes = map(sum, zip(*map(_reads_and_writes, self._tests.values()), strict=True))
        price = self._price(reads, writes)
        if price:
            terminalreporter.write_line(
                f"On demand in {self._region} (prices of {published().date}) this run would cost "
                f"{dollars(price)}, and a million such runs {dollars(price * _RUNS)}."
            )

    def _write_lines(self, terminalreporter: Any) -> None:
        lines = sorted(self._lines_of_all.items(), key=lambda entry: (-entry[1][0] - entry[1][1], entry[0]))
        if lines:
            terminalreporter.write_line("")
            rows = [["read units", "write units", "requests", "cost", "line"]]
            for line, (reads, writes, requests) in lines[: self._most]:
                cost = self._cost(reads, writes)
                rows.append([number(reads), number(writes), number(requests), cost, line])
            self._write(terminalreporter, rows)
            terminalreporter.write_line("")

    def _write(self, terminalreporter: Any, rows: list[list[str]]) -> None:
        """Write a table whose last column is text; without the costs where there are no prices."""
        if self._price(1, 1) is None:
            rows = [[*row[:-2], row[-1]] for row in rows]
        for line in aligned(rows, {len(rows[0]) - 1}):
            terminalreporter.write_line(line)

    def _cost(self, reads: float, writes: float) -> str:
        return dollars(self._price(reads, writes))

    def _price(self, reads: float, writes: float) -> Decimal | None:
        """What so many units cost on demand; None if the region has no prices."""
        try:
            rates = published().region(self._region).standard
        except UnknownRegion:
            return None
        costs = rates.cost("read_requests", reads), rates.cost("write_requests", writes)
        return None if costs[0] is None or costs[1] is None else costs[0] + costs[1]


def _add(lines: dict[str, _Line], line: str, units: _Line) -> None:
    sums = lines.setdefault(line, [0.0, 0.0, 0.0])
    for place, more in enumerate(units):
        sums[place] += more


def _reads_and_writes(sums: dict[str, float]) -> tuple[float, float]:
    return sums["read units"], sums["write units"]


def _units(sums: dict[str, float]) -> float:
    return sum(_reads_and_writes(sums))
