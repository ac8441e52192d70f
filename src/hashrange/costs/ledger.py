"""The records of a block of code, and the assertions on them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from types import TracebackType
from typing import Final, Self

from hashrange.costs.table import number, show
from hashrange.observing.observer import ObservedRequest, Observer
from hashrange.observing.record import Record

_SHOWN_MAX: Final = 50


class Costs(Observer):
    """The requests that a database answered while the block ran, in the order of their answers.

    A context manager; entering it again continues the recording. The assertions work within the block and
    after it. They raise AssertionError with a table of the requests, and return the costs, so they can be
    chained. Thread-safe.
    """

    records = True

    def __init__(self, observe: Callable[[Observer, bool], None]) -> None:
        """`observe` begins and ends the recording."""
        self._observe = observe
        self._lock = threading.Lock()
        self._records: list[Record] = []

    def __enter__(self) -> Self:
        self._observe(self, True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._observe(self, False)

    def add(self, record: Record) -> None:
        """Note a request."""
        with self._lock:
            self._records.append(record)

    def ended(self, seen: ObservedRequest) -> None:
        """Note a request that has ended."""
        self.add(seen.record)

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
        """The costs of the requests of some operations (none: all), of a table or an index."""
        part = Costs(_observe_nothing)
        for request in self.requests:
            if operations and request.operation not in operations:
                continue
            if (not table or table in request.tables) and (not index or index == request.index):
                part.add(request)
        return part

    @property
    def vector_write_bytes(self) -> float:
        """The bytes that all requests wrote to vector indexes."""
        return sum(request.vector_write_bytes for request in self.requests)

    @property
    def vector_search_bytes(self) -> float:
        """The bytes of all vector searches."""
        return sum(request.vector_search_bytes for request in self.requests)

    @property
    def read_units(self) -> float:
        """The read units of all requests."""
        return sum(request.read_units for request in self.requests)

    @property
    def write_units(self) -> float:
        """The write units of all requests."""
        return sum(request.write_units for request in self.requests)

    def dollars(self, region: str = "us-east-1") -> Decimal:
        """What the requests would cost on demand, by the published prices of a region (`hashrange.prices`).

        Raises ValueError if a price is not known.
        """
        # Imported here, because a server that counts nothing needs no prices.
        from hashrange.prices import RATES, published
        from hashrange.prices.rates import GB

        rates = published().region(region).standard
        consumed = {
            "read_requests": self.read_units,
            "write_requests": self.write_units,
            "vector_writes": self.vector_write_bytes / GB,
            "vector_searches": self.vector_search_bytes / GB,
        }
        dollars = Decimal(0)
        for rate, units in consumed.items():
            cost = rates.cost(rate, units) if units else Decimal(0)
            if cost is None:
                raise ValueError(f"No source has the price in {region} for {RATES[rate].about}.")
            dollars += cost
        return dollars

    @property
    def retries(self) -> int:
        """How many requests repeat an earlier one."""
        return sum(request.attempt > 1 for request in self.requests)

    def no_scan(self) -> Self:
        """No request read a whole table or index."""
        __tracebackhide__ = True
        return self._none(
            [request for request in self.requests if request.is_scan], "a table or an index was scanned"
        )

    def no_waste(self, times: float = 10) -> Self:
        """No request read `times` as many items as it returned, or `times` items without returning any."""
        __tracebackhide__ = True
        wasting = [request for request in self.requests if request.wastes(times)]
        return self._none(wasting, f"a request read {number(times)} times the items that it returned")

    def no_retry(self) -> Self:
        """No request was repeated."""
        __tracebackhide__ = True
        return self._none(
            [request for request in self.requests if request.attempt > 1], "a request was repeated"
        )

    def no_error(self) -> Self:
        """No request was answered with an error."""
        __tracebackhide__ = True
        return self._none([request for request in self.requests if request.error], "a request failed")

    def read_units_at_most(self, units: float) -> Self:
        """All requests together consumed at most `units` read units."""
        __tracebackhide__ = True
        return self._at_most("read units", self.read_units, units, lambda request: request.read_units)

    def write_units_at_most(self, units: float) -> Self:
        """All requests together consumed at most `units` write units."""
        __tracebackhide__ = True
        return self._at_most("write units", self.write_units, units, lambda request: request.write_units)

    def dollars_at_most(self, dollars: Decimal | str, region: str = "us-east-1", times: int = 1) -> Self:
        """All requests together cost at most `dollars` on demand if they are made this many `times`."""
        __tracebackhide__ = True
        cost = self.dollars(region) * times
        if cost > Decimal(dollars):
            raise AssertionError(f"${cost:f}, more than ${dollars}:\n{self._shown([])}")
        return self

    def requests_at_most(self, number: int) -> Self:
        """There were at most `number` requests, including repeated requests."""
        __tracebackhide__ = True
        return self._at_most("requests", len(self), number, lambda request: 0)

    def _none(self, offending: list[Record], complaint: str) -> Self:
        __tracebackhide__ = True
        if offending:
            raise AssertionError(f"{complaint}:\n{self._shown(offending)}")
        return self

    def _at_most(self, name: str, total: float, limit: float, part: Callable[[Record], float]) -> Self:
        __tracebackhide__ = True
        if total > limit:
            most_expensive = max(self.requests, key=part)
            marked = [most_expensive] if part(most_expensive) else []
            raise AssertionError(f"{number(total)} {name}, more than {number(limit)}:\n{self._shown(marked)}")
        return self

    def _shown(self, marked: list[Record]) -> str:
        records = self.requests
        if len(records) <= _SHOWN_MAX:
            return show(records, marked)
        # The marked requests, and the first of the others.
        ids = {id(request) for request in marked[:_SHOWN_MAX]}
        unmarked = [request for request in records if id(request) not in ids][: _SHOWN_MAX - len(ids)]
        ids |= {id(request) for request in unmarked}
        shown = [request for request in records if id(request) in ids]
        return f"{show(shown, marked)}\n  and {len(records) - len(shown)} others"


def _observe_nothing(costs: Observer, begins: bool) -> None:
    """The `observe` of a part of other costs, which records nothing itself."""
