"""Large requests are freed piece by piece, unless somebody still looks at them."""

from __future__ import annotations

import threading
from typing import Any
from unittest.mock import patch

import pytest

from hashrange.database import Caller, Database
from hashrange.operations.execution import Asked
from hashrange.pace import freeing, turns
from worlds import create


def deep(levels: int) -> dict[str, Any]:
    return {"M": {"a": deep(levels - 1)}} if levels else {"N": "1"}


def pieces(value: Any) -> int:
    """How often other threads may run while `value` is taken apart."""
    with patch.object(turns, "point") as point:
        freeing.take_apart(value)
    return point.call_count


@pytest.mark.parametrize(
    ("value", "least"),
    [
        ({"Item": {f"a{number}": deep(31) for number in range(1000)}}, 1000),
        ({"Item": {"pk": {"S": "a"}, "list": {"L": [{"N": "1"}] * 5000}}}, 5000),
        (
            {
                "RequestItems": {
                    "t": [{"PutRequest": {"Item": {"l": {"L": [{"N": "1"}] * 900}}}} for _ in range(25)]
                }
            },
            22_500,
        ),
    ],
    ids=["deep", "list", "batch"],
)
def test_no_piece_is_large(value: dict[str, Any], least: int) -> None:
    assert pieces(value) >= least
    assert value == {}


def run_aside(database: Database, request: dict[str, Any]) -> None:
    create(database, "lists", "pk")
    answered = threading.Event()
    errors: list[Exception | None] = []

    def done(answer: Any, error: Exception | None) -> None:
        errors.append(error)
        answered.set()

    database.run_aside(Asked("PutItem", request, Caller(), done, lambda answer: b""))
    assert answered.wait(10)
    assert errors == [None]


def test_a_request_that_ran_aside_is_empty_unless_it_was_observed() -> None:
    def item() -> dict[str, Any]:
        return {"pk": {"S": "a"}, "list": {"L": [{"N": "1"}] * 10}}

    with Database.in_memory() as database:
        request: dict[str, Any] = {"TableName": "lists", "Item": item()}
        run_aside(database, request)
        assert request == {}
        assert database.execute("GetItem", {"TableName": "lists", "Key": {"pk": {"S": "a"}}})
    with Database.in_memory() as database, database.costs():
        request = {"TableName": "lists", "Item": item()}
        run_aside(database, request)
        assert request["Item"] == item()
