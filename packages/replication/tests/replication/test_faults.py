"""A bucket that fails, answers late, half or twice; and what is lost or damaged in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hashrange.buckets.folders import Folders
from hashrange.errors import InternalServerError
from hashrange.storage.failures import CommitFailed, CommitUnknown
from hashrange_replication import shipper
from hashrange_replication.chain import list_copy
from hashrange_replication.failures import CopyError, Damaged, Fenced
from hashrange_replication.lease import Lease, read_record, register
from hashrange_replication.restore import restore
from hashrange_replication.running import Options
from hashrange_replication.verify import verify
from shipping import Faulty, Time, World, begun, contents, key_of, place_in, restored
from worlds import create


def put(world: World, number: int, bytes_: int = 1) -> None:
    item = {"p": {"S": f"item {number}"}, "n": {"S": "x" * bytes_}}
    world.database.execute("PutItem", {"TableName": "table", "Item": item})


def away(name: str, key: str) -> str:
    return "refused"


def well(name: str, key: str) -> str:
    return ""


FAULTS = st.sampled_from(["", "", "refused", "lost", "half", "twice"])


@given(st.lists(st.tuples(FAULTS, st.integers(0, 3)), min_size=3, max_size=25), st.booleans())
@settings(max_examples=12, deadline=None)
def test_whatever_the_bucket_does_the_copy_is_whole_in_the_end(
    tmp_path_factory: Any, acts: list[tuple[str, int]], ends: bool
) -> None:
    folder = tmp_path_factory.mktemp("faults")
    bucket = Faulty(Folders(folder))
    world = World(folder / "data", place_in(folder, bucket))
    create(world.database, "table", "p")
    for number, (fault, what) in enumerate(acts):
        bucket.fault = lambda name, key, fault=fault: fault  # type: ignore[misc]
        put(world, number)
        world.step()
        if what == 0:
            world.copying.keep_lease()
        elif what == 1 and ends:
            world.close()
            bucket.fault = well
            world.open()
    bucket.fault = well
    for _ in range(3):
        world.now.advance(60)
        world.copying.keep_lease()
        world.step()
    assert world.copying.shipper.lag() == (0.0, 0)
    wanted = contents(world.engine)
    assert restored(world.place, folder / "restored")[1] == wanted
    world.close()
    assert verify(world.place, None).problems == []


def test_an_outage_is_told_and_stops_no_write(tmp_path: Path) -> None:
    bucket = Faulty(Folders(tmp_path))
    world = begun(World(tmp_path / "data", place_in(tmp_path, bucket)))
    bucket.fault = away
    for number in range(5):
        put(world, number, 100)
        world.step()
    seconds, bytes_ = world.copying.shipper.lag()
    assert (seconds, bytes_ > 500) == (5.0, True)
    assert "failed" in world.copying.shown()["problem"]
    # Pauses grow: five steps made fewer requests.
    assert len([key for name, key in bucket.calls if name == "put" and key.startswith("segments/")]) < 5
    bucket.fault = well
    world.now.advance(30)
    world.step()
    assert world.copying.shipper.lag() == (0.0, 0)
    assert "problem" not in world.copying.shown()
    world.close()


def test_a_full_spool_is_dropped_and_a_base_follows(tmp_path: Path) -> None:
    bucket = Faulty(Folders(tmp_path))
    world = begun(World(tmp_path / "data", place_in(tmp_path, bucket), options=Options(spool_bytes=4_000)))
    bucket.fault = away
    for number in range(20):
        put(world, number, 100)
        world.step()
    assert "spool" in world.copying.shipper.broken
    assert world.copying.spool.bytes == 0
    assert list((tmp_path / "data" / "copy" / "spool").iterdir()) == []
    put(world, 99)
    bucket.fault = well
    world.now.advance(60)
    world.step()
    assert world.copying.shipper.has_base
    put(world, 100)
    world.step()
    wanted = contents(world.engine)
    done, found = restored(world.place, tmp_path / "restored")
    assert found == wanted
    assert done.manifest.epoch == 2
    world.close()
    assert verify(world.place, None).problems == []


def test_a_full_queue_is_dropped_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = begun(World(tmp_path / "data", place_in(tmp_path)))
    monkeypatch.setattr(shipper, "SEGMENT_BYTES", 500)
    monkeypatch.setattr(shipper, "QUEUE_BYTES_MAX", 2_000)
    for number in range(20):
        put(world, number, 100)
    world.step()
    world.step()
    assert world.copying.shipper.has_base
    wanted = contents(world.engine)
    done, found = restored(world.place, tmp_path / "restored")
    assert (found, done.manifest.epoch) == (wanted, 2)
    world.close()


def test_a_server_starts_while_the_bucket_is_away(tmp_path: Path) -> None:
    bucket = Faulty(Folders(tmp_path))
    bucket.fault = away
    world = begun(World(tmp_path / "data", place_in(tmp_path, bucket)))
    assert "failed" in world.copying.shown()["problem"]
    bucket.fault = well
    world.copying.keep_lease()
    world.step()
    assert world.copying.shipper.has_base
    assert "problem" not in world.copying.shown()
    world.close()
    bucket.fault = away
    with pytest.raises(OSError, match="failed"):
        World(tmp_path / "data", place_in(tmp_path, bucket), options=Options(acks=True))


def test_a_server_whose_standby_may_have_taken_over_does_not_start_without_the_bucket(tmp_path: Path) -> None:
    bucket = Faulty(Folders(tmp_path))
    world = World(tmp_path / "data", place_in(tmp_path, bucket))
    guarded: list[bool] = []
    world.copying.guard = lambda: guarded.append(True)
    register(world.place, "standby")
    bucket.fault = lambda name, key: "lost" if name == "put" else ""
    world.copying.keep_lease()
    assert guarded == [True]
    # The standby has seen that the server agrees, although the server has no answer.
    record = read_record(place_in(tmp_path))
    assert record is not None
    assert record[0].acknowledged == "standby"
    world.crash()
    bucket.fault = away
    with pytest.raises(OSError, match="failed"):
        world.open()


def test_with_acks_only_what_the_bucket_has_is_acknowledged(tmp_path: Path) -> None:
    bucket = Faulty(Folders(tmp_path))
    options = Options(acks=True, ack_seconds=0.0)
    world = World(tmp_path / "data", place_in(tmp_path, bucket), options=options)
    assert world.copying.shipper.has_base  # before the first write
    engine = world.engine
    with pytest.raises(CommitUnknown, match="lacks the last writes, and --copy-ack"):
        engine.write(lambda txn: txn.put(5, b"p", b"a", b"1"))
    with pytest.raises(CommitFailed):
        engine.write(lambda txn: txn.put(5, b"p", b"b", b"2"))
    world.copying.ship()
    while engine.refusing():
        pass
    assert restored(world.place, tmp_path / "restored")[1] == contents(engine)
    world.close()


def test_with_acks_a_write_waits_for_the_bucket(tmp_path: Path) -> None:
    world = World(tmp_path / "data", place_in(tmp_path), options=Options(acks=True, ack_seconds=60.0))
    world.copying.start()
    create(world.database, "table", "p")
    for number in range(5):
        put(world, number)
        assert world.copying.shipper.shipped == world.copying.shipper.told
    wanted = contents(world.engine)
    assert restored(world.place, tmp_path / "restored")[1] == wanted
    world.close()


def test_a_server_that_was_overtaken_acknowledges_nothing_more(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    world = begun(World(tmp_path / "data", place))
    put(world, 1)
    world.step()
    restored(place, tmp_path / "second")
    now = Time()
    record = read_record(place)
    assert record is not None
    other = Lease(place, "other", "another machine", record[0].store_id, now)
    now_other: list[Any] = []
    while other.epoch == 0:
        try:
            other.take(1)
        except CopyError as error:
            now_other.append(str(error))
            now.advance(10)
    world.copying.keep_lease()
    with pytest.raises(InternalServerError):
        put(world, 2)
    assert "another machine" in (world.engine.refusing() or "")
    assert "another machine" in world.copying.shown()["problem"]
    segments = len(list_copy(place).segments)
    world.step()
    assert len(list_copy(place).segments) == segments
    world.close()
    with pytest.raises(Fenced, match="another machine"):
        world.open()


def test_a_restored_directory_goes_on_with_the_copy(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    world = begun(World(tmp_path / "data", place))
    put(world, 1)
    world.step()
    world.crash()
    restored(place, tmp_path / "second")
    # The lease of the server that died has to run out first.
    second = World(tmp_path / "second", place)
    assert second.now.seconds > 1_000 + 90
    assert second.copying.shipper.has_base
    put(second, 2)
    second.step()
    wanted = contents(second.engine)
    done, found = restored(place, tmp_path / "third")
    assert (found, done.manifest.epoch, done.end.epoch) == (wanted, 1, 2)
    with pytest.raises(Fenced):
        world.open()
    second.close()
    assert verify(place, None).problems == []


def test_a_directory_that_was_restored_too_early_does_not_go_on(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    world = begun(World(tmp_path / "data", place))
    restored(place, tmp_path / "early")
    put(world, 1)
    world.close()
    with pytest.raises(CopyError, match="holds writes that this directory lacks"):
        World(tmp_path / "early", place)


def test_a_restored_directory_goes_on_although_a_base_was_never_finished(tmp_path: Path) -> None:
    bucket = Faulty(Folders(tmp_path))
    place = place_in(tmp_path, bucket)
    world = begun(World(tmp_path / "data", place))
    put(world, 1)
    world.step()
    world.crash()
    world.open()
    bucket.fault = lambda name, key: "refused" if name == "put" and key.startswith("bases/") else ""
    world.copying.make_base()
    put(world, 2)
    world.copying.ship()
    world.crash()
    bucket.fault = well
    found = restored(place, tmp_path / "second")[1]
    second = World(tmp_path / "second", place)
    assert contents(second.engine) == found
    put(second, 3)
    second.step()
    wanted = contents(second.engine)
    assert restored(place, tmp_path / "third")[1] == wanted
    second.close()


def test_what_an_overtaken_server_ships_does_not_count(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    world = begun(World(tmp_path / "data", place))
    put(world, 1)
    world.step()
    restored(place, tmp_path / "second")
    second = World(tmp_path / "second", place)
    put(world, 2)
    world.step()  # it does not know yet
    world.copying.bases.make()
    put(second, 3)
    second.step()
    wanted = contents(second.engine)
    assert restored(place, tmp_path / "third")[1] == wanted
    world.crash()
    second.close()


def copy_of(folder: Path, sealed: bool) -> World:
    """A copy with two bases and some segments."""
    world = begun(World(folder / "data", place_in(folder), key_of(1) if sealed else None))
    for number in range(4):
        put(world, number, 300)
        world.step()
        if number == 1:
            world.copying.bases.make()
    world.close()
    return world


@pytest.mark.parametrize("sealed", [False, True])
def test_damage_of_any_object_is_found(tmp_path: Path, sealed: bool) -> None:
    world = copy_of(tmp_path, sealed)
    report = verify(world.place, world.key)
    assert report.problems == []
    assert (len(report.bases), report.segments) == (2, 4)
    objects = [path for path in (tmp_path / "copy").rglob("0*") if path.is_file()]
    objects += sorted((tmp_path / "copy" / "files").iterdir())[:4]
    for path in objects:
        content, middle = path.read_bytes(), path.stat().st_size // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        for changed in (content[:-1], flipped, b""):
            path.write_bytes(changed)
            assert any(path.name in one for one in verify(world.place, world.key).problems)
        path.unlink()
        report = verify(world.place, world.key)
        # (without the first base all is as if the retention had deleted it)
        assert report.problems or report.unneeded
        path.write_bytes(content)
    (tmp_path / "copy" / "lease").write_bytes(b"")
    assert verify(world.place, world.key).problems
    (tmp_path / "copy" / "lease").unlink()
    assert verify(world.place, world.key).problems == []
    assert verify(world.place, None).problems == []


def test_a_restore_refuses_what_is_damaged(tmp_path: Path) -> None:
    world = copy_of(tmp_path, False)
    segments = sorted((tmp_path / "copy" / "segments").rglob("0*/*"))
    last = segments[-2]
    content = last.read_bytes()
    last.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(Damaged, match="the digest is wrong"):
        restore(world.place, tmp_path / "restored", None, owner="x")
    last.unlink()
    with pytest.raises(Damaged, match="is missing, and"):
        restore(world.place, tmp_path / "restored", None, owner="x")
    last.write_bytes(content)
    assert restore(world.place, tmp_path / "restored", None, owner="x").is_newest


def test_retention_keeps_every_moment_of_its_time(tmp_path: Path) -> None:
    world = World(tmp_path / "data", place_in(tmp_path), options=Options(keep_seconds=100.0))
    create(world.database, "table", "p")
    past = {}
    for number in range(30):
        put(world, number, 200)
        past[world.clock.now()] = contents(world.engine)
        world.step()
        world.clock.advance(9)
        if number % 5 == 4:
            world.copying.bases.make()
    bases = len(list_copy(world.place).bases)
    assert world.copying.retain() > 10
    listing = list_copy(world.place)
    assert 1 < len(listing.bases) < bases
    assert world.copying.retain() == 0
    assert verify(world.place, None).problems == []
    now = world.clock.now()
    for number, (moment, wanted) in enumerate(past.items()):
        if now - moment < 100:
            assert restored(world.place, tmp_path / f"restored {number}", until=moment)[1] == wanted
    with pytest.raises(CopyError, match="The copy begins at"):
        restored(world.place, tmp_path / "too early", until=min(past))
    world.close()
