"""An engine tells a follower its committed batches, from which a directory is made again."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hashrange.storage.api import Reader, Transaction
from hashrange.storage.capabilities import Followed
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.embedded.files.mark import read_mark
from hashrange.storage.embedded.keys import BATCH_KEY, unpack_batch
from hashrange.storage.embedded.offline.replay import Replay
from hashrange.storage.failures import CommitFailed, CommitUnknown, StorageError, UnfinishedCopy
from hashrange_engine_tests import faults

P = b"partition"


class Told:
    """A follower that keeps what it is told."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, Mapping[bytes, bytes | None]]] = []
        self.cause: str | None = None
        self.error: Exception | None = None

    def committed(self, batch: int, records: Mapping[bytes, bytes | None], bytes_: int) -> str | None:
        if self.error is not None:
            raise self.error
        self.batches.append((batch, records))
        return self.cause

    def refusing(self) -> str | None:
        return self.cause


def put(engine: EmbeddedEngine, sort: bytes, value: bytes, space: int = 5) -> None:
    def body(txn: Transaction) -> None:
        txn.put(space, P, sort, value)
        txn.count(space, 1, len(value))
        txn.append(space + 1, P, value[:9])

    engine.write(body)


def content(reader: Reader) -> list[Any]:
    found: list[Any] = []
    for space in range(1, 20):
        found += [list(reader.scan_space(space)), reader.totals(space)]
    return found


def settled(engine: EmbeddedEngine) -> None:
    while engine.refusing():
        pass


def test_a_directory_is_made_of_a_checkpoint_and_batches(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path / "data", logged_bytes_max=5_000)
    assert isinstance(engine, Followed)
    put(engine, b"before", b"1")
    put(engine, b"cleared", b"x", space=9)
    told = Told()
    position = engine.follow(told)
    put(engine, b"between", b"2")
    engine.checkpoint(str(tmp_path / "checkpoint"))
    at = read_mark(tmp_path / "checkpoint")
    assert at is not None
    assert (at.store_id, at.batch) == (position.store_id, position.batch + 1)
    put(engine, b"large", b"3" * 10_000)
    engine.write(lambda txn: txn.delete_space(9))
    engine.write(lambda txn: txn.delete(5, P, b"before"))
    engine.upkeep()
    put(engine, b"last", b"4")
    wanted = engine.read(content)
    assert [number for number, _ in told.batches] == list(range(position.batch + 1, at.batch + 5))
    engine.follow(None)
    put(engine, b"untold", b"5")
    assert len(told.batches) == 5

    replay = Replay(tmp_path / "restored", "a test")
    for path in (tmp_path / "checkpoint" / "rocks").iterdir():
        shutil.copy(path, replay.rocks)
    assert replay.open() == at.batch
    for number, records in told.batches:
        if number > at.batch:
            replay.apply(records)
    with pytest.raises(StorageError, match="in use"):
        EmbeddedEngine(tmp_path / "restored")
    assert replay.finish() == told.batches[-1][0]
    replay.close()
    restored = EmbeddedEngine(tmp_path / "restored")
    assert restored.read(content) == wanted
    assert restored.follow(None) == (position.store_id, told.batches[-1][0])
    put(restored, b"goes on", b"6")
    restored.close()
    engine.close()


def test_an_unfinished_directory_is_no_store_and_is_made_anew(tmp_path: Path) -> None:
    Replay(tmp_path / "restored", "a test").close()
    with pytest.raises(UnfinishedCopy):
        EmbeddedEngine(tmp_path / "restored")
    (tmp_path / "restored" / "rocks" / "rest").write_text("of the last time")
    replay = Replay(tmp_path / "restored", "a test")
    assert list(replay.rocks.iterdir()) == []
    replay.close()
    EmbeddedEngine(tmp_path / "data").close()
    with pytest.raises(StorageError, match="holds a store already"):
        Replay(tmp_path / "data", "a test")


@pytest.mark.parametrize("raises", [False, True])
def test_a_batch_that_is_held_back_is_unknown_and_writes_are_refused(tmp_path: Path, raises: bool) -> None:
    engine = EmbeddedEngine(tmp_path / "data")
    told = Told()
    engine.follow(told)
    told.cause = "the lease ran out"
    told.error = ValueError("a fault") if raises else None
    with pytest.raises(CommitUnknown, match="a fault" if raises else "the lease ran out"):
        put(engine, b"a", b"1")
    assert engine.refusing()
    with pytest.raises(CommitFailed, match=r"the lease ran out|a fault"):
        put(engine, b"b", b"2")
    assert engine.read(lambda reader: reader.get(5, P, b"a")) == b"1"
    told.cause = told.error = None
    settled(engine)
    put(engine, b"c", b"3")
    engine.close()
    engine = EmbeddedEngine(tmp_path / "data")
    found = engine.read(lambda reader: [sort for sort, _ in reader.scan(5, P)])
    assert found == [b"a", b"c"]
    engine.close()


def test_an_engine_whose_writes_are_refused_can_be_closed(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path / "data")
    told = Told()
    engine.follow(told)
    told.cause = "another server has taken over"
    with pytest.raises(CommitUnknown):
        put(engine, b"a", b"1")
    engine.close()


def test_failed_batches_are_not_told(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path / "data")
    told = Told()
    engine.follow(told)
    for moment in ("before", "after"):
        with faults.failing(engine, moment), pytest.raises(CommitFailed):
            put(engine, b"failed", b"1")
        settled(engine)
        put(engine, b"stands", b"2")
    numbers = [number for number, _ in told.batches]
    assert len(numbers) == 2
    for number, records in told.batches:
        note = records[BATCH_KEY]
        assert note is not None
        assert unpack_batch(note)[0] == number
        assert b"failed" not in b"".join(records)
    engine.close()
