"""The switches of the console: fault rules and the virtual clock."""

from __future__ import annotations

from typing import Any

import pytest

from consoles import CHANGES, ITEM, KEY, Browser, fill, opened, parsed
from hashrange.cli.admin import bind_admin
from hashrange.clock import VirtualClock
from hashrange.database import Database
from hashrange.errors import ServiceError
from hashrange.faults import effects, parse
from hashrange.server import running
from hashrange.storage.memory import MemoryEngine
from hashrange_console.live import faults


def test_a_rule_is_added_counted_and_removed(orders: Database, browser: Browser) -> None:
    assert "There are no fault rules." in browser.ask("/console/faults")[1]
    rule = {"effect": "throttle", "operations": "Query, Scan", "table": "orders"}
    rule |= {"percent": "10 %", "times": "2"}
    assert browser.post("/console/faults/add", rule) == (200, {"href": "/console/faults"})
    rule = {"effect": "latency", "operations": "Scan", "options": "seconds=0"}
    assert browser.post("/console/faults/add", rule)[0] == 200
    orders.execute("Scan", {"TableName": "orders"})
    said = " ".join(parsed(browser.ask("/console/faults")[1]).text.split())
    assert "Query,Scan table=orders times=2 probability=0.1 seed=0 throttle" in said
    assert f"Scan latency seconds=0 {faults.WORDS['latency']} 1 1 Remove" in said
    assert browser.post("/console/faults/remove", {"number": "1"})[0] == 200
    assert [armed.number for armed in orders.faults] == [2]
    status, answer = browser.post("/console/faults/remove", {"number": "1"})
    assert (status, answer["error"]) == (404, "there is no fault 1; there are: 2")


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ({"effect": "explode"}, "There is no effect 'explode'"),
        ({"effect": "latency"}, "latency needs seconds"),
        ({"effect": "throttle", "operations": "PutItm"}, "did you mean PutItem?"),
        ({"effect": "throttle", "percent": "many"}, "'many' is not a percentage"),
        ({"effect": "throttle", "percent": "0"}, "is not above 0"),
        ({"effect": "throttle", "times": "-1"}, "times is 1 or more"),
        ({"effect": "throttle", "options": "'"}, "The options are wrong"),
        ({"effect": "trim", "operations": "PutItem"}, "trim cannot happen to PutItem"),
        ({"effect": "latency", "options": "seconds=1 virtual=yes"}, "runs on the machine's"),
    ],
)
def test_a_wrong_rule_says_why(orders: Database, browser: Browser, rule: Any, says: str) -> None:
    status, answer = browser.post("/console/faults/add", rule)
    assert (status, says in answer["error"]) == (400, True), answer
    assert len(orders.faults) == 0


def test_every_effect_is_described_and_its_example_works() -> None:
    assert set(faults.WORDS) == set(effects.EFFECTS)
    for word, options in faults.EXAMPLES.items():
        text = faults.text_of(faults.NewRule(word, table="a table", options=options))
        assert parse(text).table == "a table"


def test_a_machines_clock_cannot_be_changed(browser: Browser) -> None:
    said = parsed(browser.ask("/console/clock")[1]).text
    assert "the machine's clock, which cannot be changed here" in said
    assert "hashrange serve --virtual-clock" in said
    status, answer = browser.post("/console/clock/change", {"advance": "1d"})
    assert (status, "start it with --virtual-clock" in answer["error"]) == (409, True)


def test_a_virtual_clock_is_moved_set_stopped_and_started() -> None:
    clock = VirtualClock(1_767_225_600, frozen=True)
    with Database(MemoryEngine(), clock=clock) as database:
        fill(database)
        admin = bind_admin(0)
        with running(database, admin=admin):
            browser = opened(admin)
            assert "stands still" in browser.ask("/console/clock")[1]
            status, answer = browser.post("/console/clock/change", {"advance": "1d"})
            assert (status, answer["href"]) == (200, "/console/clock")
            assert "00:00:00" in browser.ask("/console/clock")[1]
            assert clock.now() == 1_767_312_000
            assert browser.post("/console/clock/change", {"set": "2026-03-01T12:00"})[0] == 200
            assert "2026-03-01 <strong>12:00:00" in browser.ask("/console/clock")[1]
            assert browser.post("/console/clock/change", {"frozen": False})[0] == 200
            assert not clock.frozen
            for wrong in ({"advance": "soon"}, {"set": "soon"}, {"advance": -1}):
                assert browser.post("/console/clock/change", wrong)[0] == 400
        admin = bind_admin(0, read_only=True)
        with running(database, admin=admin):
            browser = opened(admin)
            page = browser.ask("/console/clock")[1]
            assert "cannot change the clock" in page
            for shown in (page, browser.ask("/console/faults")[1]):
                assert "<form" not in shown.partition("<main")[2]


def test_rules_do_not_meet_what_the_console_asks(orders: Database, browser: Browser) -> None:
    """An operator looks for what a rule does: the page must not be refused, late or counted itself."""
    for rule in ("* throttle", "* latency seconds=0.001", "* lose-answer", "GetItem times=1 internal-error"):
        orders.faults.add(rule)
    for path in ("/console", "/console/t/orders", ITEM, "/console/t/orders/about", "/console/faults"):
        assert browser.ask(path)[0] == 200, path
    assert browser.post("/console/run", CHANGES["/console/run"])[0] == 200
    assert browser.post("/v1/data/Scan", {"TableName": "orders"})[0] == 200
    assert [(armed.matched, armed.fired) for armed in orders.faults] == [(0, 0)] * 4
    with pytest.raises(ServiceError):
        orders.execute("GetItem", {"TableName": "orders", "Key": dict(KEY)})
    assert [armed.fired for armed in orders.faults] == [1] * 4
