"""`pytest --dynamodb-costs`: shows at the end which tests' requests to databases of this process cost most.

It records every request to every `hashrange.Database` of the run, including those behind a server in this
process, and adds them up for each test and its fixtures. It also works with pytest-xdist: the reports carry
the sums. Without the option it is not loaded (`plugin`).
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import Final

import pytest

from hashrange.costs.record import Record
from hashrange.costs.table import aligned, number
from hashrange.watching.interest import record_everywhere

_PROPERTY: Final = "dynamodb_costs"
_COLUMNS: Final = (
    "read units", "write units", "requests", "scans", "read", "returned", "retries", "errors",
)  # fmt: skip


class CostsOfTests:
    """The plugin for a run with the option. It shows at most `most` tests."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._sums: dict[str, float] = {}
        self._tests: dict[str, dict[str, float]] = {}

    def add(self, record: Record) -> None:
        """Add a request to the sums of the test that is running."""
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

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionstart(self) -> Generator[None, None, None]:
        record_everywhere(self, True)
        yield

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self) -> Generator[None, None, None]:
        record_everywhere(self, False)
        yield

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        with self._lock:
            self._sums = {}
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        if call.when == "teardown" and self._sums:
            with self._lock:
                item.user_properties.append((_PROPERTY, dict(self._sums)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            for name, sums in report.user_properties:
                if name == _PROPERTY and isinstance(sums, dict):
                    self._tests[report.nodeid] = sums

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._tests:
            return
        terminalreporter.section(f"DynamoDB: the most expensive of {len(self._tests)} tests")
        by_units = sorted(self._tests.items(), key=lambda entry: (-_units(entry[1]), entry[0]))
        most_expensive = by_units[: self._most]
        rows = [[*_COLUMNS, "test"]]
        rows += [[*(number(sums[name]) for name in _COLUMNS), nodeid] for nodeid, sums in most_expensive]
        for line in aligned(rows, {len(_COLUMNS)}):
            terminalreporter.write_line(line)


def _units(sums: dict[str, float]) -> float:
    return sums["read units"] + sums["write units"]
