"""Makes both sides equal, for some items at a time.

    1. read the states, and the items on both sides
    2. decide about each item
    3. log what is about to lose, and note the writes to be sent one by one (`stored.journal`)
    4. send these writes: those to the cloud, and deletions
    5. in one transaction: the writes to the edge, all states, how far the stream was read, the journal's end

If the condition of a write does not hold, somebody has changed the item since it was read: it is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any, Final

from hashrange_sync.deciding import NEVER, Decision, Images, Rules, SideName, State, decide
from hashrange_sync.errors import Refused, Unavailable
from hashrange_sync.items import Item, differences, digest, size
from hashrange_sync.sides.calls import Side
from hashrange_sync.sides.reading import items_of, pieces
from hashrange_sync.sides.writing import Write, write_of
from hashrange_sync.stored.conflicts import CONFLICT, OVERWRITTEN, ConflictLog
from hashrange_sync.stored.journal import Entry
from hashrange_sync.stored.table import Cancelled, Member, StateTable, groups

_ITEMS_MAX: Final = 400
"""How many items are looked at at a time: the writes of all must fit into the journal, an item of 400 KB.
Sixteen batches, which are sent side by side, have room for so many."""
_KEYS_BYTES_MAX: Final = 150_000
_BATCH_MAX: Final = 25
_ROUNDS_MAX: Final = 10


@dataclass(slots=True)
class Counts:
    """What was done since the process began."""

    to_cloud: int = 0
    to_edge: int = 0
    conflicts: int = 0
    again: int = 0
    records: int = 0
    gaps: int = 0


@dataclass(frozen=True, slots=True)
class Look:
    """An item to look at, and what is known of it.

    mark: the digest of the key. known: the image on a side, as just scanned. marks: by side, the digest of
    the shared part, as scanned or after the last change in the stream. expired: by side, whether that change
    was an expiry. outside: by that image the item is outside of the filter. lacking: a side that is believed
    not to have the item if the pair has no state of it; the condition of the write finds out.
    """

    key: Item
    mark: bytes
    known: Mapping[SideName, Item | None] = field(default_factory=dict)
    marks: Mapping[SideName, bytes] = field(default_factory=dict)
    expired: Mapping[SideName, bool] = field(default_factory=dict)
    outside: bool = False
    lacking: SideName | None = None

    def is_settled(self, state: State) -> bool:
        """Whether there is nothing to do: the side has what both sides agreed on, or the item does not
        concern the pair. (If there is a later change, there is a later record.)"""
        if not self.marks:
            return False
        if self.outside and state == NEVER:
            return True
        return all(mark == state.of(side) for side, mark in self.marks.items())

    def lost_by_expiry(self, state: State, now: float) -> list[SideName]:
        """The sides on which the item, if it is not there, has expired. Where the stream does not say so, its
        time to live does."""
        late = state.expires is not None and state.expires <= now
        sides: tuple[SideName, SideName] = ("cloud", "edge")
        return [side for side in sides if self.expired.get(side, late)]


@dataclass(frozen=True, slots=True)
class Planned:
    """A decision with its write, if it needs one. `mark` is the digest of the item's key. `direct`: the write
    is sent by itself."""

    mark: bytes
    decision: Decision
    write: Write | None
    direct: bool


Batch = Sequence[tuple[Planned, Any]]
"""Plans with their statements."""


@dataclass(frozen=True, slots=True)
class _Found:
    """Items that are not settled, the states of all that were asked for, and both sides' images."""

    looks: Mapping[bytes, Look]
    states: Mapping[bytes, State]
    images: Mapping[SideName, Mapping[bytes, Item | None]]


class Applier:
    """Makes items of a pair equal. `pool` sends requests side by side; None sends one after the other."""

    def __init__(
        self,
        sides: Mapping[SideName, Side],
        state: StateTable,
        log: ConflictLog,
        rules: Rules,
        *,
        now: Callable[[], float],
        is_same_table: Callable[[SideName], None],
        pool: ThreadPoolExecutor | None = None,
        mark: str = "",
    ) -> None:
        """`is_same_table` raises `SyncError` if a side's table is another one than before: then all items
        would seem to be deleted. `mark` is an attribute that tells writes to the cloud apart from all
        others."""
        self.rules = rules
        self._is_same_table = is_same_table
        self._mark = mark
        self._marks = count(1)
        self.counts = Counts()
        self._sides = sides
        self._state = state
        self._log = log
        self._now = now
        self._pool = pool

    def apply(self, looks: Sequence[Look], further: Sequence[Member] = ()) -> dict[bytes, State]:
        """Make items equal, and `further` in the last transaction. Returns the states of the items, by the
        digests of their keys. Raises `SyncError`."""
        states: dict[bytes, State] = {}
        first, *others = _parts(looks)
        planned = self._planned(first)
        for following in others:
            # (what is written does not concern the items that are read and planned meanwhile)
            ahead = self._pool.submit(self._planned, following) if self._pool else None
            try:
                states |= self._apply(*planned, ())
            finally:
                wait([ahead] if ahead else ())
            planned = ahead.result() if ahead else self._planned(following)
        return states | self._apply(*planned, further)

    def _apply(
        self, found: _Found, planned: Sequence[Planned], further: Sequence[Member]
    ) -> dict[bytes, State]:
        states = dict(found.states)
        for _ in range(_ROUNDS_MAX):
            self._log_conflicts(planned)
            direct = [plan for plan in planned if plan.direct]
            refused = self._send(direct)
            again = refused | {plan.mark for plan in planned if plan.decision.again}
            kept = [plan for plan in planned if plan.mark not in refused]
            late = self._settle(kept, () if again else further, bool(direct))
            for plan in kept:
                if plan.mark not in late:
                    states[plan.mark] = plan.decision.state
                    self._state.remember(plan.mark, plan.decision.state)
                    self._count(plan)
            again |= late
            if not again:
                return states
            self.counts.again += len(again)
            # (what was known of them may be over)
            found, planned = self._planned(
                {mark: replace(found.looks[mark], known={}, marks={}, lacking=None) for mark in again}
            )
            states |= found.states
        raise Unavailable("Items change faster than they can be read; they are tried again.")

    def _found(self, looks: Mapping[bytes, Look]) -> _Found:
        """What the state and both sides have of items, without those that are settled."""
        states = self._state.states({mark: look.key for mark, look in looks.items()}) if looks else {}
        left = {mark: look for mark, look in looks.items() if not look.is_settled(states[mark])}
        return _Found(left, states, self._images(left, states) if left else {})

    def _images(
        self, looks: Mapping[bytes, Look], states: Mapping[bytes, State]
    ) -> dict[SideName, dict[bytes, Item | None]]:
        """Both sides' items as they are now, or as just scanned."""

        def read(name: SideName) -> dict[bytes, Item | None]:
            known = {mark: look.known[name] for mark, look in looks.items() if name in look.known}
            known |= {
                mark: None for mark, look in looks.items() if look.lacking == name and states[mark] == NEVER
            }
            asked = {mark: look.key for mark, look in looks.items() if mark not in known}
            side = self._sides[name]
            found = items_of(side, side.table, asked) if asked else {}
            return {**known, **{mark: found.get(mark) for mark in asked}}

        return {"cloud": read("cloud"), "edge": read("edge")}

    def _planned(self, looks: Mapping[bytes, Look]) -> tuple[_Found, list[Planned]]:
        """What is to be done, and of what was read that follows. Nothing is written."""
        found = self._found(looks)
        for name, items in found.images.items():
            if any(item is None and found.states[mark].of(name) for mark, item in items.items()):
                self._is_same_table(name)
        planned = []
        for mark, look in found.looks.items():
            state = found.states[mark]
            expired = look.lost_by_expiry(state, self._now())
            marks = look.marks if look.known else {}
            images = Images(found.images["cloud"][mark], found.images["edge"][mark], expired, marks)
            decision = decide(self.rules, look.key, state, images)
            if decision is None:
                continue
            write = None
            if decision.target is not None:
                table = self._sides[decision.target].table
                write = write_of(table, look.key, decision.before, self._marked(decision))
            direct = write is not None and (decision.target == "cloud" or write.blind)
            planned.append(Planned(mark, decision, write, direct))
        return found, planned

    def _log_conflicts(self, plans: Sequence[Planned]) -> None:
        for decision in [plan.decision for plan in plans if plan.decision.conflict]:
            self.counts.conflicts += 1
            images = decision.images.cloud, decision.images.edge
            self._log.add(CONFLICT, decision.winner, decision.key, *images, self._now())

    def _marked(self, decision: Decision) -> Item | None:
        """What a decision writes, with the mark if it is for the cloud."""
        after = decision.after
        if not self._mark or decision.target != "cloud" or after is None:
            return after
        if not differences(decision.before, after):
            return after
        return {**after, self._mark: {"S": f"{self._state.epoch}.{next(self._marks)}"}}

    def _send(self, plans: Sequence[Planned]) -> set[bytes]:
        """Send writes by themselves. Returns the items whose writes were refused."""
        if not plans:
            return set()
        self._state.write_journal([_entry(plan) for plan in plans])
        alone, batches = self._batches(plans)
        send: list[Callable[[], set[bytes]]] = [partial(self._sent_together, batch) for batch in batches]
        send += [partial(self._sent_alone, plan) for plan in alone]
        if self._pool is None:
            return {mark for one in send for mark in one()}
        sent = [self._pool.submit(one) for one in send]
        wait(sent)
        return {mark for future in sent for mark in future.result()}

    def _batches(self, plans: Sequence[Planned]) -> tuple[list[Planned], list[Batch]]:
        """Those of the plans that are sent alone, and batches of the others with their statements."""
        alone: list[Planned] = []
        batched: list[tuple[Planned, Any]] = []
        for plan in plans:
            said = plan.write.statement(plan.decision.key) if plan.write is not None else None
            if said is None or plan.decision.target != "cloud" or not self._sides["cloud"].batches:
                alone.append(plan)
            else:
                batched.append((plan, said))
        if len(batched) == 1:
            return [*alone, batched[0][0]], []
        return alone, list(pieces(batched, _BATCH_MAX))

    def _sent_together(self, batch: Batch) -> set[bytes]:
        """Send a batch. Returns the items whose writes were refused."""
        made = self._sides["cloud"].write_batch([said for _, said in batch])
        return {plan.mark for (plan, _), is_made in zip(batch, made, strict=True) if not is_made}

    def _sent_alone(self, plan: Planned) -> set[bytes]:
        """Send a write. Returns its item if the write was refused."""
        write, decision = plan.write, plan.decision
        assert write is not None
        assert decision.target is not None
        asked = {"ReturnValues": "ALL_OLD"} if write.blind else {}
        side = self._sides[decision.target]
        try:
            answer = side.write_once(
                write.operation, **write.request, **asked, ReturnConsumedCapacity="TOTAL"
            )
        except Refused:
            return {plan.mark}
        if write.blind and digest(old := answer.get("Attributes")) != digest(decision.before):
            self.lost(decision.key, decision.target, old, decision.after)
        return set()

    def lost(
        self, key: Item, side: SideName, old: Item | None, new: Item | None, kind: str = OVERWRITTEN
    ) -> None:
        """Log that `old`, which nobody had read, was written over on a side."""
        self.counts.conflicts += 1
        images = (old, new) if side == "cloud" else (new, old)
        self._log.add(kind, "edge" if side == "cloud" else "cloud", key, *images, self._now())

    def _settle(self, plans: Sequence[Planned], further: Sequence[Member], noted: bool) -> set[bytes]:
        """Write to the edge, and store the states. Returns the items whose writes were refused; then
        `further` is left out."""
        if not plans and not further and not noted:
            return set()
        refused: set[bytes] = set()
        rows = {plan.mark: self._row(plan) for plan in plans}
        parts = list(groups(list(rows.values())))
        marks = iter(rows)
        for number, part in enumerate(parts):
            names = [next(marks) for _ in part]
            last = number + 1 == len(parts)
            while True:
                members = [member for name in names for member in rows[name]]
                ending = [*further] if last and not refused else []
                ending += [self._state.journal_end] if last and noted else []
                try:
                    if members or ending:
                        self._state.commit([*members, *ending])
                    break
                except Cancelled as error:
                    owners = [name for name in names for _ in rows[name]]
                    late = {owners[place] for place in error.failed if place < len(owners)}
                    if not late:
                        raise Unavailable("The state was changed by somebody else.") from error
                    refused |= late
                    names = [name for name in names if name not in late]
        return refused

    def _row(self, plan: Planned) -> list[Member]:
        """The members of a transaction for an item."""
        stored = self._state.member(plan.mark, plan.decision.key, plan.decision.state)
        if plan.write is None or plan.direct:
            return [stored]
        return [plan.write.member, stored]

    def _count(self, plan: Planned) -> None:
        if plan.write is not None:
            if plan.decision.target == "cloud":
                self.counts.to_cloud += 1
            else:
                self.counts.to_edge += 1


def _parts(looks: Sequence[Look]) -> list[dict[bytes, Look]]:
    """Parts of the looks that are small enough, by their marks; at least one."""
    parts: list[dict[bytes, Look]] = [{}]
    room = _KEYS_BYTES_MAX
    for look in looks:
        room -= size(look.key)
        if room < 0 or len(parts[-1]) == _ITEMS_MAX:
            parts.append({})
            room = _KEYS_BYTES_MAX - size(look.key)
        parts[-1][look.mark] = look
    return parts


def _entry(plan: Planned) -> Entry:
    write, decision = plan.write, plan.decision
    assert write is not None
    assert decision.target is not None
    return Entry(
        decision.key,
        decision.target,
        write.echo(),
        digest(decision.before),
        decision.state,
        decision.after is None,
        write.blind,
        decision.state.base is not None,
    )
