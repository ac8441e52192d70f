"""Histories of two tables, their users and a sync, whose steps Hypothesis decides and shrinks.

Users write, tables cannot be reached, requests fail before or after they were performed, the process of the
sync dies at any request, users write between any two of its requests, clocks jump, streams are trimmed. When
all that is over:

- both tables are equal;
- each value that a user has written is in the tables or in the log of conflicts, or a user has written over
  it. So the sync has written over nothing in silence;
- counters are the sums of what was added to them on both sides.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from hashrange_sync import SyncError
from hashrange_sync.items import Item, digest
from hashrange_sync.stored.conflicts import UNSEEN
from sync.world import (
    Places,
    Users,
    World,
    before,
    fails,
    kills_after,
    kills_before,
    loses,
    performed,
    texts,
)

EXAMPLES: Final = int(os.environ.get("HASHRANGE_SYNC_ROUNDS", "15"))
"""How many histories each machine draws."""
_SHRINKS: Final = "HASHRANGE_SYNC_AS_FOUND" not in os.environ
_KEYS: Final = st.sampled_from(["k1", "k2"])
_SIDES: Final = st.sampled_from(["cloud", "edge"])
_EDITS: Final = st.sampled_from(["put", "put two", "set", "set another", "remove", "delete"])
_FATES: Final = st.sampled_from([performed, performed, fails, loses, kills_before, kills_after])
_EDIT: Final = st.tuples(_SIDES, _KEYS, _EDITS)
_NUMBERS: Final = st.integers(1, 45) | st.integers(1, 6).map("write {}".format)
_MEETINGS: Final = st.lists(st.tuples(_NUMBERS, st.none() | _EDIT, _FATES), max_size=4)
_FIRST: Final = st.sampled_from(["delete", "set", "put"])
_SECOND: Final = st.sampled_from(["set another", "set", "delete"])
_ENDS: Final = st.sampled_from([performed, kills_after])
_DAY: Final = 86_400.0


class Histories(RuleBasedStateMachine):
    """Two tables, and their users."""

    def __init__(self, places: Places, **pair: Any) -> None:
        super().__init__()
        self.world = World(places, **pair)
        self.written: dict[str, str] = {}
        self.added: dict[str, int] = {}
        self._numbers = itertools.count()

    def token(self, pk: str) -> str:
        """A text that no other write has."""
        text = f"v{next(self._numbers)}"
        self.written[text] = pk
        return text

    def edit(self, side: str, pk: str, kind: str) -> None:
        """A user's write."""
        users: Users = getattr(self.world, side)
        match kind:
            case "put":
                users.put(pk, a=self.token(pk))
            case "put two":
                users.put(pk, a=self.token(pk), b=self.token(pk))
            case "set":
                users.set(pk, a=self.token(pk))
            case "set another":
                text = self.token(pk)
                users.set(pk, **{f"new_{text}": text})
            case "remove":
                users.set(pk, a=None)
            case "delete":
                users.delete(pk)

    @rule(edit=_EDIT)
    def somebody_writes(self, edit: tuple[str, str, str]) -> None:
        self.edit(*edit)

    @rule(meetings=_MEETINGS)
    def the_sync_runs(self, meetings: list[Any]) -> None:
        for number, edit, fate in meetings:
            act = partial(self.edit, *edit) if edit else lambda: None
            self.world.meets(number, before(act, fate))
        with suppress(SyncError):
            self.world.once()

    @rule(first=_EDIT, number=st.integers(1, 4), fate=st.sampled_from([loses, kills_after]), second=_EDIT)
    def a_write_is_not_answered(self, first: Any, number: int, fate: Any, second: Any) -> None:
        """The shortest way to a write of which nobody knows whether it was made, and a change after it."""
        self.edit(*first)
        self.the_sync_runs([(f"write {number}", None, fate)])
        self.edit(*second)

    @rule(side=_SIDES, pk=_KEYS, first=_FIRST, number=st.integers(1, 2), second=_SECOND, fate=_ENDS)
    def somebody_writes_in_between(
        self, side: str, pk: str, first: str, number: int, second: str, fate: Any
    ) -> None:
        """The shortest way to a write of the other side's user after the sync has read the item."""
        self.the_sync_runs([])
        self.edit(side, pk, first)
        other = "edge" if side == "cloud" else "cloud"
        self.the_sync_runs([(f"write {number}", (other, pk, second), fate)])

    @rule(edits=st.lists(_EDIT, min_size=1, max_size=3))
    def an_outage_is_long(self, edits: list[tuple[str, str, str]]) -> None:
        """The streams do not keep what was written."""
        for edit in edits:
            self.edit(*edit)
        self.world.passes(1.3 * _DAY)

    @rule(side=_SIDES)
    def a_side_is_lost(self, side: str) -> None:
        self.world.unreachable ^= {side}

    @rule(seconds=st.sampled_from([1.0, 1_000.0, _DAY / 2, 1.3 * _DAY]))
    def time_passes(self, seconds: float) -> None:
        self.world.passes(seconds)

    @rule(seconds=st.sampled_from([-_DAY, -10.0, 0.0, 10.0, _DAY]))
    def the_clock_jumps(self, seconds: float) -> None:
        self.world.clock.seconds = seconds

    @rule()
    def the_process_dies(self) -> None:
        self.world.kill()

    def teardown(self) -> None:
        if sys.exc_info()[0] is None:  # (otherwise a rule has failed, and that is to be seen)
            self.world.unreachable = set()
            self.world.once()
            self.verdict()

    def verdict(self) -> None:
        """What holds in the end."""
        cloud, edge = self.world.cloud.items(), self.world.edge.items()
        cloud = {
            pk: {name: value for name, value in item.items() if name != "mark"} for pk, item in cloud.items()
        }
        assert marks(cloud) == marks(edge), (cloud, edge)
        log = self.world.log()
        self.nothing_is_lost(cloud, log)
        assert not self.world.sync.pairs[0].state.journal()

    def nothing_is_lost(self, items: dict[str, Item], log: list[Any]) -> None:
        known = self.world.cloud.replaced | self.world.edge.replaced
        for item in items.values():
            known |= texts(item)
        unseen = {conflict.key["pk"]["S"] for conflict in log if conflict.kind == UNSEEN}
        for conflict in log:
            known |= texts(conflict.cloud) | texts(conflict.edge)
        lost = {text for text, pk in self.written.items() if text not in known and pk not in unseen}
        assert not lost, (lost, log)


def marks(items: dict[str, Item]) -> dict[str, bytes]:
    """The digests of items."""
    return {pk: digest(item) for pk, item in items.items()}


class CounterHistories(Histories):
    """Counters on both sides, which nobody deletes. Without marks no two numbers that are added are the same:
    then the same change of two users at the same time would count once if the sync dies just then."""

    def __init__(self, places: Places, mark: str) -> None:
        super().__init__(places, conflicts="add: n", mark=mark)
        for pk in ("k1", "k2"):
            self.world.cloud.put(pk, n={"N": "0"})
            self.added[pk] = 0
        self.world.once()

    def edit(self, side: str, pk: str, kind: str) -> None:
        if kind.startswith("set"):
            super().edit(side, pk, kind)
            return
        numbers = next(self._numbers)
        number = 1 + numbers % 2 if self.world.settings.pairs[0].mark else 2**numbers
        getattr(self.world, side).add(pk, "n", number)
        self.added[pk] += number

    def verdict(self) -> None:
        super().verdict()
        unseen = {conflict.key["pk"]["S"] for conflict in self.world.log() if conflict.kind == UNSEEN}
        found = {pk: int(item["n"]["N"]) for pk, item in self.world.cloud.items().items() if pk not in unseen}
        assert found == {pk: total for pk, total in self.added.items() if pk not in unseen}


def check(machine: Callable[[], Histories], examples: int = EXAMPLES) -> None:
    """Draw histories of `machine`, and fail with the smallest that breaks what it says."""
    make: Any = machine
    run_state_machine_as_test(
        make,
        settings=settings(
            max_examples=examples,
            stateful_step_count=16,
            phases=[phase for phase in Phase if phase is not Phase.shrink or _SHRINKS],
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
