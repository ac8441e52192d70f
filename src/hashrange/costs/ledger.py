"""The records of a block of code, and the assertions on them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Final, Self

from hashrange.costs.record import Record
from hashrange.costs.table import number, show

_SHOWN_MAX: Final = 50


class Costs:
    """The requests that a database answered while the block ran, in the order of their answers.

    A context manager that can be entered once more, and goes on then. The assertions can be made within the
    block and after it. They raise AssertionError with a table of the requests, and return the costs, so that
    they can be chained. Thread-safe.
    """

    def __init__(self, watch: Callable[[Costs, bool], None]) -> None:
        """`watch` begins and ends the recording."""
        self._watch = watch
        self._lock = threading.Lock()
        self._records: list[Record] = []

    def __enter__(self) -> Self:
        self._watch(self, True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._watch(self, False)

    def add(self, record: Record) -> None:
        """Note a request."""
        with self._lock:
            self._records.append(record)

    @property
    def requests(self) -> Sequence[Record]:
        """The requests so far."""
        with self._lock:
            return tuple(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.requests)

    def __str__(self) -> str:
        return show(self.requests)

    def of(self, *operations: str, table: str = "", index: str = "") -> Costs:
        """The costs of the requests of these operations (none: all), of one table or one index."""
        part = Costs(_watch_nothing)
        for one in self.requests:
            if operations and one.operation not in operations:
                continue
            if (not table or table in one.tables) and (not index or index == one.index):
                part.add(one)
        return part

    @property
    def read_units(self) -> float:
        """The read units of all requests."""
        return sum(one.read_units for one in self.requests)

    @property
    def write_units(self) -> float:
        """The write units of all requests."""
        return sum(one.write_units for one in self.requests)

    @property
    def retries(self) -> int:
        """How many requests repeat an earlier one."""
        return sum(one.attempt > 1 for one in self.requests)

    def no_scan(self) -> Self:
        """No request read a whole table or index."""
        __tracebackhide__ = True
        return self._none([one for one in self.requests if one.is_scan], "a table or an index was scanned")

    def no_waste(self, times: float = 10) -> Self:
        """No request read `times` as many items as it returned, or as many without returning one."""
        __tracebackhide__ = True
        wasting = [one for one in self.requests if one.wastes(times)]
        return self._none(wasting, f"a request read {number(times)} times the items that it returned")

    def no_retry(self) -> Self:
        """No request was repeated."""
        __tracebackhide__ = True
        return self._none([one for one in self.requests if one.attempt > 1], "a request was repeated")

    def no_error(self) -> Self:
        """No request was answered with an error."""
        __tracebackhide__ = True
        return self._none([one for one in self.requests if one.error], "a request failed")

    def read_units_at_most(self, units: float) -> Self:
        """All requests together consumed at most so many read units."""
        __tracebackhide__ = True
        return self._at_most("read units", self.read_units, units, lambda one: one.read_units)

    def write_units_at_most(self, units: float) -> Self:
        """All requests together consumed at most so many write units."""
        __tracebackhide__ = True
        return self._at_most("write units", self.write_units, units, lambda one: one.write_units)

    def requests_at_most(self, number: int) -> Self:
        """There were at most so many requests, repeated ones included."""
        __tracebackhide__ = True
        return self._at_most("requests", len(self), number, lambda one: 0)

    def _none(self, found: list[Record], told: str) -> Self:
        __tracebackhide__ = True
        if found:
            raise AssertionError(f"{told}:\n{self._shown(found)}")
        return self

    def _at_most(self, name: str, found: float, most: float, part: Callable[[Record], float]) -> Self:
        __tracebackhide__ = True
        if found > most:
            dearest = max(self.requests, key=part)
            marked = [dearest] if part(dearest) else []
            raise AssertionError(f"{number(found)} {name}, more than {number(most)}:\n{self._shown(marked)}")
        return self

    def _shown(self, marked: list[Record]) -> str:
        records = self.requests
        if len(records) <= _SHOWN_MAX:
            return show(records, marked)
        # The ones that matter, and the first of the others.
        ids = {id(one) for one in marked[:_SHOWN_MAX]}
        others = [one for one in records if id(one) not in ids][: _SHOWN_MAX - len(ids)]
        ids |= {id(one) for one in others}
        kept = [one for one in records if id(one) in ids]
        return f"{show(kept, marked)}\n  and {len(records) - len(kept)} others"


def _watch_nothing(costs: Costs, begins: bool) -> None:
    """The requests of a part are those of the whole."""
