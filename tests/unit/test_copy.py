"""Copies of stores: every record arrives, nothing is opened before all of it is there and compared."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from copies import (
    NOW,
    Directory,
    Place,
    Schema,
    World,
    contents,
    copied,
    item_of,
    new_schema,
    no_logs,
)
from doses import examples
from hashrange.storage import store_copy
from hashrange.storage.api import Reader, Transaction
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.embedded.files.directory import COPYING
from hashrange.storage.embedded.files.mark import read_mark, write_mark
from hashrange.storage.failures import StorageError, StoreDamaged, UnfinishedCopy, UnknownFormat
from hashrange.storage.store_copy import Record, Sums
from hashrange.tables.inspection.check import check
from hashrange.tables.inspection.numbering import find_logs
from vector_tables import World as Vectors
from vector_tables import index_of, key_of

SPACES = (0, 64, 65)
LOGS = (70, 71)
PARTITION = b"p" * 24


class Places:
    """New places for stores."""

    def __init__(self, directory: Path, url: str) -> None:
        self._directory = directory
        self._url = url
        self._count = 0

    def directory(self) -> Directory:
        self._count += 1
        return Directory(self._directory / f"store-{self._count}")

    def schema(self) -> Schema:
        return new_schema(self._url)

    def new(self, kind: str) -> Place:
        return self.directory() if kind == "directory" else self.schema()


@pytest.fixture
def places(tmp_path: Path, postgres_url: str) -> Iterator[Places]:
    yield Places(tmp_path, postgres_url)
    shutil.rmtree(tmp_path, ignore_errors=True)


def log_of(reader: Reader) -> set[int]:
    """The spaces that `changes` appends to."""
    return set(LOGS)


changes = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(SPACES), st.binary(max_size=3), st.binary(max_size=3)),
    st.tuples(st.just("delete"), st.sampled_from(SPACES), st.binary(max_size=3)),
    st.tuples(st.just("delete_space"), st.sampled_from(SPACES[1:])),
    st.tuples(st.just("append"), st.sampled_from(LOGS), st.integers(0, 9)),
    st.tuples(st.just("keep"), st.integers(0, 9)),
)


def fill(txn: Transaction, value: bytes, count: int) -> None:
    for n in range(count):
        txn.put(64, PARTITION, bytes([n]), value)


def make(txn: Transaction, changes: list[Any], deleted: set[int]) -> None:
    for change in changes:
        match change:
            case "put", space, sort, value if space not in deleted:
                # In space 0 partitions are of different lengths, which engines order differently.
                txn.put(space, PARTITION if space else b"name"[: len(sort) + 1], sort, value)
                txn.count(space, 1, len(value))
            case "delete", space, sort if space not in deleted:
                txn.delete(space, PARTITION, sort)
            case "delete_space", space:
                txn.delete_space(space)
                deleted.add(space)
            case "append", space, stamp:
                txn.append(space, PARTITION, stamp.to_bytes(8), 0)
            case "keep", moment:
                txn.keep(66, PARTITION, b"", b"kept", moment)


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(changes, max_size=6), max_size=6))
def test_every_record_arrives(places: Places, history: list[list[Any]]) -> None:
    """There and back: from a directory to PostgreSQL, to another schema, and to a directory again."""
    stores: list[Place] = [places.directory(), places.schema(), places.schema(), places.directory()]
    engine = stores[0].open()
    deleted: set[int] = set()
    for body in history:
        engine.write(partial(make, changes=body, deleted=deleted))
    engine.close()
    before = contents(stores[0], log_of)
    for origin, target in pairwise(stores):
        assert copied(origin, target, log_of).records == len(before[0])
        assert contents(target, log_of) == before
    # All numbers and stamps go on upwards.
    for store in stores[1:]:
        engine = store.open()
        for space in LOGS:
            last = before[1].last[space]
            stamps = [value for where, log, _, value in before[0] if (where, log) == (space, PARTITION)]

            def append(txn: Transaction, space: int = space) -> int:
                txn.append(space, PARTITION, bytes(8), 0)
                return txn.position(space)

            assert engine.write(append) > last + 1
            sort, value = engine.read(
                lambda reader, space=space: next(iter(reader.scan(space, PARTITION, reverse=True)))  # type: ignore[misc]
            )
            assert int.from_bytes(sort) > last
            assert value == max([*stamps, bytes(8)])
        assert engine.write(lambda txn: txn.stamp(0)) > before[1].stamp
        engine.close()


@pytest.mark.parametrize(
    "way", ["directory directory", "directory schema", "schema directory", "schema schema"]
)
def test_all_that_a_store_keeps_goes_on(places: Places, way: str) -> None:
    origin, target = (places.new(kind) for kind in way.split())
    world = World(origin.open())
    world.make()
    now = world.clock.now()
    middle = NOW + 15
    shown = world.scan(), world.scan("plain", IndexName="global"), world.changes()
    world.database.close()
    copied(origin, target)
    (records, numbers), (copied_records, copied_numbers) = contents(origin), contents(target)
    assert copied_records == records
    # A directory has one counter for all logs.
    last = dict.fromkeys(copied_numbers.last, max(numbers.last.values()))
    assert copied_numbers == (replace(numbers, last=last) if way == "schema directory" else numbers)

    world = World(target.open(), now)
    assert (world.scan(), world.scan("plain", IndexName="global"), world.changes()) == shown
    assert list(check(world.database.engine)) == []
    # The stream goes on behind what it had.
    world.put(2000)
    before, after = shown[2], world.changes()
    [(_, [new])] = [
        (shard, records[len(before[shard]) :])
        for shard, records in after.items()
        if len(records) > len(before[shard])
    ]
    assert all(new > old for records in before.values() for old in records)
    # A token is still known, and point-in-time recovery knows the past of the first store.
    put = {"Put": {"TableName": "plain", "Item": item_of(1000)}}
    world("TransactWriteItems", ClientRequestToken="token", TransactItems=[put])
    world("DeleteItem", TableName="orders", Key={name: item_of(2000)[name] for name in "ps"})
    world(
        "RestoreTableToPointInTime", SourceTableName="orders", TargetTableName="then", RestoreDateTime=middle
    )
    world.database.tend()
    sorts = {item["s"]["S"] for item in world.scan("then")}
    assert 20 < len(sorts) < 30
    assert sorts <= {item_of(n)["s"]["S"] for n in range(31)}
    # Expiry goes on.
    world.clock.advance(1010)
    world.database.tend()
    left = {item["s"]["S"] for item in world.scan()}
    assert "s1" not in left
    assert "s59" in left
    assert list(check(world.database.engine)) == []
    world.database.close()


def test_every_log_is_known(places: Places) -> None:
    """PostgreSQL numbers each space with logs by itself: one that is not known would begin with 1 again."""
    store = places.schema()
    world = World(store.open(), gsi_delay_seconds=1.0)
    world.make(20)
    found = world.database.engine.read(find_logs)
    world.database.close()
    _, numbers = contents(store)
    assert numbers.last.keys() <= found
    assert len(numbers.last) == 3


@pytest.mark.parametrize("way", ["directory schema", "schema schema", "schema directory"])
def test_the_changes_of_a_vector_index_go_on(places: Places, way: str) -> None:
    """A search follows their numbers, so these must go on above those of the first store."""
    origin, target = (places.new(kind) for kind in way.split())
    world = Vectors(origin.open())
    world.create(index_of())
    for number in range(20):
        world.put(number, [number, 1])
    world.database.close()
    copied(origin, target)
    world = Vectors(target.open())
    assert len(world.search([1, 0], 30)) == 20
    world.put(20, [1, 0])
    world("DeleteItem", TableName="table", Key=key_of(19))
    assert [result["Item"]["s"]["N"] for result in world.search([1, 0], 2)] == ["20", "18"]
    assert list(check(world.database.engine)) == []
    world.database.close()


@pytest.mark.parametrize("kind", ["directory", "schema"])
def test_a_copy_under_way_is_refused_and_begins_anew(places: Places, kind: str) -> None:
    origin, target = places.directory(), places.new(kind)
    engine = origin.open()
    engine.write(partial(fill, value=b"x", count=100))
    engine.close()

    class Killed(BaseException):
        """What is left is what a kill leaves."""

    def kill(step: str, done: int, total: int, at: str) -> None:
        if step == at:
            raise Killed

    for step in ("copying", "verifying"):
        with pytest.raises(Killed):
            copied(origin, target, no_logs, partial(kill, at=step))
        with pytest.raises(UnfinishedCopy, match=r"holds an unfinished copy.*hashrange copy"):
            target.open()
        with pytest.raises(UnfinishedCopy):
            target.source(no_logs)
    copied(origin, target, no_logs)
    assert contents(target, no_logs) == contents(origin, no_logs)
    target.open().close()


class Lossy(NamedTuple):
    """A target that writes something else than what it was given."""

    inner: Any
    spoil: Any

    def put(self, batch: list[Record]) -> None:
        self.inner.put(self.spoil(batch))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@pytest.mark.parametrize("kind", ["directory", "schema"])
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda batch: batch[:-1], "100 records .* were read, and 99 records"),
        (lambda batch: [*batch, (64, PARTITION, b"more", b"")], "100 records .* were read, and 101 records"),
        (lambda batch: [*batch[:-1], (*batch[-1][:3], b"y")], "another digest"),
        (lambda batch: [*batch[:-1], (65, *batch[-1][1:])], r"in space 64 \(and 1 more\)"),
        (lambda batch: [*batch[:-1], (64, PARTITION, b"x", b"\x63")], "another digest"),
    ],
)
def test_a_difference_is_noticed(places: Places, kind: str, spoil: Any, message: str) -> None:
    origin, target = places.directory(), places.new(kind)
    engine = origin.open()
    engine.write(partial(fill, value=b"x", count=100))
    engine.close()
    source, made = origin.source(no_logs), target.target()
    with pytest.raises(StorageError, match=message):
        store_copy.copy(source, Lossy(made, spoil), lambda step, done, total: None)
    source.close()
    made.close()
    with pytest.raises(UnfinishedCopy):
        target.open()


@pytest.mark.parametrize("kind", ["directory", "schema"])
@pytest.mark.parametrize("spoilt", ["totals", "last", "stamp"])
def test_a_difference_of_numbers_is_noticed(places: Places, kind: str, spoilt: str) -> None:
    origin, target = places.directory(), places.new(kind)
    engine = origin.open()
    engine.write(
        partial(make, changes=[("put", 64, b"a", b"b"), ("append", 70, 1), ("keep", 5)], deleted=set())
    )
    engine.close()
    source, made = origin.source(log_of), target.target()
    wrong = source.numbers()
    match spoilt:
        case "stamp":
            wrong.stamp -= 1
        case "last":
            wrong.last = dict.fromkeys(wrong.last, 0)
        case _:
            setattr(wrong, spoilt, {})
    given = made.end
    made.end = lambda numbers: given(wrong)  # type: ignore[method-assign]
    with pytest.raises(StorageError, match="The copy is not what was read"):
        store_copy.copy(source, made, lambda step, done, total: None)
    source.close()
    made.close()
    with pytest.raises(UnfinishedCopy):
        target.open()


@given(
    st.lists(
        st.tuples(
            st.sampled_from(SPACES), st.binary(max_size=2), st.binary(max_size=2), st.binary(max_size=2)
        )
    )
)
def test_the_sums_do_not_depend_on_the_order(records: list[Record]) -> None:
    one, other = Sums(), Sums()
    one.add(records)
    for record in reversed(records):
        other.add([record])
    assert one.by_space == other.by_space


def test_bytes_that_move_from_one_part_to_another_change_the_sums() -> None:
    found = set()
    for record in [
        (1, b"ab", b"c", b"d"),
        (1, b"a", b"bc", b"d"),
        (1, b"ab", b"", b"cd"),
        (1, b"", b"abc", b"d"),
    ]:
        sums = Sums()
        sums.add([record])
        found.add(sums.by_space[1])
    assert len(found) == 4


@pytest.mark.parametrize("kind", ["directory", "schema"])
def test_a_place_that_holds_a_store_is_refused(places: Places, kind: str) -> None:
    place = places.new(kind)
    place.open().close()
    with pytest.raises(StorageError, match="holds a store already"):
        place.target()
    place.open().close()


def test_foreign_files_and_schemas_are_refused(places: Places) -> None:
    directory, schema = places.directory(), places.schema()
    directory.path.mkdir()
    (directory.path / "letter.txt").write_text("Dear Ada")
    with pytest.raises(StorageError, match=r"not empty.*letter\.txt"):
        directory.target()
    assert [path.name for path in directory.path.iterdir()] == ["letter.txt"]
    with psycopg.connect(schema.url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema.name}")
        connection.execute(f"CREATE TABLE {schema.name}.letters (text text)")
        with pytest.raises(StorageError, match="holds something else already"):
            schema.target()
        with pytest.raises(StorageError, match="holds no Hashrange store"):
            schema.source()
        assert connection.execute(f"SELECT count(*) FROM {schema.name}.letters").fetchone() == (0,)


def test_two_copies_to_one_place_are_refused(places: Places) -> None:
    for place in (places.directory(), places.schema()):
        first = place.target()
        with pytest.raises(StorageError, match=r"in use by another process|Another `hashrange copy`"):
            place.target()
        first.close()


def test_a_damaged_store_is_refused_as_a_source(places: Places) -> None:
    origin = places.directory()
    engine = EmbeddedEngine(origin.path)
    engine.write(lambda txn: txn.put(64, PARTITION, b"a", b"b"))
    engine.close()
    for path in origin.path.glob("rocks/*.sst"):
        path.unlink()
    for path in origin.path.glob("rocks/*.log"):
        path.unlink()
    with pytest.raises(StoreDamaged, match="hashrange check"):
        origin.source()


def test_a_stream_that_cannot_be_decoded_is_refused(places: Places) -> None:
    """Its space would get no number to go on from."""
    origin = places.directory()
    world = World(origin.open())
    world.make(3)
    world.database.engine.write(lambda txn: txn.put(0, b"stream", b"/other\x00label", b"no stream"))
    world.database.close()
    with pytest.raises(StoreDamaged, match=r"stream other/label cannot be decoded.*hashrange check"):
        origin.source()


def test_a_directory_of_another_format_is_refused(tmp_path: Path) -> None:
    origin = Directory(tmp_path / "data")
    origin.open().close()
    mark = read_mark(origin.path)
    assert mark is not None
    write_mark(origin.path, mark._replace(format=2))
    with pytest.raises(UnknownFormat, match="has format 2; "):
        origin.source()


def test_what_a_kill_left_of_a_directory_is_removed(places: Places) -> None:
    """Also where it came between the last steps."""
    origin, target = places.directory(), places.directory()
    origin.open().close()
    copied(origin, target, no_logs)
    (target.path / COPYING).write_text("the origin\n")
    with pytest.raises(UnfinishedCopy):
        target.open()
    copied(origin, target, no_logs)
    target.open().close()
    assert not (target.path / COPYING).exists()


def test_the_size_of_batches_is_bounded(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    stores: list[Place] = [places.directory(), places.schema()]
    engine = stores[0].open()
    engine.write(partial(fill, value=b"x" * 1000, count=50))
    engine.close()
    copied(stores[0], stores[1], no_logs)
    for target in ("hashrange.storage.embedded.offline.directory_copy", "hashrange_postgres.snapshot"):
        monkeypatch.setattr(f"{target}.BATCH_BYTES_MAX", 5_000)
        monkeypatch.setattr(f"{target}.BATCH_RECORDS_MAX", 3)
    for store in stores:
        source = store.source(no_logs)
        sizes = [len(batch) for batch in source.batches()]
        source.close()
        assert sum(sizes) == 50
        assert max(sizes) == 3
    for target in ("hashrange.storage.embedded.offline.directory_copy", "hashrange_postgres.snapshot"):
        monkeypatch.setattr(f"{target}.BATCH_BYTES_MAX", 1_500)
    for store in stores:
        source = store.source(no_logs)
        assert max(len(batch) for batch in source.batches()) == 2
        source.close()


def test_an_older_or_newer_schema_is_refused(places: Places) -> None:
    store = places.schema()
    store.open().close()
    for format_, message in ((0, "Start a server of this version"), (99, "of a newer Hashrange")):
        with psycopg.connect(store.url) as connection:
            connection.execute(f"UPDATE {store.name}.store SET format = %s", (format_,))
        with pytest.raises(StorageError, match=message):
            store.source()


def test_targets_are_closed_without_an_end(places: Places) -> None:
    """As by an interrupt: nothing hangs, and nothing is opened."""
    for place in (places.directory(), places.schema()):
        target = place.target()
        target.put([(64, PARTITION, b"a", b"b")])
        target.close()
        target.close()
        with pytest.raises(UnfinishedCopy):
            place.open()
