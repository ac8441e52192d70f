"""Threads that work beside the event loop let it run, and the event loop gives way to commits."""

from __future__ import annotations

import contextlib
from pathlib import Path
from time import perf_counter

import pytest

from hashrange import pace
from hashrange.pace import turns
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.failures import CommitFailed

P = b"p" * 24


@pytest.mark.skipif(not turns.__file__.endswith(".py"), reason="compiled code calls no other sleep")
def test_a_worker_sleeps_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it would take the interpreter's lock back before the event loop is awake."""
    sleeps: list[float] = []
    monkeypatch.setattr(turns, "sleep", sleeps.append)
    turn = pace.turn()
    turn.task = pace.Task()
    try:
        for expected in (1, 1, 2):
            turns._watch.due = 0.0 if len(sleeps) < expected else perf_counter() + 3600.0
            pace.point()
            assert len(sleeps) == expected
    finally:
        turn.task, turns._watch.due = None, 0.0
    pace.point()
    assert len(sleeps) == 2
    assert min(sleeps) > 0


@pytest.mark.skipif(not turns.__file__.endswith(".py"), reason="compiled code calls no other clock")
def test_workers_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop waits for the interpreter's lock behind one worker, however many there are."""
    now = 1_000.0
    ident = 1
    ran: list[int] = []

    def pass_time(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(turns, "sleep", pass_time)
    monkeypatch.setattr(turns, "perf_counter", lambda: now)
    monkeypatch.setattr(turns, "get_ident", lambda: ident)
    tasks = {number: pace.Turn() for number in (1, 2)}
    for turn in tasks.values():
        turn.task = pace.Task()
    monkeypatch.setattr(turns, "_turns", tasks)
    turns._watch.slice_until = 0.0
    try:
        for _ in range(100):
            for ident in tasks:
                turns._watch.due = 0.0
                began = now
                pace.point()
                waited = now - began
                assert waited <= 0.005  # a slice, and a moment for the event loop
                if waited > 0.001:
                    ran.append(ident)
    finally:
        turns._watch.due = turns._watch.slice_until = 0.0
    assert ran.count(1) >= 40
    assert ran.count(2) >= 40


def test_the_event_loop_gives_way_to_a_commit_that_takes_long() -> None:
    """Otherwise the thread that commits hardly gets the interpreter's lock while the loop is never idle."""
    pace.end_commit()
    now = perf_counter() + 3600.0
    pace.give_way(now)
    assert turns._watch.way_due < now  # no commit is under way
    pace.begin_commit()
    began = turns._watch.commit_since
    pace.give_way(began + 0.001)
    assert turns._watch.way_due < now
    try:
        pace.give_way(now)
        due = turns._watch.way_due
        assert due > now
        pace.give_way((now + due) / 2)  # not at every request
        assert turns._watch.way_due == due
        pace.give_way(due)
        assert turns._watch.way_due > due
        pace.end_commit()
        pace.give_way(now * 2)
        assert turns._watch.way_due < now * 2
    finally:
        pace.end_commit()
        turns._watch.way_due = 0.0


@pytest.mark.parametrize("fails", [False, True])
def test_a_commit_says_that_it_is_under_way_until_it_ends(fails: bool, tmp_path: Path) -> None:
    seen: list[bool] = []

    def fault(moment: str) -> None:
        seen.append(turns._watch.commit_since > 0)
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
    assert turns._watch.commit_since == 0.0
