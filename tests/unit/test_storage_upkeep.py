"""The tombstones that deletions leave in RocksDB go away, and scans do not walk over them for good."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from hashrange.storage.api import Reader, Transaction
from hashrange.storage.embedded import EmbeddedEngine, disk, keys, upkeep
from hashrange.storage.embedded.batches import keys_under
from hashrange.storage.embedded.keys import CLEARING
from hashrange.storage.failures import CommitFailed, StorageError
from rocks import Skips, counting_skips

pytestmark = pytest.mark.once

SPACE = 70
PARTITION = b"p" * 24
RECORDS = 60_000
BITE = 5_000
VALUE = bytes(range(200))


def place(number: int) -> bytes:
    return number.to_bytes(8)


def put(txn: Transaction, numbers: Iterable[int]) -> None:
    for number in numbers:
        txn.put(SPACE, PARTITION, place(number), VALUE)


def delete(txn: Transaction, numbers: Iterable[int]) -> None:
    for number in numbers:
        txn.delete(SPACE, PARTITION, place(number))


def in_bites(engine: EmbeddedEngine, body: Callable[..., None], numbers: range) -> None:
    for start in range(numbers.start, numbers.stop, BITE):
        engine.write(partial(body, numbers=range(start, min(start + BITE, numbers.stop))))


def first(reader: Reader) -> bytes:
    return next(iter(reader.scan(SPACE, PARTITION)))[0]


@pytest.fixture
def skips(monkeypatch: pytest.MonkeyPatch) -> Skips:
    return counting_skips(monkeypatch)


def test_a_scan_does_not_walk_over_many_deletions_for_good(tmp_path: Path, skips: Skips) -> None:
    engine = EmbeddedEngine(tmp_path / "data")
    in_bites(engine, put, range(RECORDS))
    engine._store.db.flush()
    engine._store.db.compact_range(None, None)
    in_bites(engine, delete, range(RECORDS - 1))
    skips()
    assert engine.read(first) == place(RECORDS - 1)
    assert skips() >= RECORDS  # so it was counted
    engine.upkeep()
    await_background(engine)
    skips()
    assert engine.read(first) == place(RECORDS - 1)
    assert skips() < upkeep.DELETIONS_MAX
    engine.close()


def await_background(engine: EmbeddedEngine) -> None:
    """Wait for the automatic work of RocksDB: a manual compaction of nothing queues behind it."""
    db = engine._store.db
    db.flush(True)
    while any(
        db.property_int_value(f"rocksdb.{name}")
        for name in ("mem-table-flush-pending", "compaction-pending", "num-running-compactions")
    ):
        db.compact_range(b"\xff\xff\xff\xff\xff", b"\xff\xff\xff\xff\xff\xff")


def size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*.sst"))


def noted(engine: EmbeddedEngine) -> int:
    return len(keys_under(engine._store.db, CLEARING))


def test_a_deleted_space_gives_its_room_back(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path / "data")
    in_bites(engine, put, range(RECORDS))
    engine._store.db.flush()
    assert size(tmp_path) > 500_000
    engine.write(lambda txn: txn.delete_space(SPACE))
    engine.upkeep()
    engine._store.upkeep.wait()
    engine.upkeep()  # drops the note
    assert size(tmp_path) < 50_000
    assert noted(engine) == 0
    engine.close()


def test_a_reader_of_a_deleted_space_is_waited_for(tmp_path: Path) -> None:
    """A compaction keeps what a snapshot holds, so it would be in vain while somebody reads."""
    engine = EmbeddedEngine(tmp_path / "data")
    in_bites(engine, put, range(RECORDS))
    engine._store.db.flush()

    def body(reader: Reader) -> bytes:
        found = iter(reader.scan(SPACE, PARTITION))
        next(found)
        engine.write(lambda txn: txn.delete_space(SPACE))
        engine.upkeep()
        assert noted(engine) == 1
        return next(found)[0]

    assert engine.read(body) == place(1)
    engine.upkeep()  # drops the records
    engine.upkeep()  # compacts them, now that the last snapshot that had them is gone
    engine._store.upkeep.wait()
    engine.upkeep()
    assert noted(engine) == 0
    assert size(tmp_path) < 50_000
    engine.close()


def test_a_restart_goes_on_with_what_was_to_be_given_back(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path / "data")
    in_bites(engine, put, range(RECORDS))
    engine._store.db.flush()
    engine.write(lambda txn: txn.delete_space(SPACE))
    engine.close()
    engine = EmbeddedEngine(tmp_path / "data")
    assert noted(engine) == 1
    engine.upkeep()
    engine._store.upkeep.wait()
    engine.upkeep()  # drops the note
    assert noted(engine) == 0
    assert size(tmp_path) < 50_000
    engine.close()


def test_closing_does_not_wait_for_the_end_of_a_compaction(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path / "data")
    in_bites(engine, put, range(RECORDS))
    engine.write(lambda txn: txn.delete_space(SPACE))
    engine.write(lambda txn: txn.put(SPACE + 1, PARTITION, b"", b"kept"))
    engine.upkeep()
    engine.close()
    engine.close()
    engine = EmbeddedEngine(tmp_path / "data")
    assert engine.read(lambda reader: reader.get(SPACE + 1, PARTITION, b"")) == b"kept"
    assert engine.read(lambda reader: next(iter(reader.scan(SPACE, PARTITION)), None)) is None
    engine.close()
    with pytest.raises(Exception, match="closed"):
        engine.read(first)
    engine.upkeep()


def test_the_repair_of_a_store_does_not_wait_for_the_end_of_a_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller hears after the first try of the repair, so it would hear that the outcome is not known."""
    engine = EmbeddedEngine(tmp_path / "data")
    keeper, begun = engine._store.upkeep, Event()

    def space_range(space: int) -> tuple[bytes, bytes]:
        begun.set()
        while not keeper._stopped:
            Event().wait(0.001)
        return keys.space_range(space)

    monkeypatch.setattr(upkeep, "space_range", space_range)
    in_bites(engine, put, range(BITE))
    engine.write(lambda txn: txn.delete_space(SPACE))
    engine.write(lambda txn: txn.put(SPACE + 1, PARTITION, b"", b"kept"))
    engine.upkeep()
    assert begun.wait(30)

    def fail(moment: str) -> None:
        if moment == "after":
            raise OSError("the disk is gone")

    engine.commit_fault = fail
    with pytest.raises(CommitFailed, match="the disk is gone"):
        engine.write(lambda txn: txn.put(SPACE + 1, PARTITION, b"", b"lost"))
    engine.commit_fault = None
    assert engine.read(lambda reader: reader.get(SPACE + 1, PARTITION, b"")) == b"kept"
    engine.close()


class ClosesBadly:
    """A RocksDB that reports an error when it is closed."""

    def __init__(self, db: Any) -> None:
        self._db = db

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def close(self) -> None:
        self._db.close()
        raise OSError("the disk is gone")


def test_an_error_of_closing_is_told_unless_a_compaction_was_cut_short(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path / "data")
    engine._store.db = ClosesBadly(engine._store.db)  # type: ignore[assignment]
    with pytest.raises(StorageError, match="did not close well: the disk is gone"):
        engine.close()


class Full(dict[bytes, bytes | None]):
    """Has no room for more."""

    def update(self, *_: object) -> None:
        raise MemoryError("no room")


def test_an_error_while_a_batch_is_shown_stops_no_later_write(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = EmbeddedEngine(tmp_path / "data")
    engine.write(partial(put, numbers=[1]))
    engine._commits._recent.young = Full()
    engine.write(partial(put, numbers=[2]))
    assert "not kept in memory" in caplog.text
    engine.write(partial(put, numbers=[3]))
    numbers = engine.read(lambda reader: [sort for sort, _ in reader.scan(SPACE, PARTITION)])
    assert numbers == [place(1), place(2), place(3)]
    engine.close()


def put_one(txn: Transaction, space: int) -> None:
    txn.put(space, PARTITION, b"", VALUE)


def drop(txn: Transaction, space: int) -> None:
    txn.delete_space(space)


def test_the_cache_holds_no_blocks_of_deleted_files(tmp_path: Path) -> None:
    """Each deleted space has RocksDB write the other records into new files, and the cache would keep the
    blocks of all files before."""
    engine = EmbeddedEngine(tmp_path / "data")
    in_bites(engine, put, range(5_000))

    def used_bytes(spaces: range) -> int:
        for space in spaces:
            engine.write(partial(put_one, space=space))
            engine.write(partial(drop, space=space))
            engine._store.db.compact_range(None, None)
            assert len(engine.read(lambda reader: list(reader.scan(SPACE, PARTITION)))) == 5_000
        return engine._store.db.property_int_value("rocksdb.block-cache-usage") or 0

    few = used_bytes(range(100, 103))
    assert used_bytes(range(103, 115)) <= few * 1.5
    engine.close()


def test_a_rocksdb_without_the_setting_of_the_cache_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody would know why the process grows; the store opens all the same."""
    EmbeddedEngine(tmp_path / "data").close()
    assert not caplog.records
    monkeypatch.setattr(disk, "_UNCACHE_AGGRESSIVENESS", "not a number")
    engine = EmbeddedEngine(tmp_path / "data")
    engine.write(partial(put_one, space=SPACE))
    assert engine.read(first) == b""
    assert "the cache keeps blocks of deleted files" in caplog.text
    engine.close()
