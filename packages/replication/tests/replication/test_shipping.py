"""A store that ships: what a restore from its copy has, and when a base is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from hashrange.buckets.folders import Folders
from hashrange_replication.chain import list_copy
from hashrange_replication.failures import CopyError
from hashrange_replication.running import END_SECONDS
from hashrange_replication.verify import verify
from shipping import BEGIN, Faulty, World, begun, contents, key_of, place_in, restored
from worlds import create

PUT = {"TableName": "table", "Item": {"p": {"S": "a"}, "n": {"N": "1"}}}


def put(world: World, number: int) -> None:
    item = {"p": {"S": f"item {number}"}, "n": {"N": str(number)}}
    world.database.execute("PutItem", {"TableName": "table", "Item": item})


@pytest.mark.parametrize("sealed", [False, True])
def test_a_restore_has_what_was_shipped(tmp_path: Path, sealed: bool) -> None:
    place, key = place_in(tmp_path), key_of(1) if sealed else None
    world = World(tmp_path / "data", place, key)
    create(world.database, "table", "p")
    put(world, 1)
    world.step()
    assert world.copying.shipper.has_base
    for number in range(2, 6):
        put(world, number)
        world.step()
    wanted = contents(world.engine)
    put(world, 7)
    done, found = restored(place, tmp_path / "restored", key)
    assert found == wanted
    assert done.batches == 4
    world.step()
    world.close()
    assert verify(place, key).problems == []
    assert restored(place, tmp_path / "again", key)[1] == contents_of(world)


def contents_of(world: World) -> object:
    from hashrange.storage.embedded import EmbeddedEngine

    engine = EmbeddedEngine(world.directory)
    try:
        return contents(engine)
    finally:
        engine.close()


def test_a_clean_end_needs_no_new_base_and_a_crash_does(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    world = begun(World(tmp_path / "data", place))
    put(world, 1)
    world.close()
    assert len(list_copy(place).bases) == 1
    world.open()
    assert world.copying.shipper.has_base
    put(world, 2)
    world.step()
    world.step()
    assert len(list_copy(place).bases) == 1
    wanted = contents(world.engine)
    assert restored(place, tmp_path / "restored")[1] == wanted
    put(world, 3)
    world.crash()
    world.open()
    assert world.copying.shown()["base"] == "being made: 0% is in the bucket"
    world.step()
    wanted = contents(world.engine)
    assert len(list_copy(place).bases) == 2
    assert restored(place, tmp_path / "again")[1] == wanted
    world.close()
    assert verify(place, None).problems == []


def test_a_clean_end_without_a_batch_since_the_base(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    world = begun(World(tmp_path / "data", place))
    world.close()
    for number in range(3):
        world.open()
        put(world, number)
        world.close()
    assert len(list_copy(place).bases) == 1
    done, _ = restored(place, tmp_path / "restored")
    assert done.batches == 3
    assert done.is_newest


def test_an_end_makes_the_first_base(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    world = World(tmp_path / "data", place)
    create(world.database, "table", "p")
    put(world, 1)
    wanted = contents(world.engine)
    world.close()
    assert restored(place, tmp_path / "restored")[1] == wanted
    world.open()
    assert world.copying.shipper.has_base
    assert len(list_copy(place).bases) == 1
    world.close()


@pytest.mark.parametrize("is_away", [True, False])
def test_an_end_waits_for_a_base_only_so_long(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, is_away: bool
) -> None:
    bucket = Faulty(Folders(tmp_path))
    world = World(tmp_path / "data", place_in(tmp_path, bucket))
    create(world.database, "table", "p")

    def slow(name: str, key: str) -> str:
        world.now.advance(END_SECONDS / 2)
        return "refused" if is_away else ""

    bucket.fault = slow
    begin = world.now()
    world.close()
    assert world.now() - begin <= 3 * END_SECONDS
    assert "ends before its copy has a base" in caplog.text
    assert list_copy(place_in(tmp_path)).bases == {}
    bucket.fault = lambda name, key: ""
    world.open()
    world.step()
    wanted = contents(world.engine)
    assert restored(world.place, tmp_path / "restored")[1] == wanted
    world.close()


def test_a_restore_to_a_moment(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    world = begun(World(tmp_path / "data", place))
    past = {}
    for number in range(10):
        put(world, number)
        past[world.clock.now()] = contents(world.engine)
        world.step()
        if number == 5:
            world.copying.bases.make()
    for number, (moment, wanted) in enumerate(past.items()):
        done, found = restored(place, tmp_path / f"restored {number}", until=moment)
        assert found == wanted
        assert not done.is_newest or number == 9
    with pytest.raises(CopyError, match="The copy begins at 2023"):
        restored(place, tmp_path / "too early", until=BEGIN - 1)
    world.close()


def test_a_second_base_ships_only_new_files(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    world = World(tmp_path / "data", place)
    create(world.database, "table", "p")
    put(world, 1)
    world.step()
    put(world, 2)
    made = world.copying.bases.make()
    ssts = [file for file in made.manifest.files if file.path.endswith(".sst")]
    assert 0 < made.new_files < len(made.manifest.files)
    assert len(ssts) == 2
    assert not (world.directory / "copy" / "checkpoint").exists()
    world.close()


def test_the_folder_of_backups_is_in_the_base(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    world = World(tmp_path / "data", place)
    create(world.database, "table", "p")
    put(world, 1)
    world.step()
    bases = len(list_copy(place).bases)
    world.database.execute("CreateBackup", {"TableName": "table", "BackupName": "one"})
    world.database.settle()
    for _ in range(3):
        world.now.advance(60)
        world.step()
    assert len(list_copy(place).bases) == bases + 1
    wanted = contents(world.engine)
    _done, found = restored(place, tmp_path / "restored")
    assert found == wanted
    names = [path.relative_to(world.directory) for path in (world.directory / "backups").rglob("*")]
    assert names
    assert all((tmp_path / "restored" / name).exists() for name in names)
    world.close()


def test_the_key_of_access_is_in_sealed_copies_only(tmp_path: Path) -> None:
    for key in (None, key_of(3)):
        folder = tmp_path / ("sealed" if key else "plain")
        place = place_in(folder)
        world = World(folder / "data", place, key)
        (folder / "data" / "access.key").write_text("secret")
        world.step()
        world.close()
        restored(place, folder / "restored", key)
        assert (folder / "restored" / "access.key").exists() == (key is not None)
