"""The items of a load, and whether an answer can be true.

The content of an item follows from its number and its version, so every item that is read can be verified by
itself. With consistent reads its version is verified too: it must not be older than the last update that was
acknowledged before the read began. That is known for updates that were alone; of two at a time, either may
come last.
"""

from __future__ import annotations

from hashlib import shake_256
from typing import Any, Final

COLLECTION_ITEMS: Final = 10
"""How many items have the same partition key."""
KEY_BYTES: Final = 60
"""About the bytes of an item beside its content."""


def key(number: int) -> dict[str, Any]:
    """The key of an item."""
    place = number % COLLECTION_ITEMS
    return {"pk": {"S": f"user{number // COLLECTION_ITEMS:010d}"}, "sk": {"N": str(place)}}


def number_of(item: dict[str, Any]) -> int:
    """The number of an item. Raises KeyError, ValueError."""
    return int(item["pk"]["S"].removeprefix("user")) * COLLECTION_ITEMS + int(item["sk"]["N"])


def content(number: int, version: int, size: int) -> str:
    """The text of an item."""
    return shake_256(f"{number}/{version}".encode()).hexdigest((size + 1) // 2)[:size]


def item(number: int, version: int, size: int) -> dict[str, Any]:
    """An item."""
    return {
        **key(number),
        "version": {"N": str(version)},
        "content": {"S": content(number, version, size)},
    }


def create(table: str) -> dict[str, Any]:
    """The CreateTable request of the table."""
    return {
        "TableName": table,
        "KeySchema": [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "N"},
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }


class Known:
    """What is known of the versions of items: `begun` are the highest versions that were sent, `sure` those
    that a later read cannot be behind."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._begun: dict[int, int] = {}
        self._sure: dict[int, int] = {}
        self._under_way: dict[int, int] = {}
        self._mingled: set[int] = set()

    def begin(self, number: int) -> int:
        """The version of an update that begins now."""
        version = self._begun.get(number, 0) + 1
        self._begun[number] = version
        under_way = self._under_way.get(number, 0)
        if under_way:
            self._mingled.add(number)
        self._under_way[number] = under_way + 1
        return version

    def end(self, number: int, version: int, *, is_made: bool) -> None:
        """An update has ended; `is_made`: it was acknowledged."""
        left = self._under_way[number] - 1
        if left:
            self._under_way[number] = left
            return
        del self._under_way[number]
        if number in self._mingled:
            self._mingled.discard(number)
        elif is_made:
            self._sure[number] = version

    def lost(self, number: int) -> None:
        """Nobody knows whether and when an update is made: of this item no version is sure any more."""
        self._sure[number] = 0
        # It counts as in progress forever, so that no later update is taken for the last one.
        self._under_way[number] = self._under_way.get(number, 0) + 1
        self._mingled.add(number)

    def sure(self, number: int) -> int:
        """The version that a consistent read which begins now shows at least."""
        return self._sure.get(number, 0)

    def wrong_in_query(self, found: dict[str, Any], first: int) -> str:
        """Why an item cannot be in the answer of a query that begins with the item `first`."""
        try:
            number = number_of(found)
        except (KeyError, TypeError, ValueError):
            return f"the query from item {first} found an item of another form"
        if not first <= number < first - first % COLLECTION_ITEMS + COLLECTION_ITEMS:
            return f"the query from item {first} found item {number}"
        return self.wrong(number, found, 0)

    def wrong(self, number: int, found: dict[str, Any] | None, least: int) -> str:
        """Why an answer cannot be true; "" if it can. `found` is the item, `least` the lowest version."""
        if found is None:
            return f"item {number} is missing"
        try:
            version = int(found["version"]["N"])
            if number_of(found) != number:
                return f"item {number} was asked for, and item {number_of(found)} came"
            if found["content"]["S"] != content(number, version, self._size):
                return f"item {number} has another content than its version {version}"
        except (KeyError, TypeError, ValueError):
            return f"item {number} has another form"
        if version > self._begun.get(number, 0):
            return f"item {number} has version {version}, which was never sent"
        if version < least:
            return f"item {number} has version {version}, after {least} was acknowledged"
        return ""
