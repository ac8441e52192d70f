"""The contract's checks of the stamps of bodies, and of the records stored under stamps. See the package."""

from __future__ import annotations

from functools import partial
from typing import Any

from hashrange.storage.api import STAMP_BYTES, Engine, Transaction
from hashrange.storage.failures import CommitFailed
from hashrange_engine_tests import faults
from hashrange_engine_tests.records import Opener, P, Q, Stop, compete, expect, opened, rows
from hashrange_engine_tests.transactions import MOMENTS, writable


def keep(txn: Transaction, value: bytes, moment: int, space: int = 1) -> None:
    """Keep a value at one place, under a prefix that ends before the stamp."""
    txn.keep(space, P, b"k\x00\x01", value, moment)


def kept(engine: Engine, space: int = 1) -> list[tuple[int, bytes]]:
    """The stamps and values at that place, in the order of the stamps."""
    stored = [(sort, value) for partition, sort, value in rows(engine, space) if partition == P]
    assert all(sort[:3] == b"k\x00\x01" and len(sort) == 3 + STAMP_BYTES for sort, _ in stored)
    return [(int.from_bytes(sort[3:], "big"), value) for sort, value in stored]


def check_stamps_of_bodies_increase(opener: Opener) -> None:
    """A body gets the moment that it gives, or a number above all stamps before, in whatever space."""
    with opened(opener) as engine:
        engine.write(lambda txn: keep(txn, b"a", 1_000))
        engine.write(lambda txn: keep(txn, b"b", 2_000))
        engine.write(lambda txn: keep(txn, b"c", 500))
        engine.write(lambda txn: keep(txn, b"d", 2_001, space=2))
        engine.write(lambda txn: txn.put(1, Q, b"", b"a body without a stamp"))
        engine.write(lambda txn: keep(txn, b"e", 2**63))
        stamps = [stamp for stamp, _ in kept(engine)]
        assert [value for _, value in kept(engine)] == [b"a", b"b", b"c", b"e"]
        [(other, _)] = kept(engine, 2)
        assert stamps[:2] == [1_000, 2_000]
        assert 2_000 < stamps[2] < other < stamps[3]
        assert stamps[3] == 2**63
        # `stamp` alone counts as well: no later body gets a stamp below one that was returned.
        asked = engine.write(lambda txn: txn.stamp(2**63 + 7))
        assert asked == 2**63 + 7
        engine.write(lambda txn: keep(txn, b"f", 5))
        assert kept(engine)[-1][0] > asked


def check_a_body_has_one_stamp(opener: Opener) -> None:
    """All values that a body keeps have one stamp, and the first value at an address stays."""
    with opened(opener) as engine:

        def body(txn: Transaction) -> int:
            txn.keep(1, P, b"k\x00\x01", b"first", 77)
            txn.keep(1, P, b"k\x00\x01", b"second", 99)
            txn.keep(1, Q, b"k\x00\x01", b"", 99)
            txn.keep(2, P, b"k\x00\x01", b"elsewhere", 5)
            stamp = txn.stamp(1_000)
            assert stamp == txn.stamp(0)
            assert [sort for sort, _ in txn.scan(1, P)][-1] == b"k\x00\x01" + stamp.to_bytes(8, "big")
            return stamp

        stamp = engine.write(body)
        assert stamp == 77
        assert kept(engine) == [(stamp, b"first")]
        assert kept(engine, 2) == [(stamp, b"elsewhere")]
        later = engine.write(body)
        assert later > stamp
        assert kept(engine) == [(stamp, b"first"), (later, b"first")]


def check_a_failing_body_keeps_nothing(opener: Opener) -> None:
    with opened(opener) as engine:

        def failing(txn: Transaction) -> None:
            keep(txn, b"never", 900)
            raise Stop

        engine.write(lambda txn: keep(txn, b"a", 5))
        expect(Stop, lambda: engine.write(failing))
        for moment in MOMENTS:
            with faults.failing(engine, moment):
                expect(CommitFailed, lambda: engine.write(lambda txn: keep(txn, b"never", 950)))
            writable(engine)
        engine.write(lambda txn: keep(txn, b"b", 4))
        assert [value for _, value in kept(engine)] == [b"a", b"b"]
        (first, _), (second, _) = kept(engine)
        assert first == 5 < second


def check_stamps_of_many_threads_increase(opener: Opener) -> None:
    """Threads and submitters read a counter and keep it: the stamps are in the order of the counts."""
    with opened(opener) as engine:

        def count(txn: Transaction, moment: int) -> None:
            number = int(txn.get(3, P, b"n") or b"0") + 1
            txn.put(3, P, b"n", b"%d" % number)
            keep(txn, b"%d" % number, moment)

        def work(seed: int) -> None:
            for n in range(50):
                engine.write(partial(count, moment=(seed * 37 + n * 61) % 1_000))

        submitted = [partial(count, moment=n * 53 % 1_000) for n in range(50)]
        compete(engine, [partial(work, seed) for seed in range(3)], submitted)
        stored = kept(engine)
        assert [int(value) for _, value in stored] == list(range(1, 201))
        assert len({stamp for stamp, _ in stored}) == 200


def check_stamps_of_bodies_survive_closing(opener: Opener) -> None:
    before: list[Any] = []
    for moment in (5, 3, 9, 7):
        with opened(opener) as engine:
            assert kept(engine) == before
            engine.write(lambda txn, moment=moment: keep(txn, b"%d" % moment, moment))
            before = kept(engine)
    assert [value for _, value in before] == [b"5", b"3", b"9", b"7"]
    assert before[0][0] == 5
    assert before[2][0] == 9
    with opened(opener) as engine:
        asked = engine.write(lambda txn: txn.stamp(50))
        engine.write(lambda txn: txn.put(1, Q, b"", b""))
    with opened(opener) as engine:
        engine.write(lambda txn: keep(txn, b"later", 10))
        assert kept(engine)[-1][0] > asked == 50
