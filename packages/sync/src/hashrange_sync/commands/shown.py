"""PairStatuses, conflicts and comparisons, as lines for people and documents for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from hashrange.clock import show_moment
from hashrange_sync.items import Item, plain
from hashrange_sync.stored.conflicts import Conflict
from hashrange_sync.stored.status import PairStatus
from hashrange_sync.work.verifying import Comparison


def text_of(item: Item | None) -> str:
    """An item in a line of DynamoDB's JSON."""
    return "none" if item is None else orjson.dumps(plain(item)).decode()


def status_lines(status: PairStatus) -> Iterator[str]:
    """A status for people."""
    at = show_moment(status.at) if status.at else "never"
    yield f"{status.name}: {status.state}, {at}, {status.lag:.1f} s behind"
    yield (
        f"  {status.to_edge} written to the edge, {status.to_cloud} to the cloud, "
        f"{status.conflicts} conflicts, {status.units:.0f} units of the cloud, {status.throttled} throttled"
    )
    if status.sweep is not None:
        share = f" of about {status.sweep.total}" if status.sweep.total else ""
        yield f"  {status.sweep.reason}: {status.sweep.items}{share} items"
    for difference in status.differences:
        yield f"  the definitions differ: {difference}"
    if status.error:
        yield f"  {show_moment(status.error_at)}: {status.error}"


def conflict_line(conflict: Conflict) -> str:
    """A conflict in a line."""
    columns = conflict.id, show_moment(conflict.at), f"{conflict.kind:<11}", f"{conflict.winner:<6}"
    return "  ".join([*columns, text_of(conflict.key)])


def conflict_document(conflict: Conflict, *, images: bool) -> dict[str, Any]:
    """A conflict for programs."""
    shown = {
        "id": conflict.id,
        "at": show_moment(conflict.at),
        "kind": conflict.kind,
        "winner": conflict.winner,
        "key": plain(conflict.key),
    }
    return shown | ({"cloud": plain(conflict.cloud), "edge": plain(conflict.edge)} if images else {})


def comparison_lines(name: str, found: Comparison) -> Iterator[str]:
    """What a comparison has found."""
    if found.is_equal:
        yield f"{name}: {found.compared} items compared, all equal"
        return
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(found.differing.items()))
    yield f"{name}: {found.compared} items compared: {kinds}"
    for kind, key in found.keys:
        yield f"  {kind}: {text_of(key)}"
