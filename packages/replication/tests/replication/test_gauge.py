"""The gauge of the lag: what it says is in the bucket is there, whatever has happened before."""

from __future__ import annotations

from pathlib import Path

from hashrange.buckets.folders import Folders
from hashrange_replication.chain import list_copy
from hashrange_replication.running import Options
from shipping import Faulty, World, begun, contents, place_in, restored


def put(world: World, number: int, bytes_: int = 1) -> None:
    item = {"p": {"S": f"item {number}"}, "n": {"S": "x" * bytes_}}
    world.database.execute("PutItem", {"TableName": "table", "Item": item})


def begin(folder: Path, options: Options = Options()) -> tuple[World, Faulty]:  # noqa: B008 (immutable)
    bucket = Faulty(Folders(folder))
    return begun(World(folder / "data", place_in(folder, bucket), options=options)), bucket


def well(name: str, key: str) -> str:
    return ""


def away(name: str, key: str) -> str:
    return "refused"


def lag(world: World) -> float:
    return world.copying.shipper.lag()[0]


def passes(world: World, seconds: float) -> None:
    world.now.advance(seconds)
    world.clock.advance(seconds)


def test_what_was_dropped_is_not_forgotten(tmp_path: Path) -> None:
    world, bucket = begin(tmp_path, Options(spool_bytes=2_000))
    bucket.fault = away
    put(world, 0)
    passes(world, 100.0)
    while not world.copying.shipper.broken:
        put(world, 1, 300)
        world.copying.ship()
    assert lag(world) == 100.0
    passes(world, 60.0)
    world.copying.make_base()
    assert lag(world) == 160.0
    bucket.fault = well
    passes(world, 60.0)
    world.copying.make_base()
    assert lag(world) == 0.0
    world.close()


def test_what_a_crash_has_left_on_the_disk_only_counts(tmp_path: Path) -> None:
    world, bucket = begin(tmp_path)
    put(world, 1)
    world.step()
    put(world, 2)
    passes(world, 100.0)
    world.crash()
    world.open()
    # The last segment has the first item, and is a second older than the second one.
    assert lag(world) == 101.0
    world.crash()
    bucket.fault = away
    world.open()
    assert lag(world) == 101.0
    bucket.fault = well
    world.copying.keep_lease()
    passes(world, 60.0)
    world.copying.make_base()
    assert lag(world) == 0.0
    world.close()


def test_a_crash_that_left_nothing_is_no_lag(tmp_path: Path) -> None:
    world, _ = begin(tmp_path)
    put(world, 1)
    world.step()
    passes(world, 100.0)
    world.crash()
    world.open()
    assert lag(world) == 0.0
    world.close()


def test_a_crash_before_the_first_base_counts_from_the_beginning(tmp_path: Path) -> None:
    bucket = Faulty(Folders(tmp_path))
    world = World(tmp_path / "data", place_in(tmp_path, bucket))
    passes(world, 10.0)
    world.crash()
    world.open()
    assert lag(world) == 10.0
    world.close()


def test_starts_without_the_bucket_count_from_the_first_one(tmp_path: Path) -> None:
    bucket = Faulty(Folders(tmp_path))
    bucket.fault = away
    world = World(tmp_path / "data", place_in(tmp_path, bucket))
    for seconds in (10.0, 20.0):
        passes(world, 10.0)
        assert lag(world) == seconds
        world.crash()
        world.open()
    bucket.fault = well
    world.copying.keep_lease()
    assert lag(world) == 20.0
    world.copying.make_base()
    assert lag(world) == 0.0
    world.close()


def test_segments_of_an_earlier_process_wait_too(tmp_path: Path) -> None:
    world, bucket = begin(tmp_path)
    bucket.fault = away
    put(world, 1)
    world.step()
    wanted = contents(world.engine)
    world.close()
    assert len(list((tmp_path / "data" / "copy" / "spool").iterdir())) == 1
    passes(world, 50.0)
    bucket.fault = well
    world.open()
    assert world.copying.shipper.has_base
    assert world.copying.shipper.lag()[1] > 0
    assert lag(world) == 51.0
    world.copying.ship()
    assert world.copying.shipper.lag() == (0.0, 0)
    assert len(list_copy(world.place).bases) == 1
    assert restored(world.place, tmp_path / "restored")[1] == wanted
    world.close()


def test_a_damaged_spool_is_not_shipped(tmp_path: Path) -> None:
    world, bucket = begin(tmp_path)
    bucket.fault = away
    for number in range(3):
        put(world, number)
        world.step()
        world.now.advance(60.0)
        world.step()
    world.close()
    files = sorted((tmp_path / "data" / "copy" / "spool").iterdir())
    assert len(files) == 3
    files[1].write_bytes(files[1].read_bytes()[:-40])
    bucket.fault = well
    world.open()
    assert not world.copying.shipper.has_base
    world.step()
    wanted = contents(world.engine)
    assert restored(world.place, tmp_path / "restored")[1] == wanted
    world.close()
