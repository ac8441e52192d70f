"""The heat counts requests of any form, in bounded memory."""

from __future__ import annotations

from typing import Any

from hashrange.database import Caller, Database
from hashrange.errors import ServiceError
from hashrange_lab.heat import KEYS_MAX, Heat, TableOrIndex


def test_the_counts_take_bounded_memory_and_requests_of_any_form(database: Database) -> None:
    heat = Heat(database, lambda: False)
    heat.names[TableOrIndex("", "t")] = "pk"
    database.observers.observe(heat)
    keys: list[Any] = [{"S": str(number)} for number in range(2 * KEYS_MAX)]
    for key in [*keys, None, [], {}, {"N": "x"}, {"M": {}}, {"S": "x" * 100_000}, {"S": 1}]:
        ask(database, "GetItem", {"TableName": "t", "Key": {"pk": key}})
    [(_, warmth)] = heat.places()
    assert sum(warmth.reads) == 2 * KEYS_MAX
    assert warmth.others == 7
    assert len(heat.keys(10_000)) == KEYS_MAX
    assert all(reads > 0 for reads in warmth.reads)
    wrong: list[dict[str, Any]] = [{"TableName": []}, {"Key": 1}, {"TableName": "t", "Key": "x"}]
    for request in wrong:
        ask(database, "PutItem", request)
    assert database.observers.failures == 0


def ask(database: Database, operation: str, request: dict[str, Any]) -> None:
    """A request that is refused."""
    try:
        database.execute(operation, request, Caller())
    except ServiceError:
        return
    raise AssertionError(f"{request} was not refused")
