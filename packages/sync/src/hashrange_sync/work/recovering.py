"""Finds out which writes of a journal were made, after a process died or got no answer.

The stream of the side tells: a write that was made has its change there, from what was read to what was
written. So a counter is never added twice. Somebody else can only have made the same change if the write was
not made, because its condition would not have held any more; the two then count as one. Where that is not
enough, a mark (`settings.Pair.mark`) makes each write different from all others. Reading begins where the
pair has stopped and ends with the present items; it does not move how far the stream was read.

If the stream no longer has the records, the present items must do; what this may hide is logged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from hashrange_sync.deciding import SideName, State
from hashrange_sync.errors import Gap, Unavailable
from hashrange_sync.items import Item, change_digest, digest
from hashrange_sync.sides.calls import Side
from hashrange_sync.sides.reading import items_of, pieces
from hashrange_sync.sides.streams import Follower, Record
from hashrange_sync.stored.conflicts import UNSEEN
from hashrange_sync.stored.journal import Entry
from hashrange_sync.stored.table import Member, StateTable
from hashrange_sync.work.applying import Applier

_EMPTY_READS: Final = 3
"""A shard may have records after an empty page."""
_EMPTY_READS_MAX: Final = 50
_PAUSE_SECONDS: Final = 0.2


def recover(
    entries: Sequence[Entry],
    sides: Mapping[SideName, Side],
    followers: Mapping[SideName, Callable[[], Follower | None]],
    state: StateTable,
    applier: Applier,
    wait: Callable[[float], object],
) -> None:
    """Store what the writes of a journal have made of the states, and remove the journal. Raises
    `SyncError`."""
    members: list[Member] = []
    for name, side in sides.items():
        own = {digest(entry.key): entry for entry in entries if entry.side == name}
        if own:
            members += _of_side(own, side, followers[name], state, applier, wait)
    for part in pieces([*members, state.journal_end], 90):
        state.commit(part)


def _of_side(
    entries: Mapping[bytes, Entry],
    side: Side,
    follow: Callable[[], Follower | None],
    state: StateTable,
    applier: Applier,
    wait: Callable[[float], object],
) -> list[Member]:
    present = items_of(side, side.table, {mark: entry.key for mark, entry in entries.items()})
    try:
        follower = follow()
        if follower is None:
            raise Gap(side.name, "there is no stream")
        chains = _chains(entries, follower, present, wait)
    except Gap:
        chains = None
    members = []
    for mark, entry in entries.items():
        if chains is None:
            made = _guess(entry, side, applier, present.get(mark))
        else:
            made = _found(entry, side, applier, chains[mark])
        if made is not None:
            members.append(state.member(mark, entry.key, made))
    return members


def _found(entry: Entry, side: Side, applier: Applier, chain: Sequence[Record]) -> State | None:
    """The state that the write has made, if it was made."""
    for record in chain:
        if not _is_echo(entry, record):
            continue
        if entry.blind and digest(record.old) != entry.old:
            applier.lost(entry.key, side.name, record.old, record.new)
        return entry.state
    return None


def _is_echo(entry: Entry, record: Record) -> bool:
    if entry.deletes:
        return record.new is None and not record.expiry
    if entry.blind:
        return digest(record.new) == entry.echo
    return change_digest(record.old, record.new) == entry.echo


def _guess(entry: Entry, side: Side, applier: Applier, present: Item | None) -> State | None:
    """What the present item says of a write of which the stream says nothing any more."""
    if digest(present) == entry.old:
        return None
    shared = applier.rules.scope.shared(present)
    made = digest(shared) == entry.state.of(side.name)
    if entry.blind or not made:
        applier.lost(entry.key, side.name, present, None, UNSEEN)
    return entry.state if made else None


def _chains(
    entries: Mapping[bytes, Entry],
    follower: Follower,
    present: Mapping[bytes, Item],
    wait: Callable[[float], object],
) -> dict[bytes, list[Record]]:
    """The changes of the items since the pair has stopped, up to the present items. Raises `Gap`, and
    `Unavailable` if the stream does not show the present items yet."""
    chains: dict[bytes, list[Record]] = {mark: [] for mark in entries}

    def is_complete(mark: bytes) -> bool:
        now = digest(present.get(mark))
        chain = chains[mark]
        return any(digest(record.new) == now for record in chain) or (not chain and now == entries[mark].old)

    empty = 0
    while empty < _EMPTY_READS_MAX:
        found = False
        for page in follower.pages():
            follower.advance(page)
            found = found or bool(page.records) or page.position.done
            for record in page.records:
                chain = chains.get(digest(record.key))
                if chain is not None:
                    chain.append(record)
        empty = 0 if found else empty + 1
        if empty >= _EMPTY_READS and all(is_complete(mark) for mark in chains):
            return chains
        if empty:
            wait(_PAUSE_SECONDS)
    raise Unavailable("The stream does not show yet which writes were made; it is read again.")
