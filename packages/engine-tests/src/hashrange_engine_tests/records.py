"""The contract's checks of records: records that are put are found, in order, whole or not at all.

Also the parts of all checks: opening, expecting, waiting. See the package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Barrier, Event, Thread
from typing import Any, Final

from hashrange.storage.api import Engine, Reader, Totals, Transaction
from hashrange.storage.failures import StorageError

Opener = Callable[[str], Any]
Check = Callable[[Opener], None]

P: Final = b"partition-bytes1"
Q: Final = b"partition-bytes2"

# Sorts that are easily put in the wrong order.
AWKWARD: Final = (
    b"",
    b"\x00",
    b"\x00\x00",
    b"\x00\x01",
    b"\x00\xff",
    b"\x01",
    b"a",
    b"a\x00",
    b"a\x00b",
    b"a\xff",
    b"b",
    b"\xfe\xff",
    b"\xff",
    b"\xff\x00",
    b"\xff\xff",
    b"\xff\xff\xff",
)


class Stop(Exception):
    """The exception of failing bodies."""


@contextmanager
def opened(opener: Opener, name: str = "store") -> Iterator[Any]:
    """The store of that name, closed at the end."""
    engine = opener(name)
    try:
        yield engine
    finally:
        engine.close()


def compete(
    engine: Engine, works: Iterable[Callable[[], None]], bodies: Iterable[Callable[[Transaction], Any]]
) -> Outcomes:
    """Run each work on a thread of its own, and submit the bodies meanwhile; returns the bodies' outcomes
    when all have ended."""
    works, bodies = list(works), list(bodies)
    barrier = Barrier(len(works) + 1)

    def begin(work: Callable[[], None]) -> None:
        barrier.wait()
        work()

    threads = [Thread(target=begin, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    outcomes = Outcomes(len(bodies))
    barrier.wait()
    for body in bodies:
        engine.submit(body, outcomes)
    for thread in threads:
        thread.join()
    outcomes.wait()
    return outcomes


def expect(error: type[BaseException], function: Callable[[], Any]) -> BaseException:
    """The exception of that class that `function` raises."""
    try:
        function()
    except error as raised:
        return raised
    raise AssertionError(f"{error.__name__} was not raised")


def put(engine: Engine, space: int, partition: bytes, sort: bytes, value: bytes) -> None:
    """One record, in a body of its own."""
    engine.write(lambda txn: txn.put(space, partition, sort, value))


def get(engine: Engine, space: int, partition: bytes, sort: bytes) -> bytes | None:
    """One record, in a body of its own."""
    return engine.read(lambda reader: reader.get(space, partition, sort))


def rows(engine: Engine, space: int) -> list[tuple[bytes, bytes, bytes]]:
    """All committed records of a space."""
    return engine.read(lambda reader: list(reader.scan_space(space)))


class Outcomes:
    """A `done` that collects outcomes, and lets a test wait for a number of them."""

    def __init__(self, expected: int) -> None:
        self.results: list[Any] = []
        self.errors: list[Exception] = []
        self._left = expected
        self._all = Event()

    def __call__(self, result: Any, error: Exception | None) -> None:
        if error is None:
            self.results.append(result)
        else:
            self.errors.append(error)
        self._left -= 1
        if self._left == 0:
            self._all.set()

    def has(self, outcomes: int) -> bool:
        """Whether this many have come."""
        return len(self.results) + len(self.errors) >= outcomes

    def wait_a_moment(self, seconds: float) -> None:
        """Wait until all have come, but no longer than this."""
        self._all.wait(seconds)

    def wait(self) -> None:
        assert self._all.wait(30), "not every outcome was delivered"
        assert self._left == 0, "an outcome was delivered twice"


def check_put_get_delete(opener: Opener) -> None:
    with opened(opener) as engine:
        assert get(engine, 1, P, b"s") is None
        put(engine, 1, P, b"s", b"one")
        put(engine, 1, P, b"", b"")
        assert get(engine, 1, P, b"s") == b"one"
        assert get(engine, 1, P, b"") == b""
        assert get(engine, 2, P, b"s") is None
        assert get(engine, 1, Q, b"s") is None
        put(engine, 1, P, b"s", b"two")
        assert get(engine, 1, P, b"s") == b"two"
        engine.write(lambda txn: txn.delete(1, P, b"s"))
        engine.write(lambda txn: txn.delete(1, P, b"never there"))
        assert get(engine, 1, P, b"s") is None
        addresses = [(1, P, b""), (1, P, b"s"), (9, P, b""), (1, P, b"")]
        assert engine.read(lambda reader: reader.get_many(addresses)) == [b"", None, None, b""]
        assert engine.write(lambda txn: txn.get_many(addresses)) == [b"", None, None, b""]


def check_results_and_exceptions_reach_the_caller(opener: Opener) -> None:
    with opened(opener) as engine:
        assert engine.read(lambda reader: 7) == 7
        assert engine.write(lambda txn: 8) == 8

        def stop(_: Any) -> None:
            raise Stop("because")

        assert str(expect(Stop, lambda: engine.read(stop))) == "because"
        assert str(expect(Stop, lambda: engine.write(stop))) == "because"
        outcomes = Outcomes(2)
        engine.submit(lambda txn: 9, outcomes)
        engine.submit(stop, outcomes)
        outcomes.wait()
        assert outcomes.results == [9]
        assert [type(error) for error in outcomes.errors] == [Stop]


def check_a_body_sees_its_own_writes(opener: Opener) -> None:
    with opened(opener) as engine:
        put(engine, 1, P, b"b", b"old")
        put(engine, 1, P, b"d", b"old")

        def body(txn: Transaction) -> None:
            txn.put(1, P, b"a", b"new")
            txn.put(1, P, b"b", b"new")
            txn.put(1, P, b"c", b"new")
            txn.delete(1, P, b"d")
            txn.put(1, Q, b"a", b"new")
            assert txn.get(1, P, b"b") == b"new"
            assert txn.get(1, P, b"d") is None
            expected = [(b"a", b"new"), (b"b", b"new"), (b"c", b"new")]
            assert list(txn.scan(1, P)) == expected
            assert list(txn.scan(1, P, reverse=True)) == expected[::-1]
            assert list(txn.scan(1, P, b"b", b"c")) == expected[1:2]
            assert list(txn.scan_space(1)) == [*((P, *pair) for pair in expected), (Q, b"a", b"new")]
            assert list(txn.scan_space(1, (P, b"c"), (Q, b"a"))) == [(P, b"c", b"new")]
            txn.put(1, P, b"d", b"again")
            assert txn.get(1, P, b"d") == b"again"

        engine.write(body)
        assert get(engine, 1, P, b"d") == b"again"


def check_a_failing_body_leaves_nothing(opener: Opener) -> None:
    with opened(opener) as engine:

        def start(txn: Transaction) -> None:
            txn.put(1, P, b"kept", b"kept")
            txn.put(1, P, b"gone", b"not gone")
            txn.put(2, P, b"", b"kept")
            txn.count(1, 2, 10)

        engine.write(start)

        def body(txn: Transaction) -> None:
            txn.put(1, P, b"kept", b"changed")
            txn.put(1, P, b"more", b"")
            txn.put(3, P, b"more", b"")
            txn.delete(1, P, b"gone")
            txn.append(4, P, b"")
            txn.count(1, 5, 5)
            txn.delete_space(2)
            raise Stop

        expect(Stop, lambda: engine.write(body))
        outcomes = Outcomes(1)
        engine.submit(body, outcomes)
        outcomes.wait()
        assert len(outcomes.errors) == 1
        assert rows(engine, 1) == [(P, b"gone", b"not gone"), (P, b"kept", b"kept")]
        assert rows(engine, 2) == [(P, b"", b"kept")]
        assert rows(engine, 3) == rows(engine, 4) == []
        assert engine.read(lambda reader: reader.totals(1)) == Totals(2, 10)


def check_order_is_of_unsigned_bytes(opener: Opener) -> None:
    with opened(opener) as engine:
        for sort in (*AWKWARD[1::2], *AWKWARD[::-1]):  # in no order, some twice
            put(engine, 1, P, sort, sort)
        put(engine, 0, P, b"below", b"")
        put(engine, 2, P, b"above", b"")
        expected = [(sort, sort) for sort in sorted(AWKWARD)]

        def body(reader: Reader) -> None:
            assert list(reader.scan(1, P)) == expected
            assert list(reader.scan(1, P, reverse=True)) == expected[::-1]
            for low in AWKWARD:
                for high in (None, *AWKWARD):
                    part = [pair for pair in expected if low <= pair[0] and (high is None or pair[0] < high)]
                    assert list(reader.scan(1, P, low, high)) == part, (low, high)
                    assert list(reader.scan(1, P, low, high, reverse=True)) == part[::-1], (low, high)

        engine.read(body)
        engine.write(body)


def check_partitions_do_not_touch(opener: Opener) -> None:
    # Partitions that are prefixes of one another, with sorts that continue them.
    partitions = (b"", b"a", b"a\x00", b"aa", b"\xff", b"\xff\xff", b"\xff" * 32)
    with opened(opener) as engine:
        for partition in partitions:
            for sort in AWKWARD:
                put(engine, 5, partition, sort, partition + b"|" + sort)

        def body(reader: Reader) -> None:
            for partition in partitions:
                expected = [(sort, partition + b"|" + sort) for sort in sorted(AWKWARD)]
                assert list(reader.scan(5, partition)) == expected
                assert list(reader.scan(5, partition, reverse=True)) == expected[::-1]

        engine.read(body)
        engine.write(body)


def check_scan_space(opener: Opener) -> None:
    with opened(opener) as engine:
        partitions = [bytes((first, second)) for first in (0, 1, 127, 255) for second in (0, 128, 255)]
        for partition in reversed(partitions):
            for sort in (b"", b"\x00", b"\xff"):
                put(engine, 3, partition, sort, sort)
        put(engine, 2, b"\xff\xff", b"\xff", b"below")
        put(engine, 4, b"\x00\x00", b"", b"above")
        expected = [(p, sort, sort) for p in partitions for sort in (b"", b"\x00", b"\xff")]
        # Bounds of the partitions' own length, and shorter and longer ones (segments of a scan).
        points: list[tuple[bytes, bytes]] = [
            *((p, sort) for p in partitions for sort in (b"", b"\x00", b"\x80")),
            (b"", b""),
            (b"\x01", b""),
            (b"\x01", b"x"),
            (b"\x80", b""),
            (b"\x01\x80\x00", b""),
            (b"\xff\xff\xff", b""),
        ]

        def body(reader: Reader) -> None:
            assert list(reader.scan_space(3)) == expected
            assert list(reader.scan_space(77)) == []
            for low in points:
                for high in (None, *points[::3]):
                    part = [row for row in expected if low <= row[:2] and (high is None or row[:2] < high)]
                    assert list(reader.scan_space(3, low, high)) == part, (low, high)

        engine.read(body)
        engine.write(body)


def check_long_addresses(opener: Opener) -> None:
    with opened(opener) as engine:
        partition, sort = b"\xff" * 32, b"\xff" * 2268
        put(engine, 0xFFFF_FFFE, partition, sort, b"x" * 500_000)
        assert get(engine, 0xFFFF_FFFE, partition, sort) == b"x" * 500_000
        expect(StorageError, lambda: put(engine, 1, partition, sort + b"x", b""))
        expect(StorageError, lambda: put(engine, 1, partition + b"x", b"", b""))


def check_long_scans(opener: Opener) -> None:
    with opened(opener) as engine:
        expected = [(n.to_bytes(4, "big"), b"%d" % n) for n in range(1000)]

        def fill(txn: Transaction) -> None:
            for sort, value in expected:
                txn.put(1, P, sort, value)

        engine.write(fill)
        assert engine.read(lambda reader: list(reader.scan(1, P))) == expected
        assert engine.read(lambda reader: list(reader.scan(1, P, reverse=True))) == expected[::-1]
        assert len(rows(engine, 1)) == 1000

        def thin(txn: Transaction) -> None:
            # A body may write, and begin other scans, while its scan is under way.
            for sort, _ in txn.scan(1, P):
                if sort[-1] % 2:
                    txn.delete(1, P, sort)
                else:
                    assert next(iter(txn.scan(1, P, sort)))[0] == sort

        engine.write(thin)
        assert engine.read(lambda reader: list(reader.scan(1, P))) == expected[::2]


def check_what_is_likely_changes_no_result(opener: Opener) -> None:
    """A scan gives all records, even if the body takes more than `likely`."""
    sorts = [b"%04d" % number for number in range(300)]
    with opened(opener) as engine:

        def fill(txn: Transaction) -> None:
            for sort in sorts:
                txn.put(1, P, sort, sort)

        def body(reader: Reader) -> None:
            for likely in (None, 1, 2, 64, 65, 299, 300, 10_000):
                forward = [sort for sort, _ in reader.scan(1, P, b"0002", b"0298", likely=likely)]
                assert forward == sorts[2:298]
                backward = [sort for sort, _ in reader.scan(1, P, reverse=True, likely=likely)]
                assert backward == sorts[::-1]
                between = reader.scan_space(1, (P, b"0001"), (P, b"0299"), likely=likely)
                assert [sort for _, sort, _ in between] == sorts[1:299]
                assert next(iter(reader.scan(1, P, likely=likely)))[0] == sorts[0]

        engine.write(fill)
        engine.read(body)
        engine.write(body)


def check_totals(opener: Opener) -> None:
    with opened(opener) as engine:
        assert engine.read(lambda reader: reader.totals(1)) == Totals(0, 0)

        def body(txn: Transaction) -> None:
            txn.count(1, 3, 300)
            txn.count(1, -1, -100)
            txn.count(2, 1, 1)
            assert txn.totals(1) == Totals(2, 200)

        for _ in range(3):
            body_totals = engine.read(lambda reader: reader.totals(2))
            if body_totals == Totals(0, 0):
                engine.write(body)
        engine.write(lambda txn: txn.count(1, -5, -500))
        assert engine.read(lambda reader: reader.totals(1)) == Totals(-3, -300)
        assert engine.read(lambda reader: reader.totals(2)) == Totals(1, 1)


def check_delete_space(opener: Opener) -> None:
    with opened(opener) as engine:

        def fill(txn: Transaction) -> None:
            for n in range(300):
                for space in (1, 2, 3):
                    txn.put(space, P, n.to_bytes(2, "big"), b"x")
            for space in (1, 2, 3):
                txn.count(space, 300, 300)

        def drop(txn: Transaction) -> None:
            txn.delete_space(2)
            assert txn.get(2, P, b"\0\0") is None
            assert list(txn.scan(2, P)) == []
            assert list(txn.scan_space(2)) == []
            assert txn.totals(2) == Totals(0, 0)
            assert len(list(txn.scan_space(1))) == 300

        engine.write(fill)
        engine.write(drop)
        assert rows(engine, 2) == []
        assert get(engine, 2, P, b"\0\0") is None
        put(engine, 1, Q, b"", b"another batch")
        assert rows(engine, 2) == []
        assert engine.read(lambda reader: reader.totals(2)) == Totals(0, 0)
        for space in (1, 3):
            assert len([row for row in rows(engine, space) if row[0] == P]) == 300
            assert engine.read(lambda reader, space=space: reader.totals(space)) == Totals(300, 300)


def check_append_numbers_increase(opener: Opener) -> None:
    """Records of a log are in commit order, and a position lies between those before and those after."""
    with opened(opener) as engine:

        def body(txn: Transaction) -> int:
            txn.append(1, P, b"a")
            position = txn.position(1)
            txn.append(1, P, b"b")
            txn.append(2, Q, b"c")
            return position

        def failing(txn: Transaction) -> None:
            txn.append(1, P, b"never")
            raise Stop

        positions = [engine.write(body)]
        expect(Stop, lambda: engine.write(failing))
        positions += [engine.write(body), engine.write(lambda txn: txn.position(1))]
        engine.write(lambda txn: txn.append(1, P, b"d"))
        log = engine.read(lambda reader: list(reader.scan(1, P)))
        numbers = [int.from_bytes(sort, "big") for sort, _ in log]
        assert [value for _, value in log] == [b"a", b"b", b"a", b"b", b"d"]
        assert all(len(sort) == 8 for sort, _ in log)
        assert numbers[0] >= 1
        first, second, last = positions
        ordered = [numbers[0], first, numbers[1], numbers[2], second, numbers[3], last, numbers[4]]
        assert ordered == sorted(set(ordered))
        assert [value for _, value in engine.read(lambda reader: list(reader.scan(2, Q)))] == [b"c"] * 2
