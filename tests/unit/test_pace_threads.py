"""Threads that work beside the event loop: they hand the baton on, wait for its rounds, and clean up."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from time import perf_counter
from typing import Any

import pytest

from hashrange import json_pieces, pace
from hashrange.storage import drafts
from hashrange.storage.api import CommitFailed, Engine, Transaction
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.data import records
from hashrange.workers import Workers

P = b"p" * 24


@pytest.fixture(params=["memory", "embedded"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    engine: Engine = MemoryEngine() if request.param == "memory" else EmbeddedEngine(tmp_path / "data")
    yield engine
    engine.close()


def look() -> None:
    """Look at the turn now, however short ago it was looked at."""
    pace._watch.due = 0.0
    pace.point()


def at_once(*bodies: Callable[[], None]) -> None:
    """Do pieces of work on worker threads, all at once, and wait for their ends."""
    workers, gates = Workers(), [Event() for _ in bodies]
    failed: list[BaseException] = []

    def start(body: Callable[[], None], gate: Event) -> None:
        def work() -> None:
            try:
                body()
            except BaseException as error:
                failed.append(error)
            finally:
                gate.set()

        workers.start(work)

    for body, gate in zip(bodies, gates, strict=True):
        start(body, gate)
    for gate in gates:
        assert gate.wait(30)
    workers.close()
    assert not failed
    assert not pace._baton.lock.locked()
    assert not pace._baton.waiting


def look_until(is_over: Callable[[], bool]) -> None:
    """Work that comes to points until it is over."""
    while not is_over():
        look()


def test_workers_hand_the_baton_to_each_other() -> None:
    held: list[str] = []

    def work(name: str) -> None:
        def is_over() -> bool:
            if pace.turn().has_baton and held[-1:] != [name]:
                held.append(name)
            return len(held) >= 6

        look_until(is_over)

    at_once(lambda: work("one"), lambda: work("other"))
    assert held[:6] in (["one", "other"] * 3, ["other", "one"] * 3)


def test_a_worker_that_waits_for_another_one_does_not_keep_it_from_running() -> None:
    begun, ended = Event(), Event()

    def first() -> None:
        look_until(lambda: pace.turn().has_baton)
        begun.set()
        assert ended.wait(30)

    def other() -> None:
        assert begun.wait(30)
        look()
        assert not pace.turn().has_baton
        ended.set()

    at_once(first, other)


def test_a_worker_waits_for_a_commit_without_the_baton(engine: Engine) -> None:
    seen: list[bool] = []

    def body(txn: Transaction) -> None:
        look_until(lambda: pace.turn().has_baton)
        txn.put(1, P, b"a", b"x")

    class Watched:
        def __getattr__(self, name: str) -> Any:
            return getattr(engine, name)

        def write(self, body: Callable[[Transaction], Any]) -> Any:
            seen.append(pace.turn().has_baton)
            return engine.write(body)

    watched: Any = Watched()
    at_once(lambda: drafts.write_aside(watched, body))
    assert seen == [False]


def test_no_other_thread_takes_the_baton() -> None:
    look()
    assert not pace.turn().has_baton
    assert not pace._baton.lock.locked()


# -- The event loop's rounds ------------------------------------------------------------------------------


@pytest.mark.skipif(not pace.__file__.endswith(".py"), reason="compiled code calls no other sleep")
def test_workers_wait_for_the_end_of_a_round_of_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 5:
            pace.calm()

    def work() -> None:
        assert pace.hurry()
        assert not pace.hurry()
        pace._watch.hurry_until += 60.0  # the machine may be slow
        look()

    monkeypatch.setattr(pace, "sleep", pause)
    monkeypatch.setattr(pace, "HURRY_SECONDS_MAX", 60.0)
    at_once(work)
    assert len(pauses) == 5


def test_a_round_that_does_not_end_keeps_no_worker_waiting() -> None:
    def work() -> None:
        assert pace.hurry()
        pace._watch.hurry_until += 60.0
        look()
        assert pace.turn().calm_due
        look()

    try:
        at_once(work)
    finally:
        pace.calm()


def test_without_work_aside_the_event_loop_asks_for_nothing() -> None:
    assert not pace.hurry()
    assert not pace._watch.tasks


def test_the_event_loop_gives_way_to_a_commit_that_takes_long() -> None:
    """Otherwise the thread that commits hardly gets the interpreter's lock while the loop is never idle."""
    pace.end_way()
    now = perf_counter() + 3600.0
    pace.give_way(now)
    assert pace._watch.way_due < now  # no commit is due
    pace.ask_for_way()
    began = pace._watch.way_since
    pace.give_way(began + pace.WAY_SECONDS / 2)
    assert pace._watch.way_due < now
    try:
        pace.give_way(now)
        due = pace._watch.way_due
        assert due > now
        pace.give_way((now + due) / 2)  # not at every request
        assert pace._watch.way_due == due
        pace.give_way(due)
        assert pace._watch.way_due > due
        pace.end_way()
        pace.give_way(now * 2)
        assert pace._watch.way_due < now * 2
    finally:
        pace.end_way()
        pace._watch.way_due = 0.0


@pytest.mark.parametrize("fails", [False, True])
def test_a_commit_asks_for_way_until_it_ends(fails: bool, tmp_path: Path) -> None:
    seen: list[bool] = []

    def fault(moment: str) -> None:
        seen.append(pace._watch.way_since > 0)
        if fails:
            raise OSError("no")

    engine = EmbeddedEngine(tmp_path / "data")
    engine.commit_fault = fault
    with pytest.raises(CommitFailed) if fails else contextlib.nullcontext():
        engine.write(lambda txn: txn.put(7, P, b"", b"value"))
    engine.commit_fault = None
    engine.close()
    assert seen
    assert all(seen)
    assert pace._watch.way_since == 0.0


def test_large_items_of_a_write_are_freed_in_pieces_when_it_has_ended() -> None:
    workers = Workers()
    freed: list[bool] = []
    ended = Event()
    record = records.pack({"p": {"S": "x"}, "l": {"L": [{"M": {}}] * 30_000}}, 100_000)

    class Mark:
        def __del__(self) -> None:
            freed.append(held() is None)

    def work() -> None:
        item = records.item_to_change(record)
        item["l"]["L"].append(Mark())
        del item
        assert not freed
        ended.set()

    held = weakref.ref(work)
    workers.start(work)
    del work
    assert ended.wait(30)
    workers.close()
    assert freed == [True]
    records.item_to_change(record)["l"]["L"].append(Mark())
    assert freed == [True, True]  # not on a worker thread


def test_abandoned_work_that_cleans_up_goes_on() -> None:
    workers = Workers()
    began, outcome = Event(), list[str]()

    def work() -> None:
        began.set()
        value = [[1, 2]]
        try:
            while True:
                look()
        except pace.Abandoned:
            pace._watch.due = 0.0
            json_pieces.discard(value)
            assert not value
            outcome.append("cleaned up")
            raise

    task = workers.start(work)
    assert began.wait(30)
    task.abandon()
    workers.close()
    assert outcome == ["cleaned up"]
