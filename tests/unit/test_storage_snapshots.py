"""Snapshots of the memory engine: whatever changed since, `restore` brings back what was there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashrange.database import Database
from hashrange.storage.api import Reader, Totals, Transaction
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.failures import StorageError, Unsupported
from hashrange.storage.memory import MemoryEngine

SPACES = (64, 65)
PARTITIONS = (b"p" * 24, b"q" * 24)
SORTS = [bytes([n]) for n in range(6)]

addresses = st.tuples(st.sampled_from(SPACES), st.sampled_from(PARTITIONS), st.sampled_from(SORTS))
steps = st.one_of(
    st.tuples(st.just("put"), addresses, st.binary(max_size=3)),
    st.tuples(st.just("delete"), addresses),
    st.tuples(st.just("delete_space"), st.sampled_from(SPACES)),
    st.tuples(st.just("append"), st.sampled_from(SPACES), st.sampled_from(PARTITIONS)),
    st.tuples(st.just("keep"), addresses),
    st.tuples(st.just("fail"), addresses),
    st.tuples(st.just("snapshot")),
    st.tuples(st.just("restore"), st.integers(0, 3)),
)


def everything(engine: MemoryEngine) -> Any:
    """All that a body can read: forward, backward, by key, by totals."""

    def read(reader: Reader) -> Any:
        found: list[Any] = []
        for space in SPACES:
            found.append(list(reader.scan_space(space)))
            found.append(reader.totals(space))
            for partition in PARTITIONS:
                forward = list(reader.scan(space, partition))
                backward = list(reader.scan(space, partition, reverse=True))
                assert backward == forward[::-1]
                part = list(reader.scan(space, partition, SORTS[1], SORTS[4]))
                assert part == [one for one in forward if SORTS[1] <= one[0] < SORTS[4]]
                got = reader.get_many([(space, partition, sort) for sort in SORTS])
                assert got == [dict(forward).get(sort) for sort in SORTS]
                found.append(forward)
        return found

    return engine.read(read)


def change(step: tuple[Any, ...]) -> Callable[[Transaction], None]:
    def body(txn: Transaction) -> None:
        match step:
            case "put", (space, partition, sort), value:
                txn.put(space, partition, sort, value)
                txn.count(space, 1, len(value))
            case "delete", (space, partition, sort):
                txn.delete(space, partition, sort)
            case "delete_space", space:
                txn.delete_space(space)
            case "append", space, partition:
                txn.append(space, partition, b"\xff" * 8, 0)
            case "keep", (space, partition, sort):
                txn.keep(space, partition, sort, b"kept", 7)
            case "fail", (space, partition, sort):
                txn.delete(space, partition, sort)
                txn.put(space, partition, b"new", b"")
                raise ValueError("on purpose")

    return body


@given(st.lists(steps, max_size=40))
def test_restore_brings_back_what_was_there(given_steps: list[tuple[Any, ...]]) -> None:
    engine = MemoryEngine()
    taken: list[tuple[Any, Any]] = []
    for step in given_steps:
        if step[0] == "snapshot":
            before = everything(engine)
            taken.append((engine.snapshot(), before))
            assert everything(engine) == before
        elif step[0] == "restore":
            if taken:
                snapshot, before = taken[step[1] % len(taken)]
                engine.restore(snapshot)
                assert everything(engine) == before
        elif step[0] == "fail":
            before = everything(engine)
            with pytest.raises(ValueError, match="on purpose"):
                engine.write(change(step))
            assert everything(engine) == before
        else:
            engine.write(change(step))


def test_a_changed_engine_reads_as_one_that_was_never_snapped() -> None:
    plain, snapped = MemoryEngine(), MemoryEngine()
    for engine in (plain, snapped):
        for n in range(300):
            engine.write(change(("put", (64, PARTITIONS[0], n.to_bytes(2, "big")), b"x")))
    snapped.snapshot()
    for engine in (plain, snapped):
        for n in range(0, 400, 3):
            engine.write(change(("put", (64, PARTITIONS[0], n.to_bytes(2, "big")), b"y")))
        for n in range(0, 400, 5):
            engine.write(change(("delete", (64, PARTITIONS[0], n.to_bytes(2, "big")))))
    assert everything(plain) == everything(snapped)


def test_sequence_numbers_and_totals_come_back() -> None:
    engine = MemoryEngine()
    engine.write(change(("append", 64, PARTITIONS[0])))
    snapshot = engine.snapshot()
    again = []
    for _ in range(2):
        engine.write(change(("append", 64, PARTITIONS[0])))
        engine.write(lambda txn: txn.count(64, 5, 50))
        again.append(everything(engine))
        engine.restore(snapshot)
    assert again[0] == again[1]
    assert engine.read(lambda reader: reader.totals(64)) == Totals(0, 0)


def test_a_restore_frees_no_record_and_the_writes_after_it_free_what_is_left() -> None:
    engine = MemoryEngine()
    for n in range(100):
        engine.write(change(("put", (64, PARTITIONS[0], bytes([n])), b"x")))
    snapshot, before = engine.snapshot(), everything(engine)
    left = []
    for _ in range(4):
        for n in range(100):
            engine.write(change(("delete", (64, PARTITIONS[0], bytes([n])))))
            engine.write(change(("put", (65, PARTITIONS[0], bytes([n])), b"y")))
        written = len(engine._leavings)
        engine.restore(snapshot)
        left.append((written, len(engine._leavings)))
        assert everything(engine) == before
    assert left == [(0, 200)] * 4
    engine.close()
    assert len(engine._leavings) == 0


def test_a_reader_of_another_thread_keeps_its_moment_over_a_restore() -> None:
    from hashrange import pace
    from hashrange.pace import Task

    engine = MemoryEngine()
    engine.write(change(("put", (64, PARTITIONS[0], b"a"), b"old")))
    snapshot = engine.snapshot()
    engine.write(change(("put", (64, PARTITIONS[0], b"a"), b"new")))

    def read(reader: Reader) -> list[Any]:
        first = reader.get(64, PARTITIONS[0], b"a")
        engine.restore(snapshot)
        engine.write(change(("put", (64, PARTITIONS[0], b"a"), b"newest")))
        return [first, reader.get(64, PARTITIONS[0], b"a"), *reader.scan(64, PARTITIONS[0])]

    turn = pace.turn()
    turn.task = Task()  # as on a worker thread, whose reads hold no lock
    try:
        assert engine.read(read) == [b"new", b"new", (b"a", b"new")]
    finally:
        turn.task = None
    assert engine.read(lambda reader: reader.get(64, PARTITIONS[0], b"a")) == b"newest"


def test_a_snapshot_outlives_its_engine_and_serves_another() -> None:
    first = MemoryEngine()
    first.write(change(("put", (64, PARTITIONS[0], b"a"), b"x")))
    snapshot, before = first.snapshot(), everything(first)
    first.close()
    second = MemoryEngine()
    second.restore(snapshot)
    assert everything(second) == before
    for use in (first.snapshot, lambda: first.restore(snapshot)):
        with pytest.raises(StorageError, match="closed"):
            use()


def test_what_cannot_be_says_what_to_do(tmp_path: Path) -> None:
    with Database.in_memory() as database:
        snapshot = database.snapshot()
    with Database(EmbeddedEngine(tmp_path)) as on_disk:
        for use in (on_disk.snapshot, lambda: on_disk.restore(snapshot)):
            with pytest.raises(Unsupported, match=r"hashrange\.local"):
                use()
