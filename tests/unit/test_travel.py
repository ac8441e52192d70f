"""Time travel: the past is read as a request would have been answered then, and brought back."""

from __future__ import annotations

import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

import hashrange
from doses import examples
from hashrange.cli import main
from hashrange.cli.admin import bind_admin
from hashrange.clock import VirtualClock, show_moment
from hashrange.database import Database
from hashrange.errors import ResourceNotFoundException, ValidationException
from hashrange.operations.travel import NoPast, Travel
from hashrange.server import running
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.definitions.table import Table
from hashrange.tables.history.past import Past, PastLost
from hashrange.tables.inspection import check
from histories import DAY, NOW, World, key_of, opener_of, put, steps, take
from worlds import create, recovery_of


class Travelled(World):
    """A world whose table has recovery; `answers` has what a Scan answered at the end of each moment."""

    def __init__(self, opener: Any) -> None:
        super().__init__(opener)
        self("UpdateContinuousBackups", **recovery_of("table"))
        self.release("test")
        self.answers: dict[float, Any] = {}

    @property
    def travel(self) -> Travel:
        return self.database.travel

    def scan(self) -> Any:
        return self("Scan", TableName="table")["Items"]

    def note(self) -> None:
        if hasattr(self, "answers"):
            self.answers[max([self.clock.now(), *self.answers])] = self.scan()
        else:
            super().note()


@pytest.fixture(params=["memory", "embedded", "reruns"])
def world(request: pytest.FixtureRequest) -> Iterator[Travelled]:
    with opener_of(request.param) as opener:
        world = Travelled(opener)
        yield world
        world.database.close()


def scanned(travel: Travel, at: float, **request: Any) -> list[Any]:
    """All items of a Scan as of a moment, page by page."""
    items: list[Any] = []
    request = {"TableName": "table", "Limit": 3, **request}
    while True:
        answer = travel.read("Scan", dict(request), at)
        items += answer["Items"]
        if "LastEvaluatedKey" not in answer:
            return items
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


@pytest.mark.parametrize("engine", ["memory", "embedded"])
@settings(max_examples=examples(20), deadline=None)
@given(history=st.lists(steps, max_size=20), choice=st.randoms(use_true_random=False))
def test_the_past_answers_as_it_did(engine: str, history: list[Any], choice: Any) -> None:
    with opener_of(engine) as opener:
        world = Travelled(opener)
        try:
            for step in history:
                if step[0] not in ("compare", "set back"):
                    take(world, ("recovery of two days",) if step[0] == "short hold" else step)
                world.note()
            world.clock.advance(1)
            shown = world("DescribeContinuousBackups", TableName="table")["ContinuousBackupsDescription"]
            earliest = shown["PointInTimeRecoveryDescription"]["EarliestRestorableDateTime"]
            moments = [moment for moment in world.answers if moment > earliest]
            for moment in choice.sample(moments, min(4, len(moments))):
                assert scanned(world.travel, moment) == world.answers[moment]
                for item in world.answers[moment]:
                    key = {"p": item["p"], "s": item["s"]}
                    answer = world.travel.read("GetItem", {"TableName": "table", "Key": key}, moment)
                    assert answer == {"Item": item}
            if moments:
                turned_back(world, choice.choice(moments))
        finally:
            world.database.close()


def turned_back(world: Travelled, moment: float) -> None:
    """The differences since a moment say what an undo of all does."""
    before, after = world.answers[moment], world.scan()
    page = world.travel.differences("table", moment)
    assert page["Next"] is None
    state = {orjson.dumps({"p": one["p"], "s": one["s"]}): one for one in before}
    for one in page["Differences"]:
        key = orjson.dumps(one["Key"])
        assert one["Before"] == state.get(key)
        state[key] = one["After"]
    assert sorted(map(orjson.dumps, filter(None, state.values()))) == sorted(map(orjson.dumps, after))
    small: list[Any] = []
    position: str | None = None
    while True:
        one = world.travel.differences("table", moment, None, 2, position)
        small += one["Differences"]
        position = one["Next"]
        if position is None:
            break
    assert small == page["Differences"]
    counts = world.travel.undo_all("table", moment)
    assert counts["restored"] + counts["deleted"] == len(page["Differences"])
    assert world.scan() == before
    assert list(check.check(world.database.engine)) == []


def test_a_query_as_of_a_moment(world: Travelled) -> None:
    for number in range(10):
        put(world, number, number)
    world.clock.advance(1)
    for number in range(0, 10, 2):
        world("DeleteItem", TableName="table", Key=key_of(number))
    put(world, 1, 100)
    request: dict[str, Any] = {
        "TableName": "table",
        "KeyConditionExpression": "p = :p AND s >= :s",
        "FilterExpression": "v > :v",
        "ProjectionExpression": "v",
        "ExpressionAttributeValues": {":p": {"S": "p"}, ":s": key_of(2)["s"], ":v": {"N": "3"}},
    }
    forward = world.travel.read("Query", dict(request), NOW)
    assert [item["v"]["N"] for item in forward["Items"]] == ["4", "5", "6", "7", "8", "9"]
    assert forward["ScannedCount"] == 8
    backward = world.travel.read("Query", {**request, "ScanIndexForward": False, "Limit": 3}, NOW)
    assert [item["v"]["N"] for item in backward["Items"]] == ["9", "8", "7"]
    assert backward["LastEvaluatedKey"] == key_of(7)
    now = world.travel.read("Query", dict(request), world.clock.now())
    assert [item["v"]["N"] for item in now["Items"]] == ["5", "7", "9"]
    moment = datetime.fromtimestamp(NOW, UTC)
    assert world.travel.read("Query", dict(request), moment) == forward


def test_what_cannot_be_read(world: Travelled) -> None:
    travel = world.travel
    scan: dict[str, Any] = {"TableName": "table"}
    for moment in (NOW - 10, NOW + 10):
        with pytest.raises(NoPast, match=r"table is kept from 2023-11-14T22:13:20\.000Z to"):
            travel.read("Scan", dict(scan), moment)
    with pytest.raises(NoPast, match="'PutItem' does not read the past"):
        travel.read("PutItem", {"TableName": "table", "Item": key_of(1)}, NOW)
    with pytest.raises(NoPast, match="The index 'index' has no past"):
        travel.read("Scan", {**scan, "IndexName": "index"}, NOW)
    with pytest.raises(ResourceNotFoundException, match="absent"):
        travel.read("Scan", {"TableName": "absent"}, NOW)
    with pytest.raises(ValidationException):
        travel.read("GetItem", {"TableName": "table", "Key": {"other": {"S": "a"}}}, NOW)
    with pytest.raises(ValidationException, match="FilterExpression"):
        travel.read("Scan", {**scan, "FilterExpression": "nonsense"}, NOW)
    with pytest.raises(NoPast, match="not the Next of a page of differences"):
        travel.differences("table", NOW, position="xyz")
    with pytest.raises(NoPast, match="not the Next of a page of versions"):
        travel.versions("table", key_of(0), position="xyz")
    with pytest.raises(NoPast, match="101 keys are too many"):
        travel.undo("table", [key_of(0)] * 101, NOW)
    world("UpdateContinuousBackups", TableName="table",
          PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": False})
    with pytest.raises(NoPast, match="its recovery is off"):
        travel.read("Scan", dict(scan), NOW)
    plain: Table = world.table
    with pytest.raises(PastLost):
        world.database.engine.read(lambda reader: Past(reader, plain, 1))


def test_the_versions_of_an_item(world: Travelled) -> None:
    put(world, 0, 1)
    world.clock.advance(10)
    ttl = str(int(NOW) + 20)
    world("PutItem", TableName="table", Item=key_of(0) | {"v": {"N": "2"}, "ttl": {"N": ttl}})
    world.clock.advance(30)
    world.database.settle()
    page = world.travel.versions("table", key_of(0))
    found = [
        (one["Moment"], one["Item"] and one["Item"]["v"]["N"], one["By"], one["Cause"])
        for one in page["Versions"]
    ]
    assert found == [
        (show_moment(NOW + 40), None, None, "expiry"),
        (show_moment(NOW + 10), "2", "tester", "request"),
        (show_moment(NOW), "1", "tester", "request"),
        (show_moment(NOW), None, None, "begin"),
    ]
    assert page["Next"] is None
    shown: list[Any] = []
    position: str | None = None
    while True:
        one = world.travel.versions("table", key_of(0), 1, position)
        shown += one["Versions"]
        position = one["Next"]
        if position is None:
            break
    assert shown == page["Versions"]
    # Of what has left the window, only the state at its beginning is known.
    world.clock.advance(35 * DAY - 35)
    world.database.settle()
    page = world.travel.versions("table", key_of(0))
    assert [one["Cause"] for one in page["Versions"]] == ["expiry", "request", "begin"]
    assert page["Versions"][-1]["Item"]["v"] == {"N": "1"}


def test_undo_is_one_transaction_with_stream_records(world: Travelled) -> None:
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    world("UpdateTable", TableName="table", StreamSpecification=stream)
    put(world, 0, 1)
    put(world, 1, 1)
    before = world.scan()
    world.clock.advance(1)
    put(world, 0, 2)
    world("DeleteItem", TableName="table", Key=key_of(1))
    put(world, 2, 3)
    put(world, 3, 3)
    undone = world.travel.undo("table", [key_of(0), key_of(1), key_of(2), key_of(4)], NOW)["Undone"]
    assert [one["Done"] for one in undone] == ["restored", "restored", "deleted", "unchanged"]
    put_since = {"p": {"S": "p"}, "s": key_of(3)["s"], "v": {"N": "3"}}
    assert [item for item in world.scan() if item != put_since] == before
    versions = world.travel.versions("table", key_of(0))["Versions"]
    assert [one["By"] for one in versions] == ["undo", "tester", "tester", None]
    arn = world("DescribeTable", TableName="table")["Table"]["LatestStreamArn"]
    [shard] = world("DescribeStream", StreamArn=arn)["StreamDescription"]["Shards"]
    iterator = world("GetShardIterator", StreamArn=arn, ShardId=shard["ShardId"],
                     ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
    records = world("GetRecords", ShardIterator=iterator)["Records"]
    assert [one["eventName"] for one in records[-3:]] == ["MODIFY", "INSERT", "REMOVE"]
    # One key that does not fit the table, and nothing is undone.
    after = world.scan()
    with pytest.raises(ValidationException):
        world.travel.undo("table", [key_of(3), {"other": {"S": "a"}}], NOW)
    assert world.scan() == after
    assert list(check.check(world.database.engine)) == []


@pytest.fixture
def served() -> Iterator[tuple[str, Database, VirtualClock]]:
    clock = VirtualClock(NOW, frozen=True)
    database = Database(MemoryEngine(), clock=clock)
    create(database, "orders", "pk")
    database.execute("UpdateContinuousBackups", recovery_of("orders"))
    for name in ("a", "b", "c"):
        database.execute("PutItem", {"TableName": "orders", "Item": {"pk": {"S": name}, "v": {"N": "1"}}})
    clock.advance(60)
    database.execute("PutItem", {"TableName": "orders", "Item": {"pk": {"S": "a"}, "v": {"N": "2"}}})
    database.execute("DeleteItem", {"TableName": "orders", "Key": {"pk": {"S": "b"}}})
    listening = bind_admin(0)
    with running(database, admin=listening):
        yield listening.url, database, clock


def as_of(url: str, *arguments: str) -> Result:
    environment = {"HASHRANGE_ADMIN_URL": url}
    return CliRunner().invoke(main, ["as-of", *arguments], prog_name="hashrange", env=environment)


def lines(result: Result) -> list[Any]:
    assert result.exit_code == 0, result.output
    return [orjson.loads(line) for line in result.stdout.splitlines()]


A, B = '{"pk": {"S": "a"}}', '{"pk": "b"}'  # a key is plain, or in DynamoDB's JSON


def test_the_command_reads_the_past(served: tuple[str, Database, VirtualClock]) -> None:
    url, _, _ = served
    then, now = str(NOW), "2023-11-14T22:14:20Z"
    assert lines(as_of(url, "get", "orders", then, A)) == [{"pk": {"S": "a"}, "v": {"N": "1"}}]
    assert lines(as_of(url, "get", "orders", now, A)) == [{"pk": {"S": "a"}, "v": {"N": "2"}}]
    gone = as_of(url, "get", "orders", now, B)
    assert gone.exit_code == 1
    assert gone.stderr.endswith(f"\nError: Table orders had no such item at {now}.\n")
    assert len(lines(as_of(url, "scan", "orders", then))) == 3
    assert len(lines(as_of(url, "scan", "orders", then, '{"Limit": 1}'))) == 3
    assert len(lines(as_of(url, "scan", "orders", then, "--limit", "2"))) == 2
    assert len(lines(as_of(url, "scan", "orders", now))) == 2
    query = orjson.dumps({
        "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "b"}}
    }).decode()
    assert lines(as_of(url, "query", "orders", then, query)) == [{"pk": {"S": "b"}, "v": {"N": "1"}}]
    shown = lines(as_of(url, "versions", "orders", A))
    assert [one["Item"] and one["Item"]["v"]["N"] for one in shown] == ["2", "1", None]
    assert len(lines(as_of(url, "versions", "orders", A, "--limit", "1"))) == 1
    shown = lines(as_of(url, "diff", "orders", then))
    assert {one["Key"]["pk"]["S"]: (one["Before"], one["After"]) for one in shown} == {
        "a": ({"pk": {"S": "a"}, "v": {"N": "1"}}, {"pk": {"S": "a"}, "v": {"N": "2"}}),
        "b": ({"pk": {"S": "b"}, "v": {"N": "1"}}, None),
    }
    assert lines(as_of(url, "diff", "orders", then, then)) == []
    assert lines(as_of(url, "undo", "orders", then, B)) == [{"Key": {"pk": {"S": "b"}}, "Done": "restored"}]
    assert lines(as_of(url, "undo", "orders", then, "--all", "--yes")) == [
        {"restored": 1, "deleted": 0, "unchanged": 0}
    ]
    assert len(lines(as_of(url, "diff", "orders", then))) == 0


def test_moments_may_be_relative_to_the_servers_clock(served: tuple[str, Database, VirtualClock]) -> None:
    url, _, _ = served
    for before in ("60s", "1m", "0h1m0s"):
        assert len(lines(as_of(url, "scan", "orders", before, '{"Limit": 1}'))) == 3
        assert len(lines(as_of(url, "diff", "orders", before))) == 2
        assert len(lines(as_of(url, "diff", "orders", before, "now"))) == 2
    assert lines(as_of(url, "diff", "orders", "now", "now")) == []
    assert len(lines(as_of(url, "scan", "orders", "now"))) == 2
    assert len(lines(as_of(url, "scan", "orders", "30s"))) == 3


def test_undoing_all_asks_before(
    served: tuple[str, Database, VirtualClock], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, database, _ = served
    before = orjson.dumps(database.execute("Scan", {"TableName": "orders"}))
    undo = ("undo", "orders", "1m")
    dry = [{"Key": {"pk": {"S": name}}, "Item": {"pk": {"S": name}, "v": {"N": "1"}}} for name in "ab"]
    assert sorted(lines(as_of(url, *undo, "--all", "--dry-run")), key=repr) == sorted(dry, key=repr)
    assert lines(as_of(url, *undo, A, "--dry-run")) == dry[:1]
    refused = as_of(url, *undo, "--all")
    assert refused.exit_code == 1
    assert "table orders" in refused.stderr
    assert "give --yes" in refused.stderr
    monkeypatch.setattr("hashrange.cli.remote.asking.has_terminal", lambda: True)
    denied = CliRunner().invoke(main, ["as-of", *undo, "--all", "--admin-url", url], input="n\n")
    assert denied.exit_code == 1
    assert f"Write all items of table orders of {url} back" in denied.stderr
    assert orjson.dumps(database.execute("Scan", {"TableName": "orders"})) == before
    agreed = CliRunner().invoke(main, ["as-of", *undo, "--all", "--admin-url", url], input="y\n")
    assert orjson.loads(agreed.stdout) == {"restored": 2, "deleted": 0, "unchanged": 0}


def test_wrong_requests_are_explained(served: tuple[str, Database, VirtualClock]) -> None:
    url, _, _ = served
    for arguments, text in (
        (["scan", "orders", "2001-01-01"], "The past of table orders is kept from"),
        (["scan", "orders", "yesterday"], "'yesterday' is not a time"),
        (["scan", "absent", str(NOW)], "Table: absent not found"),
        (["get", "orders", str(NOW), '{"x": {"S": "a"}}'], "The provided key element does not match"),
        (["scan", "orders", str(NOW), '{"IndexName": "some-index"}'], "has no past"),
    ):
        result = as_of(url, *arguments)
        assert result.exit_code == 1
        assert text in result.stderr
    for arguments in (["get", "orders", "0", "{"], ["get", "orders", "0", "[]"], ["undo", "orders", "0"]):
        assert as_of(url, *arguments).exit_code == 2
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(urllib.request.Request(
            f"{url}/v1/past/versions",
            data=orjson.dumps({"table": "orders", "key": {"pk": {"S": "a"}}, "limit": 0}),
            headers={"Content-Type": "application/json"},
        ))
    with caught.value as error:
        assert orjson.loads(error.read()) == {"error": "limit is 0; it may be from 1 to 1000"}


def test_the_past_is_not_loaded_with_the_database() -> None:
    code = "import sys, hashrange.database; print('hashrange.operations.travel' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "False\n"


def test_a_test_travels() -> None:
    with hashrange.local() as database:
        client = database.client()
        database.create_table("orders", "pk")
        client.update_continuous_backups(**recovery_of("orders"))
        client.put_item(TableName="orders", Item={"pk": {"S": "a"}})
        before = database.database.clock.now()
        database.clock.advance(60)
        client.delete_item(TableName="orders", Key={"pk": {"S": "a"}})
        assert database.travel.read("Scan", {"TableName": "orders"}, before)["Count"] == 1
        database.travel.undo_all("orders", before)
        assert client.scan(TableName="orders")["Count"] == 1
