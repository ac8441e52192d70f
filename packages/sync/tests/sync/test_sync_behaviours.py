"""What a sync does when …: the table of the guide, line by line."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ClientError

from hashrange_sync import Filter, SyncError, Unavailable
from hashrange_sync.errors import Denied, Superseded
from hashrange_sync.items import Item, digest
from hashrange_sync.sides.pace import Pace
from hashrange_sync.stored.conflicts import CONFLICT, OVERWRITTEN, UNSEEN
from sync.histories import marks
from sync.world import STREAM, Places, World, before, kills_after, kills_before, loses, performed

DAY = 86_400.0


def equal(world: World) -> bool:
    return marks(world.cloud.items()) == marks(world.edge.items())


def text(item: Item | None, name: str = "a") -> str:
    return "" if item is None or name not in item else str(item[name]["S"])


def test_changes_go_both_ways(places: Places) -> None:
    world = World(places)
    world.cloud.put("k1", a="1")
    world.edge.put("k2", a="2")
    world.once()
    assert equal(world)
    assert world.cloud.items().keys() == {"k1", "k2"}
    world.cloud.set("k2", b="3")
    world.edge.delete("k1")
    world.once()
    assert equal(world)
    assert world.cloud.items().keys() == {"k2"}
    assert text(world.edge.get("k2"), "b") == "3"
    assert world.log() == []


def test_what_is_equal_is_not_written_again(places: Places) -> None:
    world = World(places)
    world.cloud.put("k1", a="1")
    world.once()
    world.once()
    writes = {"put_item", "update_item", "delete_item", "transact_write_items", "batch_get_item"}
    world.once()
    operations = [operation for side, operation in world.requests if side == "cloud"]
    assert not writes & set(operations)
    assert world.sync.pairs[0].counts.to_edge == 1


@pytest.mark.parametrize("direction", ["down", "up"])
def test_one_way(places: Places, direction: str) -> None:
    world = World(places, direction=direction)
    leader, follower = (world.cloud, world.edge) if direction == "down" else (world.edge, world.cloud)
    leader.put("k1", a="1")
    follower.put("own", a="2")
    world.once()
    assert follower.items().keys() == {"k1", "own"}
    assert leader.items().keys() == {"k1"}
    follower.set("k1", a="mine")
    world.once()
    assert (text(leader.get("k1")), text(follower.get("k1"))) == ("1", "mine")
    leader.set("k1", a="2")
    world.once()
    assert text(follower.get("k1")) == "2"
    [conflict] = world.log()
    assert text(conflict.edge if direction == "down" else conflict.cloud) == "mine"
    leader.delete("k1")
    world.once()
    assert follower.items().keys() == {"own"}


def newest(old: Item | None, ours: Item | None, theirs: Item | None) -> Item | None:
    raise ValueError("no")


@pytest.mark.parametrize(
    ("policy", "winner"),
    [("cloud", "c"), ("edge", "e"), ("newest: t", "e"), ({"newest": "t"}, "e"), ("add: n", "c")],
)
def test_conflicts(places: Places, policy: Any, winner: str) -> None:
    world = World(places, conflicts=policy)
    world.cloud.put("k1", a="0", t={"N": "1"})
    world.once()
    world.cloud.put("k1", a="c", t={"N": "9"})
    world.edge.put("k1", a="e", t={"N": "10"})
    world.once()
    assert equal(world)
    assert text(world.edge.get("k1")) == winner
    [conflict] = world.log()
    assert (conflict.kind, text(conflict.cloud), text(conflict.edge)) == (CONFLICT, "c", "e")
    pair = world.sync.pairs[0]
    pair.restore(conflict, "edge" if winner == "c" else "cloud")
    world.once()
    assert equal(world)
    assert text(world.cloud.get("k1")) == ("e" if winner == "c" else "c")


def test_counters_are_added_up(places: Places) -> None:
    world = World(places, conflicts="add: n, m")
    large = "12345678901234567890123456789012345678"
    world.cloud.put("k1", n={"N": "5"}, m={"N": large}, a="0")
    world.once()
    world.cloud.add("k1", "n", 2)
    world.edge.add("k1", "n", 2)
    world.edge.add("k1", "m", 1)
    world.edge.set("k1", b="e")
    world.once()
    assert equal(world)
    item = world.cloud.get("k1") or {}
    assert (item["n"], item["m"], item["b"]) == ({"N": "9"}, {"N": str(int(large) + 1)}, {"S": "e"})
    assert world.log() == []
    world.cloud.delete("k1")
    world.edge.add("k1", "n", 1)
    world.once()
    assert (world.cloud.get("k1") or {})["n"] == {"N": "10"}
    assert [conflict.cloud for conflict in world.log()] == [None]


@pytest.mark.parametrize("fate", [kills_before, kills_after, loses])
def test_a_counter_is_added_once_whatever_dies(places: Places, fate: Callable[..., Any]) -> None:
    number = 0
    while True:
        number += 1
        world = World(places, conflicts="add: n")
        world.cloud.put("k1", n={"N": "5"})
        world.once()
        world.cloud.add("k1", "n", 2)
        world.edge.add("k1", "n", 3)
        world.meets(number, before(lambda world=world: world.cloud.add("k1", "n", 10), fate))  # type: ignore[misc]
        with suppress(SyncError):
            world.once()
        ended = len(world.requests) < number
        world.once()
        assert equal(world)
        assert (world.cloud.get("k1") or {})["n"] == {"N": "10" if ended else "20"}, number
        if ended:
            break
    assert number > 20


def test_a_merge_function_is_asked(places: Places) -> None:
    world = World(places, conflicts=f"merge: {__name__}:newest")
    world.cloud.put("k1", a="0")
    world.once()
    world.cloud.put("k1", a="c")
    world.edge.put("k1", a="e")
    with pytest.raises(SyncError, match="newest failed with ValueError: no"):
        world.once()
    assert (text(world.cloud.get("k1")), text(world.edge.get("k1"))) == ("c", "e")


def test_a_first_copy_goes_on_where_it_was_killed(places: Places) -> None:
    world = World(places, segments=2)
    for number in range(120):
        world.cloud.put(f"k{number}", a=str(number))
    runs = 0
    while not equal(world):
        runs += 1
        for number in range(12 + runs, 60):
            world.meets(number, kills_after)
        world.once()
        assert runs < 40
    assert runs > 3
    world.once()
    assert world.log() == []


def test_the_filter_and_what_leaves_the_site(places: Places) -> None:
    world = World(places, filter=Filter(prefix="7#", where={"shop": ["north", "east"]}), withhold=["salary"])
    world.edge.put("7#1", shop="north", salary="9")
    world.edge.put("7#2", shop="south")
    world.edge.put("8#1", shop="north")
    world.cloud.put("7#3", shop="east", salary="1")
    world.once()
    assert world.cloud.items().keys() == {"7#1", "7#3"}
    assert world.edge.items().keys() == {"7#1", "7#2", "7#3", "8#1"}
    assert "salary" not in (world.cloud.get("7#1") or {}).keys() | (world.edge.get("7#3") or {}).keys()
    world.cloud.set("7#1", a="x")
    world.edge.set("7#3", shop="south")
    world.once()
    assert text(world.edge.get("7#1"), "salary") == "9"
    assert text(world.edge.get("7#1")) == "x"
    assert text(world.cloud.get("7#3"), "shop") == "south"
    world.edge.set("7#3", a="later")
    world.once()
    assert text(world.cloud.get("7#3")) == ""


@pytest.mark.parametrize("expiries", ["keep", "delete"])
@pytest.mark.parametrize("trimmed", [False, True])
def test_expiries(places: Places, expiries: str, trimmed: bool) -> None:
    world = World(places, expiries=expiries)
    places.edge.dynamodb.update_time_to_live(
        TableName=world.name, TimeToLiveSpecification={"Enabled": True, "AttributeName": "until"}
    )
    until = {"N": str(int(places.clock.now()) + 100)}
    world.cloud.put("k1", a="1", until=until)
    world.cloud.put("k2", a="2")
    world.once()
    world.edge.delete("k2")
    world.passes(200.0)
    if trimmed:
        world.passes(2 * DAY)
    assert world.edge.items() == {}
    world.once()
    assert world.cloud.items().keys() == ({"k1"} if expiries == "keep" else set())
    world.once()
    assert world.edge.items() == {}
    world.cloud.set("k1", a="3", until=None)
    world.once()
    assert equal(world)


def test_a_gap_is_compared(places: Places) -> None:
    world = World(places)
    for number in range(60):
        world.cloud.put(f"k{number}", a=str(number))
    world.once()
    world.cloud.delete("k1")
    world.edge.delete("k2")
    world.edge.put("k3", a="new")
    world.cloud.put("more", a="1")
    world.passes(2 * DAY)
    world.once()
    assert equal(world)
    assert not {"k1", "k2"} & world.cloud.items().keys()
    assert text(world.cloud.get("k3")) == "new"
    assert world.sync.pairs[0].counts.gaps
    assert world.log() == []
    reads = [operation for side, operation in world.requests if side == "cloud"].count("batch_get_item")
    assert reads < 10  # (items that did not change are not read one by one)


ALL_TYPES: dict[str, Any] = {
    "s": {"S": ""},
    "n": {"N": "1.2345678901234567890123456789012345678E-100"},
    "many": {"N": "12345678901234567890123456789012345678"},
    "b": {"B": bytes(range(256))},
    "ss": {"SS": ["b", "a"]},
    "ns": {"NS": ["1.0", "-3E+20"]},
    "bs": {"BS": [b"\xff", b""]},
    "deep": {"M": {"l": {"L": [{"NULL": True}, {"BOOL": False}, {"M": {}}]}}},
}


def test_all_types_are_exact(places: Places) -> None:
    world = World(places, conflicts="add: n")
    world.cloud.put("k1", **ALL_TYPES)
    world.once()
    assert equal(world)
    world.edge.set("k1", ss={"SS": ["c"]}, s=None)
    world.cloud.set("k1", deep={"M": {}})
    world.once()
    assert equal(world)
    item = world.cloud.get("k1") or {}
    assert (item["deep"], item["ss"]) == ({"M": {}}, {"SS": ["c"]})
    assert Decimal(item["n"]["N"]) == Decimal(ALL_TYPES["n"]["N"])


@pytest.mark.parametrize("policy", ["cloud", "add: n"])
def test_items_of_400_kb(places: Places, policy: str) -> None:
    world = World(places, conflicts=policy)
    for number in range(12):
        world.cloud.put(f"k{number}", a="x" * (409_500 - 10), b=str(number))
    world.once()
    assert equal(world)
    world.cloud.set("k1", a="c" * 409_000)
    world.edge.set("k1", a="e" * 409_000)
    world.once()
    assert equal(world)
    [conflict] = world.log()
    assert (text(conflict.cloud)[:2], len(text(conflict.edge))) == ("cc", 409_000)


def test_items_of_very_many_attributes(places: Places) -> None:
    world = World(places)
    world.cloud.put("k1", **{f"a{number}": "1" for number in range(400)})
    world.once()
    world.cloud.put("k1", **{f"b{number}": "2" for number in range(400)})
    world.once()
    assert equal(world)
    world.edge.put("k1", **{f"c{number}": "3" for number in range(400)})
    number = _number_of(world, "put_item", "cloud")
    world.edge.put("k1", **{f"d{number}": "3" for number in range(400)})
    world.meets(number, before(lambda: world.cloud.set("k1", z="late"), performed))
    world.once()
    assert equal(world)
    [conflict] = world.log()
    assert (conflict.kind, text(conflict.cloud, "z")) == (OVERWRITTEN, "late")


def _number_of(world: World, operation: str, side: str) -> int:
    """Which request of the next run is the first of this kind, found out by a run."""
    world.once()
    return world.requests.index((side, operation)) + 1


@pytest.mark.parametrize("leader", ["cloud", "edge"])
def test_a_write_in_the_moment_of_an_update_is_a_conflict(places: Places, leader: str) -> None:
    world = World(places, conflicts=leader)
    world.cloud.put("k1", a="1", b="1")
    world.once()
    ours, theirs = (world.cloud, world.edge) if leader == "cloud" else (world.edge, world.cloud)
    ours.set("k1", a="2")
    # (the first write to the cloud follows the journal, which is a transaction)
    number = "write 1" if leader == "cloud" else "write 2"
    world.meets(number, before(lambda: theirs.set("k1", a="late", b="late"), performed))
    world.once()
    assert equal(world)
    assert text(world.edge.get("k1")) == "2"
    [conflict] = world.log()
    assert text(conflict.edge if leader == "cloud" else conflict.cloud) == "late"


def test_a_write_in_the_moment_of_a_deletion_is_logged(places: Places) -> None:
    world = World(places)
    for key in ("k1", "k2"):
        world.cloud.put(key, a="1")
    world.once()
    world.edge.delete("k1")
    number = _number_of(world, "delete_item", "cloud")
    world.edge.delete("k2")
    world.meets(number, before(lambda: world.cloud.set("k2", z="late"), kills_after))
    world.once()
    world.once()
    assert equal(world)
    [conflict] = world.log()
    assert (conflict.kind, text(conflict.cloud, "z")) == (OVERWRITTEN, "late")


def test_what_a_trimmed_stream_hides_is_logged(places: Places) -> None:
    world = World(places)
    for key in ("k1", "k2"):
        world.cloud.put(key, a="1")
    world.once()
    world.edge.delete("k1")
    number = _number_of(world, "delete_item", "cloud")
    world.edge.delete("k2")
    world.meets(number, kills_after)
    world.once()
    world.passes(2 * DAY)
    world.once()
    assert equal(world)
    assert [conflict.kind for conflict in world.log()] == [UNSEEN]


def test_a_table_that_was_made_anew_deletes_nothing(places: Places) -> None:
    world = World(places)
    world.cloud.put("k1", a="1")
    world.once()
    places.cloud.dynamodb.delete_table(TableName=world.name)
    with pytest.raises(SyncError, match=r"The cloud has no table.*Nothing was changed"):
        world.once()
    world.cloud.__init__(places.cloud, world.name)  # type: ignore[misc]
    world.edge.set("k1", b="2")
    for _ in range(2):
        with pytest.raises(SyncError, match=f"another one than before.*reset FILE --pair {world.name}"):
            world.once()
    assert world.edge.items().keys() == {"k1"}
    assert world.sync.pairs[0].reset() == 1
    world.once()
    assert equal(world)
    assert world.cloud.items().keys() == {"k1"}


def test_a_table_made_anew_behind_a_running_sync_deletes_nothing(places: Places) -> None:
    world = World(places)
    world.cloud.put("k1", a="1")
    world.once()
    places.cloud.dynamodb.delete_table(TableName=world.name)
    world.cloud.__init__(places.cloud, world.name)  # type: ignore[misc]
    world.edge.set("k1", b="2")
    pair = world.sync.pairs[0]
    assert pair._session is not None
    pair._session.followers.pop("cloud")  # (its stream has not told yet)
    with pytest.raises(SyncError, match="another one than before"):
        pair.cycle()
    assert world.edge.items().keys() == {"k1"}


def test_a_stream_that_was_off(places: Places) -> None:
    world = World(places)
    world.cloud.put("k1", a="1")
    world.once()
    off: Any = {"StreamEnabled": False}
    places.cloud.dynamodb.update_table(TableName=world.name, StreamSpecification=off)
    world.cloud.put("k2", a="2")
    world.kill()
    with pytest.raises(SyncError, match=r"The stream of the cloud's table table-\d+ is off"):
        world.once()
    assert world.sync.pairs[0].align() == ["switched on the stream of the cloud's table"]
    world.once()
    assert equal(world)


def test_definitions_are_told_and_aligned(places: Places) -> None:
    world = World(places)
    places.cloud.dynamodb.update_table(
        TableName=world.name,
        AttributeDefinitions=[{"AttributeName": "day", "AttributeType": "S"}],
        GlobalSecondaryIndexUpdates=[
            {
                "Create": {
                    "IndexName": "by-day",
                    "KeySchema": [{"AttributeName": "day", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                }
            }
        ],
    )
    places.cloud.dynamodb.update_time_to_live(
        TableName=world.name, TimeToLiveSpecification={"Enabled": True, "AttributeName": "until"}
    )
    world.once()
    pair = world.sync.pairs[0]
    assert pair.current().differences == [
        "only the cloud has the index by-day",
        "the time to live is until in the cloud, off at the edge",
    ]
    assert len(pair.align()) == 2
    assert pair.differences() == []
    places.edge.dynamodb.delete_table(TableName=world.name)
    with pytest.raises(SyncError, match="The edge has no table"):
        pair.tables()
    assert pair.align()[0] == f"made the edge's table {world.name}"
    assert pair.differences() == []


def test_other_keys_stop_the_pair(places: Places) -> None:
    world = World(places)
    places.edge.dynamodb.delete_table(TableName=world.name)
    places.edge.dynamodb.create_table(
        TableName=world.name,
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "N"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification=STREAM,
    )
    with pytest.raises(SyncError, match=r"keys differ.*pk \(HASH, S\).*pk \(HASH, N\)"):
        world.once()


def refuses(code: str) -> Callable[..., Any]:
    def what(go: Callable[[], Any]) -> Any:
        raise ClientError(
            {"Error": {"Code": code, "Message": "by a test"}, "ResponseMetadata": {"HTTPStatusCode": 400}},  # type: ignore[typeddict-item]
            "Operation",
        )

    return what


def test_revoked_credentials_and_throttling(places: Places) -> None:
    world = World(places)
    world.cloud.put("k1", a="1")
    for number in range(1, 60):
        world.meets(number, refuses("ExpiredTokenException"))
    with pytest.raises(Denied, match=r"ExpiredTokenException: by a test\. Renew the credentials"):
        world.once()
    assert "Renew" in world.sync.pairs[0].stored_status().error or world.requests
    for number in range(9, 60):
        world.meets(number, refuses("ProvisionedThroughputExceededException"))
    with pytest.raises(Unavailable, match="ProvisionedThroughputExceeded"):
        world.once()
    world.once()
    assert equal(world)
    status = world.sync.pairs[0].stored_status()
    assert (status.state, status.to_edge) == ("in step", 1)


def test_a_second_process_takes_over(places: Places) -> None:
    world = World(places)
    world.once()
    first = world.sync.pairs[0]
    world.kill()
    world.once()
    world.cloud.put("k1", a="1")
    with pytest.raises(Superseded, match="Another process keeps this pair in step"):
        first.cycle()
    world.once()
    assert equal(world)


def test_an_unreachable_side_catches_up(places: Places) -> None:
    world = World(places)
    world.once()
    world.unreachable = {"cloud"}
    world.edge.put("k1", a="1")
    world.cloud.put("k2", a="2")
    with pytest.raises(Unavailable, match="Could not connect"):
        world.once()
    assert world.sync.pairs[0].stored_status().state == "stopped"
    world.unreachable = set()
    world.once()
    assert equal(world)


def test_verify(places: Places) -> None:
    world = World(places)
    world.cloud.put("k1", a="1")
    world.cloud.put("k2", a="1")
    world.once()
    pair = world.sync.pairs[0]
    assert pair.verify().is_equal
    world.edge.put("k2", a="2")
    world.edge.put("k3", a="2")
    world.cloud.put("k4", a="2")
    found = pair.verify(2)
    assert found.differing == {"differs": 1, "only cloud": 1, "only edge": 1}
    assert len(found.keys) == 2


def test_the_rate_is_kept_and_throttling_lowers_it(places: Places) -> None:
    world = World(places, rate=10.0, direction="up")
    for number in range(100):
        world.edge.put(f"k{number}", a="1")
    began = places.clock.now()
    world.once()
    used = world.sync.pairs[0].current().units
    assert used >= 100
    assert places.clock.now() - began >= (used - 120) / 10
    pace = Pace(0.0, places.clock)
    assert pace.wait_seconds() == 0
    pace.refused()
    pace.refused()
    assert pace.limit == 500
    pace.spent(1_000)
    assert pace.wait_seconds() > 1
    places.clock.advance(200.0)
    assert pace.wait_seconds() == 0
    assert pace.limit == 0


def test_digests() -> None:
    assert digest({"a": {"N": "1.0"}, "b": {"SS": ["x", "y"]}}) == digest(
        {"b": {"SS": ["y", "x"]}, "a": {"N": "1"}}
    )
    assert digest({"a": {"N": "1"}}) != digest({"a": {"S": "1"}})
    assert digest({"a": {"N": "0"}}) == digest({"a": {"N": "-0.00"}})
    assert digest(None) != digest({})


@pytest.mark.parametrize("mark", ["", "mark"])
def test_a_mark_tells_equal_changes_apart(places: Places, mark: str) -> None:
    world = World(places, conflicts="add: n", mark=mark)
    world.cloud.put("k1", n={"N": "5"})
    world.once()
    world.edge.add("k1", "n", 1)
    world.meets("write 3", kills_before)  # (the journal is noted, and the cloud's item is not written)
    world.once()
    world.cloud.add("k1", "n", 1)
    world.once()
    counts = [(side.get("k1") or {})["n"]["N"] for side in (world.cloud, world.edge)]
    assert counts == (["7", "7"] if mark else ["6", "6"])
    assert mark not in (world.edge.get("k1") or {})
