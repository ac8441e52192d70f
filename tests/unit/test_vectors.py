"""Vector indexes and searches: exact on every engine, whatever happens to items, memory and servers."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from sys import getsizeof
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import postgres
from doses import examples
from hashrange import pace
from hashrange.errors import ServiceError, ValidationException
from hashrange.expressions.search_conditions import EVERYTHING
from hashrange.operations.vectors import _NO_FLOATS, _numbers
from hashrange.settings import ALL_VECTORS
from hashrange.storage.api import Engine, Reader
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.background import sweeps
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Index, Vector
from hashrange.tables.inspection.check import check
from hashrange.tables.items import vectors
from hashrange.values import admit_value
from hashrange.vectors import cache as matrix_cache
from hashrange.vectors import graph
from hashrange_engine_tests.reruns import Reruns
from histories import opener_of
from vector_histories import SCOPED, compare, steps, take
from vector_tables import DISTANCES, SCHEMA, World, condition, expected, index_of, key_of, listed


@pytest.fixture(params=["memory", "reruns", "embedded", "postgresql"])
def open_engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Engine]]:
    """Opens the engine of a test; on PostgreSQL several times, over one store."""
    with ExitStack() as stack:
        url, schema = "", postgres.new_schema()
        if request.param == "postgresql":
            url = request.getfixturevalue("postgres_url")

        def opener() -> Engine:
            engine: Engine
            if request.param == "memory":
                engine = MemoryEngine()
            elif request.param == "reruns":
                engine = Reruns(MemoryEngine())
            elif request.param == "embedded":
                engine = EmbeddedEngine(tmp_path / "store")
            else:
                engine = postgres.engine(url, schema=schema)
            stack.callback(engine.close)
            return engine

        yield opener


@pytest.fixture
def world() -> Iterator[World]:
    world = World(MemoryEngine())
    yield world
    assert list(check(world.database.engine)) == []
    world.database.close()


def index_in(world: World, name: str = "near", table: str = "table") -> tuple[Index, Vector]:
    stored = world.database.engine.read(lambda reader: catalog.find_full(reader, table))
    assert stored is not None
    index = stored.index(name)
    assert index is not None
    assert index.vector is not None
    return index, index.vector


def rows_of(reader: Reader, space: int) -> list[Any]:
    return list(reader.scan_space(space))


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("memory", [1 << 28, 1 << 12], ids=["kept", "not kept"])
@pytest.mark.parametrize("engine", ["memory", "embedded"])
@settings(max_examples=examples(25), deadline=None)
@given(history=st.lists(steps, max_size=30))
def test_a_search_finds_what_a_look_at_all_items_finds(
    engine: str, memory: int, distance: str, history: list[tuple[Any, ...]]
) -> None:
    with opener_of(engine) as opener:
        run_history(World(opener(), vector_memory_bytes=memory), distance, history)


@pytest.mark.parametrize("distance", DISTANCES)
@settings(max_examples=examples(5), deadline=None)
@given(history=st.lists(steps, min_size=10, max_size=30))
def test_a_search_on_postgresql_finds_what_a_look_at_all_items_finds(
    postgres_url: str, distance: str, history: list[tuple[Any, ...]]
) -> None:
    run_history(World(postgres.engine(postgres_url, schema=postgres.new_schema())), distance, history)


def run_history(world: World, distance: str, history: list[tuple[Any, ...]]) -> None:
    """Take the steps, with background work in between, and close the world."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "KEPT_CHANGES", 6)
        patch.setattr(sweeps, "BITE_ITEMS", 4)
        world.create({**SCOPED, "DistanceFunction": distance}, scoped=True)
        try:
            for step in history:
                take(world, distance, step)
                world.database.sweep()
            take(world, distance, ("search", [1, "0.5"], 3, "north", {}))
            assert list(check(world.database.engine)) == []
        finally:
            world.database.close()


@pytest.mark.parametrize("distance", DISTANCES)
def test_every_engine_finds_the_same(open_engine: Callable[[], Engine], distance: str) -> None:
    world = World(open_engine())
    world.create({**SCOPED, "DistanceFunction": distance}, scoped=True)
    chance = np.random.default_rng(7)
    for number in range(60):
        vector = [f"{x:.5f}" for x in chance.normal(size=2)]
        area, kind = ("north", "south")[number % 2], "ab"[number % 3 == 0]
        world.put(number, vector, area=area, kind=kind)
    for query in ([1, 0], [0, 0], ["-0.3", "0.2"]):
        compare(world, distance, query, 7, {"area": "north"})
        compare(world, distance, query, 7, {"area": "south", "kind": "a"})
        world.put(61, query, area="north", kind="a")
        compare(world, distance, query, 3, {"area": "north", "kind": "a"})
        world("DeleteItem", TableName="table", Key=key_of(61))
        compare(world, distance, query, 3, {"area": "north"})
    assert list(check(world.database.engine)) == []


def test_servers_see_the_writes_of_each_other(open_engine: Callable[[], Engine]) -> None:
    first = World(open_engine())
    several = type(first.database.engine).__name__ == "PostgresEngine"
    second = World(open_engine() if several else first.database.engine)
    first.create(index_of())
    for number in range(20):
        writer, reader = (first, second)[number % 2], (second, first)[number % 2]
        writer.put(number, [number, 1])
        compare(reader, "COSINE", [1, 0], 5, {})
        compare(writer, "COSINE", [1, 0], 5, {})
    first("DeleteItem", TableName="table", Key=key_of(19))
    compare(second, "COSINE", [1, 0], 5, {})


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e-44, 1e37], ids=str)
def test_near_scores_are_told_apart(world: World, distance: str, scale: float) -> None:
    """Scores that differ by less than 32-bit floats can tell are still in their order."""
    dimensions, count = 48, 100
    world.create(index_of(dimensions=dimensions, distance=distance))
    chance = np.random.default_rng(3)
    base = chance.normal(size=dimensions)
    rows = [(base + 1e-6 * chance.normal(size=dimensions)) * scale for _ in range(count)]
    rows[5] = np.zeros(dimensions)
    texts = [[f"{x:.50f}" if scale < 1 else f"{x:.6f}" for x in row] for row in rows]
    texts = [[text[: text.find(".") + 38] if scale == 1.0 else _short(text) for text in row] for row in texts]
    puts = [{"PutRequest": {"Item": {**key_of(n), "v": listed(text)}}} for n, text in enumerate(texts)]
    for start in range(0, count, 25):
        world("BatchWriteItem", RequestItems={"table": puts[start : start + 25]})
    query = texts[0]
    found = world.search(query, 20)
    wide = np.array([[float(np.float32(text)) for text in row] for row in texts], np.float64)
    exact = [_exact(distance, row, wide[0]) for row in wide]
    order = [min(score, vectors.FLOAT_MAX) for score in sorted(exact, reverse=distance == "DOT_PRODUCT")]
    assert [result["Score"] for result in found] == pytest.approx(order[:20], rel=1e-9, abs=1e-15 * scale**2)
    assert len({result["Item"]["s"]["N"] for result in found}) == 20


def _short(text: str) -> str:
    """A number with at most 30 significant digits."""
    return f"{float(text):.12e}"


def _exact(distance: str, row: Any, query: Any) -> float:
    if distance == "DOT_PRODUCT":
        return float((row * query).sum())
    if distance == "EUCLIDEAN":
        return float(np.sqrt(((row - query) ** 2).sum()))
    lengths = np.sqrt((row * row).sum() * (query * query).sum())
    return float(1.0 - np.clip((row * query).sum() / lengths, -1, 1)) if lengths else 1.0


def test_equal_scores_keep_their_order(world: World) -> None:
    world.create(index_of())
    for number in range(50):
        world.put(number, [number + 1, 0])
    first = world.search([1, 0], 20)
    world.database._kept.clear()
    assert world.search([1, 0], 20) == first
    assert {result["Score"] for result in first} == {0.0}


def test_memory_is_bounded(world: World) -> None:
    limit = 40_000
    world = World(world.database.engine, vector_memory_bytes=limit)
    world.create(index_of(SearchSchema=SCHEMA, dimensions=50), scoped=True)
    for number in range(240):
        world.put(number, [number, *[1] * 49], area=f"area {number % 12}")
    for round_ in range(3):
        for area in range(12):
            found = world.search([1] * 50, 3, **condition({"area": f"area {area}"}))
            assert len(found) == 3, round_
            assert 0 < world.database._kept["vectors"].size <= limit


@pytest.mark.parametrize("exact_max", [ALL_VECTORS, 8])
def test_all_that_is_kept_is_counted_and_bounded(world: World, exact_max: int) -> None:
    """Rows that writes add to all matrices, long keys and contents of filters, and graphs."""
    if exact_max != ALL_VECTORS and not graph.is_installed():
        pytest.skip("usearch is not installed")
    limit = 150_000
    world = World(world.database.engine, vector_memory_bytes=limit, vector_exact_max=exact_max)
    world.create(index_of(SearchSchema=SCHEMA, dimensions=20), scoped=True)
    counted = set()

    def bounded() -> None:
        kept = world.database._kept["vectors"]
        counted.add(kept.size)
        assert held(kept) <= kept.size <= limit

    for number in range(12):
        world.put(number, [number, *[1] * 19], area=f"area {number % 6}")
    for area in range(6):
        world.search([1] * 20, 3, **condition({"area": f"area {area}"}))
        bounded()
    for number in range(600):
        # Only the first matrix is searched, and the rows go to all.
        world.put(number, [number, *[1] * 19], area=f"area {number % 6}", kind=f"{number} " + "x" * 500)
        if number % 20 == 0:
            assert len(world.search([1] * 20, 1, **condition({"area": "area 0"}))) == 1
            bounded()
            world.database.sweep()
            bounded()
        if number >= 200:
            world("DeleteItem", TableName="table", Key=key_of(number - 200))
    assert max(counted) > limit / 2


def held(kept: Any) -> int:
    """The bytes of what is kept, as Python and numpy tell them."""
    matrices = [matrix for own in kept._indexes.values() for matrix in own.matrices.values()]
    return sum(map(_bytes_of_matrix, matrices))


def _bytes_of_matrix(matrix: Any) -> int:
    arrays = [matrix.floats, matrix.squares, *matrix._columns]
    total: int = sum(array.nbytes for array in arrays) + getsizeof(matrix.places) + getsizeof(matrix.sorts)
    total += sum(getsizeof(sort) + 2 * getsizeof(1) for sort in matrix.sorts)
    total += sum(getsizeof(codes) + sum(getsizeof(text) + 32 for text in codes) for codes in matrix._codes)
    if matrix.graph is not None:
        maps = [matrix.graph._keys, matrix.graph._sorts, matrix.graph.waiting]
        total += sum(map(getsizeof, maps)) + 32 * len(matrix.graph._keys)
        total += matrix.graph._most * 2 * matrix.floats.shape[1]
    return total


def test_a_partition_that_is_too_large_is_searched_in_parts(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix_cache, "_PART_BYTES", 2_000)
    small = World(world.database.engine, vector_memory_bytes=20_000)
    small.create(index_of(dimensions=20))
    for number in range(200):
        small.put(number, [number, *[1] * 19])
    found = small.search([150, *[1] * 19], 5)
    assert [score_ for score_, _ in expected(small.items(), "COSINE", [150, *[1] * 19], 5)] == pytest.approx(
        [result["Score"] for result in found], abs=1e-9
    )
    assert small.database._kept["vectors"].size == 0


def test_the_log_is_trimmed_and_followed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "KEPT_CHANGES", 20)
    other = World(world.database.engine)
    world.create(index_of())
    for number in range(100):
        world.put(number % 10, [number, 1])
        if number == 3:
            compare(other, "COSINE", [1, 0], 5, {})
    index, vector = index_in(world)
    assert world.database.engine.read(lambda reader: vectors.is_long(reader, vector))
    world.database.settle()
    kept = world.database.engine.read(lambda reader: len(list(reader.scan(vector.changes, vectors.LOG))))
    assert kept == 20
    for searching in (world, other):
        compare(searching, "COSINE", [1, 0], 5, {})
    assert index.space != vector.changes


def test_a_reader_of_an_older_moment_sees_that_moment(tmp_path: Path) -> None:
    """A search that began earlier is not shown what a faster one has brought into memory."""
    engine = EmbeddedEngine(tmp_path / "store")
    world = World(engine)
    world.create(index_of())
    world.put(1, [1, 0])
    world.put(2, [0, 1])
    world.search([1, 0])
    index, vector = index_in(world)
    kept = world.database._kept["vectors"]
    wanted = matrix_cache.Search(
        engine.read(lambda reader: next(iter(reader.scan_space(index.space)))[0]),
        np.array([1, 0], np.float32),
        5,
        EVERYTHING,
    )

    def body(reader: Any) -> tuple[int, int]:
        before = len(kept.find(reader, index, vector, wanted))
        for number in range(3, 9):
            world.put(number, [1, number])
        assert len(world.search([1, 0])) == 8
        return before, len(kept.find(reader, index, vector, wanted))

    assert engine.read(body) == (2, 2)
    world.database.close()


def test_outdated_entries_are_not_kept(world: World) -> None:
    """An engine may run a body over records that it remembers, find out that they are outdated, and run it
    again."""
    world.create(index_of())
    for number in range(4):
        world.put(number, [1, number])
    compare(world, "COSINE", [1, 0], 4, {})
    index, vector = index_in(world)
    engine, kept = world.database.engine, world.database._kept["vectors"]
    rows = engine.read(lambda reader: list(reader.scan_space(index.space)))
    remembered = {(index.space, partition, sort): record for partition, sort, record in rows}

    class Outdated:
        def __init__(self, reader: Any) -> None:
            self._reader = reader

        def __getattr__(self, name: str) -> Any:
            return getattr(self._reader, name)

        def get_many(self, addresses: Any) -> list[bytes | None]:
            return [remembered.get(address) or self._reader.get_many([address])[0] for address in addresses]

    wanted = matrix_cache.Search(rows[0][0], np.array([1, 0], np.float32), 4, EVERYTHING)
    for round_ in range(12):
        world.put(0, [1, 5 + round_])
        world("DeleteItem", TableName="table", Key=key_of(1))
        engine.read(lambda reader: kept.find(Outdated(reader), index, vector, wanted))
        compare(world, "COSINE", [1, 0], 4, {})
    for _ in range(12):
        engine.read(lambda reader: kept.find(Outdated(reader), index, vector, wanted))
        world.put(0, [1, 3])
    compare(world, "COSINE", [1, 0], 4, {})


def test_a_search_does_not_wait_for_ever_for_another(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix_cache, "_LOCK_SECONDS_MAX", 0.01)
    world.create(index_of())
    world.put(1, [1, 0])
    world.search([1, 0])
    index, _ = index_in(world)
    with world.database._kept["vectors"]._indexes[index.space].lock:
        assert len(world.search([1, 0])) == 1


def test_a_large_table_is_indexed_by_the_sweep(open_engine: Callable[[], Engine]) -> None:
    world = World(open_engine())
    world.create()
    for start in range(0, 1_100, 25):
        numbers_ = range(start, start + 25)
        puts = [{"PutRequest": {"Item": {**key_of(n), "v": listed([n, 1])}}} for n in numbers_]
        world("BatchWriteItem", RequestItems={"table": puts})
    world("UpdateTable", TableName="table", VectorIndexUpdates=[{"Create": index_of()}])
    with pytest.raises(ValidationException, match="Cannot search backfilling vector index: near"):
        world.search([1, 0])
    world.put(5, [3, 3])
    world("DeleteItem", TableName="table", Key=key_of(6))
    world.database.settle()
    shown = world("DescribeTable", TableName="table")["Table"]["VectorIndexes"][0]
    assert (shown["IndexStatus"], shown["ItemCount"], "Backfilling" in shown) == ("ACTIVE", 1_099, False)
    compare(world, "COSINE", [1, 1], 100, {})
    assert list(check(world.database.engine)) == []


def test_a_lagging_index_shows_changes_after_the_delay(open_engine: Callable[[], Engine]) -> None:
    world = World(open_engine(), gsi_delay_seconds=5.0)
    world.create(index_of())
    world.put(1, [1, 0])
    assert world.search([1, 0]) == []
    world.clock.advance(5)
    world.database.settle()
    assert len(world.search([1, 0])) == 1
    world("DeleteItem", TableName="table", Key=key_of(1))
    assert len(world.search([1, 0])) == 1
    world.clock.advance(5)
    world.database.settle()
    assert world.search([1, 0]) == []
    assert list(check(world.database.engine)) == []


def test_a_deleted_index_leaves_nothing(world: World) -> None:
    world.create(index_of())
    world.put(1, [1, 0])
    world.search([1, 0])
    index, vector = index_in(world)
    world("UpdateTable", TableName="table", VectorIndexUpdates=[{"Delete": {"IndexName": "near"}}])
    for space in (index.space, vector.changes):
        assert world.database.engine.read(partial(rows_of, space=space)) == []
    with pytest.raises(ValidationException, match="does not have the specified index: near"):
        world.search([1, 0])


def test_a_return_to_a_snapshot_is_a_return_of_the_vectors(world: World) -> None:
    world.create(index_of())
    world.put(1, [1, 0])
    snapshot = world.database.snapshot()
    for number in range(2, 6):
        world.put(number, [number, 0])
        assert len(world.search([1, 0])) == number
    world.database.restore(snapshot)
    assert len(world.search([1, 0])) == 1
    world.put(7, [0, 1])
    assert [result["Item"]["s"]["N"] for result in world.search([1, 0])] == ["1", "7"]


def test_an_answer_has_at_most_16_megabytes(world: World) -> None:
    world.create(index_of())
    for number in range(45):
        item = {**key_of(number), "v": listed([1, number]), "text": {"S": "x" * 400_000}}
        world("PutItem", TableName="table", Item=item)
    assert len(world.search([1, 0], 40)) == 40
    with pytest.raises(ValidationException, match="16 MB"):
        world.search([1, 0], 45)
    assert len(world.search([1, 0], 45, ProjectionExpression="p, s")) == 45


def test_a_search_does_not_run_on_the_event_loop(world: World) -> None:
    world.create(index_of())
    turn = pace.turn()
    turn.begin(60.0)
    try:
        with pytest.raises(pace.TurnOver):
            world.search([1, 0])
        with pytest.raises(ValidationException):  # what needs no vectors is refused at once
            world.search([1])
    finally:
        turn.end()


def test_without_numpy_only_searches_fail(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("hashrange.vectors")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "numpy", None)
    world.create(index_of())
    world.put(1, [1, 0])
    assert world("DescribeTable", TableName="table")["Table"]["VectorIndexes"][0]["ItemCount"] == 1
    with pytest.raises(ValidationException) as caught:
        world.search([1, 0])
    assert str(caught.value) == (
        "SearchVectors needs numpy, which is not installed where this database runs. "
        "Install it with: pip install numpy"
    )


def test_the_vector_of_an_answer_is_that_of_the_index(world: World) -> None:
    world.create(index_of())
    world.put(1, ["0.10000000000000000000001", "16777217"])
    (found,) = world.search([1, 0], ProjectionExpression="v")
    assert found["Item"]["v"] == listed(["0.1", "16777216.0"])
    assert world.items()[0]["v"] == listed(["0.10000000000000000000001", "16777217"])


@pytest.mark.parametrize(
    "text", ["1.50", "+1.5", "15e-1", "0001.5", "1.5E0", "1.5" + 37 * "0", ".15e1", "1.5" + 60 * "0"]
)
def test_a_number_of_a_search_may_have_any_form(world: World, text: str) -> None:
    world.create(index_of(distance="DOT_PRODUCT"))
    world.put(1, [2, 1])
    assert [found["Score"] for found in world.search([text, "-" + text.lstrip("+")])] == [1.5]


@pytest.mark.parametrize("zero", ["-0", "-0.00", "-00", "0e5", "-.0"])
def test_no_zero_of_a_search_is_negative(world: World, zero: str) -> None:
    world.create(index_of(distance="DOT_PRODUCT"))
    world.put(1, [1, 1])
    (found,) = world.search([zero, zero])
    assert str(found["Score"]) == "0.0"


@pytest.mark.parametrize(
    "text", ["", "-", "nan", "1_0", " 1", "1\n", "\u0663", "0x1", "1.2.3", "1e200", "1" * 39]
)
def test_what_is_no_number_of_an_item_is_none_of_a_search(world: World, text: str) -> None:
    world.create(index_of())
    world.put(1, [1, 0])
    with pytest.raises(ServiceError):
        world.put(2, [text, 0])
    with pytest.raises(ValidationException, match="Search vector contains invalid values"):
        world.search([text, 0])


@pytest.mark.parametrize(
    "text",
    ["3.4028235e38", "-3.4028235e38", "3.4028235677973366163753939545814256844E+38", "1E-130", "16777217"],
)
def test_what_a_search_shows_may_be_written(world: World, text: str) -> None:
    world.create(index_of(distance="EUCLIDEAN"))
    world.put(1, [text, 0])
    (found,) = world.search([0, 0], ProjectionExpression="v")
    world.put(2, [element["N"] for element in found["Item"]["v"]["L"]])
    again = world.search([0, 0], ProjectionExpression="v")
    assert [result["Item"] for result in again] == [found["Item"]] * 2


def test_the_checker_finds_and_mends_entries(world: World) -> None:
    from hashrange.tables.inspection.mending import mend

    world.create(index_of())
    for number in range(5):
        world.put(number, [1, number])
    index, _ = index_in(world)
    engine = world.database.engine
    row = engine.read(lambda reader: next(iter(reader.scan_space(index.space))))
    engine.write(lambda txn: txn.delete(index.space, row[0], row[1]))
    assert [problem.message for problem in check(engine)]
    list(mend(engine))
    assert list(check(engine)) == []
    assert len(world.search([1, 0])) == 5


number_texts = st.one_of(
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(str),
    st.text("0123456789+-.eE, ", max_size=45),
    st.sampled_from(["1,2", "1" * 38, "1" * 39, "1e99", "1e125", "1e126", "1e-130", "1e-131", "\u0661"]),
    st.sampled_from(["", "1\n", "1."]),
)


@given(st.lists(st.one_of(number_texts.map(lambda text: {"N": text}), st.just({"S": "1"})), max_size=4))
def test_a_search_takes_the_numbers_that_an_item_takes(elements: list[dict[str, str]]) -> None:
    """Most are recognised together, the others one by one."""

    def one_by_one() -> list[float]:
        for element in elements:
            admitted = dict(element)
            is_number = list(admitted) == ["N"]
            try:
                admit_value(admitted)
            except ValidationException:
                if is_number:
                    raise ValidationException(_NO_FLOATS) from None
                raise
            if "N" not in admitted:
                raise ValidationException(_NO_FLOATS)
        return [float(element["N"]) for element in elements]

    try:
        wanted: object = one_by_one()
    except ValidationException as error:
        wanted = error.message
    try:
        found: object = [float(text) for text in _numbers(copy.deepcopy(elements))]
    except ValidationException as error:
        found = error.message
    assert found == wanted
