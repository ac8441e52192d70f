"""The page of the console and the admin plane's `/v1/sync`, of a server that is the edge of a sync."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from consoles import Browser, opened, parsed
from hashrange import Database, client
from hashrange.cli.admin import bind_admin
from hashrange.clock import ManualClock
from hashrange.server import running
from hashrange.storage.memory import MemoryEngine
from hashrange_sync import Clients, Pair, Settings, Sync, SyncError
from worlds import create

PATH = "/console/sync"


def clients(database: Database) -> Clients:
    return Clients(client.connect(database), client.connect(database, service="dynamodbstreams"))


class Edge:
    """A server that is the edge, a cloud, a sync between both, and a browser."""

    def __init__(self, browser: Browser, database: Database, cloud: Database, clock: ManualClock) -> None:
        self.browser, self.database, self.clock = browser, database, clock
        self._clouds, self._edges = clients(cloud), clients(database)
        self.cloud: Any = self._clouds.dynamodb
        self.edge: Any = self._edges.dynamodb

    def sync(self, **settings: Any) -> Sync:
        pairs = Settings(pairs=[Pair(table="orders", **settings)])
        wait = self.clock.advance
        return Sync(
            pairs, cloud=self._clouds, edge=self._edges, clock=self.clock, wait=wait, workers=0, attempts=1
        )

    def said(self, path: str = PATH) -> str:
        return " ".join(parsed(self.browser.ask(path)[1]).text.split())

    def asked(self, path: str = "/v1/sync") -> Any:
        status, text = self.browser.ask(path)
        assert status == 200, text
        return orjson.loads(text)


@pytest.fixture
def edge() -> Iterator[Edge]:
    clock = ManualClock()
    with Database(MemoryEngine(), clock=clock) as database, Database(MemoryEngine(), clock=clock) as cloud:
        admin = bind_admin(0)
        with running(database, admin=admin):
            for each in (cloud, database):
                create(each, "orders", "pk", stream="NEW_AND_OLD_IMAGES")
            yield Edge(opened(admin), database, cloud, clock)


def conflict(edge: Edge, running: Sync, **mine: Any) -> dict[str, Any]:
    """Change an item on both sides, and sync. Returns the conflict."""
    key = {"pk": {"S": "o-1"}}
    edge.cloud.put_item(TableName="orders", Item={**key, "price": {"N": "3"}, "b": {"B": b"\xff"}})
    running.once()
    edge.cloud.put_item(TableName="orders", Item={**key, "price": {"N": "4"}, "b": {"B": b"\xff"}})
    edge.edge.put_item(TableName="orders", Item={**key, "price": {"N": "5"}, "b": {"B": b"\xfe"}, **mine})
    running.once()
    [found] = edge.asked("/v1/sync/orders/conflicts")["conflicts"]
    return dict(found)


def test_without_a_sync_the_page_says_how_to_begin(edge: Edge) -> None:
    assert edge.asked() == {"pairs": []}
    said = edge.said()
    assert "No table is kept in step" in said
    assert f'endpoint = "{edge.edge.meta.endpoint_url}"' not in said  # (in process: that of no server)
    assert 'endpoint = "http://127.0.0.1:' in said
    assert "hashrange sync run sync.toml --definitions" in said


def test_tables_of_others_with_such_names_are_no_pairs(edge: Edge) -> None:
    create(edge.database, "hashrange-sync.mine", "pk")
    create(edge.database, "hashrange-sync.also", "id, part")
    item = {"id": {"S": "status"}, "part": {"S": "-"}, "text": {"S": "{"}}
    edge.edge.put_item(TableName="hashrange-sync.also", Item=item)
    assert edge.asked() == {"pairs": []}
    assert edge.asked("/v1/sync/mine/conflicts") == {"conflicts": [], "count": 0, "has_more": False}


def test_a_pair_with_its_rates(edge: Edge) -> None:
    with edge.sync(conflicts="newest: updated") as running:
        running.once()
        edge.clock.advance(10)
        for number in range(50):
            edge.cloud.put_item(TableName="orders", Item={"pk": {"S": f"o-{number}"}})
        running.once()
    [pair] = edge.asked()["pairs"]
    assert (pair["state"], pair["to_edge"], pair["to_edge_rate"], pair["to_cloud_rate"]) == (
        *("in step", 50, 5.0, 0.0),
    )
    assert (pair["policy"], pair["direction"]) == ("newest: updated", "both")
    assert pair["cloud_endpoint"] == edge.cloud.meta.endpoint_url
    edge.clock.advance(30)
    said = edge.said()
    assert "orders in step reported 30 s ago Equal with orders at" in said
    assert "conflicts: newest: updated" in said
    assert "5 a second, 50 items" in said
    edge.clock.advance(3_600)
    assert "orders not running reported 1 h ago" in edge.said()
    assert edge.said(f"{PATH}?pair=other").count("orders") == edge.said(f"{PATH}?pair=none").count("orders")


def test_the_lag_is_that_of_the_side_that_is_behind(edge: Edge) -> None:
    with edge.sync() as running:
        running.once()
        edge.cloud.put_item(TableName="orders", Item={"pk": {"S": "o-1"}})
        edge.clock.advance(7)
        running.pairs[0].cycle()
        assert running.pairs[0].current().lag == 7.0
        [pair] = edge.asked()["pairs"]
        assert (pair["lag"], pair["at"] - pair["in_step_at"]) == (7.0, 7.0)
        running.pairs[0].cycle()
        assert running.pairs[0].current().lag == 0.0
        edge.clock.advance(3)
        running.pairs[0].cycle()
        assert edge.asked()["pairs"][0] == pair  # (it reports each five seconds only)


def test_a_pair_that_is_stopped_says_why_and_since_when(edge: Edge) -> None:
    with edge.sync() as running:
        running.once()
        edge.cloud.delete_table(TableName="orders")
        for _ in range(2):
            with pytest.raises(SyncError):
                running.once()
            edge.clock.advance(60)
    [pair] = edge.asked()["pairs"]
    assert (pair["state"], pair["at"] - pair["in_step_at"]) == ("stopped", 60.0)
    assert pair["error"] in edge.said()
    assert "stopped reported 1 min ago" in edge.said()


def test_a_pair_that_cannot_go_on_still_reports(edge: Edge) -> None:
    with edge.sync() as running:
        running.once()
        edge.cloud.delete_table(TableName="orders")
        tries = 0

        def wait(seconds: float) -> None:
            nonlocal tries
            tries += 1
            edge.clock.advance(seconds)
            if tries == 4:
                running.stop()

        running._wait = wait
        running.run()
    [pair] = edge.asked()["pairs"]
    assert (pair["state"], pair["at"] - pair["in_step_at"]) == ("stopped", 180.0)
    edge.clock.advance(10)
    assert "stopped reported 1 min 10 s ago" in edge.said()


def test_an_image_is_restored_after_a_question(edge: Edge) -> None:
    with edge.sync(withhold=["note"]) as running:
        note = {"S": "not the cloud's"}
        found = conflict(edge, running, note=note)
        assert (found["winner"], found["cloud"]["price"], found["edge"]["price"]) == (
            *("cloud", {"N": "4"}, {"N": "5"}),
        )
        assert found["edge"]["b"] == {"B": "/g=="}
        page = edge.browser.ask(PATH)[1]
        assert 'data-sure="Restore the edge’s item?"' in page
        assert "AttributeCloudEdge price45 bB /w== · 1 BB /g== · 1 B Both items" in edge.said()
        assert "the cloud’s won" in edge.said()
        sent = {"pair": "orders", "conflict": found["id"], "side": "edge"}
        status, done = edge.browser.post(f"{PATH}/restore", sent)
        assert (status, done) == (200, {"said": "The edge’s item is in orders again.", "href": PATH})
        running.once()
        for side in (edge.cloud, edge.edge):
            item = side.get_item(TableName="orders", Key={"pk": {"S": "o-1"}})["Item"]
            assert (item["price"], item["b"]) == ({"N": "5"}, {"B": b"\xfe"})
            assert ("note" in item) == (side is edge.edge)
        for wrong in ({"conflict": "none"}, {"pair": "none"}):
            status, refusal = edge.browser.post(f"{PATH}/restore", sent | wrong)
            assert (status, "has no conflict" in refusal["error"]) == (400, True)


def test_a_deletion_is_an_image_too(edge: Edge) -> None:
    key = {"pk": {"S": "o-1"}}
    with edge.sync(conflicts="edge") as running:
        edge.cloud.put_item(TableName="orders", Item=key)
        running.once()
        edge.cloud.delete_item(TableName="orders", Key=key)
        edge.edge.put_item(TableName="orders", Item={**key, "a": {"S": "x"}})
        running.once()
        [found] = edge.asked("/v1/sync/orders/conflicts?limit=1")["conflicts"]
        assert (found["cloud"], found["edge"]["a"], found["winner"]) == (None, {"S": "x"}, "edge")
        assert 'data-sure="Delete the item?"' in edge.browser.ask(PATH)[1]
        sent = {"pair": "orders", "conflict": found["id"], "side": "cloud"}
        assert edge.browser.post(f"{PATH}/restore", sent)[0] == 200
        running.once()
        assert edge.cloud.scan(TableName="orders")["Count"] == 0


def test_what_follows_the_cloud_is_restored_by_the_command(edge: Edge) -> None:
    with edge.sync(direction="down") as running:
        found = conflict(edge, running)
    page = edge.browser.ask(PATH)[1]
    assert "data-sure" not in page
    assert f"hashrange sync conflicts restore FILE {found['id']}" in page
    sent = {"pair": "orders", "conflict": found["id"], "side": "edge"}
    status, refusal = edge.browser.post(f"{PATH}/restore", sent)
    assert (status, "follows the cloud" in refusal["error"]) == (400, True)


def test_a_read_only_console_restores_nothing(edge: Edge) -> None:
    with edge.sync() as syncing:
        found = conflict(edge, syncing)
    admin = bind_admin(0, read_only=True)
    with running(edge.database, admin=admin):
        browser = opened(admin)
        assert "data-sure" not in browser.ask(PATH)[1]
        sent = {"pair": "orders", "conflict": found["id"], "side": "edge"}
        assert browser.post(f"{PATH}/restore", sent)[0] == 403


def test_an_item_in_several_pieces_is_shown_in_part(edge: Edge) -> None:
    with edge.sync() as running:
        found = conflict(edge, running, long={"S": "x" * 390_000})
    assert found["edge"]["long"] == {"S": "x" * 390_000}
    page = edge.browser.ask(PATH)[1]
    assert len(page) < 100_000
    assert "xxx…" in page
