"""What becomes of an item that both sides have changed since they last agreed.

    cloud, edge           that side's image
    newest: ATTRIBUTE     the image whose attribute is greater: a number, or a text such as an ISO 8601 time.
                          An image without the attribute, or a deletion, loses; the cloud wins a draw
    add: ATTRIBUTES       counters: what both sides have added since they agreed is added up. Other attributes
                          are taken from the side that changed them; if both did, from the cloud
    merge: MODULE:NAME    what a function makes of (old, ours, theirs): the image that both sides agreed on,
                          the edge's and the cloud's, in DynamoDB's JSON; None for an item that is not there

Refuses to know which side is written.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from decimal import Context, Decimal, Inexact
from typing import Any, Final

from hashrange_sync.errors import SettingsError, SyncError
from hashrange_sync.items import Item, Value, differences, same
from hashrange_sync.settings import Policy

Resolve = Callable[[Item | None, Item | None, Item | None], Item | None]
"""The image that both sides get, of the old one, the edge's and the cloud's."""

_EXACT: Final = Context(prec=38, traps=[Inexact])


def resolver(policy: Policy) -> Resolve:
    """The function of a policy. Raises `SettingsError` for a function that cannot be found."""
    if policy.kind == "merge":
        return _merging(policy.names[0])
    if policy.kind == "newest":
        [name] = policy.names
        return lambda old, ours, theirs: ours if _is_newer(ours, theirs, name) else theirs
    if policy.kind == "add":
        return lambda old, ours, theirs: _added(old, ours, theirs, policy.names)
    if policy.kind == "edge":
        return lambda old, ours, theirs: ours
    return lambda old, ours, theirs: theirs


def _merging(reference: str) -> Resolve:
    module, _, name = reference.partition(":")
    try:
        merge: Resolve = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(
            f"conflicts = merge: {reference}: {error}. Name a function as MODULE:FUNCTION."
        ) from error

    def resolve(old: Item | None, ours: Item | None, theirs: Item | None) -> Item | None:
        try:
            return merge(old, ours, theirs)
        except Exception as error:
            key = ours or theirs
            raise SyncError(f"{reference} failed with {type(error).__name__}: {error}; of {key}") from error

    return resolve


def _is_newer(ours: Item | None, theirs: Item | None, name: str) -> bool:
    mine, other = _time(ours, name), _time(theirs, name)
    if mine is None or other is None or type(mine) is not type(other):
        # (if only one of them can be compared, that one)
        return mine is not None and (other is None or isinstance(mine, Decimal))
    return bool(mine > other)


def _time(image: Item | None, name: str) -> Any:
    value: Value = (image or {}).get(name, {})
    if "N" in value:
        return Decimal(value["N"])
    return value.get("S")


def counters_changed(old: Item | None, image: Item | None, names: tuple[str, ...]) -> bool:
    """Whether counters differ from those that both sides agreed on."""
    return any(not same((old or {}).get(name), (image or {}).get(name)) for name in names)


def loses(old: Item | None, ours: Item | None, theirs: Item | None, names: tuple[str, ...]) -> bool:
    """Whether adding counters up loses something: an attribute that both sides have changed, and that cannot
    be added."""
    mine, other = differences(old, ours), differences(old, theirs)
    return any(
        not same(mine[name][1], other[name][1])
        and (name not in names or _sum((old or {}).get(name), mine[name][1], other[name][1]) is None)
        for name in mine.keys() & other.keys()
    )


def _added(old: Item | None, ours: Item | None, theirs: Item | None, names: tuple[str, ...]) -> Item | None:
    if ours is None or theirs is None:
        return ours if theirs is None else theirs  # (a deletion loses against what was counted)
    if old is None:
        return theirs
    made = dict(theirs)
    moved = differences(old, theirs)
    for name, (_, mine) in differences(old, ours).items():
        if name in names and (total := _sum(old.get(name), mine, theirs.get(name))) is not None:
            made[name] = {"N": total}
        elif name in moved:
            continue
        elif mine is None:
            made.pop(name, None)
        else:
            made[name] = mine
    return made


def _sum(old: Value | None, mine: Value | None, other: Value | None) -> str | None:
    """Three values of a counter as one, exactly; None if one of them is no number, or the sum has too many
    digits."""
    numbers = [
        Decimal(value["N"]) if "N" in value else None
        for value in (old or _ZERO, mine or _ZERO, other or _ZERO)
    ]
    if any(number is None for number in numbers):
        return None
    before, ours, theirs = (number or Decimal(0) for number in numbers)
    try:
        return str(_EXACT.subtract(_EXACT.add(ours, theirs), before))
    except Inexact:
        return None


_ZERO: Final[Value] = {"N": "0"}
