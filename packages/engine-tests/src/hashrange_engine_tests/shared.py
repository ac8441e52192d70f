"""The contract's checks of logs and stamps while a commit of another engine is under way. See the package.

The first engine's commit has its numbers when it is stopped, just before its end. Then the second engine
commits to the same logs, and looks. An engine may make it wait for the first one, and it comes later then.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hashrange.storage.api import STAMP_BYTES, Reader, Transaction
from hashrange_engine_tests import faults
from hashrange_engine_tests.records import Opener, Outcomes, P, Q, opened
from hashrange_engine_tests.stamps import keep, kept
from hashrange_engine_tests.steps import PATIENCE_SECONDS
from hashrange_engine_tests.transactions import stamped, stamps_of


def check_what_was_read_of_a_log_never_changes(opener: Opener) -> None:
    """A reader that has seen a record of a log never sees a new one with a lower number, whichever commit
    ends first, and whether it fails."""
    with opened(opener) as first, opened(opener) as other:

        def append(txn: Transaction, *values: bytes) -> None:
            for value in values:
                txn.append(1, P, value)
                txn.append(1, Q, value)

        def look(reader: Reader) -> list[list[Any]]:
            log = [place for place, _ in reader.scan(1, P)]
            assert log == [place for place, _ in reader.scan(1, P, reverse=True)][::-1]
            assert log[-1] == next(iter(reader.scan(1, P, reverse=True, likely=1)))[0]
            assert log == [place for place, _ in reader.scan(1, P, likely=1_000)]
            both = sorted(place for _, place, _ in reader.scan_space(1))
            return [log, both]

        seen: list[list[list[Any]]] = []
        others: list[Outcomes] = []

        def come() -> None:
            others.append(Outcomes(1))
            other.submit(lambda txn: append(txn, b"of the other"), others[-1])
            others[-1].wait_a_moment(PATIENCE_SECONDS)
            seen.append(other.read(look))

        def fail() -> None:
            come()
            raise OSError(faults.CAUSE)

        first.write(lambda txn: append(txn, b"first"))
        for act in (come, fail, come):
            heard = Outcomes(1)
            with faults.at(first, "after", act):
                first.submit(lambda txn: append(txn, b"of the first", b"and more"), heard)
                heard.wait()
            others[-1].wait()
            assert others[-1].errors == []
            seen.append(other.read(look))
        for kind in (0, 1):
            for before, after in pairwise(seen):
                assert after[kind][: len(before[kind])] == before[kind]
        assert len(seen[-1][0]) == 1 + 3 + 2 * 2


def check_stamps_of_logs_under_way_never_decrease(opener: Opener) -> None:
    """The stamps of a log are in the order of its numbers, whichever commit ends first."""
    with opened(opener) as first, opened(opener) as other:
        outcomes = Outcomes(3)

        def come() -> None:
            other.submit(lambda txn: txn.append(1, P, stamped(7), 1), outcomes)
            other.submit(lambda txn: txn.append(1, P, stamped(8), 1), outcomes)
            outcomes.wait_a_moment(PATIENCE_SECONDS)

        first.write(lambda txn: txn.append(1, P, stamped(5), 1))
        with faults.at(first, "after", come):
            first.submit(lambda txn: txn.append(1, P, stamped(900), 1), outcomes)
            outcomes.wait()
        assert outcomes.errors == []
        assert stamps_of(first, 1, P) == [5, 900, 900, 900]
        first.write(lambda txn: txn.append(1, Q, stamped(6), 1))
        assert stamps_of(first, 1, Q) == [6]


def check_what_is_kept_up_to_a_stamp_never_changes(opener: Opener) -> None:
    """A reader that has asked for a stamp sees all that was kept under lower ones."""
    with opened(opener) as first, opened(opener) as other:
        outcomes, asked = Outcomes(2), Outcomes(1)

        def come() -> None:
            other.submit(lambda txn: keep(txn, b"of the other", 7, space=2), outcomes)
            outcomes.wait_a_moment(PATIENCE_SECONDS)
            other.submit(lambda txn: txn.stamp(1), asked)
            asked.wait_a_moment(PATIENCE_SECONDS)
            look()

        def look() -> None:
            for stamp in asked.results:
                records = sorted(kept(other) + kept(other, 2))
                seen.append([first for first in records if first[0] <= stamp])

        seen: list[list[tuple[int, bytes]]] = []
        with faults.at(first, "after", come):
            first.submit(lambda txn: keep(txn, b"of the first", 1_000), outcomes)
            outcomes.wait()
        asked.wait()
        assert outcomes.errors == asked.errors == []
        first.write(lambda txn: keep(txn, b"later", 1))
        look()
        assert all(before == seen[-1] for before in seen)
        assert [value for _, value in seen[-1]][:1] == [b"of the first"]
        stamps = [stamp for stamp, _ in kept(first) + kept(first, 2)]
        assert len(set(stamps)) == 3
        assert max(stamps) < 2 ** (8 * STAMP_BYTES)
