"""Helpers for the tests of vector indexes: a table with vectors, and the search that goes through all."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from math import fsum, sqrt
from typing import Any, Final

import worlds
from hashrange.storage.api import Engine

NOW: Final = 1_700_000_000.0
DISTANCES: Final = ("COSINE", "EUCLIDEAN", "DOT_PRODUCT")

Numbers = Sequence[float | int | str]
Item = dict[str, Any]


def listed(numbers: Numbers) -> Item:
    """A vector as an attribute value."""
    return {"L": [{"N": str(number)} for number in numbers]}


def index_of(name: str = "near", dimensions: int = 2, distance: str = "COSINE", **given: Any) -> Item:
    """A VectorIndex."""
    return {
        "IndexName": name,
        "VectorAttribute": {"AttributeName": "v"},
        "Projection": {"ProjectionType": "ALL"},
        "Dimensions": dimensions,
        "DistanceFunction": distance,
        **given,
    }


SCHEMA: Final = [
    {"AttributeName": "area", "SearchSchemaElementType": "HASH"},
    {"AttributeName": "kind", "SearchSchemaElementType": "INLINE_FILTER"},
    {"AttributeName": "size", "SearchSchemaElementType": "INLINE_FILTER"},
]
TYPES: Final = {"p": "S", "s": "N", "area": "S", "kind": "S", "size": "N"}


class World(worlds.World):
    """A database with a clock of its own, and requests to it."""

    def __init__(self, engine: Engine, **settings: Any) -> None:
        super().__init__(lambda: engine, now=NOW, **settings)

    def create(self, *indexes: Item, name: str = "table", scoped: bool = False) -> None:
        """A table with vector indexes; `scoped`: a search schema uses the attributes of `TYPES`."""
        used = TYPES if scoped else {name: TYPES[name] for name in ("p", "s")}
        self(
            "CreateTable",
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": n, "AttributeType": t} for n, t in used.items()],
            KeySchema=[
                {"AttributeName": "p", "KeyType": "HASH"},
                {"AttributeName": "s", "KeyType": "RANGE"},
            ],
            **({"VectorIndexes": [*indexes]} if indexes else {}),
        )

    def put(self, number: int, vector: Numbers | None, table: str = "table", **given: str) -> None:
        """An item; `given` are attributes of `TYPES`."""
        item = {**key_of(number), **{name: {TYPES[name]: value} for name, value in given.items()}}
        if vector is not None:
            item["v"] = listed(vector)
        self("PutItem", TableName=table, Item=item)

    def search(self, vector: Numbers, top: int = 10, index: str = "near", **given: Any) -> list[Item]:
        """The SearchResults of a search."""
        request = {"TableName": "table", "IndexName": index, "TopK": top, **given}
        answer = self("SearchVectors", SearchVector=listed(vector)["L"], **request)
        found: list[Item] = answer["SearchResults"]
        return found

    def items(self, table: str = "table") -> list[Item]:
        """All items of the table."""
        found: list[Item] = self("Scan", TableName=table)["Items"]
        return found


def key_of(number: int) -> Item:
    """The key of an item."""
    return {"p": {"S": f"p{number % 3}"}, "s": {"N": str(number)}}


def condition(wanted: Mapping[str, str]) -> Item:
    """The members of a request that demand these values of attributes of `TYPES`."""
    return {
        "SearchConditionExpression": " AND ".join(f"#{name} = :{name}" for name in wanted),
        "ExpressionAttributeNames": {f"#{name}": name for name in wanted},
        "ExpressionAttributeValues": {f":{name}": {TYPES[name]: value} for name, value in wanted.items()},
    }


def rounded(numbers: Numbers) -> list[float]:
    """The numbers at the precision of an index."""
    form = f"<{len(numbers)}f"
    return list(struct.unpack(form, struct.pack(form, *map(float, numbers))))


def score(distance: str, first: Numbers, second: Numbers) -> float:
    """The score of two vectors."""
    one, other = rounded(first), rounded(second)
    product = fsum(a * b for a, b in zip(one, other, strict=True))
    if distance == "DOT_PRODUCT":
        return product
    if distance == "EUCLIDEAN":
        return sqrt(fsum((a - b) ** 2 for a, b in zip(one, other, strict=True)))
    lengths = sqrt(fsum(a * a for a in one)) * sqrt(fsum(b * b for b in other))
    return 1.0 - product / lengths if lengths else 1.0


def expected(
    items: Sequence[Item], distance: str, vector: Numbers, top: int, wanted: Mapping[str, str] | None = None
) -> list[tuple[float, str]]:
    """The scores and the sort keys of the nearest items, the nearest first, of those that have a vector and
    the `wanted` values."""
    scored = [
        (score(distance, [member["N"] for member in item["v"]["L"]], vector), item["s"]["N"])
        for item in items
        if "v" in item
        and all(item.get(name) == {TYPES[name]: value} for name, value in (wanted or {}).items())
    ]
    return sorted(scored, key=lambda pair: -pair[0] if distance == "DOT_PRODUCT" else pair[0])[:top]
