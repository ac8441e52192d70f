"""The writes that are under way outside of a transaction with the state: all of the cloud's, and deletions.

They are noted before the first is sent, and the note is removed in the transaction that stores what they have
made of the states. A process that finds a note, because another one died or got no answer, looks into the
stream which of these writes were made (`work.recovering`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from hashrange_sync.deciding import SideName, State
from hashrange_sync.items import Item


@dataclass(frozen=True, slots=True)
class Entry:
    """A write that may have been made.

    echo: see `sides.writing.Write`. old: the digest of the item that it writes over. state: what both sides
    agree on if it was made; its `base` is kept elsewhere if there is one. deletes, blind: what kind of write
    it is.
    """

    key: Item
    side: SideName
    echo: bytes
    old: bytes
    state: State
    deletes: bool
    blind: bool
    has_base: bool

    def with_base(self, base: Item | None) -> Entry:
        """The entry with the `base` of its state."""
        return replace(self, state=replace(self.state, base=base))


def show(entries: Sequence[Entry]) -> dict[str, Any]:
    """The attribute that stores a journal."""
    return {"L": [_shown(entry) for entry in entries]}


def _shown(entry: Entry) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "key": {"M": dict(entry.key)},
        "side": {"S": entry.side},
        "echo": {"B": entry.echo},
        "old": {"B": entry.old},
        "cloud": {"B": entry.state.cloud},
        "edge": {"B": entry.state.edge},
        "deletes": {"BOOL": entry.deletes},
        "blind": {"BOOL": entry.blind},
        "base": {"BOOL": entry.has_base},
    }
    if entry.state.expires is not None:
        shown["expires"] = {"N": str(entry.state.expires)}
    return {"M": shown}


def parse(stored: dict[str, Any] | None) -> list[Entry]:
    """The journal in an attribute."""
    return [_entry(one["M"]) for one in (stored or {"L": []})["L"]]


def _entry(stored: dict[str, Any]) -> Entry:
    expires = stored.get("expires", {}).get("N")
    return Entry(
        stored["key"]["M"],
        cast(SideName, stored["side"]["S"]),
        bytes(stored["echo"]["B"]),
        bytes(stored["old"]["B"]),
        State(
            bytes(stored["cloud"]["B"]),
            bytes(stored["edge"]["B"]),
            None,
            None if expires is None else int(expires),
        ),
        stored["deletes"]["BOOL"],
        stored["blind"]["BOOL"],
        stored["base"]["BOOL"],
    )
