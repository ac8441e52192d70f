"""An engine commits the batches of another store, while readers read; then it accepts writes again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hashrange.storage.api import Reader, Transaction
from hashrange.storage.capabilities import Following
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.embedded.batches import keys_under
from hashrange.storage.embedded.keys import CLEARING
from hashrange.storage.failures import CommitFailed, StoreClosed
from hashrange_engine_tests import faults

P = b"partition"
SPACES = range(20)


class Told:
    """A follower that keeps what it is told."""

    def __init__(self) -> None:
        self.batches: list[Mapping[bytes, bytes | None]] = []

    def committed(self, batch: int, records: Mapping[bytes, bytes | None], bytes_: int) -> str | None:
        self.batches.append(records)
        return None

    def refusing(self) -> str | None:
        return None

    def taken(self) -> list[Mapping[bytes, bytes | None]]:
        taken, self.batches = self.batches, []
        return taken


class Pair:
    """A store, and one that follows it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.first = EmbeddedEngine(folder / "first", logged_bytes_max=5_000)
        self.told = Told()
        self.first.follow(self.told)
        self.first.checkpoint(str(folder / "second"))
        self.open()

    def open(self) -> bytes | None:
        self.second = EmbeddedEngine(self.folder / "second", logged_bytes_max=5_000)
        _, note = self.second.stand_by(lambda: "ask the first one")
        return note

    def put(self, sort: bytes, value: bytes = b"", space: int = 5) -> None:
        def body(txn: Transaction) -> None:
            txn.put(space, P, sort, value)
            txn.count(space, 1, len(value))
            txn.append(space + 1, P, bytes(8))
            txn.keep(space + 2, P, b"", b"kept", 1_000)

        self.first.write(body)

    def pass_on(self, note: bytes = b"note") -> None:
        if batches := self.told.taken():
            self.second.apply(batches, note)

    def assert_equal(self) -> None:
        assert self.second.read(content) == self.first.read(content)


def content(reader: Reader) -> list[Any]:
    found: list[Any] = []
    for space in SPACES:
        found += [list(reader.scan_space(space)), reader.totals(space)]
    return found


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(tmp_path)
    yield pair
    pair.first.close()
    pair.second.close()


def notes(engine: EmbeddedEngine) -> list[int]:
    """The spaces that have a note, after a step of the upkeep."""
    engine.upkeep()
    engine._store.upkeep.wait()
    return [int.from_bytes(key[-4:]) for key in keys_under(engine._store.db, CLEARING)]


def settled(engine: EmbeddedEngine) -> None:
    while engine.refusing():
        continue


def test_batches_are_applied_as_one_and_readers_keep_their_moment(pair: Pair) -> None:
    assert isinstance(pair.second, Following)
    pair.put(b"a", b"1")
    pair.pass_on()
    pair.put(b"b", b"2" * 10_000)
    pair.put(b"a", b"3")
    pair.first.write(lambda txn: txn.delete(5, P, b"b"))
    pair.put(b"c", b"4")

    def read(reader: Reader) -> list[Any]:
        scan = reader.scan(5, P)
        first = next(scan)
        pair.pass_on()
        return [first, *scan, reader.get(5, P, b"c")]

    assert pair.second.read(read) == [(b"a", b"1"), None]
    pair.assert_equal()


def test_bodies_that_write_are_refused(pair: Pair) -> None:
    outcomes: list[Any] = []
    with pytest.raises(CommitFailed, match=r"^ask the first one$"):
        pair.second.write(lambda txn: txn.put(5, P, b"a", b""))
    pair.second.submit(lambda txn: None, lambda result, error: outcomes.append(error))
    assert [str(error) for error in outcomes] == ["ask the first one"]
    assert pair.second.refusing() is None


def test_after_a_takeover_numbers_stamps_and_totals_go_on(pair: Pair) -> None:
    for number in range(3):
        pair.put(bytes([number]), b"x")
    pair.pass_on()
    position = pair.second.take_over()
    pair.first.close()
    pair.first = pair.second
    pair.told = Told()
    assert pair.second.follow(pair.told) == position
    pair.put(b"later", b"x")
    found = pair.second.read(content)
    logged = [int.from_bytes(sort) for _, sort, _ in found[2 * 6]]
    assert logged == sorted(set(logged))
    assert len(logged) == 4
    stamps = [int.from_bytes(sort) for _, sort, _ in found[2 * 7]]
    assert stamps == [1_000, 1_001, 1_002, 1_003]
    assert found[2 * 5 + 1] == (4, 4)
    (records,) = pair.told.batches
    assert len(records) > 3


def test_deleted_spaces_are_dropped_by_each_store_itself(pair: Pair) -> None:
    pair.put(b"a", b"1", space=9)
    pair.put(b"b", b"2")
    pair.pass_on()
    pair.first.write(lambda txn: txn.delete_space(9))
    while notes(pair.first):
        pair.put(b"c")
    # The note has come and gone in one batch: the records are dropped nevertheless.
    pair.pass_on()
    pair.assert_equal()
    assert notes(pair.second) == [9]
    while notes(pair.second):
        pair.put(b"c")
        pair.pass_on()
    assert keys_under(pair.second._store.db, (9).to_bytes(4)) == []
    pair.assert_equal()


def test_the_note_tells_where_the_store_is_after_a_kill(pair: Pair) -> None:
    pair.put(b"a")
    pair.pass_on(b"one")
    pair.put(b"b")
    pair.pass_on(b"two")
    pair.second.close()
    assert pair.open() == b"two"
    pair.assert_equal()


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_batch_that_fails_is_applied_again(pair: Pair, moment: Any) -> None:
    with faults.failing(pair.first, moment, commits_max=1), pytest.raises(CommitFailed):
        pair.put(b"failed")
    settled(pair.first)
    pair.put(b"a", b"1")  # (its number is two above the one before it)
    batches = pair.told.taken()
    for _ in range(2):
        with faults.failing(pair.second, moment, commits_max=1), pytest.raises(CommitFailed):
            pair.second.apply(batches, b"note")
        settled(pair.second)
        assert pair.second.read(lambda reader: reader.get(5, P, b"a")) is None
    pair.second.apply(batches, b"note")
    pair.assert_equal()


def test_a_checkpoint_of_a_store_that_stands_by(pair: Pair, tmp_path: Path) -> None:
    pair.put(b"a", b"1")
    pair.pass_on()
    pair.second.checkpoint(str(tmp_path / "third"))
    third = EmbeddedEngine(tmp_path / "third")
    assert third.read(content) == pair.first.read(content)
    third.close()


def test_a_closed_store_takes_no_batch(pair: Pair) -> None:
    pair.put(b"a")
    pair.second.close()
    for use in (pair.pass_on, pair.second.take_over, lambda: pair.second.stand_by(lambda: "")):
        with pytest.raises(StoreClosed):
            use()
