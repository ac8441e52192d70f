"""The judge of backups and restores: each anomaly is found, and a sound history is not accused."""

from __future__ import annotations

from random import Random
from typing import Any, Final

import pytest

from consistency import past, registers, transfers
from consistency.client import Client
from consistency.drawn import done, names
from consistency.history import History, Operation
from consistency.lists import Lists
from consistency.registers import Registers
from consistency.tables import KEY
from consistency.test_streams import TABLE, content, item, page, record
from consistency.transfers import Transfers

STREAM: Final = [
    page("1", record(1, "a", None, 1), record(3, "a", 1, 2)),
    page("2", record(2, "b", None, 1), record(4, "b", 1, None)),
]
A1, A2, B1 = item("a", 1), item("a", 2), item("b", 1)


def state(*items: dict[str, Any]) -> Operation:
    return done(past.NAME, "state", 5, 6, content(*items), table=TABLE, kind="backup")


@pytest.mark.parametrize("items", [[], [A1], [A1, B1], [A2, B1], [A2]])
def test_each_state_that_the_table_had_is_sound(items: list[dict[str, Any]]) -> None:
    assert past.judge([*STREAM, state(*items)]) == []


@pytest.mark.parametrize("items", [[B1], [item("a", 3)], [A1, B1, item("c", 1)], [A2, item("b", 2)]])
def test_a_state_that_the_table_never_had_is_found(items: list[dict[str, Any]]) -> None:
    """The first is torn: the later of two writes, without the earlier."""
    assert names(past.judge([*STREAM, state(*items)])) == {"no moment"}


def test_an_index_of_a_restored_table_that_disagrees_is_found() -> None:
    restored = state(A1)
    restored.result["indexes"]["by-value"] = {}
    assert names(past.judge([*STREAM, restored])) == {"wrong index"}


def test_a_torn_state_is_a_torn_read_of_the_accounts() -> None:
    """A restore that has half of a transfer."""
    amounts = [90, 100, 100, 100, 100]
    items = {
        f"account {number}": {KEY: {"S": f"account {number}"}, "amount": {"N": str(amount)}}
        for number, amount in enumerate(amounts)
    }
    [(action, arguments, result)] = Transfers("t", "r").reads(items)
    assert names(transfers.judge([done(transfers.NAME, action, 5, 6, result, **arguments)])) == {"torn read"}


def test_a_state_from_before_its_moment_is_a_stale_read() -> None:
    """A restore that lacks an acknowledged write."""
    history = [done(registers.NAME, "put", 0, 1, key="register 0", value=1)]
    for action, arguments, result in Registers("t").reads({}):
        history.append(done(registers.NAME, action, 5, 6, result, **arguments))
    assert names(registers.judge(history)) == {"not linearizable"}


def test_a_state_may_show_what_was_under_way_at_its_moment() -> None:
    """A write that came at second 1, and was committed after second 8."""
    history = History()
    history.operations += [
        done(registers.NAME, "put", 1, 9, key="register 0", value=1),
        done(registers.NAME, "get", 7, 8, None, key="register 0"),
        done(registers.NAME, "put", 10, 12, key="register 0", value=2),
    ]
    client = Client(-3, [], Random(0), history)
    for end in (2.0, client.settled(2.0)):
        seen = done(registers.NAME, "get", 0, end, 1, key="register 0")
        problems = names(registers.judge([*history.operations, seen]))
        assert problems == ({"not linearizable"} if end == 2.0 else set())
    assert client.settled(9.5) == 9.5


def test_a_state_with_half_of_a_transaction_on_lists_is_found() -> None:
    lists = Lists("t")
    items = {"list 0": {KEY: {"S": "list 0"}, "list": {"L": [{"N": "1"}]}}}
    history = [done("lists", "append", 0, 9, appends={"list 0": [1], "list 1": [2]})]
    history += [
        done("lists", action, 5, 6, result, **arguments) for action, arguments, result in lists.reads(items)
    ]
    history.append(done("lists", "read", 10, 11, {"list 0": [1], "list 1": [2]}))
    assert lists.judge(history)
