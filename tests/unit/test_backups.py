"""Backups: what is restored is what the table was when the backup was taken, whatever happens meanwhile."""

from __future__ import annotations

import gzip
import hashlib
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hashrange
from backing import DAY, NOW, World, item_of
from doses import examples
from hashrange.client import connect
from hashrange.database import Caller, Database, Settings
from hashrange.errors import (
    AccessDeniedException,
    BackupInUseException,
    BackupNotFoundException,
    LimitExceededException,
    ResourceNotFoundException,
    TableAlreadyExistsException,
    TableInUseException,
    ValidationException,
)
from hashrange.tables.bites import Limit
from hashrange.tables.definitions import dropped
from hashrange.tables.inspection import mending
from hashrange.tables.inspection.check import check
from hashrange.tables.jobs.backups import backup_writer
from hashrange.tables.writes import builds
from worlds import recovery_of, table_of


@pytest.fixture(params=["memory", "embedded"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path, durable=request.param == "embedded")
    world.create()
    yield world
    world.database.close()


@pytest.fixture
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup_writer, "FILE_BYTES", 10_000)


def sound(world: World) -> None:
    assert list(check(world.database.engine)) == []
    assert world.database.background.failing == {}


def test_a_restored_table_is_the_table_of_the_moment(world: World, small_files: None) -> None:
    world.fill(400)
    before = world.rows()
    arn = world.begin()
    for number in range(0, 400, 2):
        world("DeleteItem", TableName="music", Key={name: item_of(number)[name] for name in ("pk", "sk")})
    world.put(1, text={"S": "changed"})
    world.put(1_000)
    world.database.settle()
    shown = world("DescribeBackup", BackupArn=arn)["BackupDescription"]
    assert shown["BackupDetails"]["BackupStatus"] == "AVAILABLE"
    assert shown["SourceTableDetails"]["ItemCount"] == 400
    table = world.definition("music")
    assert table is not None
    assert table.history is None  # nothing is recorded from now on
    world.restore(arn)
    with pytest.raises(ResourceNotFoundException):
        world("GetItem", TableName="restored", Key={"pk": {"S": "item 0"}, "sk": {"N": "0"}})
    world.database.settle()
    assert world.rows("restored") == before
    described = world("DescribeTable", TableName="restored")["Table"]
    assert described["TableStatus"] == "ACTIVE"
    assert "RestoreSummary" not in described
    assert described["GlobalSecondaryIndexes"][0]["ItemCount"] == 400
    assert described["LocalSecondaryIndexes"][0]["Projection"]["NonKeyAttributes"] == ["text"]
    sound(world)


def test_ordinary_tools_read_a_backup(world: World, small_files: None) -> None:
    world.fill(300)
    folder = world.folder(world.backup())
    manifest = orjson.loads((folder / "manifest.json").read_bytes())
    assert manifest["items"] == 300
    assert len(manifest["files"]) == 2
    lines = b"".join(gzip.decompress((folder / file["name"]).read_bytes()) for file in manifest["files"])
    items = [orjson.loads(line)["Item"] for line in lines.splitlines()]
    key = lambda item: (item["pk"]["S"], item["sk"]["N"])  # noqa: E731
    assert sorted(items, key=key) == sorted(map(item_of, range(300)), key=key)
    for file in manifest["files"]:
        content = (folder / file["name"]).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file["bytes"], file["sha256"])
    checked = subprocess.run(
        ["sha256sum", "-c", "--strict", "SHA256SUMS"], cwd=folder, check=True, capture_output=True
    )
    assert checked.stdout.count(b": OK") == len(manifest["files"]) + 1
    assert [path.name for path in world.backups.iterdir()] == [folder.name]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 30), st.integers(0, 9)),
        st.tuples(
            st.just("transact"), st.sets(st.integers(0, 30), min_size=2, max_size=5), st.integers(0, 9)
        ),
        st.tuples(st.just("delete"), st.integers(0, 30)),
        st.tuples(st.just("backup")),
        st.tuples(st.just("sweep")),
        st.tuples(st.just("reopen")),
        st.tuples(st.just("recovery"), st.booleans()),
        st.tuples(st.just("advance"), st.sampled_from((0.5, 40.0, DAY, 40 * DAY))),
        st.tuples(st.just("drop")),
    ),
    max_size=30,
)


def take(world: World, step: tuple[Any, ...], known: dict[str, list[Any]]) -> None:
    match step:
        case "put", number, value:
            world.put(number, v={"N": str(value)})
        case "transact", numbers, value:
            puts = [{"TableName": "music", "Item": item_of(n) | {"v": {"N": str(value)}}} for n in numbers]
            world("TransactWriteItems", TransactItems=[{"Put": put} for put in puts])
        case "delete", number:
            key = {name: item_of(number)[name] for name in ("pk", "sk")}
            world("DeleteItem", TableName="music", Key=key)
        case ("backup",):
            known[world.begin()] = world.rows()
        case ("sweep",):
            world.database.sweep()
        case ("reopen",):
            world.reopen()
        case "recovery", on:
            world(
                "UpdateContinuousBackups",
                TableName="music",
                PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": on},
            )
        case "advance", seconds:
            world.clock.advance(seconds)
            world.database.sweep()
        case ("drop",):
            world("DeleteTable", TableName="music")
            world.create()


@pytest.mark.parametrize("durable", [False, True])
@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=steps, limit=st.sampled_from((3, 10, 1_000)))
def test_every_backup_of_a_history_is_exact(
    tmp_path_factory: pytest.TempPathFactory, durable: bool, history: list[Any], limit: int
) -> None:
    """Backups of random moments, with restarts and deletions of the table in between."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backup_writer, "FILE_BYTES", 700)
        patch.setattr("hashrange.tables.background.sweeps.BITE_ITEMS", limit)
        world = World(tmp_path_factory.mktemp("world"), durable=durable)
        world.create()
        known: dict[str, list[Any]] = {}
        for step in history:
            take(world, step, known)
        world.database.settle()
        for number, (arn, rows) in enumerate(known.items()):
            world.restore(arn, f"restored-{number}")
            world.database.sweep()
            world.reopen()
            world.database.settle()
            assert world.rows(f"restored-{number}") == rows
        sound(world)
        world.database.close()


@pytest.mark.once
def test_the_cut_is_exact_while_writers_work(world: World, small_files: None) -> None:
    """Transfers between items keep their sum, in every backup that is taken meanwhile."""
    for number in range(30):
        world.put(number, v={"N": "100"})
    stop = Event()

    def transfer(seed: int) -> None:
        choice = random.Random(seed)
        while not stop.is_set():
            first, second = choice.sample(range(30), 2)
            changes = [
                {
                    "Update": {
                        "TableName": "music",
                        "Key": {name: item_of(n)[name] for name in ("pk", "sk")},
                        "UpdateExpression": "ADD v :n",
                        "ExpressionAttributeValues": {":n": {"N": str(amount)}},
                    }
                }
                for n, amount in ((first, -1), (second, 1))
            ]
            world("TransactWriteItems", TransactItems=changes)

    threads = [Thread(target=transfer, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    try:
        arns = [world.backup(name=f"backup-{number}") for number in range(8)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    for number, arn in enumerate(arns):
        world.restore(arn, f"restored-{number}")
    world.database.settle()
    for number in range(8):
        rows = world("Scan", TableName=f"restored-{number}")["Items"]
        assert (len(rows), sum(int(row["v"]["N"]) for row in rows)) == (30, 3_000)
    sound(world)


def test_an_empty_table(world: World) -> None:
    arn = world.backup()
    world.restore(arn)
    world.database.settle()
    assert world.rows("restored") == []
    assert world.status("restored") == "ACTIVE"


def test_a_backup_outlives_its_table(world: World) -> None:
    """[report] ack-api-quirks DDB-BACKUP-007, 016"""
    world.fill(5)
    before = world.rows()
    first = world.begin()
    world("DeleteTable", TableName="music")
    world.create()
    second = world.begin()
    world.database.settle()
    assert world.listed(TableName="music") == sorted([first, second])
    described = [world("DescribeBackup", BackupArn=arn)["BackupDescription"] for arn in (first, second)]
    assert len({one["SourceTableDetails"]["TableId"] for one in described}) == 2
    world.restore(first)
    world.database.settle()
    assert world.rows("restored") == before
    # Nothing is left of the deleted table but its backup.
    assert world.database.engine.read(lambda reader: list(dropped.every(reader))) == []
    sound(world)


def test_a_deleting_table_can_be_backed_up(tmp_path: Path) -> None:
    """[report] ack-api-quirks DDB-BACKUP-001"""
    world = World(tmp_path, delete_seconds=5)
    world.create()
    world.fill(5)
    before = world.rows()
    world("DeleteTable", TableName="music")
    arn = world.begin()
    world.clock.advance(5)
    world.database.settle()
    world.restore(arn)
    world.database.settle()
    assert world.rows("restored") == before
    sound(world)


def test_a_deleted_backup_is_gone_with_its_files(world: World) -> None:
    arn = world.backup()
    folder = world.folder(arn)
    assert folder.is_dir()
    answer = world("DeleteBackup", BackupArn=arn)["BackupDescription"]
    assert answer["BackupDetails"]["BackupStatus"] == "DELETED"
    for operation in ("DescribeBackup", "DeleteBackup"):
        with pytest.raises(BackupNotFoundException, match=f"Backup not found: {arn}"):
            world(operation, BackupArn=arn)
    assert world.listed() == []
    world.database.settle()
    assert list(world.backups.iterdir()) == []
    assert world.database.jobs.backups.runner.overview() == []


def test_a_backup_that_is_being_written_can_be_given_up(world: World, small_files: None) -> None:
    world.fill(300)
    arn = world.begin()
    world.database.sweep()
    assert world.details(arn)["BackupStatus"] == "CREATING"
    with pytest.raises(BackupInUseException):
        world.restore(arn)
    world("DeleteBackup", BackupArn=arn)
    world.database.settle()
    assert list(world.backups.iterdir()) == []
    table = world.definition("music")
    assert table is not None
    assert table.history is None
    sound(world)


def test_one_restore_at_a_time(world: World) -> None:
    """[report] ack-api-quirks DDB-BACKUP-010, DDB-TABLE-219"""
    world.fill(5)
    arn = world.backup()
    shown = world.restore(arn)
    assert shown["RestoreSummary"]["SourceBackupArn"] == arn
    with pytest.raises(BackupInUseException, match="is being used to restore another table"):
        world.restore(arn, "other")
    with pytest.raises(BackupInUseException, match="is being used to restore table"):
        world("DeleteBackup", BackupArn=arn)
    with pytest.raises(TableInUseException, match=f"already being restored from backup: {arn}"):
        world.restore(arn)
    with pytest.raises(TableAlreadyExistsException):
        world.restore(arn, "music")
    world.database.settle()
    world.restore(arn, "other")
    world("DeleteTable", TableName="other")  # gives the restore up
    world("DeleteBackup", BackupArn=arn)
    world.database.settle()
    assert list(world.backups.iterdir()) == []
    sound(world)


def test_fifty_restores(world: World) -> None:
    arns = [world.backup(name=f"backup-{number}") for number in range(51)]
    for number, arn in enumerate(arns[:50]):
        world.restore(arn, f"restored-{number}")
    with pytest.raises(LimitExceededException, match="Only 50 restore operations"):
        world.restore(arns[50], "one-more")
    world.database.settle()
    world.restore(arns[50], "one-more")


def test_deleting_a_table_that_is_half_restored(world: World, small_files: None) -> None:
    world.fill(300)
    arn = world.backup()
    world.restore(arn)
    world.database.sweep()
    assert 0 < world("DescribeTable", TableName="restored")["Table"]["ItemCount"] < 300
    half = world.definition("restored")
    assert half is not None
    world("DeleteTable", TableName="restored")
    world.database.settle()
    assert world.database.engine.read(lambda reader: list(reader.scan_space(half.space))) == []
    world.restore(arn)
    world.database.settle()
    assert world.rows("restored") == world.rows()
    sound(world)


def test_a_repair_restores_from_the_beginning(world: World, small_files: None) -> None:
    world.fill(300)
    arn = world.backup()
    world.restore(arn)
    world.database.sweep()
    messages = [str(problem) for problem in mending.mend(world.database.engine)]
    assert messages == ["restored: the table was being restored, and is restored from the beginning"]
    world.database.settle()
    assert world.rows("restored") == world.rows()
    sound(world)


@pytest.mark.parametrize("at_once", [True, False])
def test_a_deleted_table_with_recovery_leaves_a_backup(
    world: World, monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    """[report] ack-api-quirks DDB-BACKUP-014, 015"""
    if not at_once:
        monkeypatch.setattr(builds, "AT_ONCE", Limit(0))
    world.fill(20)
    world("UpdateContinuousBackups", **recovery_of("music"))
    before = world.rows()
    user = world.backup()
    world("DeleteTable", TableName="music")
    assert world.listed() == [user]
    [arn] = world.listed(BackupType="SYSTEM")
    assert arn.endswith(f"/backup/{int(NOW * 1000):014}-00000000")
    assert world.listed(BackupType="ALL") == sorted([user, arn])
    shown = world.details(arn)
    assert (shown["BackupName"], shown["BackupType"]) == ("music$DeletedTableBackup", "SYSTEM")
    assert shown["BackupExpiryDateTime"] == NOW + 35 * DAY
    with pytest.raises(ValidationException, match=r"automatically expire on 2023-12-19T22:13:20\.000Z"):
        world("DeleteBackup", BackupArn=arn)
    world.clock.advance(35 * DAY - 1)
    world.database.settle()
    world.restore(arn)
    if not at_once:
        with pytest.raises(BackupInUseException):
            world.restore(arn, "other")
    world.clock.advance(1)  # the restore has what it needs, also when the 35 days are over
    world.database.settle()
    assert world.rows("restored") == before
    assert world.listed(BackupType="SYSTEM") == []
    with pytest.raises(BackupNotFoundException):
        world.details(arn)
    assert world.database.engine.read(lambda reader: list(dropped.every(reader))) == []
    sound(world)


def test_tables_that_are_deleted_at_the_same_moment_leave_a_backup_each(world: World) -> None:
    rows = {}
    for number in range(3):
        if number:
            world.create()
        world.put(number)
        world("UpdateContinuousBackups", **recovery_of("music"))
        rows[number] = world.rows()
        world("DeleteTable", TableName="music")
    arns = world.listed(BackupType="SYSTEM")
    for number, arn in enumerate(arns):
        world.restore(arn, f"restored-{number}")
        world.database.settle()
        assert world.rows(f"restored-{number}") == rows[number]
    assert len(set(arns)) == 3


def test_a_folder_of_another_machine(world: World, tmp_path: Path, small_files: None) -> None:
    other = World(tmp_path / "other", durable=True)
    other.create(
        "songs",
        SSESpecification={"Enabled": True},
        OnDemandThroughput={"MaxReadRequestUnits": 100, "MaxWriteRequestUnits": 50},
    )
    other.fill(300, "songs")
    other.clock.advance(0.123)
    arn = other.backup("songs")
    source = other.folder(arn)
    world.backups.mkdir(exist_ok=True)
    shutil.copytree(source, world.backups / "from-elsewhere")
    world.database.settle()
    assert world.listed() == [arn]
    shown, original = (one("DescribeBackup", BackupArn=arn)["BackupDescription"] for one in (world, other))
    assert shown == original
    world.restore(arn, "songs")
    world.database.settle()
    assert world.rows("songs") == other.rows("songs")
    described = [one("DescribeTable", TableName="songs")["Table"] for one in (world, other)]
    for table in described:
        del table["TableId"], table["CreationDateTime"]
        for name in ("BillingModeSummary", "TableThroughputModeSummary"):
            del table[name]["LastUpdateToPayPerRequestDateTime"]
    assert described[0] == described[1]
    sound(world)
    other.database.close()


def test_backups_are_found_by_a_new_store(tmp_path: Path) -> None:
    """The store is lost, and the backups are not."""
    world = World(tmp_path, durable=True)
    world.create()
    world.fill(5)
    arn, before = world.backup(), world.rows()
    world.database.close()
    assert world.data is not None
    shutil.rmtree(world.data)
    world.open()
    world.database.settle()
    world.restore(arn, "music")
    world.database.settle()
    assert world.rows() == before
    world.database.close()


def test_the_directory_lies_in_the_data_directory_if_nothing_is_said(tmp_path: Path) -> None:
    with Database.open(tmp_path / "data") as database:
        client = connect(database)
        client.create_table(**table_of("songs", "pk"))
        client.create_backup(TableName="songs", BackupName="first")
        database.settle()
        [folder] = (tmp_path / "data" / "backups").iterdir()
        assert folder.name.startswith("songs-")
    with Database.open(tmp_path / "data") as database:
        assert len(connect(database).list_backups()["BackupSummaries"]) == 1


def test_a_database_in_memory_needs_a_directory() -> None:
    with Database.in_memory() as database, pytest.raises(ValidationException, match="--backup-dir"):
        database.execute("CreateBackup", {"TableName": "music", "BackupName": "nightly"})


def test_in_process(tmp_path: Path) -> None:
    with hashrange.local(settings=Settings(backup_dir=str(tmp_path))) as database:
        client = database.client()
        client.create_table(**table_of("songs", "pk"))
        arn = client.create_backup(TableName="songs", BackupName="first")["BackupDetails"]["BackupArn"]
        assert (
            client.describe_backup(BackupArn=arn)["BackupDescription"]["BackupDetails"]["BackupName"]
            == "first"
        )


def test_pages_and_bounds(world: World) -> None:
    """[report] ack-api-quirks DDB-BACKUP-011, 014"""
    arns, times = [], []
    for number in range(5):
        arns.append(world.backup(name="same-name"))
        times.append(world.details(arns[-1])["BackupCreationDateTime"])
        world.clock.advance(0.001 * (number + 1))
    assert world.listed() == arns
    page = world("ListBackups", Limit=2)
    assert [one["BackupArn"] for one in page["BackupSummaries"]] == arns[:2]
    assert page["LastEvaluatedBackupArn"] == arns[1]
    page = world("ListBackups", Limit=3, ExclusiveStartBackupArn=arns[1])
    assert [one["BackupArn"] for one in page["BackupSummaries"]] == arns[2:]
    assert "LastEvaluatedBackupArn" not in page
    assert world.listed(TimeRangeLowerBound=times[2]) == arns[2:]
    assert world.listed(TimeRangeUpperBound=times[2]) == arns[:2]
    assert world.listed(TimeRangeLowerBound=times[1], TimeRangeUpperBound=times[3]) == arns[1:3]
    assert world.listed(TableName="absent") == world.listed(BackupType="AWS_BACKUP") == []
    world("DeleteBackup", BackupArn=arns[1])
    assert world.listed(ExclusiveStartBackupArn=arns[1]) == arns[2:]


def test_accounts_have_backups_of_their_own(tmp_path: Path) -> None:
    world = World(tmp_path, separate_accounts=True)
    mine, other = Caller(account_id="111111111111"), Caller(account_id="222222222222")
    for caller in (mine, other):
        world("CreateTable", caller, **table_of("songs", "pk"))
    world("PutItem", mine, TableName="songs", Item={"pk": {"S": "mine"}})
    arn = world("CreateBackup", mine, TableName="songs", BackupName="first")["BackupDetails"]["BackupArn"]
    world.database.settle()
    assert world("ListBackups", other)["BackupSummaries"] == []
    assert [one["BackupArn"] for one in world("ListBackups", mine)["BackupSummaries"]] == [arn]
    with pytest.raises(AccessDeniedException):
        world("DescribeBackup", other, BackupArn=arn)
    with pytest.raises(BackupNotFoundException):
        world("DescribeBackup", other, BackupArn=arn.replace(mine.account_id, other.account_id))
    world("RestoreTableFromBackup", mine, BackupArn=arn, TargetTableName="restored")
    world.database.settle()
    assert world("Scan", mine, TableName="restored")["Items"] == [{"pk": {"S": "mine"}}]


def test_going_back_to_a_snapshot(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.create()
    world.fill(20)
    arn = world.begin()
    snapshot = world.database.snapshot()
    world.database.sweep()
    world.fill(40)
    world.database.restore(snapshot)
    world.database.settle()
    assert world.details(arn)["BackupStatus"] == "AVAILABLE"
    world.restore(arn)
    world.database.settle()
    assert world.rows("restored") == world.rows()
    sound(world)
