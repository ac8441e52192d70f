"""The picture of the page about sync in the docs. `make pictures` takes it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

import console_pictures
from hashrange import Database, client
from hashrange_sync import Clients, PairStatus
from hashrange_sync.sides.calls import Side
from hashrange_sync.sides.pace import Pace
from hashrange_sync.stored.conflicts import CONFLICT, UNSEEN, ConflictLog
from hashrange_sync.stored.status import KEY, Progress
from worlds import create

FOLDER: Final = Path(__file__).parents[1] / "docs" / "pictures"
PAGES: Final = {"sync": "/console/sync", "sync-conflicts": "/console/sync?pair=orders"}
"""The pages that have pictures, by the names of the pictures."""
_LATER: Final = 3_570.0
"""When the pictures are taken, in seconds after `begin`."""
_CUT: Final = (
    "the cloud's table stock: Could not connect to the endpoint URL: "
    '"https://dynamodb.eu-central-1.amazonaws.com/"'
)


def begin(database: Database) -> None:
    """Store what the processes of three pairs would store, of which one is in step, and what has lost."""
    now = database.clock.now() + _LATER
    common: Any = {"cloud_endpoint": "https://dynamodb.eu-central-1.amazonaws.com", "at": now - 2}
    statuses = [
        PairStatus(
            **common, name="orders", state="in step", in_step_at=now - 2, lag=0.4, policy="newest: updated",
            to_cloud=48_210, to_cloud_rate=31.4, to_edge=12_904, to_edge_rate=8.2, units=121_480, conflicts=2,
        ),
        PairStatus(
            **common, name="prices", state="sweeping", direction="down", to_edge=181_000, to_edge_rate=2_140,
            units=45_200, throttled=3, sweep=Progress("first copy", now - 90, 181_000, 640_000),
        ),
        PairStatus(
            **common, name="stock", state="stopped", in_step_at=now - 10_200, policy="add: in_stock",
            to_cloud=9_120, to_edge=310, units=22_000, error=_CUT, error_at=now - 2,
        ),
    ]  # fmt: skip
    connected: Any = client.connect(database)
    for status in statuses:
        status.cloud_table = status.edge_table = status.name
        table = f"hashrange-sync.{status.name}"
        for name in (table, f"{table}.conflicts"):
            create(database, name, "id, part")
        text = msgspec.json.encode(status).decode()
        connected.put_item(TableName=table, Item={**KEY, "text": {"S": text}})
    clock, wait = database.clock, lambda seconds: None
    side = Side("edge", Clients(connected, connected), "orders", pace=Pace(0, clock), clock=clock, wait=wait)
    log = ConflictLog(side, "hashrange-sync.orders.conflicts")
    log.add(CONFLICT, "edge", *_orders("order#1041", "paid", "shipped"), now - 640)
    log.add(UNSEEN, "cloud", *_orders("order#0977", "open", "cancelled"), now - 7_300)


def _orders(name: str, cloud: str, edge: str) -> tuple[Any, Any, Any]:
    """The key of an order, and its items on both sides."""
    key: Any = {"pk": {"S": name}}
    common: dict[str, Any] = {**key, "customer": {"S": "ada"}, "total": {"N": "48.50"}}
    return (
        key,
        {**common, "state": {"S": cloud}, "updated": {"S": "2026-03-02T14:10:41Z"}},
        {**common, "state": {"S": edge}, "updated": {"S": "2026-03-02T14:12:05Z"}, "parcel": {"S": "B-7"}},
    )


if __name__ == "__main__":
    console_pictures.main(FOLDER, PAGES, frozenset(PAGES), begin)
