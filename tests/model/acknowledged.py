"""What has been acknowledged: tables, their items, and who is reading them page by page; for `moments`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import strategies as st

from hashrange.values import Item

Answer = dict[str, Any]
Key = tuple[str, str]

NAMES: Final = ["one", "two", "two-b"]
START: Final = 1_700_000_000.0
NEVER: Final = 10**9
NONE_SEEN: Final[list[Key]] = []
LONG: Final = {"S": "x" * 2_500}
"""Of records as long as this, each looks whether the turn is over."""
LATER: Final = {"N": str(NEVER**2)}
COLLECTION_BYTES: Final = 20_000

SETTINGS: Final[st.SearchStrategy[dict[str, Any]]] = st.fixed_dictionaries(
    {
        "create_seconds": st.sampled_from([0.0, 0.0, 0.0, 2.0]),
        "update_seconds": st.sampled_from([0.0, 0.0, 2.0]),
        "delete_seconds": st.sampled_from([0.0, 0.0, 2.0]),
        "gsi_delay_seconds": st.sampled_from([0.0, 0.0, 3.0]),
        "transaction_seconds": st.sampled_from([0.0, 0.0, 2.0]),
        "stream_shards": st.sampled_from([1, 2, 4]),
        "stream_shard_seconds": st.sampled_from([1.0, 4 * 3600.0]),
        "item_collection_bytes_max": st.sampled_from([10 * 1024**3, COLLECTION_BYTES]),
        "ttl_changes_limited": st.sampled_from([False, False, True]),
    }
)
KEYS: Final = st.tuples(st.sampled_from("ab"), st.sampled_from("0123456"))
CHANGES: Final = ["put"] * 6 + ["update", "update", "delete", "delete", "transact", "transact"]
CHANGES_OF_TABLES: Final = ["create", "create", "drop", "again", "index", "index", "expiry", "expiry"]


def index_of(name: str, partition: str, sort: str) -> Answer:
    keys = [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]
    return {"IndexName": name, "KeySchema": keys, "Projection": {"ProjectionType": "ALL"}}


def attributes_of(names: str) -> list[Answer]:
    return [{"AttributeName": name, "AttributeType": "S"} for name in names]


TABLE: Final[Answer] = {
    "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": index_of("", "p", "s")["KeySchema"],
    "AttributeDefinitions": attributes_of("psig"),
    "LocalSecondaryIndexes": [index_of("local", "p", "i")],
    "GlobalSecondaryIndexes": [index_of("global", "g", "i")],
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
}
INDEXES: Final = {"local": ("p", "i"), "global": ("g", "i"), "late": ("i", "s")}


@dataclass
class Known:
    """A table as it has been acknowledged. `id` tells it from another one of the same name."""

    id: str
    items: dict[Key, Item] = field(default_factory=dict)
    has_late: bool = False
    expires: bool = False

    @property
    def reads(self) -> list[str | None]:
        """The indexes that can be read, and None for the table itself."""
        return [None, "local", "global", *(["late"] if self.has_late else [])]


@dataclass
class Cursor:
    """A read that goes page by page. `versions` are the states of each item since it began, None for absent;
    `touched` has the keys that have changed. `is_loose`: its index may have been behind when it began."""

    table: str
    operation: str
    request: Answer
    versions: dict[Key, list[Item | None]]
    is_loose: bool
    seen: list[Key] = field(default_factory=list)
    touched: set[Key] = field(default_factory=set)


@dataclass
class Listing:
    """A ListTables that goes page by page: the tables that were there `always`, and `ever`."""

    always: set[str]
    ever: set[str]
    names: list[str] = field(default_factory=list)
    is_complete: bool = False


def key_of(item: Item) -> Key:
    return item["p"]["S"], item["s"]["S"]


def selects(request: Answer, item: Item) -> bool:
    """Whether a read without a filter returns an item."""
    if any(name not in item for name in INDEXES.get(request.get("IndexName", ""), ())):
        return False
    if "KeyConditionExpression" not in request:
        return True
    [name] = request["ExpressionAttributeNames"].values()
    [value] = request["ExpressionAttributeValues"].values()
    return bool(item[name] == value)
