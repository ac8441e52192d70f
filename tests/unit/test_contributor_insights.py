"""Contributor insights: which keys are counted, what they count, and that nothing counts without them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import orjson
import pytest

import worlds
from hashrange.cli.admin import bind_admin
from hashrange.database import Database
from hashrange.errors import ServiceError
from hashrange.insights.contributors import KEYS_MAX, WINDOW_SECONDS
from hashrange.server import running
from worlds import create, new_index

NOW = 1_790_000_000.0


class World(worlds.World):
    """A database with a table that has a global and a local index."""

    def __init__(self, **given: Any) -> None:
        super().__init__(now=NOW, **given)
        self.create("music")

    def is_watched(self) -> bool:
        return self.database.observers.active is not None

    def create(self, name: str) -> None:
        create(self.database, name, "p, s", indexes={"by-g": "g"})

    def enable(self, index: str = "", **given: Any) -> None:
        named = {"IndexName": index} if index else {}
        self(
            "UpdateContributorInsights",
            TableName="music",
            ContributorInsightsAction="ENABLE",
            **named,
            **given,
        )
        self.database.settle()

    def disable(self) -> None:
        self("UpdateContributorInsights", TableName="music", ContributorInsightsAction="DISABLE")
        self.database.settle()

    def put(self, p: str, s: str = "1", **given: str) -> None:
        item = {name: {"S": value} for name, value in {"p": p, "s": s, **given}.items()}
        self("PutItem", TableName="music", Item=item)

    def counts(self, kind: str, index: str = "", hour: int = 0) -> dict[str, float]:
        """The counts of a ranking: of this hour, or of the one before (1)."""
        rankings = [
            ranking
            for ranking in self.database.insights.rankings(KEYS_MAX)
            if (ranking.place, ranking.kind) == (("music", index), kind)
        ]
        if hour >= len(rankings):
            return {}
        found = {}
        for contributor in rankings[hour].contributors:
            values = orjson.loads(contributor.key).values()
            found["/".join(value["S"] for value in values)] = contributor.amount
        return found


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.database.close()


def test_nothing_looks_on_while_no_table_has_insights(world: World) -> None:
    world.put("a")
    world.database.settle()
    assert world.counts("PKC") == {}
    assert not world.is_watched()
    world.enable()
    assert world.is_watched()
    world.disable()
    assert not world.is_watched()


def test_writes_count_three_times_what_reads_do(world: World) -> None:
    world.enable()
    world.put("a")
    world.put("a", "2")
    world.put("b", x="x" * 3_000)
    key = {"p": {"S": "a"}, "s": {"S": "1"}}
    world("GetItem", TableName="music", Key=key)
    world("GetItem", TableName="music", Key=key, ConsistentRead=True)
    world("UpdateItem", TableName="music", Key=key)
    world("DeleteItem", TableName="music", Key={"p": {"S": "c"}, "s": {"S": "1"}})
    assert world.counts("PKC") == {"a": 3 + 3 + 0.5 + 1 + 3, "b": 9, "c": 3}
    assert world.counts("SKC") == {"a/1": 3 + 0.5 + 1 + 3, "a/2": 3, "b/1": 9, "c/1": 3}
    assert world.counts("PKT") == {}
    highest = world.database.insights.rankings(1)
    assert [(ranking.kind, len(ranking.contributors)) for ranking in highest] == [("PKC", 1), ("SKC", 1)]


def test_batches_transactions_and_queries_count_by_their_keys(world: World) -> None:
    world.enable()
    items = [{"p": {"S": f"k{number}"}, "s": {"S": "1"}} for number in range(4)]
    world("BatchWriteItem", RequestItems={"music": [{"PutRequest": {"Item": item}} for item in items]})
    assert world.counts("PKC") == {f"k{number}": 3 for number in range(4)}
    world("TransactWriteItems", TransactItems=[{"Delete": {"TableName": "music", "Key": items[0]}}])
    assert world.counts("PKC")["k0"] == 3 + 6
    world("BatchGetItem", RequestItems={"music": {"Keys": items[1:3]}})
    assert world.counts("PKC")["k1"] == 3.5
    world("TransactGetItems", TransactItems=[{"Get": {"TableName": "music", "Key": items[1]}}])
    assert world.counts("PKC")["k1"] == 5.5
    condition = {"KeyConditionExpression": "p = :p", "ExpressionAttributeValues": {":p": {"S": "k1"}}}
    world("Query", TableName="music", **condition)
    assert world.counts("PKC")["k1"] == 6
    assert world.counts("SKC")["k1/1"] == 5.5


def test_scans_and_statements_do_not_count(world: World) -> None:
    world.enable()
    world("Scan", TableName="music")
    world("ExecuteStatement", Statement="INSERT INTO music VALUE {'p': 'a', 's': '1'}")
    assert world.counts("PKC") == {}


def test_an_index_is_counted_by_itself(world: World) -> None:
    world.enable("by-g")
    world.put("a", g="red")
    assert world.counts("PKC") == {}
    assert world.counts("PKC", "by-g") == {"red": 3}
    condition = {"KeyConditionExpression": "g = :g", "ExpressionAttributeValues": {":g": {"S": "red"}}}
    world("Query", TableName="music", IndexName="by-g", **condition)
    assert world.counts("PKC", "by-g") == {"red": 3.5}
    assert world.counts("SKC", "by-g") == {}


def test_throttled_keys_are_counted(world: World) -> None:
    world.enable()
    world.database.faults.add("PutItem throttle nth=2")
    world.put("a")
    with pytest.raises(ServiceError):
        world.put("b")
    assert world.counts("PKC") == {"a": 3}
    assert world.counts("PKT") == {"b": 1}
    assert world.counts("SKT") == {"b/1": 1}


def test_members_of_a_batch_that_stay_unprocessed_are_throttled(world: World) -> None:
    world.enable()
    world.database.faults.add("BatchWriteItem unprocessed")
    items = [{"p": {"S": f"k{number}"}, "s": {"S": "1"}} for number in range(3)]
    answer = world(
        "BatchWriteItem", RequestItems={"music": [{"PutRequest": {"Item": item}} for item in items]}
    )
    left = {entry["PutRequest"]["Item"]["p"]["S"] for entry in answer["UnprocessedItems"]["music"]}
    assert left
    assert set(world.counts("PKT")) == left
    assert set(world.counts("PKC")) == {"k0", "k1", "k2"} - left


def test_the_other_mode_counts_throttled_keys_only(world: World) -> None:
    world.enable(ContributorInsightsMode="THROTTLED_KEYS")
    world.database.faults.add("PutItem throttle nth=2")
    world.put("a")
    with pytest.raises(ServiceError):
        world.put("b")
    assert world.counts("PKC") == {}
    assert world.counts("PKT") == {"b": 1}
    world.enable()
    world.put("c")
    assert world.counts("PKC") == {"c": 3}


def test_an_hour_follows_the_other(world: World) -> None:
    world.enable()
    world.put("a")
    world.clock.advance(WINDOW_SECONDS)
    world.put("b")
    assert world.counts("PKC") == {"b": 3}
    assert world.counts("PKC", hour=1) == {"a": 3}
    world.clock.set(NOW - 5)
    world.put("c")
    assert world.counts("PKC") == {"c": 3}
    assert world.counts("PKC", hour=1) == {}


def test_wrong_requests_count_nothing(world: World) -> None:
    world.enable()
    for request in ({"Item": {"p": {"S": "a"}}}, {"Item": 5}, {}):
        with pytest.raises(ServiceError):
            world("PutItem", TableName="music", **request)
    with pytest.raises(ServiceError):
        world("TransactWriteItems", TransactItems=[{"Put": 7}])
    assert world.counts("PKC") == {}


def test_keys_beyond_the_room_of_a_ranking_push_out_the_least(world: World) -> None:
    world.enable()
    for number in range(KEYS_MAX * 2):
        world.put("hot")
        world.put(f"k{number}")
    counts = world.counts("PKC")
    assert len(counts) == KEYS_MAX
    assert max(counts, key=lambda key: counts[key]) == "hot"


def test_insights_survive_a_restart(world: World) -> None:
    world.enable()
    again = Database(world.database.engine, clock=world.clock)
    again.settle()
    assert again.observers.active is not None


def test_a_hundred_rules_are_enough(world: World) -> None:
    for number in range(26):
        world.create(f"T{number:02}")

    def status(number: int) -> dict[str, Any]:
        return world("DescribeContributorInsights", TableName=f"T{number:02}")

    def switch(number: int, action: str, **given: Any) -> dict[str, Any]:
        return world(
            "UpdateContributorInsights",
            TableName=f"T{number:02}",
            ContributorInsightsAction=action,
            **given,
        )

    for number in range(25):
        switch(number, "ENABLE")
        assert status(number)["ContributorInsightsStatus"] == "ENABLED"
    assert switch(25, "ENABLE")["ContributorInsightsStatus"] == "ENABLING"
    failed = status(25)
    assert failed["ContributorInsightsStatus"] == "FAILED"
    assert failed["FailureException"]["ExceptionName"] == "LimitExceededException"
    assert "ContributorInsightsRuleList" not in failed
    assert len(world("ListContributorInsights")["ContributorInsightsSummaries"]) == 26
    # A rule set that shrinks stays within the limit, and makes room.
    switch(0, "ENABLE", ContributorInsightsMode="THROTTLED_KEYS")
    switch(1, "ENABLE", ContributorInsightsMode="THROTTLED_KEYS")
    assert status(25)["ContributorInsightsStatus"] == "FAILED"
    switch(25, "ENABLE")
    assert status(25)["ContributorInsightsStatus"] == "ENABLED"
    assert "FailureException" not in status(25)


def test_an_index_that_is_made_again_has_no_insights(world: World) -> None:
    world.enable("by-g")
    world(
        "UpdateTable",
        TableName="music",
        GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-g"}}],
    )
    world.database.settle()
    assert world("ListContributorInsights", TableName="music") == {"ContributorInsightsSummaries": []}
    assert world.database.observers.active is None
    world("UpdateTable", **new_index("music", "by-g", "g"))
    shown = world("DescribeContributorInsights", TableName="music", IndexName="by-g")
    assert shown == {"TableName": "music", "IndexName": "by-g", "ContributorInsightsStatus": "DISABLED"}


def test_the_admin_plane_and_the_metrics_show_the_rankings(world: World) -> None:
    world.enable()
    for number in range(3):
        world.put(f"k{number}", x="x" * 2_000 * number)
    world.database.faults.add("PutItem throttle")
    with pytest.raises(ServiceError):
        world.put('quo"te')
    world.database.faults.clear()

    def ask(path: str) -> bytes:
        with urlopen(f"{listening.url}{path}") as answer:
            found: bytes = answer.read()
            return found

    listening = bind_admin(0)
    with running(world.database, admin=listening):
        shown = orjson.loads(ask("/v1/insights?keys=2"))["insights"]
        text = ask("/metrics").decode()
        with pytest.raises(HTTPError) as caught:
            ask("/v1/insights?keys=0")
        caught.value.close()
    assert caught.value.code == 400
    assert [ranking["ranking"] for ranking in shown] == [
        "most accessed partition keys",
        "most throttled partition keys",
        "most accessed keys",
        "most throttled keys",
    ]
    assert shown[0] == {
        "table": "music",
        "index": "",
        "ranking": "most accessed partition keys",
        "since": "2026-09-21T14:13:20.000Z",
        "contributors": [
            {"key": {"p": {"S": "k2"}}, "units": 12.0, "missed_at_most": 0.0},
            {"key": {"p": {"S": "k1"}}, "units": 6.0, "missed_at_most": 0.0},
        ],
    }
    assert shown[3]["contributors"][0]["throttles"] == 1
    key = r'{\"p\":{\"S\":\"k2\"}}'
    units = f'hashrange_contributor_units{{table="music",index="",keys="partition key",key="{key}"}} 12'
    assert f"{units}.0\n" in text
    assert text.count("\nhashrange_contributor_throttles{") == 2
