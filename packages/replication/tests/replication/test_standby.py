"""A standby: what it serves and refuses, how it becomes the primary, and that there is never a second one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hashrange.buckets.folders import Folders
from hashrange.database import Database
from hashrange.errors import InternalServerError, ResourceNotFoundException
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.failures import CommitFailed
from hashrange.tables.inspection.check import check
from hashrange_engine_tests import faults
from hashrange_replication import lease as leases
from hashrange_replication import place
from hashrange_replication.chain import list_copy
from hashrange_replication.failures import CopyError, Fenced, Held
from hashrange_replication.lease import read_record
from hashrange_replication.serving import families, health
from hashrange_replication.standby import following
from hashrange_replication.status import status
from hashrange_replication.verify import verify
from shipping import Faulty, World, begun, contents, place_in, restored
from standing import Standing, plain, standing
from worlds import create, expiry_of, new_index, table_of

TTL = leases.TTL_SECONDS
FOREVER = {"TableName": "table", "Key": {"p": {"S": "item 1"}}}


def put(database: Database, number: int, **more: Any) -> None:
    item = {"p": {"S": f"item {number}"}, "n": {"N": str(number)}, **more}
    database.execute("PutItem", {"TableName": "table", "Item": item})


def numbers(database: Database) -> list[int]:
    found = plain(database.execute("Scan", {"TableName": "table"}))
    return sorted(int(item["n"]["N"]) for item in found["Items"])


def away(name: str, key: str) -> str:
    return "refused"


def well(name: str, key: str) -> str:
    return ""


def test_a_standby_serves_what_the_primary_has_shipped(tmp_path: Path) -> None:
    world = begun(World(tmp_path / "data", place_in(tmp_path)))
    put(world.database, 1)
    world.step()
    second = standing(world)
    assert numbers(second.database) == [1]
    create(world.database, "other", "p", indexes={"by-g": "g"})
    world.database.execute("PutItem", {"TableName": "other", "Item": {"p": {"S": "a"}, "g": {"S": "b"}}})
    world.database.execute("UpdateTable", new_index("table", "by-n", "n:N"))
    world.database.settle()
    world.step()
    with pytest.raises(ResourceNotFoundException):
        second.execute("Scan", TableName="other")
    second.step()
    assert second.execute("Scan", TableName="other", IndexName="by-g")["Count"] == 1
    assert second.execute("Scan", TableName="table", IndexName="by-n")["Count"] == 1
    world.database.execute("DeleteTable", {"TableName": "other"})
    world.database.settle()
    world.step()
    second.step()
    assert second.execute("ListTables")["TableNames"] == ["table"]
    assert contents(second.engine) == contents(world.engine)
    assert list(check(second.engine)) == []
    second.close()
    world.close()


def test_a_read_that_is_under_way_sees_one_moment(tmp_path: Path) -> None:
    world = begun(World(tmp_path / "data", place_in(tmp_path)))
    for number in range(5):
        put(world.database, number)
    world.step()
    second = standing(world)
    for number in range(5, 10):
        put(world.database, number)
    world.database.execute("DeleteItem", FOREVER)
    world.step()
    space = second.engine.read(lambda reader: [s for s in range(400) if reader.totals(s).records == 5])[0]

    def read(reader: Any) -> list[Any]:
        scan = reader.scan_space(space)
        first = next(scan)
        second.step()
        return [first, *scan]

    assert len(second.engine.read(read)) == 5
    assert len(numbers(second.database)) == 9
    second.close()
    world.close()


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("PutItem", {"TableName": "table", "Item": {"p": {"S": "a"}}}),
        ("GetItem", FOREVER | {"ConsistentRead": True}),
        ("TransactGetItems", {"TransactItems": [{"Get": FOREVER}]}),
        ("TransactWriteItems", {"TransactItems": [{"Delete": FOREVER}]}),
        ("CreateTable", table_of("new", "p")),
        ("ExecuteStatement", {"Statement": "DELETE FROM \"table\" WHERE p = 'a'"}),
    ],
)
def test_what_only_the_primary_may_answer_is_refused(
    tmp_path: Path, operation: str, request_: dict[str, Any]
) -> None:
    world = begun(World(tmp_path / "data", place_in(tmp_path)))
    second = standing(world)
    world.now.advance(7)
    with pytest.raises(InternalServerError, match=r"is a standby of .*, 7 s behind: .*the test in data"):
        second.database.execute(operation, request_)
    with pytest.raises(CommitFailed, match="hashrange replica promote"):
        second.engine.write(lambda txn: txn.put(5, b"p", b"s", b""))
    second.close()
    world.close()


def test_a_standby_shows_how_far_it_is(tmp_path: Path) -> None:
    world = begun(World(tmp_path / "data", place_in(tmp_path)))
    second = standing(world)
    subject: Any = SimpleNamespace(database=second.database)
    second.database.part("replication", "copying").standby = second.standby
    shown = health(subject)
    assert shown is not None
    assert (shown["role"], shown["lag_seconds"], shown["may_be_promoted"]) == ("standby", 0.0, True)
    assert shown["batch"] == second.standby.batch > 0
    made = {family[0]: family[3][0][2] for family in families(subject)}
    assert made["hashrange_standby_may_be_promoted"] == 1
    assert made["hashrange_standby_failing"] == 0
    told = status(world.place, None, world.clock.now())
    assert told["standby"] == second.standby.id
    assert [(one["where"], one["may_be_promoted"]) for one in told["standbys"]] == [
        ("the standby in standby", True)
    ]
    second.close()
    world.close()


def test_a_standby_takes_over_and_everything_goes_on(tmp_path: Path) -> None:
    world = World(tmp_path / "data", place_in(tmp_path))
    create(world.database, "table", "p", stream="NEW_AND_OLD_IMAGES")
    world.database.execute("UpdateTimeToLive", expiry_of("table"))
    put(world.database, 1, ttl={"N": str(int(world.clock.now()) + 500)})
    world.step()
    second = standing(world)
    arn = world.database.execute("ListStreams", {})["Streams"][0]["StreamArn"]
    shard = world.database.execute("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"][0]
    asked = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
    iterator = world.database.execute("GetShardIterator", asked)["ShardIterator"]
    put(world.database, 2)
    world.close()  # (it ships, and gives up the lease)

    bases = len(list_copy(world.place).bases)
    second.standby.promote()
    assert second.copying is not None
    assert second.copying.lease.epoch == 2
    put(second.database, 3)
    second.copying.ship()
    second.copying.make_base()
    assert len(list_copy(world.place).bases) == bases
    records = plain(second.execute("GetRecords", ShardIterator=iterator))["Records"]
    assert [record["dynamodb"]["Keys"]["p"]["S"] for record in records] == ["item 1", "item 2", "item 3"]
    sequences = [int(record["dynamodb"]["SequenceNumber"]) for record in records]
    assert sequences == sorted(set(sequences))
    world.clock.advance(1_000)
    second.database.settle()
    assert numbers(second.database) == [2, 3]
    assert list(check(second.engine)) == []
    wanted = contents(second.engine)
    second.close()
    assert verify(world.place, None).problems == []
    assert restored(world.place, tmp_path / "restored")[1] == wanted


def test_a_running_primary_is_not_replaced(tmp_path: Path) -> None:
    world = begun(World(tmp_path / "data", place_in(tmp_path)))
    second = standing(world)

    def alive(seconds: float) -> None:
        world.now.advance(seconds)
        world.copying.keep_lease()

    second.wait = alive
    with pytest.raises(Held, match="Another server ships"):
        second.standby.promote()
    put(world.database, 1)
    world.step()
    second.step()
    assert numbers(second.database) == [1]
    second.close()
    world.close()


def test_a_primary_that_comes_back_sees_its_successor(tmp_path: Path) -> None:
    world = begun(World(tmp_path / "data", place_in(tmp_path)))
    second = standing(world)
    put(world.database, 1)  # never shipped
    world.crash()
    second.standby.promote()
    put(second.database, 2)
    with pytest.raises(Fenced, match=r"the standby in standby, in epoch 2; .*hashrange replica restore"):
        world.open()
    with pytest.raises(CopyError, match="Start the standby with a new directory"):
        Standing(world.directory, world.place, now=world.now, clock=world.clock)
    second.copying.ship()  # type: ignore[union-attr]
    third = Standing(tmp_path / "third", world.place, now=world.now, clock=world.clock)
    third.step()
    assert numbers(third.database) == [2]
    third.close()
    second.close()


def test_a_primary_that_is_overtaken_while_it_runs_acknowledges_nothing(tmp_path: Path) -> None:
    bucket = Faulty(Folders(tmp_path))
    world = begun(World(tmp_path / "data", place_in(tmp_path, bucket)))
    second = Standing(tmp_path / "standby", place_in(tmp_path), now=world.now, clock=world.clock)
    second.step()
    world.copying.keep_lease()
    second.step()
    bucket.fault = away
    acknowledged = 0

    def try_to_write(seconds: float) -> None:
        nonlocal acknowledged
        world.now.advance(seconds)
        try:
            put(world.database, 100)
            acknowledged += 1
            assert second.copying is None
        except InternalServerError:
            assert world.copying.lease.refusing() is not None

    second.wait = try_to_write
    second.standby.promote()
    assert 5 < acknowledged < TTL + 1
    with pytest.raises(InternalServerError):
        put(world.database, 1)
    bucket.fault = well
    world.copying.keep_lease()
    assert "replica restore" in (world.copying.lease.fenced or "")
    put(second.database, 2)
    world.database.close()
    second.close()


def test_two_standbys_that_want_to_be_the_primary(tmp_path: Path) -> None:
    world = begun(World(tmp_path / "data", place_in(tmp_path)))
    put(world.database, 1)
    world.step()
    one, other = standing(world, "one"), standing(world, "other")
    assert (one.standby.is_agreed, other.standby.is_agreed) == (True, False)
    world.crash()
    with pytest.raises(CopyError, match="has not agreed to this standby"):
        other.standby.promote()
    one.standby.promote()
    put(one.database, 2)
    one.copying.ship()  # type: ignore[union-attr]
    with pytest.raises((CopyError, Held)):
        other.standby.promote()
    other.step()
    assert numbers(other.database) == [1, 2]
    one.copying.keep_lease()  # type: ignore[union-attr]
    other.step()
    assert other.standby.is_agreed
    one.close()
    other.standby.promote()
    assert other.copying is not None
    assert other.copying.lease.epoch == 3
    put(other.database, 3)
    other.close()


def test_force_is_for_a_primary_that_has_not_agreed(tmp_path: Path) -> None:
    world = begun(World(tmp_path / "data", place_in(tmp_path)))
    second = Standing(tmp_path / "standby", world.place, now=world.now, clock=world.clock)
    second.step()
    world.crash()
    with pytest.raises(CopyError, match="--force"):
        second.standby.promote()
    second.standby.promote(force=True)
    put(second.database, 1)
    second.close()


def test_a_standby_promotes_itself_when_the_primary_is_silent(tmp_path: Path) -> None:
    world = begun(World(tmp_path / "data", place_in(tmp_path)))
    second = standing(world, promote_after=30.0)
    for _ in range(8):
        world.now.advance(5)
        world.copying.keep_lease()
        second.step()
    assert second.copying is None
    world.crash()
    world.now.advance(29)
    second.step()
    assert second.copying is None
    world.now.advance(1)
    second.step()
    assert second.promoted == 1
    put(second.database, 1)
    second.close()


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_standby_goes_on_after_its_end(tmp_path: Path, is_clean: bool) -> None:
    world = begun(World(tmp_path / "data", place_in(tmp_path)))
    second = standing(world)
    one = second.standby.id
    for number in range(5):
        put(world.database, number)
        world.step()
        second.step()
        (second.close if is_clean else second.crash)()
        put(world.database, 10 + number)
        world.step()
        second.open()
        second.step()
        assert contents(second.engine) == contents(world.engine)
    assert second.standby.id == one
    second.close()
    world.close()


def test_a_directory_that_somebody_has_written_to_is_refused(tmp_path: Path) -> None:
    world = begun(World(tmp_path / "data", place_in(tmp_path)))
    second = standing(world)
    put(world.database, 1)
    world.step()
    second.step()
    second.crash()
    with Database.open(second.directory) as database:
        put(database, 99)
    put(world.database, 2)
    put(world.database, 3)
    world.step()
    with pytest.raises(CopyError, match="is no standby of the copy"):
        second.open()
    world.close()


def test_a_primary_that_has_ended_becomes_a_standby(tmp_path: Path) -> None:
    world = begun(World(tmp_path / "data", place_in(tmp_path)))
    second = standing(world)
    put(world.database, 1)
    world.close()
    second.standby.promote()
    first = Standing(world.directory, world.place, now=world.now, clock=world.clock)
    put(second.database, 2)
    second.copying.ship()  # type: ignore[union-attr]
    first.step()
    assert numbers(first.database) == [1, 2]
    first.close()
    second.close()


def test_a_chain_that_begins_again_is_restored(tmp_path: Path) -> None:
    world = begun(World(tmp_path / "data", place_in(tmp_path)))
    put(world.database, 1)
    world.step()
    second = standing(world)
    one = second.standby.id
    (second.directory / "access.key").write_text("the key")
    put(world.database, 2)
    world.crash()
    world.open()
    put(world.database, 3)
    world.copying.ship()
    second.step()
    assert numbers(second.database) == [1]
    assert list(second.again) == []
    world.step()
    second.standby.step()
    assert len(second.again) == 1
    assert "epoch 2" in second.again[0]
    with pytest.raises(CopyError, match="being restored"):
        second.standby.promote()
    second.close()
    second.open()
    second.step()
    assert numbers(second.database) == [1, 2, 3]
    assert second.standby.id == one
    assert (second.directory / "access.key").read_text() == "the key"
    second.close()
    world.close()


def stuck(tmp_path: Path, bucket: Faulty | None = None) -> tuple[World, Standing]:
    """A standby with item 1, whose primary has crashed, has made a base, and has items 1 and 2."""
    world = begun(World(tmp_path / "data", place_in(tmp_path, bucket)))
    put(world.database, 1)
    world.step()
    second = standing(world)
    world.crash()
    world.open()
    put(world.database, 2)
    world.step()
    second.look = lambda: numbers(second.database)
    return world, second


def test_a_standby_serves_what_it_has_while_it_is_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "PATIENCE", ())
    bucket = Faulty(Folders(tmp_path))
    world, second = stuck(tmp_path, bucket)
    bucket.fault = lambda name, key: "refused" if name == "open" and "files/" in key else ""
    second.standby.step()
    shown = second.standby.shown()
    assert "the store cannot be restored: open of" in shown["problem"]
    assert not shown["may_be_promoted"]
    assert numbers(second.database) == [1]
    second.crash()
    second.open()
    bucket.fault = well
    second.standby.step()
    assert (len(second.again), second.standby.problem) == (1, "")
    assert second.looks[-1] == [1]
    assert second.told[-1] == "100% of the files"
    assert all(look == [1] for look in second.looks)
    with pytest.raises(InternalServerError, match="is a standby"):
        put(second.database, 3)
    second.close()
    second.open()
    assert not (second.directory / "copy" / "next").exists()
    second.step()
    assert numbers(second.database) == [1, 2]
    second.close()
    world.close()


def test_a_standby_that_ends_while_it_is_restored_has_its_store(tmp_path: Path) -> None:
    world, second = stuck(tmp_path)
    second.look = lambda: second.standby._stop.set()
    second.standby.step()
    assert second.again == []
    second.close()
    second.look = lambda: None
    second.open()
    assert not (second.directory / "copy" / "next").exists()
    assert numbers(second.database) == [1]
    second.standby.step()
    second.close()
    second.open()
    assert numbers(second.database) == [1, 2]
    second.close()
    world.close()


def test_a_standby_without_room_for_two_stores_gives_up_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, second = stuck(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1 << 20))
    second.standby.step()
    assert (len(second.again), second.looks) == (1, [])
    second.close()
    second.open()
    assert numbers(second.database) == [1, 2]
    second.close()
    world.close()


def test_a_standby_that_is_killed_while_its_store_is_replaced_is_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, second = stuck(tmp_path)
    second.standby.step()
    second.close()

    class Killed(BaseException):
        pass

    def replace(path: Path, target: Path) -> None:
        if path.name == "rocks":
            raise Killed
        os.replace(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", replace)
        with pytest.raises(Killed):
            second.open()
    assert (second.directory / "FORMAT").exists()
    second.open()
    assert numbers(second.database) == [1, 2]
    second.close()
    world.close()


def test_segments_of_a_server_that_was_overtaken_are_given_up(tmp_path: Path) -> None:
    world = begun(World(tmp_path / "data", place_in(tmp_path)))
    put(world.database, 1)
    world.step()
    one, other = standing(world, "one"), standing(world, "other")
    put(world.database, 2)
    world.copying.keep_lease()
    world.crash()
    one.standby.promote()
    # The former primary's last segment arrives late, and only one of the two standbys sees it in time.
    world.copying.shipper.step()
    other.standby.step()
    assert numbers(other.database) == [1, 2]
    put(one.database, 3)
    one.copying.ship()  # type: ignore[union-attr]
    other.standby.step()
    assert len(other.again) == 1
    other.close()
    other.open()
    other.step()
    assert numbers(other.database) == [1, 3]
    other.close()
    one.close()


def test_a_lost_segment_is_told(tmp_path: Path) -> None:
    world = begun(World(tmp_path / "data", place_in(tmp_path)))
    second = standing(world)
    for number in range(3):
        put(world.database, number)
        world.step()
    lost = sorted(list_copy(world.place).segments)[-2]
    world.place.delete(lost.name)
    second.standby.step()
    assert f"{lost.name} is missing" in second.standby.problem
    assert second.again == []
    world.copying.bases.make()
    second.standby.step()
    assert len(second.again) == 1
    second.close()
    world.close()


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_batch_that_cannot_be_committed_is_applied_later(tmp_path: Path, moment: Any) -> None:
    world = begun(World(tmp_path / "data", place_in(tmp_path)))
    second = standing(world)
    with faults.failing(world.engine, moment, commits_max=1), pytest.raises(InternalServerError):
        put(world.database, 1)  # (numbers of batches have gaps)
    while world.engine.refusing():
        continue
    put(world.database, 2)
    world.step()
    for _ in range(2):
        with faults.failing(second.engine, moment, commits_max=1):
            second.standby.step()
        assert second.standby.problem != ""
        while second.engine.refusing():
            continue
    second.step()
    assert contents(second.engine) == contents(world.engine)
    second.close()
    world.close()


def test_large_segments_are_applied_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "APPLIED_BYTES", 2_000)
    world = begun(World(tmp_path / "data", place_in(tmp_path)))
    second = standing(world)
    for number in range(30):
        put(world.database, number, x={"S": "x" * 500})
    world.step()
    with faults.failing(second.engine, "before", commits_max=1):
        second.standby.step()
    part = second.standby.batch
    second.crash()
    second.open()
    assert second.standby.batch == part
    second.step()
    assert contents(second.engine) == contents(world.engine)
    second.close()
    world.close()


def test_a_standby_of_another_copy_is_refused(tmp_path: Path) -> None:
    world = begun(World(tmp_path / "data", place_in(tmp_path)))
    world.close()
    EmbeddedEngine(tmp_path / "own").close()
    with pytest.raises(CopyError, match="is no standby of the copy"):
        Standing(tmp_path / "own", world.place, now=world.now, clock=world.clock)
    found = read_record(world.place)
    assert found is not None
    assert found[0].standby == ""
