"""Random histories of a table with a vector index, and the search that goes through all items."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import strategies as st

from vector_tables import SCHEMA, World, condition, expected, index_of, key_of, listed, score

SCOPED: Final = index_of(SearchSchema=SCHEMA)


def compare(world: World, distance: str, vector: list[Any], top: int, wanted: dict[str, str]) -> None:
    """Assert that a search finds what a search through all items finds."""
    results = world.search(vector, top, **(condition(wanted) if wanted else {}))
    truth = expected(world.items(), distance, vector, top, wanted)
    assert [result["Score"] for result in results] == pytest.approx([pair[0] for pair in truth], abs=1e-6)
    stored = {item["s"]["N"]: item for item in world.items()}
    for result in results:
        item = stored[result["Item"]["s"]["N"]]
        own = score(distance, [member["N"] for member in item.pop("v")["L"]], vector)
        assert result["Score"] == pytest.approx(own, abs=1e-6)
        assert result["Item"] == item
        assert all(item[name] in ({"S": value}, {"N": value}) for name, value in wanted.items())


# Few numbers, so that scores are often equal.
components = st.one_of(st.sampled_from((0, 1, -1, 2)), st.floats(-2, 2, width=32).map(lambda x: f"{x:.6f}"))
plane = st.lists(components, min_size=2, max_size=2)
areas = st.sampled_from(("north", "south"))
extras = st.fixed_dictionaries({}, optional={
    "area": areas, "kind": st.sampled_from("ab"), "size": st.sampled_from(("1", "2.5", "-3")),
})  # fmt: skip
numbers = st.integers(0, 11)
steps = st.one_of(
    st.tuples(st.just("put"), numbers, plane, extras),
    st.tuples(st.just("put"), numbers, plane, extras),
    st.tuples(st.just("bare"), numbers, st.none(), extras),
    st.tuples(st.just("move"), numbers, areas),
    st.tuples(st.just("unset"), numbers, st.sampled_from(("v", "area", "kind"))),
    st.tuples(st.just("delete"), numbers),
    st.tuples(st.just("batch"), st.lists(st.tuples(numbers, plane), max_size=5, unique_by=lambda t: t[0])),
    st.tuples(st.just("forget")),
    st.tuples(st.just("search"), plane, st.integers(1, 5), areas,
              st.fixed_dictionaries({}, optional={"kind": st.sampled_from("abc"), "size": st.just("2.5")})),
    st.tuples(st.just("search"), plane, st.integers(1, 5), areas, st.just({})),
)  # fmt: skip


def take(world: World, distance: str, step: tuple[Any, ...]) -> None:
    match step:
        case "put" | "bare", number, vector, extra:
            world.put(number, vector, **extra)
        case "move", number, area:
            world("UpdateItem", TableName="table", Key=key_of(number), UpdateExpression="SET area = :a",
                  ExpressionAttributeValues={":a": {"S": area}})
        case "unset", number, name:
            world("UpdateItem", TableName="table", Key=key_of(number), UpdateExpression=f"REMOVE {name}")
        case "delete", number:
            world("DeleteItem", TableName="table", Key=key_of(number))
        case "batch", pairs:
            items = [{**key_of(n), "area": {"S": "north"}, "v": listed(vector)} for n, vector in pairs]
            puts = [{"Put": {"TableName": "table", "Item": item}} for item in items]
            if puts:
                world("TransactWriteItems", TransactItems=puts)
        case ("forget",):
            world.database._kept.clear()
        case "search", vector, top, area, filters:
            compare(world, distance, vector, top, {"area": area, **filters})
