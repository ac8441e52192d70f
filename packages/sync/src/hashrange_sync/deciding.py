"""What is to be done about one item: a function of what both sides agreed on and of what they have now.

    only one side has changed    the other gets the change
    both have, to the same       that is what they agree on
    both have                    a conflict: `policies`
    an expiry, and none asked    the side that lost the item by its expiry agrees to that alone

An item is compared as it is now, not as a stream record had it, so records may come late, twice, or for what
is long over. Nothing here waits, reads or writes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from hashrange_sync.items import ABSENT, Item, digest
from hashrange_sync.policies import Resolve, counters_changed, loses
from hashrange_sync.scopes import Scope
from hashrange_sync.settings import Direction, Policy

SideName = Literal["cloud", "edge"]


@dataclass(frozen=True, slots=True)
class State:
    """What both sides last agreed on: the digest of each side's shared part. The digests differ only where an
    expiry was not passed on. `base` is the shared part itself, for policies that need it; `expires` its time
    to live, in epoch seconds."""

    cloud: bytes = ABSENT
    edge: bytes = ABSENT
    base: Item | None = None
    expires: int | None = None

    def of(self, side: SideName) -> bytes:
        """The digest of a side."""
        return self.cloud if side == "cloud" else self.edge


NEVER = State()
"""Of an item that neither side had."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How a pair decides. `expiry` is the attribute of the time to live, "" for none."""

    scope: Scope
    direction: Direction
    policy: Policy
    resolve: Resolve
    pass_expiries: bool = False
    expiry: str = ""

    def allows(self, side: SideName) -> bool:
        """Whether items of a side are written."""
        return self.direction != ("up" if side == "edge" else "down")

    def agreed(self, image: Item | None, mark: bytes) -> State:
        """The state of an item of which both sides have the shared part `image` with the digest `mark`."""
        text = (image or {}).get(self.expiry, {}).get("N", "") if self.expiry else ""
        expires = int(text) if text.isdigit() else None
        return State(mark, mark, image if self.policy.needs_base else None, expires)


@dataclass(frozen=True, slots=True)
class Images:
    """Both sides' items as they are now. `expired` are the sides that lost the item by its time to live.
    `marks`: the digests of shared parts, as far as they are known."""

    cloud: Item | None
    edge: Item | None
    expired: Collection[SideName] = ()
    marks: Mapping[SideName, bytes] = field(default_factory=dict)

    def of(self, side: SideName) -> Item | None:
        """The item of a side."""
        return self.cloud if side == "cloud" else self.edge


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do about the item with `key`: write `after` over `before` at `target`, if there is one, and
    then agree on `state`. `conflict`: what is written over was changed, so that it is logged first. `again`:
    the item must be looked at once more after this."""

    key: Item
    images: Images
    state: State
    target: SideName | None = None
    after: Item | None = None
    conflict: bool = False
    again: bool = False
    winner: str = ""

    @property
    def before(self) -> Item | None:
        """What the target has."""
        return None if self.target is None else self.images.of(self.target)


def decide(rules: Rules, key: Item, state: State, images: Images) -> Decision | None:
    """What is to be done about an item; None for nothing."""
    scope = rules.scope
    gone = images.cloud is None and images.edge is None
    if not gone and not scope.concerns(images.cloud, images.edge):
        return None
    cloud, edge = scope.shared(images.cloud), scope.shared(images.edge)
    new = State(images.marks.get("cloud") or digest(cloud), images.marks.get("edge") or digest(edge))
    changed: list[SideName] = [side for side in _SIDES if new.of(side) != state.of(side)]
    if not changed:
        return None
    counted = len(changed) > 1 and _is_counted_twice(rules, state, cloud, edge)
    if new.cloud == new.edge and not counted:
        return Decision(key, images, rules.agreed(cloud, new.cloud))
    if not rules.pass_expiries:
        for side in [side for side in changed if side in images.expired and images.of(side) is None]:
            changed.remove(side)
            state = State(
                ABSENT if side == "cloud" else state.cloud,
                ABSENT if side == "edge" else state.edge,
                state.base,
                state.expires,
            )
        if not changed:
            return Decision(key, images, state)
    if changed == ["cloud"]:
        return _written(rules, key, images, "edge", cloud, new.cloud)
    if changed == ["edge"]:
        return _written(rules, key, images, "cloud", edge, new.edge)
    return _resolved(rules, key, state, images, cloud, edge)


_SIDES: tuple[SideName, SideName] = ("cloud", "edge")


def _is_counted_twice(rules: Rules, state: State, cloud: Item | None, edge: Item | None) -> bool:
    """Whether both sides have changed counters by the same, so that equal images are not the sum."""
    if rules.policy.kind != "add" or rules.direction != "both" or state.base is None or cloud is None:
        return False
    return edge is not None and counters_changed(state.base, cloud, rules.policy.names)


def _written(
    rules: Rules, key: Item, images: Images, target: SideName, image: Item | None, mark: bytes
) -> Decision | None:
    """The target gets the shared part `image` with the digest `mark`, and keeps its own attributes."""
    if not rules.allows(target):
        return None
    after = None if image is None else {**rules.scope.own(images.of(target)), **image}
    return Decision(key, images, rules.agreed(image, mark), target, after)


def _resolved(
    rules: Rules, key: Item, state: State, images: Images, cloud: Item | None, edge: Item | None
) -> Decision:
    """A conflict. Its winner is one of the images, or a new one.

    A new image is written to the edge first, together with the state that the cloud's image, which it
    includes, is agreed on: then it is a change of the edge like any other. So it is never made twice.
    """
    if rules.direction == "both":
        made = rules.resolve(state.base, edge, cloud)
        if made is not None:
            made = {**made, **key}
    else:
        made = cloud if rules.direction == "down" else edge
    mark = digest(made)
    own = rules.scope.own
    if mark == digest(cloud) != digest(edge):
        after = None if made is None else {**own(images.edge), **made}
        return Decision(key, images, rules.agreed(made, mark), "edge", after, conflict=True, winner="cloud")
    if mark == digest(edge):
        after = None if made is None else {**own(images.cloud), **made}
        return Decision(key, images, rules.agreed(made, mark), "cloud", after, conflict=True, winner="edge")
    after = None if made is None else {**own(images.edge), **made}
    lost = rules.policy.kind != "add" or loses(state.base, edge, cloud, rules.policy.names)
    return Decision(
        key,
        images,
        rules.agreed(cloud, digest(cloud)),
        "edge",
        after,
        conflict=lost,
        again=True,
        winner=rules.policy.kind,
    )
