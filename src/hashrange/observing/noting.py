"""Makes the record of a request, from its request, its answer and its bill.

`places` examines a request before it is checked, so the request may have any form.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import orjson

from hashrange import partiql
from hashrange.errors import ServiceError
from hashrange.observing.record import NO_UNITS, Record
from hashrange.operations.context import Answer, Request, table_name
from hashrange.operations.targets import name_in, targets_of_any
from hashrange.partiql.access import plan
from hashrange.partiql.statements import Select
from hashrange.storage.api import Engine
from hashrange.storage.failures import StorageError
from hashrange.tables.definitions import catalog
from hashrange.tables.items.capacity import Bill


@dataclass(frozen=True, slots=True)
class Places:
    """The tables that a request names, the index that it reads, and its size."""

    tables: tuple[str, ...]
    index: str
    request_bytes: int


NOWHERE: Final = Places((), "", 0)
"""The places of a request about which nothing is known."""


@dataclass(frozen=True, slots=True)
class Items:
    """How many items a request read, and how many its answer holds."""

    read: int | None = None
    returned: int | None = None


def places(operation: str, request: Request) -> Places:
    """The tables and the index that a request names, and its size."""
    size = 0
    with suppress(TypeError):  # a number that no JSON encoder takes, or nesting that is too deep
        size = len(orjson.dumps(request))
    name, index = request.get("TableName"), request.get("IndexName")
    if isinstance(name, str):
        return Places((name_in(name),), index if isinstance(index, str) else "", size)
    named = targets_of_any(operation, request)
    tables = dict.fromkeys([target.table for target in named if target.table])
    return Places(tuple(tables), next((target.index for target in named if target.index), ""), size)


def items(operation: str, request: Request, answer: Answer) -> Items:
    """How many items a request read and returned."""
    if "ScannedCount" in answer:
        return Items(answer["ScannedCount"], answer["Count"])
    if operation == "GetItem":
        return Items(1, int("Item" in answer))
    if operation == "BatchGetItem":
        requested = sum(len(part["Keys"]) for part in request["RequestItems"].values())
        unread = sum(len(part["Keys"]) for part in answer["UnprocessedKeys"].values())
        return Items(requested - unread, sum(map(len, answer["Responses"].values())))
    if operation == "TransactGetItems":
        return Items(len(answer["Responses"]), sum("Item" in part for part in answer["Responses"]))
    return Items()


def scans(operation: str, statement: Any, engine: Engine, scope: str) -> bool:
    """Whether a request reads a whole table or index: a Scan, or a SELECT whose condition binds no partition
    key."""
    if operation != "ExecuteStatement":
        return operation == "Scan"
    try:
        prepared = partiql.prepare(statement)
        select = prepared.statement
        if not isinstance(select, Select):
            return False
        name = table_name(select.table, scope)
        table = engine.read(lambda reader: catalog.open_active(reader, name, scope))
    except (ServiceError, StorageError, TypeError):
        return False  # it was refused
    index = None if select.index is None else table.index(select.index)
    if index is not None and index.vector is not None:
        return False  # it was refused
    access = plan(prepared, table.key if index is None else index.key)
    return not access.partition and not access.branches


def record(
    operation: str,
    where: Places,
    counted: Items,
    bill: Bill,
    *,
    is_scan: bool,
    answer_bytes: int,
    attempt: int,
    error: str,
    line: str = "",
) -> Record:
    """The record of a request."""
    read = write = written = searched = 0.0
    indexes: dict[str, float] = {}
    for part in bill:
        units = part.table
        for of_indexes in (part.local, part.global_):
            for name, added in of_indexes.items():
                indexes[name] = indexes.get(name, 0.0) + added
                units += added
        if part.writes:
            write += units
            written += sum(part.vectors.values())
        else:
            read += units
            searched += sum(part.vectors.values())
    index_units: Mapping[str, float] = indexes or NO_UNITS
    return Record(
        operation,
        where.tables,
        where.index,
        read,
        write,
        index_units,
        written,
        searched,
        counted.read,
        counted.returned,
        is_scan,
        where.request_bytes,
        answer_bytes,
        attempt,
        error,
        line,
    )


def size_of(answer: Any) -> int:
    """The size of an answer in bytes, whether it is encoded already or not."""
    return len(orjson.dumps(answer)) if isinstance(answer, dict) else len(answer)
