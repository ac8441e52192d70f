"""The lab's switches on their page of the console."""

from __future__ import annotations

from pathlib import Path

from consoles import Browser, parsed
from hashrange.database import Database
from hashrange_lab.recordings.recording import recordings_of


def test_throttling_and_reads_that_are_behind_are_switched(orders: Database, browser: Browser) -> None:
    def said() -> str:
        return " ".join(parsed(browser.ask("/console/lab")[1]).text.split())

    assert "Throttling off" in said()
    assert "start the server with --record-dir" in said()
    assert browser.post("/console/lab/throttling", {"state": "on"}) == (200, {"href": "/console/lab"})
    assert browser.post("/console/lab/throttling", {"state": "off", "table": "orders"})[0] == 200
    assert "Throttling on" in said()
    assert "orders off" in said()
    assert browser.post("/console/lab/throttling", {"state": "maybe"})[0] == 400
    browser.post("/console/lab/throttling", {"state": "", "table": "orders"})
    key = {"pk": {"S": "a"}, "sk": {"N": "1"}}
    orders.execute("GetItem", {"TableName": "orders", "Key": key, "ConsistentRead": True})
    assert "Throttled orders–4100 " in said()
    assert browser.post("/console/lab/eventual", {"seconds": "1.5", "seed": "a"})[0] == 200
    assert "see what was up to 1.5 s ago" in said()
    for wrong in ("soon", "-1"):
        assert browser.post("/console/lab/eventual", {"seconds": wrong})[0] == 400
    assert browser.post("/console/lab/eventual", {})[0] == 200
    assert "see every write" in said()


def test_an_administrator_records(orders: Database, browser: Browser, tmp_path: Path) -> None:
    def said() -> str:
        return " ".join(parsed(browser.ask("/console/lab")[1]).text.split())

    begin = "/console/lab/recording"
    assert browser.post(begin, {"name": "monday"})[0] == 400
    recordings_of(orders).directory = str(tmp_path)
    assert browser.post(begin, {"name": "../monday"})[0] == 400
    assert browser.post(begin, {})[0] == 409
    assert browser.post(begin, {"name": "monday", "values": "hashed"}) == (200, {"href": "/console/lab"})
    assert "Recording on" in said()
    assert "values hashed" in said()
    assert browser.post(begin, {"name": "tuesday"})[0] == 409
    assert browser.post(begin, {}) == (200, {"href": "/console/lab"})
    assert [file.name for file in tmp_path.iterdir()] == ["monday"]
    assert "Recording off" in said()
    assert "Begin to record" in browser.ask("/console/lab")[1]
    assert browser.post(begin, {"name": "monday"})[0] == 409
