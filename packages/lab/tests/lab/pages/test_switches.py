"""The lab's switches on their page of the console."""

from __future__ import annotations

from consoles import Browser, parsed
from hashrange.database import Database


def test_throttling_and_reads_that_are_behind_are_switched(orders: Database, browser: Browser) -> None:
    def said() -> str:
        return " ".join(parsed(browser.ask("/console/lab")[1]).text.split())

    assert "Throttling off" in said()
    assert "No recording is running" in said()
    assert browser.post("/console/lab/throttling", {"state": "on"}) == (200, {"href": "/console/lab"})
    assert browser.post("/console/lab/throttling", {"state": "off", "table": "orders"})[0] == 200
    assert "Throttling on" in said()
    assert "orders off" in said()
    assert browser.post("/console/lab/throttling", {"state": "maybe"})[0] == 400
    assert browser.post("/console/lab/eventual", {"seconds": "1.5", "seed": "a"})[0] == 200
    assert "see what was up to 1.5 s ago" in said()
    for wrong in ("soon", "-1"):
        assert browser.post("/console/lab/eventual", {"seconds": wrong})[0] == 400
    assert browser.post("/console/lab/eventual", {})[0] == 200
    assert "see every write" in said()
