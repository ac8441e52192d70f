"""The contract's checks of transactions: isolation, order, failure, what survives. See the package."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Event, Thread
from time import sleep
from typing import Any, Final

from hashrange.storage.api import STAMP_BYTES, Engine, Reader, Totals, Transaction
from hashrange.storage.failures import CommitFailed, CommitUnknown, Moment, Stopped
from hashrange_engine_tests import faults
from hashrange_engine_tests.records import (
    AWKWARD,
    Opener,
    Outcomes,
    P,
    Q,
    Stop,
    compete,
    expect,
    get,
    opened,
    put,
    rows,
)

MOMENTS: Final[tuple[Moment, ...]] = ("before", "after")


def writable(engine: Engine) -> None:
    """Wait until an engine whose commit failed takes writes again."""
    while engine.refusing() is not None:
        sleep(0)


def check_reads_are_of_one_moment(opener: Opener) -> None:
    """Two records that are always written together are never seen apart, by gets or by scans."""
    with opened(opener) as engine:
        stop = Event()
        torn: list[Any] = []

        def look(reader: Reader) -> Any:
            first = reader.get(1, P, b"a")
            scanned = dict(reader.scan(1, P))
            backward = dict(reader.scan(1, P, reverse=True))
            spaced = [value for _, _, value in reader.scan_space(1)]
            values = {first, reader.get(1, Q, b"z"), *scanned.values(), *backward.values(), *spaced}
            return values if len(values) > 1 else None

        def watch() -> None:
            while not stop.is_set():
                seen = engine.read(look)
                if seen:
                    torn.append(seen)

        def step(n: int) -> Callable[[Transaction], None]:
            def body(txn: Transaction) -> None:
                value = b"%d" % n
                txn.put(1, P, b"a", value)
                txn.put(1, P, b"b", value)
                txn.put(1, Q, b"z", value)
                # A record that comes and goes; scans must not see it appear without the other writes.
                (txn.put if n % 2 else txn.delete)(1, P, b"c", *((value,) if n % 2 else ()))

            return body

        engine.write(step(0))
        threads = [Thread(target=watch) for _ in range(2)]
        for thread in threads:
            thread.start()
        for n in range(1, 60):
            engine.write(step(n))
        outcomes = Outcomes(240)
        for n in range(60, 300):
            engine.submit(step(n), outcomes)
        outcomes.wait()
        stop.set()
        for thread in threads:
            thread.join()
        assert torn == []


def check_writes_are_serializable(opener: Opener) -> None:
    """Threads and submitters add to one counter and move amounts between others: exact in the end."""
    with opened(opener) as engine:

        def add(txn: Transaction) -> int:
            value = int(txn.get(1, P, b"n") or b"0") + 1
            txn.put(1, P, b"n", b"%d" % value)
            txn.count(1, 1, 1)
            return value

        def move(source: int, target: int) -> Callable[[Transaction], None]:
            def body(txn: Transaction) -> None:
                left = int(txn.get(2, P, b"%d" % source) or b"0")
                right = int(txn.get(2, P, b"%d" % target) or b"0")
                if source == target:
                    raise Stop
                txn.put(2, P, b"%d" % source, b"%d" % (left - 1))
                txn.put(2, P, b"%d" % target, b"%d" % (right + 1))

            return body

        seen: list[int] = []

        def work(seed: int) -> None:
            for n in range(60):
                seen.append(engine.write(add))
                try:
                    engine.write(move((seed + n) % 4, n * n % 5 % 4))
                except Stop:
                    continue

        outcomes = compete(engine, [partial(work, seed) for seed in range(4)], [add] * 400)
        assert sorted(seen + outcomes.results) == list(range(1, 641))
        assert get(engine, 1, P, b"n") == b"640"
        assert engine.read(lambda reader: reader.totals(1)) == Totals(640, 640)
        assert sum(int(value) for _, _, value in rows(engine, 2)) == 0


def check_a_failed_commit_shows_nothing(opener: Opener) -> None:
    with opened(opener) as engine:

        def start(txn: Transaction) -> None:
            txn.put(1, P, b"kept", b"before")
            txn.put(1, P, b"deleted", b"before")
            txn.put(2, P, b"", b"before")
            txn.append(3, P, b"before")
            txn.count(1, 2, 2)

        def change(txn: Transaction) -> None:
            txn.put(1, P, b"kept", b"after")
            txn.put(1, P, b"new", b"after")
            txn.delete(1, P, b"deleted")
            txn.append(3, P, b"after")
            txn.count(1, 9, 9)
            txn.delete_space(2)

        engine.write(start)
        unchanged = [(P, b"deleted", b"before"), (P, b"kept", b"before")]
        for moment in MOMENTS:
            with faults.failing(engine, moment):
                error = expect(CommitFailed, lambda: engine.write(change))
                assert faults.CAUSE in str(error)
                outcomes = Outcomes(2)
                engine.submit(change, outcomes)
                engine.submit(change, outcomes)
                outcomes.wait()
                assert [type(error) for error in outcomes.errors] == [CommitFailed, CommitFailed]
                assert rows(engine, 1) == unchanged
                # A body that writes nothing commits nothing.
                assert engine.write(lambda txn: txn.get(1, P, b"kept")) == b"before"
            writable(engine)

        # The store goes on, from what was there before.
        engine.write(lambda txn: txn.append(3, P, b"later"))
        assert rows(engine, 1) == unchanged
        assert engine.write(lambda txn: list(txn.scan_space(1))) == unchanged
        assert rows(engine, 2) == [(P, b"", b"before")]
        assert engine.read(lambda reader: reader.totals(1)) == Totals(2, 2)
        assert [value for _, _, value in rows(engine, 3)] == [b"before", b"later"]
        engine.write(change)
        assert rows(engine, 1) == [(P, b"kept", b"after"), (P, b"new", b"after")]
        assert rows(engine, 2) == []


def check_an_unknown_commit_is_whole_or_nothing(opener: Opener) -> None:
    """The bodies end with CommitUnknown; all writes of a body are stored or none, and that never changes."""
    with opened(opener) as engine:

        def change(txn: Transaction, name: bytes) -> None:
            count = int(txn.get(1, P, b"count") or b"0") + 1
            txn.put(1, P, b"count", b"%d" % count)
            txn.put(1, Q, name, b"")
            txn.append(2, P, name)
            txn.count(1, 1, 1)

        def stands() -> list[bytes]:
            names = [name for _, name in engine.read(lambda reader: list(reader.scan(2, P)))]
            assert sorted(names) == [sort for partition, sort, _ in rows(engine, 1) if partition == Q]
            assert int(get(engine, 1, P, b"count") or b"0") == len(names)
            assert engine.read(lambda reader: reader.totals(1)) == Totals(len(names), len(names))
            return names

        for moment in MOMENTS:
            before = stands()
            with faults.failing(engine, moment, unknown=True, commits_max=1):
                written = partial(change, name=b"w" + moment.encode())
                error = expect(CommitUnknown, partial(engine.write, written))
                assert faults.CAUSE in str(error)
            assert stands() == before + ([b"wafter"] if moment == "after" else [])
            writable(engine)
            before = stands()
            with faults.failing(engine, moment, unknown=True, commits_max=1):
                outcomes = Outcomes(1)
                engine.submit(partial(change, name=b"s" + moment.encode()), outcomes)
                outcomes.wait()
            assert [type(error) for error in outcomes.errors] == [CommitUnknown]
            assert stands() == before + ([b"safter"] if moment == "after" else [])
            writable(engine)
            engine.write(partial(change, name=b"next" + moment.encode()))
        assert stands() == [b"nextbefore", b"wafter", b"safter", b"nextafter"]


def check_an_interrupted_body_leaves_nothing(opener: Opener) -> None:
    """A BaseException of a body passes through the engine's methods, or ends a submitted body that ran later
    with `Stopped`; the body can be run again."""
    with opened(opener) as engine:

        class Interrupted(BaseException):
            pass

        def body(txn: Transaction, interrupted: bool) -> int:
            txn.put(1, P, b"a", b"")
            txn.append(2, P, b"")
            txn.count(1, 1, 1)
            if interrupted:
                raise Interrupted
            return 7

        def look(reader: Reader, interrupted: bool) -> int:
            reader.get(1, P, b"a")
            if interrupted:
                raise Interrupted
            return 7

        def submitted(submit: Callable[[Any, Any], None], body: Any) -> None:
            stopped = Outcomes(1)
            submit(body, stopped)
            stopped.wait()
            assert [type(error) for error in stopped.errors] == [Stopped]
            raise Interrupted

        for ask in (
            lambda: engine.write(partial(body, interrupted=True)),
            lambda: submitted(engine.submit, partial(body, interrupted=True)),
            lambda: engine.read(partial(look, interrupted=True)),
            lambda: submitted(engine.submit_read, partial(look, interrupted=True)),
        ):
            expect(Interrupted, ask)
            assert rows(engine, 1) == rows(engine, 2) == []
        assert engine.read(partial(look, interrupted=False)) == 7
        outcomes = Outcomes(1)
        engine.submit(partial(body, interrupted=False), outcomes)
        outcomes.wait()
        assert outcomes.results == [7]
        assert engine.read(lambda reader: reader.totals(1)) == Totals(1, 1)
        assert len(rows(engine, 2)) == 1


def stamped(stamp: int) -> bytes:
    """A record of a log with its stamp at 1."""
    return b"<%b>" % stamp.to_bytes(STAMP_BYTES, "big")


def stamps_of(engine: Engine, space: int, partition: bytes) -> list[int]:
    """The stamps of a log, whose records are whole otherwise."""
    values = [value for _, value in engine.read(lambda reader: list(reader.scan(space, partition)))]
    assert all(len(value) == STAMP_BYTES + 2 and value[:1] + value[-1:] == b"<>" for value in values)
    return [int.from_bytes(value[1:-1], "big") for value in values]


def check_stamps_never_decrease(opener: Opener) -> None:
    """A record gets its own stamp, or its log's last stamp if that is greater."""
    with opened(opener) as engine:

        def append(txn: Transaction, *stamps: int) -> None:
            for stamp in stamps:
                txn.append(1, P, stamped(stamp), 1)

        def failing(txn: Transaction) -> None:
            append(txn, 900)
            raise Stop

        engine.write(lambda txn: append(txn, 5, 3, 7, 6))
        engine.write(lambda txn: append(txn, 2, 256))
        expect(Stop, lambda: engine.write(failing))
        # Other logs have stamps of their own, or none.
        engine.write(lambda txn: txn.append(1, Q, stamped(1), 1))
        engine.write(lambda txn: txn.append(2, P, stamped(2), 1))
        engine.write(lambda txn: txn.append(2, Q, b""))
        outcomes = Outcomes(3)
        for stamp in (300, 257, 301):
            engine.submit(lambda txn, stamp=stamp: append(txn, stamp), outcomes)
        outcomes.wait()
        assert stamps_of(engine, 1, P) == [5, 5, 7, 7, 7, 256, 300, 300, 301]
        assert stamps_of(engine, 1, Q) == [1]
        assert stamps_of(engine, 2, P) == [2]


def check_stamps_of_many_threads_never_decrease(opener: Opener) -> None:
    """Threads and submitters append to one log, each with times of its own."""
    with opened(opener) as engine:

        def append(txn: Transaction, stamp: int) -> None:
            txn.append(1, P, stamped(stamp), 1)

        def work(seed: int) -> None:
            for n in range(50):
                engine.write(partial(append, stamp=(seed * 37 + n * 61) % 1_000))

        submitted = [partial(append, stamp=n * 53 % 1_000) for n in range(50)]
        compete(engine, [partial(work, seed) for seed in range(3)], submitted)
        stamps = stamps_of(engine, 1, P)
        assert len(stamps) == 200
        assert stamps == sorted(stamps)


def check_a_failed_commit_stamps_nothing(opener: Opener) -> None:
    with opened(opener) as engine:
        engine.write(lambda txn: txn.append(1, P, stamped(5), 1))
        for moment in MOMENTS:
            with faults.failing(engine, moment):
                expect(CommitFailed, lambda: engine.write(lambda txn: txn.append(1, P, stamped(900), 1)))
            writable(engine)
        for stamp in (4, 6):
            engine.write(lambda txn, stamp=stamp: txn.append(1, P, stamped(stamp), 1))
        assert stamps_of(engine, 1, P) == [5, 5, 6]


def check_stamps_survive_closing(opener: Opener) -> None:
    for stamp in (5, 3, 9, 7):
        with opened(opener) as engine:
            engine.write(lambda txn, stamp=stamp: txn.append(1, P, stamped(stamp), 1))
            engine.write(lambda txn: txn.append(1, Q, stamped(1), 1))
    with opened(opener) as engine:
        assert stamps_of(engine, 1, P) == [5, 5, 9, 9]
        assert stamps_of(engine, 1, Q) == [1, 1, 1, 1]


def check_records_survive_closing(opener: Opener) -> None:
    def start(txn: Transaction) -> None:
        for sort in AWKWARD:
            txn.put(1, P, sort, b"v" + sort)
        txn.put(2, P, b"", b"gone")
        txn.count(1, 16, 160)
        txn.count(2, 1, 1)
        txn.append(3, P, b"first")

    with opened(opener) as engine:
        engine.write(start)
        engine.write(lambda txn: txn.delete_space(2))
    for again in range(2):
        with opened(opener) as engine:
            assert rows(engine, 1) == [(P, sort, b"v" + sort) for sort in sorted(AWKWARD)]
            assert rows(engine, 2) == []
            assert engine.read(lambda reader: reader.totals(1)) == Totals(16, 160)
            assert engine.read(lambda reader: reader.totals(2)) == Totals(0, 0)
            engine.write(lambda txn: txn.append(3, P, b"next"))
            assert [value for _, _, value in rows(engine, 3)] == [b"first"] + [b"next"] * (again + 1)


def check_failed_commits_survive_no_closing(opener: Opener) -> None:
    with opened(opener) as engine:
        put(engine, 1, P, b"a", b"before")
        for moment in MOMENTS:
            with faults.failing(engine, moment):
                expect(CommitFailed, lambda: put(engine, 1, P, b"a", b"after"))
                expect(CommitFailed, lambda: put(engine, 1, P, b"b", b"after"))
            writable(engine)
        put(engine, 1, P, b"c", b"later")
    with opened(opener) as engine:
        assert rows(engine, 1) == [(P, b"a", b"before"), (P, b"c", b"later")]
