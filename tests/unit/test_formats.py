"""Directories of the formats before this one: refused, checked, brought over, and whole at every moment.

The directories were made by the versions that wrote them: see `tests/formats/make_directory.py`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
from click.testing import CliRunner, Result
from rocksdict import Options, Rdict

from formats import make_directory
from hashrange.cli import main
from hashrange.clock import ManualClock
from hashrange.database import Database
from hashrange.settings import Settings
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.embedded.keys import BATCH_KEY, pack, pack_batch, unpack, unpack_batch
from hashrange.storage.embedded.offline import migration
from hashrange.storage.embedded.offline.migration import migrate
from hashrange.storage.embedded.offline.salvage import StoredRecords
from hashrange.storage.failures import OutdatedFormat, StorageError, StoreDamaged
from hashrange.tables import formats
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions import table as tables
from hashrange.tables.spaces import CATALOG_SPACE

ARCHIVES = Path(__file__).parents[1] / "formats"
LAGGING = Settings(gsi_delay_seconds=1e6, transaction_seconds=600.0)
NOW = make_directory.NOW


def keys_of(db: Rdict) -> list[bytes]:
    return cast(list[bytes], list(db.keys()))


def value_of(db: Rdict, key: bytes) -> bytes:
    return cast(bytes, db[key])


class Old:
    """A directory of an older format, and what the version that made it answered."""

    def __init__(self, version: int, place: Path) -> None:
        with tarfile.open(ARCHIVES / f"format-{version}.tar.xz") as archive:
            archive.extractall(place, filter="data")
        self.version = version
        self.data = place / "data"
        self.expected: dict[str, Any] = orjson.loads((place / "expected.json").read_bytes())

    def assert_answers_as_before(self) -> None:
        """All answers are those of before, but the index that was being filled is filled from the
        beginning."""
        described = self.expected['DescribeTable {"TableName":"many"}']["Table"]
        [new] = described["GlobalSecondaryIndexes"]
        assert (new["IndexName"], new["Backfilling"]) == ("new", True)
        new["ItemCount"] = new["IndexSizeBytes"] = 0
        # Global tables did not show this yet.
        world = self.expected.get('DescribeTable {"TableName":"world"}')
        if world is not None:
            world["Table"]["DisassociationProtectionEnabled"] = True
        answers = make_directory.run(self.data, LAGGING, [])
        opened = {name: answers.pop(name) for name in answers.keys() - self.expected.keys()}
        assert answers == self.expected
        # Those of the stream that had four.
        assert [len(records) for records in opened.values()] == [0, 0, 0, 0]

    def contents(self) -> dict[str, bytes]:
        """The files of the old store. RocksDB, opened to read only, touches none."""
        kept = ("FORMAT", "STORE", "rocks")
        files = [path for path in self.data.rglob("*") if path.is_file()]
        named = {str(path.relative_to(self.data)): path.read_bytes() for path in files}
        return {name: content for name, content in named.items() if name.split("/")[0] in kept}

    def raw(self) -> Rdict:
        return Rdict(str(self.data / "rocks"), Options(raw_mode=True))

    def key_of(self, space: int) -> bytes:
        """The key of a record in the middle of a space."""
        db = self.raw()
        try:
            keys = [key for key in keys_of(db) if unpack(key)[0] == space]
        finally:
            db.close()
        return keys[len(keys) // 2]

    def space_of(self, name: str) -> int:
        store = StoredRecords(self.data)
        try:
            stored = store.read(
                lambda reader: reader.get(CATALOG_SPACE, catalog.TABLE, name.encode())
            )
        finally:
            store.close()
        assert stored is not None
        return tables.decode(stored).space


@pytest.fixture(params=[1, 2])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Old:
    return Old(request.param, tmp_path)


@pytest.fixture
def second(tmp_path: Path) -> Old:
    return Old(2, tmp_path)


def nothing(step: str, read: int, total: int) -> None:
    """The progress that nobody watches."""


def bring_over(data: Path, **more: Any) -> migration.Migrated:
    migrated = migrate(data, formats.begin, NOW, report=nothing, **more)
    assert migrated is not None
    return migrated


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_an_older_directory_is_refused_unchanged_with_the_command_to_run(old: Old) -> None:
    before = old.contents()
    with pytest.raises(OutdatedFormat, match=f"has format {old.version}.*`hashrange migrate {old.data}`"):
        EmbeddedEngine(old.data)
    served = invoke("serve", "--data-dir", old.data, "--port", "0")
    assert served.exit_code == 1
    assert f"`hashrange migrate {old.data}`" in served.output
    assert old.contents() == before


def test_everything_is_there_after_the_migration(old: Old) -> None:
    result = invoke("migrate", old.data)
    assert result.exit_code == 0, result.output
    assert f"was brought over from format {old.version}" in result.output
    assert sorted(path.name for path in old.data.iterdir()) == ["FORMAT", "STORE", "rocks"]
    assert (old.data / "FORMAT").read_text() == "hashrange data 4\n"
    old.assert_answers_as_before()
    assert invoke("check", old.data).output.endswith(f"no damage in {old.data}\n")
    again = invoke("migrate", old.data)
    assert (again.exit_code, again.output) == (0, f"{old.data} has today's format: there is nothing to do\n")


def test_what_was_under_way_goes_on(old: Old) -> None:
    before = old.expected['Scan {"TableName":"rich","IndexName":"everything"}']["Count"]
    bring_over(old.data)
    clock = ManualClock(NOW)
    engine = EmbeddedEngine(old.data)
    database = Database(engine, settings=Settings(), clock=clock)
    try:
        # A token of before counts still: the transaction is not run again.
        database.execute("DeleteItem", {"TableName": "world", "Key": {"pk": {"S": "by a transaction"}}})
        database.execute(*make_directory.transaction())
        got = database.execute("GetItem", {"TableName": "world", "Key": {"pk": {"S": "by a transaction"}}})
        assert "Item" not in got
        database.settle()
        # Changes that waited have come to their indexes, and an index that was being filled is.
        found = database.execute("Scan", {"TableName": "rich", "IndexName": "everything"})
        assert found["Count"] > before
        found = database.execute("Scan", {"TableName": "many", "IndexName": "new"})
        assert found["Count"] == make_directory.MANY
        # Time to live finds the items that were not in its queue yet.
        clock.advance(2 * make_directory.MANY)
        database.settle()
        assert database.execute("Scan", {"TableName": "many-expiring"})["Count"] == 0
        assert database.execute("Scan", {"TableName": "expiring"})["Count"] == 5
        # A new stream record comes behind those of before.
        [stream] = database.execute("ListStreams", {"TableName": "rich"})["Streams"]
        shards = database.execute("DescribeStream", {"StreamArn": stream["StreamArn"]})["StreamDescription"][
            "Shards"
        ]
        database.execute("PutItem", {"TableName": "rich", "Item": make_directory.rich_item(99)})
        asked = {"StreamArn": stream["StreamArn"], "ShardId": shards[-1]["ShardId"]}
        start = database.execute("GetShardIterator", {**asked, "ShardIteratorType": "TRIM_HORIZON"})
        records = database.execute("GetRecords", {"ShardIterator": start["ShardIterator"]})["Records"]
        numbers = [record["dynamodb"]["SequenceNumber"] for record in records]
        assert numbers == sorted(set(numbers))
        assert orjson.loads(orjson.dumps(records[-1]))["dynamodb"]["Keys"]["sk"] == {"N": "79"}
    finally:
        database.close()
    assert invoke("check", old.data).exit_code == 0


def test_open_shards_that_share_the_items_are_parents_of_new_ones(old: Old) -> None:
    bring_over(old.data)
    database = Database(EmbeddedEngine(old.data), clock=ManualClock(NOW))
    try:
        for name, count in (("by-number", 4), ("world", 1)):
            [stream] = database.execute("ListStreams", {"TableName": name})["Streams"]
            described = database.execute("DescribeStream", {"StreamArn": stream["StreamArn"]})
            shards = described["StreamDescription"]["Shards"]
            open_ = [shard for shard in shards if "EndingSequenceNumber" not in shard["SequenceNumberRange"]]
            assert len(open_) == count
            if count > 1:
                closed = {shard["ShardId"] for shard in shards} - {shard["ShardId"] for shard in open_}
                assert {shard["ParentShardId"] for shard in open_} == closed
    finally:
        database.close()


# One step of a migration, and then a kill: a process that ends without closing anything.
_STEP = """
import os, sys
from pathlib import Path
from hashrange.storage.embedded.offline import migration
from hashrange.tables import formats

migration._BATCH_RECORDS_MAX = int(sys.argv[2])
skip = int(sys.argv[3])

def killed(step, read, total):
    global skip
    skip -= 1
    if skip < 0:
        print(step, flush=True)
        os._exit(9)

keep = len(sys.argv) > 4
migrated = migration.migrate(Path(sys.argv[1]), formats.begin, 1780000000.0, report=killed, keep_old=keep)
print("nothing" if migrated is None else "done")
"""

_OF_OLD = ("copying", "copied", "new store complete", "old store named")
"""The steps after which the directory is still that of the older version."""


def step(old: Old, *more: str, batch: int = 500, skip: int = 0) -> str:
    command = [sys.executable, "-c", _STEP, str(old.data), str(batch), str(skip), *more]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout.strip()


@pytest.mark.parametrize("more", [(), ("keep",)], ids=["removed", "kept"])
def test_a_migration_that_is_killed_after_every_step_goes_on(second: Old, more: tuple[str, ...]) -> None:
    before = second.contents()
    steps: list[str] = []
    skip = 0
    while not steps or steps[-1] != "nothing":
        steps.append(step(second, *more, skip=skip))
        if steps[-1] != "copying" and steps[-1:] == steps[-2:-1]:
            skip += 1  # a step that is taken again, to be on the safe side
        elif steps[-1] not in _OF_OLD:
            skip = 0
        assert len(steps) < 50
        if steps[-1] in _OF_OLD:
            assert second.contents() == before
        if steps[-1] in ("done", "nothing"):
            continue
        with pytest.raises(OutdatedFormat, match="hashrange migrate"):
            EmbeddedEngine(second.data)
        if steps.count(steps[-1]) == 1:
            checked = invoke("check", second.data)
            if steps[-1] in _OF_OLD:
                assert (checked.exit_code, "and can be compared with each other" in checked.output) == (
                    0,
                    True,
                )
            else:
                assert (checked.exit_code, "has not come to its end" in checked.output) == (2, True)
    expected = ["copied", "new store complete", "old store named", "format written", "old store moved"]
    expected += [
        "new store moved",
        "new store marked",
        *(["old store kept"] if more else []),
        "done",
        "nothing",
    ]
    assert steps.count("copying") >= 3
    assert [one for one in dict.fromkeys(steps) if one != "copying"] == expected
    second.assert_answers_as_before()
    assert invoke("check", second.data).exit_code == 0
    if more:
        assert (second.data / "format-2/FORMAT").read_text() == "hashrange data 2\n"
        assert {name: (second.data / "format-2" / name).read_bytes() for name in before} == before


def test_a_migration_that_is_killed_once_goes_on_to_its_end(tmp_path: Path) -> None:
    count = 0
    while True:
        count += 1
        again = Old(1, tmp_path / str(count))
        if step(again, skip=count, batch=3_000) == "done":
            break
        bring_over(again.data)
        again.assert_answers_as_before()
    assert count > 7


def test_what_an_older_version_writes_between_two_runs_is_not_lost(second: Old) -> None:
    assert step(second, skip=1) == "copying"
    space = second.space_of("world")
    db = second.raw()
    batch, sequence = unpack_batch(value_of(db, BATCH_KEY))
    key = next(key for key in keys_of(db) if unpack(key)[0] == space)
    del db[key]
    db[BATCH_KEY] = pack_batch(batch + 1, sequence + 1)
    db.close()
    bring_over(second.data)
    database = Database(EmbeddedEngine(second.data))
    try:
        count = second.expected['Scan {"TableName":"world"}']["Count"]
        assert database.execute("Scan", {"TableName": "world"})["Count"] == count - 1
    finally:
        database.close()


def spoilt(value: bytes) -> bytes:
    return value[:-1]


def of_another(value: bytes) -> bytes:
    return value.replace(b'{"pk":{"S":"world ', b'{"pk":{"S":"World ')


def without_a_time(value: bytes) -> bytes:
    return value.replace(b'"ttl":{"N":"', b'"ttl":{"N":"x')


@pytest.mark.parametrize(
    ("table", "spoil", "message"),
    [
        ("world", spoilt, "cannot be decoded"),
        ("world", of_another, "has the key of another one"),
        ("many-expiring", without_a_time, "cannot be brought over"),
    ],
)
def test_a_record_that_cannot_be_brought_over_ends_the_migration_or_is_told(
    old: Old, table: str, spoil: Callable[[bytes], bytes], message: str
) -> None:
    key = old.key_of(old.space_of(table))
    db = old.raw()
    db[key] = spoil(value_of(db, key))
    db.close()
    before = old.contents()
    where = unpack(key)[1].hex()
    assert message in invoke("check", old.data).output
    result = invoke("migrate", old.data)
    assert result.exit_code == 1
    assert f", at {where}/, {message}" in result.output
    assert "With --leave-out" in result.output
    assert old.contents() == before
    result = invoke("migrate", old.data, "--leave-out")
    assert result.exit_code == 0, result.output
    assert f", at {where}/, {message}" in result.output.partition("left out: ")[2]
    assert f"the old store is kept in {old.data}/format-{old.version}" in result.output
    assert invoke("check", old.data).exit_code == 1  # the totals
    invoke("check", "--repair", old.data)
    assert invoke("check", old.data).exit_code == 0


def test_a_definition_that_cannot_be_decoded_ends_the_migration(second: Old) -> None:
    key = pack(CATALOG_SPACE, catalog.TABLE, b"world")
    db = second.raw()
    db[key] = b"{"
    db.close()
    with pytest.raises(StorageError, match="The definition of 'table world' cannot be decoded"):
        bring_over(second.data)


def test_a_damaged_store_is_not_brought_over(old: Old) -> None:
    next(iter(sorted((old.data / "rocks").glob("*.sst")))).unlink()
    before = old.contents()
    with pytest.raises(StoreDamaged, match="sst is missing"):
        bring_over(old.data)
    assert old.contents() == before
    # The repair leaves the format as it is, and what it made can be brought over.
    assert invoke("check", "--repair", old.data).exit_code in (0, 1)
    with pytest.raises(OutdatedFormat):
        EmbeddedEngine(old.data)


def test_a_store_that_lost_its_format_is_not_taken_for_one_of_today(second: Old) -> None:
    (second.data / "FORMAT").unlink()
    with pytest.raises(StoreDamaged, match="the file FORMAT is missing"):
        EmbeddedEngine(second.data)
    with pytest.raises(StorageError, match=f"run `hashrange check --repair {second.data}` first"):
        bring_over(second.data)
    invoke("check", "--repair", second.data)
    assert (second.data / "FORMAT").read_text() == "hashrange data 2\n"
    bring_over(second.data)
    second.assert_answers_as_before()


def test_a_format_that_is_not_that_of_the_store_is_damage(second: Old) -> None:
    (second.data / "FORMAT").write_text("hashrange data 3\n")
    with pytest.raises(StoreDamaged, match="FORMAT says that the store has format 3, but STORE says 2"):
        EmbeddedEngine(second.data)


def test_a_migration_needs_room_and_says_so(second: Old, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(second.data)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(StorageError, match=r"The new store takes about .* MiB beside the old one"):
        bring_over(second.data)
    assert not (second.data / "migration").exists()


def test_one_migration_at_a_time_and_of_data_directories_only(second: Old, tmp_path: Path) -> None:
    from hashrange.storage.embedded.files.directory import lock

    held = lock(second.data)
    assert held is not None
    try:
        assert "is in use by another process" in invoke("migrate", second.data).output
    finally:
        os.close(held)
    (tmp_path / "empty").mkdir()
    assert "has no FORMAT" in invoke("migrate", tmp_path / "empty").output


def test_an_old_store_that_is_kept_takes_no_other_ones_place(second: Old) -> None:
    (second.data / "format-2").mkdir()
    assert bring_over(second.data, keep_old=True).kept == second.data / "format-2-2"


def test_memory_does_not_grow_with_the_store(second: Old, monkeypatch: pytest.MonkeyPatch) -> None:
    """The migration holds at most one batch of records in memory."""
    held: list[int] = []
    commit = migration._Copy._commit

    def watched(self: migration._Copy) -> None:
        held.append(len(self._records))
        commit(self)

    monkeypatch.setattr(migration, "_BATCH_RECORDS_MAX", 50)
    monkeypatch.setattr(migration._Copy, "_commit", watched)
    bring_over(second.data)
    assert len(held) > 50
    assert max(held) <= 55
