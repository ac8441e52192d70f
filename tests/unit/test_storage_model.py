"""Random histories on both engines, compared with a dict and `sorted`.

Both engines run bodies in the order of the calls, so the model knows what each body must see. A read may see
any moment between the last outcome that was waited for and the last body submitted, but always one of them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doses import examples
from hashrange.storage.api import Reader, Totals, Transaction
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.failures import CommitFailed, CommitUnknown, Moment
from hashrange.storage.memory import MemoryEngine
from hashrange_engine_tests import faults

pytestmark = pytest.mark.once

SPACES = (1, 2)
DOOMED = (3, 4)  # may be deleted, and are then left alone
LOG = 9
KEPT = 1
PARTITIONS = (b"\x00\x00", b"a\x00", b"a\xff", b"\xff\xff")
SORTS = (b"", b"\x00", b"\x00\xff", b"k", b"k\x00", b"\xff", b"\xff\xff")

addresses = st.tuples(st.sampled_from(SPACES + DOOMED), st.sampled_from(PARTITIONS), st.sampled_from(SORTS))
actions = st.one_of(
    st.tuples(st.just("put"), addresses, st.binary(max_size=3)),
    st.tuples(st.just("delete"), addresses),
    st.tuples(st.just("count"), st.sampled_from(SPACES + DOOMED), st.integers(-5, 5)),
    st.tuples(st.just("append"), st.binary(max_size=2)),
    st.tuples(st.just("stamp"), st.sampled_from(PARTITIONS[1:3]), st.sampled_from((0, 1, 255, 256, 2**63))),
    st.tuples(st.just("keep"), st.sampled_from(SORTS), st.binary(max_size=2), st.sampled_from((0, 9, 2**40))),
    st.tuples(st.just("look")),
    st.tuples(st.just("delete_space"), st.sampled_from(DOOMED)),
)
bodies = st.tuples(st.lists(actions, max_size=6), st.booleans())
steps = st.one_of(
    st.tuples(st.just("write"), bodies),
    st.tuples(st.just("submit"), bodies),
    st.tuples(st.just("submit"), bodies),
    st.tuples(st.just("read")),
    st.tuples(st.just("settle")),
    st.tuples(st.just("fault"), bodies, st.sampled_from(("before", "after")), st.booleans()),
    st.tuples(st.just("reopen")),
)


class Stop(Exception):
    pass


class State:
    """What the store must hold."""

    def __init__(self) -> None:
        self.records: dict[tuple[int, bytes, bytes], bytes] = {}
        self.totals: dict[int, int] = {}
        self.deleted: set[int] = set()
        self.stamp = 0

    def log(self) -> list[tuple[tuple[int, bytes, bytes], bytes]]:
        return [(address, value) for address, value in self.records.items() if address[0] == LOG]

    def seen(self) -> Any:
        totals = {space: self.totals.get(space, 0) for space in SPACES + DOOMED}
        return sorted(self.records.items()), totals


def seen_by(reader: Reader) -> Any:
    """Everything a reader shows, in the form of `State.seen`; scans in all directions must agree."""
    found = []
    for space in (*SPACES, *DOOMED, LOG):
        rows = list(reader.scan_space(space))
        found += [((space, partition, sort), value) for partition, sort, value in rows]
        for partition in {row[0] for row in rows}:
            forward = list(reader.scan(space, partition))
            assert forward == [row[1:] for row in rows if row[0] == partition]
            assert list(reader.scan(space, partition, reverse=True)) == forward[::-1]
            assert list(reader.scan(space, partition, b"\x00\x01", b"\xff")) == [
                row for row in forward if b"\x00\x01" <= row[0] < b"\xff"
            ]
    assert reader.get_many([address for address, _ in found]) == [value for _, value in found]
    totals = {}
    for space in SPACES + DOOMED:
        total = reader.totals(space)
        assert total == Totals(total.records, -total.records)
        totals[space] = total.records
    return found, totals


def appended(txn: Transaction, state: State, partition: bytes, value: bytes) -> None:
    """Note what was appended to a log, under the number that the engine gave it."""
    sequence = next(txn.scan(LOG, partition, reverse=True))[0]
    assert sequence > max((address[2] for address, _ in state.log()), default=bytes(8))
    state.records[LOG, partition, sequence] = value


def body_of(plan: list[Any], fails: bool, state: State) -> Callable[[Transaction], None]:
    """A body that does what `plan` says, to the store and to `state`, and compares."""

    def body(txn: Transaction) -> None:
        before = state.stamp
        for action, *arguments in plan:
            if action == "put" and arguments[0][0] not in state.deleted:
                space, partition, sort = arguments[0]
                txn.put(space, partition, sort, arguments[1])
                state.records[arguments[0]] = arguments[1]
            elif action == "delete":
                txn.delete(*arguments[0])
                state.records.pop(arguments[0], None)
            elif action == "count" and arguments[0] not in state.deleted:
                txn.count(arguments[0], arguments[1], -arguments[1])
                state.totals[arguments[0]] = state.totals.get(arguments[0], 0) + arguments[1]
            elif action == "append":
                txn.append(LOG, PARTITIONS[0], arguments[0])
                appended(txn, state, PARTITIONS[0], arguments[0])
            elif action == "stamp":
                log, stamp = arguments
                txn.append(LOG, log, b"at %b." % stamp.to_bytes(8), 3)
                stamps = [int.from_bytes(v[3:11]) for (_, partition, _), v in state.log() if partition == log]
                appended(txn, state, log, b"at %b." % max(stamp, *stamps, 0).to_bytes(8))
            elif action == "keep":
                sort, value, moment = arguments
                txn.keep(KEPT, PARTITIONS[1], sort, value, moment)
                # Above all stamps before: also above those of commits that failed, which it need not be.
                stamp = txn.stamp(0)
                assert stamp > before
                assert state.stamp in (before, stamp)
                state.stamp = stamp
                state.records.setdefault((KEPT, PARTITIONS[1], sort + stamp.to_bytes(8)), value)
            elif action == "look":
                assert seen_by(txn) == state.seen()
            elif action == "delete_space":
                txn.delete_space(arguments[0])
                state.deleted.add(arguments[0])
                state.totals.pop(arguments[0], None)
                state.records = {k: v for k, v in state.records.items() if k[0] != arguments[0]}
        if fails:
            raise Stop

    return body


class History:
    """One engine, and the states it may be in."""

    def __init__(self, opener: Callable[[], Any]) -> None:
        self.opener = opener
        self.engine = opener()
        self.states = [State()]
        self.errors: list[Exception] = []
        self.waiting: list[Event] = []

    def step(self, kind: str, *given: Any) -> None:
        if kind in ("write", "submit", "fault"):
            (plan, fails), *rest = given
            getattr(self, kind)(plan, fails, *rest)
        elif kind == "read":
            assert self.engine.read(seen_by) in [state.seen() for state in self.states]
        else:
            self.settle()
            if kind == "reopen":
                self.engine.close()
                self.engine = self.opener()
                if isinstance(self.engine, MemoryEngine):
                    self.states = [State()]

    def write(self, plan: list[Any], fails: bool) -> None:
        state = deepcopy(self.states[-1])
        try:
            self.engine.write(body_of(plan, fails, state))
            self.states = [state]
        except Stop:
            self.states = self.states[-1:]

    def submit(self, plan: list[Any], fails: bool) -> None:
        state = deepcopy(self.states[-1])
        settled = Event()

        def done(_: None, error: Exception | None) -> None:
            if error is not None and not isinstance(error, Stop):
                self.errors.append(error)
            settled.set()

        self.engine.submit(body_of(plan, fails, state), done)
        self.waiting.append(settled)
        if not fails:
            self.states.append(state)

    def fault(self, plan: list[Any], fails: bool, moment: Moment, unknown: bool) -> None:
        """A body whose commit fails, or nobody knows; whether there is one depends on whether it writes."""
        self.settle()
        state = deepcopy(self.states[-1])
        called = []

        def fail() -> None:
            called.append(True)
            raise CommitUnknown("fault") if unknown else OSError("fault")

        with faults.at(self.engine, moment, fail):
            try:
                self.engine.write(body_of(plan, fails, state))
                assert not called
                self.states = [state]
            except Stop:
                assert not called
            except CommitFailed:
                assert called
                assert not unknown
            except CommitUnknown:
                assert called
                assert unknown
                if moment == "after":
                    self.states = [state]

    def settle(self) -> None:
        for event in self.waiting:
            assert event.wait(30)
        self.waiting.clear()
        assert self.errors == []
        self.states = self.states[-1:]
        assert self.engine.read(seen_by) == self.states[-1].seen()


@pytest.mark.parametrize("engine", ["memory", "embedded"])
@settings(max_examples=examples(60), deadline=None)
@given(history=st.lists(steps, max_size=25))
def test_random_histories(engine: str, history: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as directory:

        def opener() -> Any:
            return MemoryEngine() if engine == "memory" else EmbeddedEngine(Path(directory) / "store")

        model = History(opener)
        try:
            for kind, *rest in history:
                model.step(kind, *rest)
            model.settle()
        finally:
            model.engine.close()
