"""Threads that work beside the event loop: they let others run, and give way to commits."""

from __future__ import annotations

import contextlib
from pathlib import Path
from time import perf_counter

import pytest

from hashrange import pace
from hashrange.storage.api import CommitFailed
from hashrange.storage.embedded import EmbeddedEngine

P = b"p" * 24


def look() -> None:
    """Look at the turn now, however short ago it was looked at."""
    pace._watch.due = 0.0
    pace.point()


@pytest.mark.skipif(not pace.__file__.endswith(".py"), reason="compiled code calls no other sleep")
@pytest.mark.parametrize("waited_seconds", [0.0, 0.0003])
def test_a_worker_stays_away_while_others_keep_the_lock(
    waited_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets the lock back late if others keep it."""
    now, pauses = 1.0, list[float]()

    def pause(seconds: float) -> None:
        nonlocal now
        pauses.append(seconds)
        now += seconds or waited_seconds

    monkeypatch.setattr(pace, "sleep", pause)
    monkeypatch.setattr(pace, "perf_counter", lambda: now)
    pace._let_others_run()
    assert now - 1.0 <= pace.YIELD_SECONDS_MAX + 0.001
    if waited_seconds:
        assert now - 1.0 >= pace.YIELD_SECONDS_MAX
        assert pauses.count(0) == len(pauses) // 2 + 1
    else:
        assert pauses == [0]


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
