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
from typing import Any, Final

import pytest

from hashrange.costs.table import aligned, number
from hashrange.observing.observer import ObservedRequest, Observer
from hashrange.observing.observers import observe_everywhere
from hashrange.observing.record import Record
from hashrange.prices import RATES, UnknownRegion, published
from hashrange.prices.money import Money, priced
from hashrange.prices.rates import GB

_PROPERTY: Final = "dynamodb_costs"
_LINES: Final = "dynamodb_costs_of_lines"
_COLUMNS: Final = (
    "read units", "write units", "requests", "scans", "read", "returned", "retries", "errors",
)  # fmt: skip
_LINES_MAX: Final = 500
"""The most lines of one test that are kept apart."""
_RUNS: Final = 1_000_000

_BILLED: Final = ("read_requests", "write_requests", "vector_writes", "vector_searches")
"""The rates of what requests consume; sums have the amounts by these names."""
_OF_UNITS: Final = _BILLED[:2]

_Sums = dict[str, float]
"""The columns of a test, or the requests of a line, and the amounts of `_BILLED`."""


class CostsOfTests(Observer):
    """The plugin for a run with the option. It shows at most `most` tests and lines, with the prices of
    `region`."""

    records = True

    def __init__(self, most: int, region: str) -> None:
        self._most = most
        self._region = region
        self._lock = threading.Lock()
        self._path = ""
        self._name = ""
        self._sums: _Sums = {}
        self._lines: dict[str, _Sums] = {}
        self._tests: dict[str, _Sums] = {}
        self._lines_of_all: dict[str, _Sums] = {}

    def begins(self, seen: ObservedRequest) -> None:
        """Note the line, because later it may be another thread."""
        seen.line = self._line()

    def ended(self, seen: ObservedRequest) -> None:
        """Add a request to the sums."""
        self.add(seen.record)

    def _line(self) -> str:
        """The innermost line of the running test's file that leads to this call; "" if there is none, as for
        a request that came over HTTP."""
        frame = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename != self._path:
            frame = frame.f_back  # type: ignore[assignment]
        return "" if frame is None else f"{self._name}:{frame.f_lineno}"

    def add(self, record: Record) -> None:
        """Add a request to the sums of the test that is running, and of its line."""
        columns = (
            record.read_units,
            record.write_units,
            1,
            record.is_scan,
            record.read_items or 0,
            record.returned_items or 0,
            record.attempt > 1,
            record.error != "",
        )
        amounts = (
            record.read_units,
            record.write_units,
            record.vector_write_bytes / GB,
            record.vector_search_bytes / GB,
        )
        billed = dict(zip(_BILLED, amounts, strict=True))
        with self._lock:
            _add(self._sums, dict(zip(_COLUMNS, columns, strict=True)) | billed)
            is_known = record.line in self._lines or len(self._lines) < _LINES_MAX
            if any(amounts) and record.line and is_known:
                _add(self._lines.setdefault(record.line, {}), {"requests": 1} | billed)

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionstart(self) -> Generator[None, None, None]:
        observe_everywhere(self, True)
        yield

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self) -> Generator[None, None, None]:
        observe_everywhere(self, False)
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
                    for line, of_line in sums.items():
                        _add(self._lines_of_all.setdefault(line, {}), of_line)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._tests:
            return
        terminalreporter.section(f"DynamoDB: the most expensive of {len(self._tests)} tests")
        by_units = sorted(self._tests.items(), key=lambda entry: (-_units(entry[1]), entry[0]))
        most_expensive = by_units[: self._most]
        rows = [[*_COLUMNS, "cost", "test"]]
        rows += [
            [*(number(sums[name]) for name in _COLUMNS), str(self._cost(sums)), nodeid]
            for nodeid, sums in most_expensive
        ]
        self._write(terminalreporter, rows)
        self._write_lines(terminalreporter)
        of_all: _Sums = {}
        for sums in self._tests.values():
            _add(of_all, sums)
        cost = self._cost(of_all)
        if cost is None or cost.missing.intersection(_OF_UNITS):
            return
        for rate in sorted(cost.missing):
            terminalreporter.write_line(
                f"No source has the price in {self._region} for {RATES[rate].about}; the sum lacks it."
            )
        if cost.amount:
            terminalreporter.write_line(
                f"On demand in {self._region} (prices of {published().date}) this run would cost "
                f"{cost}, and a million such runs {Money(cost.amount * _RUNS, cost.missing)}."
            )

    def _write_lines(self, terminalreporter: Any) -> None:
        lines = sorted(self._lines_of_all.items(), key=lambda entry: (-_units(entry[1]), entry[0]))
        if lines:
            terminalreporter.write_line("")
            names = (*_OF_UNITS, "requests")
            rows = [["read units", "write units", "requests", "cost", "line"]]
            for line, sums in lines[: self._most]:
                rows.append([*(number(sums[name]) for name in names), str(self._cost(sums)), line])
            self._write(terminalreporter, rows)
            terminalreporter.write_line("")

    def _write(self, terminalreporter: Any, rows: list[list[str]]) -> None:
        """Write a table whose last column is text; without the costs where there are no prices."""
        some = self._cost(dict.fromkeys(_OF_UNITS, 1.0))
        if some is None or some.missing:
            rows = [[*row[:-2], row[-1]] for row in rows]
        for line in aligned(rows, {len(rows[0]) - 1}):
            terminalreporter.write_line(line)

    def _cost(self, sums: _Sums) -> Money | None:
        """What such amounts cost on demand; None if the region is not known."""
        try:
            rates = published().region(self._region).standard
        except UnknownRegion:
            return None
        return sum([priced(rates, rate, sums.get(rate, 0.0)) for rate in _BILLED], Money())


def _add(sums: _Sums, added: _Sums) -> None:
    for name, more in added.items():
        sums[name] = sums.get(name, 0) + more


def _units(sums: _Sums) -> float:
    return sum([sums[rate] for rate in _OF_UNITS])
