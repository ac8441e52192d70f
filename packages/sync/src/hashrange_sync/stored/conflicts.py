"""What lost: a table of the edge with both images of each conflict.

    id (partition key)    of the conflict; the same conflict has the same id, so it is there once
    part (sort key)       `entry`: `at`, `kind`, `winner`, `key`; `cloud#N` and `edge#N`: pieces of the images

Images are kept as bytes (DynamoDB's JSON in MessagePack), in pieces, so that two items of 400 KB fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import msgspec

from hashrange_sync.deciding import SideName
from hashrange_sync.errors import SyncError
from hashrange_sync.items import Item, digest

if TYPE_CHECKING:
    from hashrange_sync.sides.calls import Side

_PIECE_BYTES: Final = 300_000
ENTRIES: Final = {
    "FilterExpression": "part = :entry",
    "ExpressionAttributeValues": {":entry": {"S": "entry"}},
}
"""The parameters of a scan for the entries without their images."""
CONFLICT: Final = "conflict"
OVERWRITTEN: Final = "overwritten"
"""Somebody changed an item in the moment in which the other side's change was written over it."""
UNSEEN: Final = "unseen"
"""As `OVERWRITTEN` perhaps, but the stream no longer says so."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """An entry of the log. `at` is in epoch seconds; `winner` the side, or the policy, that won. The images
    are None where the item was not there, or where they were not asked for."""

    id: str
    at: float
    kind: str
    winner: str
    key: Item
    cloud: Item | None = None
    edge: Item | None = None

    def image(self, side: SideName) -> Item | None:
        """The image of a side."""
        return self.cloud if side == "cloud" else self.edge


class ConflictLog:
    """The log of a pair."""

    def __init__(self, edge: Side, name: str) -> None:
        self.name = name
        self._edge = edge

    def add(
        self, kind: str, winner: str, key: Item, cloud: Item | None, edge: Item | None, now: float
    ) -> None:
        """Log a conflict. If it is there, only its time changes."""
        marks = b"".join([digest(key), digest(cloud) or b"-", digest(edge) or b"-", kind.encode()])
        name = blake2b(marks, digest_size=8).hexdigest()
        sides: list[tuple[SideName, Item | None]] = [("cloud", cloud), ("edge", edge)]
        for side, image in sides:
            if image is not None:
                packed = msgspec.msgpack.encode(image)
                for number, start in enumerate(range(0, len(packed), _PIECE_BYTES)):
                    piece = {"B": packed[start : start + _PIECE_BYTES]}
                    self._put(name, f"{side}#{number}", {"bytes": piece})
        entry: dict[str, Any] = {
            "at": {"N": f"{now:.3f}"},
            "kind": {"S": kind},
            "winner": {"S": winner},
            "key": {"M": dict(key)},
        }
        self._put(name, "entry", entry)

    def _put(self, name: str, part: str, values: dict[str, Any]) -> None:
        item = {"id": {"S": name}, "part": {"S": part}, **values}
        self._edge.call("put_item", TableName=self.name, Item=item)

    def entries(self) -> list[Conflict]:
        """All conflicts without their images, the newest first."""
        found = [
            conflict_of(item)
            for item in self._edge.items(
                self.name,
                "scan",
                **ENTRIES,
            )
        ]
        return sorted(found, key=lambda one: (-one.at, one.id))

    def find(self, name: str) -> Conflict:
        """A conflict with its images. Raises `SyncError`."""
        parts = {
            item["part"]["S"]: item
            for item in self._edge.items(
                self.name,
                "query",
                KeyConditionExpression="id = :id",
                ExpressionAttributeValues={":id": {"S": name}},
            )
        }
        if "entry" not in parts:
            raise SyncError(f"There is no conflict {name}; `hashrange sync conflicts list` shows all.")
        images = {side: image_of(parts, side) for side in ("cloud", "edge")}
        return conflict_of(parts["entry"], **images)


def image_of(parts: dict[str, dict[str, Any]], side: str) -> Item | None:
    """The image of a side, of the items of a conflict by their parts."""
    packed, number = b"", 0
    while (piece := parts.get(f"{side}#{number}")) is not None:
        packed += bytes(piece["bytes"]["B"])
        number += 1
    return msgspec.msgpack.decode(packed) if packed else None


def conflict_of(entry: dict[str, Any], **images: Any) -> Conflict:
    """The conflict of an item `entry`, with its images if they are at hand."""
    return Conflict(
        entry["id"]["S"],
        float(entry["at"]["N"]),
        entry["kind"]["S"],
        entry["winner"]["S"],
        entry["key"]["M"],
        **images,
    )
