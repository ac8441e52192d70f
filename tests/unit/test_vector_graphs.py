"""Searches of large HASH values through a graph: they find nearly all, with the scores of current items."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doses import examples
from hashrange.errors import ValidationException
from hashrange.storage.memory import MemoryEngine
from hashrange.vectors import graph
from vector_histories import SCOPED, compare, steps, take
from vector_tables import DISTANCES, SCHEMA, World, condition, expected, index_of, key_of

needs_usearch = pytest.mark.skipif(not graph.is_installed(), reason="usearch is not installed")

DIMENSIONS, EXACT_MAX = 12, 50


@pytest.fixture
def world() -> Iterator[World]:
    world = World(MemoryEngine(), vector_exact_max=EXACT_MAX)
    yield world
    world.database.close()


def vectors_of(count: int, seed: int = 1) -> list[list[str]]:
    chance = np.random.default_rng(seed)
    return [[f"{x:.5f}" for x in row] for row in chance.normal(size=(count, DIMENSIONS))]


def fill(world: World, count: int, distance: str = "COSINE", **given: Any) -> list[list[str]]:
    """A table with this many vectors, searched once; its graph is complete."""
    world.create(index_of(dimensions=DIMENSIONS, distance=distance, **given), scoped=bool(given))
    rows = vectors_of(count)
    for number, row in enumerate(rows):
        kind = {"kind": "rare" if number % 50 == 0 else "often"} if given else {}
        world.put(number, row, **kind)
    search_scores(world, rows[0], 1)
    world.database.settle()
    return rows


def search_scores(world: World, vector: list[str], top: int, **given: Any) -> list[float]:
    return [result["Score"] for result in world.search(vector, top, **given)]


def graphs(world: World) -> list[Any]:
    kept = world.database._kept["vectors"]
    return [matrix.graph for own in kept._indexes.values() for matrix in own.matrices.values()]


@needs_usearch
@pytest.mark.parametrize("distance", DISTANCES)
@settings(max_examples=examples(25), deadline=None)
@given(history=st.lists(steps, max_size=30))
def test_a_small_graph_finds_all(distance: str, history: list[tuple[Any, ...]]) -> None:
    """A graph that is smaller than its breadth misses nothing, whatever happens to the items."""
    world = World(MemoryEngine(), vector_exact_max=2)
    world.create({**SCOPED, "DistanceFunction": distance}, scoped=True)
    try:
        for step in history:
            take(world, distance, step)
            world.database.sweep()
        take(world, distance, ("search", [1, "0.5"], 3, "north", {}))
    finally:
        world.database.close()


@needs_usearch
@pytest.mark.parametrize("distance", DISTANCES)
def test_a_graph_finds_nearly_all(world: World, distance: str) -> None:
    fill(world, 1_500, distance)
    assert [len(own.waiting) for own in graphs(world)] == [0]
    items, hits = world.items(), 0
    for query in vectors_of(20, seed=2):
        truth = [score for score, _ in expected(items, distance, query, 10)]
        shown = search_scores(world, query, 10)
        assert shown == sorted(shown, reverse=distance == "DOT_PRODUCT")
        hits += sum(any(abs(own - right) < 1e-6 for right in truth) for own in shown)
    assert hits > 180


@needs_usearch
def test_what_was_written_is_found_at_once(world: World) -> None:
    rows = fill(world, 300)
    query = vectors_of(1, seed=3)[0]
    world.put(300, query)
    assert search_scores(world, query, 1) == [pytest.approx(0, abs=1e-6)]
    world.database.settle()
    assert search_scores(world, query, 1) == [pytest.approx(0, abs=1e-6)]
    world("DeleteItem", TableName="table", Key=key_of(300))
    assert search_scores(world, query, 1)[0] > 0.01
    world.put(7, rows[8])
    assert search_scores(world, rows[8], 2) == pytest.approx([0, 0], abs=1e-6)


@needs_usearch
def test_few_rows_are_compared_one_by_one(world: World) -> None:
    filters = [{**element, "SearchSchemaElementType": "INLINE_FILTER"} for element in SCHEMA]
    fill(world, 400, SearchSchema=filters)
    own = graphs(world)[0]
    asked: list[int] = []
    inner = own._index

    class Index:
        def search(self, vector: Any, count: int, **given: Any) -> Any:
            asked.append(count)
            return inner.search(vector, count, **given)

    own._index = Index()
    compare(world, "COSINE", vectors_of(1, seed=4)[0], 5, {"kind": "rare"})
    assert asked == []
    search_scores(world, vectors_of(1, seed=4)[0], 5, **condition({"kind": "often"}))
    assert asked == [21]  # 4 * 5, and a bit more because some rows do not meet the condition


@needs_usearch
def test_graphs_need_memory(world: World) -> None:
    """A graph that does not fit beside its vectors is not made, and the search is exact."""
    fill(world, 200)
    size = world.database._kept["vectors"].size
    small = World(world.database.engine, vector_exact_max=EXACT_MAX, vector_memory_bytes=size - 1_000)
    query = vectors_of(1, seed=5)[0]
    compare(small, "COSINE", query, 5, {})
    small.database.settle()
    assert graphs(small) == [None]
    compare(small, "COSINE", query, 5, {})


@needs_usearch
def test_a_graph_goes_with_its_rows(world: World) -> None:
    fill(world, EXACT_MAX + 10)
    assert graphs(world) != [None]
    for number in range(20):
        world("DeleteItem", TableName="table", Key=key_of(number))
    compare(world, "COSINE", vectors_of(1, seed=6)[0], 5, {})
    world.database.settle()
    assert graphs(world) == [None]


def test_without_the_library_the_error_names_the_remedy(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph, "is_installed", lambda: False)
    world.create(index_of())
    world.put(1, [1, 1])
    with pytest.raises(ValidationException) as caught:
        world.search([1, 1])
    assert str(caught.value) == (
        "SearchVectors needs usearch because vector_exact_max is set, and usearch is not installed where "
        "this database runs. Install it with: pip install usearch"
    )
