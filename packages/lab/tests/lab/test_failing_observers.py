"""The observers of the lab may fail: the requests go on, and what could not be recorded is counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hashrange.database import Database
from hashrange.prices import published
from hashrange_lab.behaviour.throttling import Throttling
from hashrange_lab.heat import Heat
from hashrange_lab.money import meter
from hashrange_lab.recordings import reader
from hashrange_lab.recordings.recording import Recording, recordings_of
from hashrange_lab.recordings.writer import Writer
from watched import ITEM, expect_no_change, fail

Put = pytest.MonkeyPatch


def _throttling(database: Database, tmp_path: Path, patch: Put) -> None:
    patch.setattr(Throttling, "left", fail)
    database.lab.throttling.set(True)


def _meter(database: Database, tmp_path: Path, patch: Put) -> None:
    patch.setattr(meter.Meter, "_count", fail)
    meter.begin(database, published())


def _heat(database: Database, tmp_path: Path, patch: Put) -> None:
    patch.setattr(Heat, "_count", fail)
    Heat(database, lambda: False).begin()


def _begin_of_a_request(database: Database, tmp_path: Path, patch: Put) -> None:
    patch.setattr(Recording, "begins", fail)
    Recording(database, tmp_path / "load").begin()


def _end_of_a_request(database: Database, tmp_path: Path, patch: Put) -> None:
    patch.setattr(Recording, "_entry", fail)
    Recording(database, tmp_path / "load").begin()


def _places(database: Database, tmp_path: Path, patch: Put) -> None:
    patch.setattr("hashrange.observing.noting.places", fail)
    Recording(database, tmp_path / "load").begin()


OBSERVERS: list[Callable[[Database, Path, Put], None]] = [
    _throttling, _meter, _heat, _begin_of_a_request, _end_of_a_request, _places,
]  # fmt: skip


@pytest.mark.parametrize("begin", OBSERVERS)
def test_an_observer_that_fails_changes_no_answer_and_is_told_once(
    database: Database,
    client: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    begin: Callable[[Database, Path, Put], None],
) -> None:
    begin(database, tmp_path, monkeypatch)
    expect_no_change(database, client, caplog)
    recording = recordings_of(database).last
    if recording is not None:
        recording.end()
        with reader.open(recording.path) as opened:
            recorded = list(opened.entries())
            assert len(recorded) + opened.dropped == 9
            assert opened.end is not None


def test_a_request_that_cannot_be_written_is_missing_and_counted(
    database: Database, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Recording(database, tmp_path / "load") as recording:
        client.get_item(TableName="orders", Key=ITEM)
        with monkeypatch.context() as patched:
            assert recording.writer is not None
            patched.setattr(Writer, "_add_request", fail)
            client.get_item(TableName="orders", Key=ITEM)
            recording.writer.close()
    with reader.open(tmp_path / "load") as opened:
        recorded = list(opened.entries())
        assert (len(recorded) + opened.dropped, opened.dropped >= 1) == (2, True)
        assert opened.end is not None
        assert opened.end.why == "stopped"
