"""The record of one request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

NO_UNITS: Final[Mapping[str, float]] = MappingProxyType({})


def _no_units() -> Mapping[str, float]:
    return NO_UNITS


@dataclass(frozen=True, slots=True)
class Record:
    """What one request did and cost.

    `tables` are the tables that it named, `index` the index that it read. `read_units` and `write_units` are
    the ConsumedCapacity of tables and indexes together; `index_units` are the units of each index. The bytes
    written to vector indexes and those of a search are charged beside the units.
    `read_items` counts the items that were read, `returned_items` those in the answer; None for writes and
    for requests about tables. `is_scan`: a Scan, or a SELECT that reads a whole table or index. The bytes are
    those of request and answer, as JSON. `attempt` counts the SDK's attempts from 1, and `error` is the code
    of an error answer. `line` is what an observer said of the program's place when the request came.
    """

    operation: str
    tables: tuple[str, ...] = ()
    index: str = ""
    read_units: float = 0.0
    write_units: float = 0.0
    index_units: Mapping[str, float] = field(default_factory=_no_units)
    vector_write_bytes: float = 0.0
    vector_search_bytes: float = 0.0
    read_items: int | None = None
    returned_items: int | None = None
    is_scan: bool = False
    request_bytes: int = 0
    answer_bytes: int = 0
    attempt: int = 1
    error: str = ""
    line: str = ""

    @property
    def units(self) -> float:
        """Read and write units together."""
        return self.read_units + self.write_units

    def wastes(self, times: float) -> bool:
        """Whether `times` as many items were read as returned; an empty answer counts as one item."""
        if self.read_items is None or self.returned_items is None:
            return False
        return self.read_items >= times * max(self.returned_items, 1)
