"""The bytes that a key condition selects, segments, and the rules of a page."""

from __future__ import annotations

import gc
from base64 import b64encode
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collecting import young_objects_only
from hashrange import encoding
from hashrange.errors import ValidationException
from hashrange.limits import PAGE_BYTES_MAX
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.definitions.table import Index, KeyAttribute, KeySchema, Table
from hashrange.tables.items import records
from hashrange.tables.reads import ranges
from hashrange.tables.reads.ranges import ReadSource
from hashrange.values import AttributeValue, Item, decode_binary, item_size, numbers

_texts = st.text(st.sampled_from("ab\x00\x01\xff\ue000\U00010000"), max_size=3)
_data = st.lists(st.sampled_from([0, 1, 97, 254, 255]), max_size=3).map(bytes)
_numbers = st.builds(lambda n, e: numbers.normalise(f"{n}e{e}"), st.integers(-120, 120), st.integers(-2, 2))
_values: dict[str, st.SearchStrategy[AttributeValue]] = {
    "S": st.builds(lambda s: {"S": s}, _texts),
    "B": st.builds(lambda b: {"B": b64encode(b).decode()}, _data),
    "N": st.builds(lambda n: {"N": n}, _numbers),
}


def comparable(value: AttributeValue) -> Any:
    [(name, content)] = value.items()
    if name == "S":
        return content.encode()
    return Decimal(content) if name == "N" else decode_binary(content)


TESTS: dict[str, Callable[[Any, Sequence[Any]], bool]] = {
    "=": lambda value, operands: bool(value == operands[0]),
    "<": lambda value, operands: bool(value < operands[0]),
    "<=": lambda value, operands: bool(value <= operands[0]),
    ">": lambda value, operands: bool(value > operands[0]),
    ">=": lambda value, operands: bool(value >= operands[0]),
    "BETWEEN": lambda value, operands: bool(operands[0] <= value <= operands[1]),
    "begins_with": lambda value, operands: bool(value.startswith(operands[0])),
}


@st.composite
def conditions(draw: st.DrawFn) -> tuple[str, str, list[AttributeValue]]:
    """A key type, an operator on it, and its operands; begins_with has a prefix that is not empty."""
    type_ = draw(st.sampled_from("SBN"))
    operator = draw(st.sampled_from([name for name in TESTS if type_ != "N" or name != "begins_with"]))
    operands = [draw(_values[type_]) for _ in range(1 + (operator == "BETWEEN"))]
    if operator == "begins_with":
        operands = [draw(_values[type_].filter(lambda value: value[type_] != ""))]
    return type_, operator, operands


def selected(low: bytes, high: bytes | None, sort: bytes) -> bool:
    return low <= sort and (high is None or sort < high)


@given(conditions(), st.data())
def test_bounds_of_a_table_select_what_the_condition_selects(
    condition: tuple[str, str, list[AttributeValue]], data: st.DataObject
) -> None:
    type_, operator, operands = condition
    low, high = ranges.sort_bounds(False, (), operator, operands)
    for value in [*operands, *(data.draw(_values[type_]) for _ in range(3))]:
        expected = TESTS[operator](comparable(value), [comparable(one) for one in operands])
        assert selected(low, high, encoding.pack_sort(value)) == expected


@given(conditions(), st.lists(st.sampled_from("SBN").flatmap(_values.__getitem__), max_size=2), st.data())
def test_bounds_of_an_index_select_what_the_condition_selects(
    condition: tuple[str, str, list[AttributeValue]], equal: list[AttributeValue], data: st.DataObject
) -> None:
    type_, operator, operands = condition
    low, high = ranges.sort_bounds(True, equal, operator, operands)
    for value in [*operands, *(data.draw(_values[type_]) for _ in range(3))]:
        others = [data.draw(_values[next(iter(one))] | st.just(one)) for one in equal]
        same = [comparable(one) for one in others] == [comparable(one) for one in equal]
        expected = same and TESTS[operator](comparable(value), [comparable(one) for one in operands])
        # Whatever comes behind the components: ties of any base item.
        for partition, sort in ((b"\x00" * 24, b""), (b"\xff" * 24, b"\xff" * 90), (b"p" * 24, b"\x00\x01")):
            place = encoding.pack_index_sort([*others, value], partition, sort)
            assert selected(low, high, place) == expected


@given(st.lists(st.sampled_from("SBN").flatmap(_values.__getitem__), max_size=2), st.data())
def test_bounds_without_a_condition_select_by_the_leading_components(
    equal: list[AttributeValue], data: st.DataObject
) -> None:
    low, high = ranges.sort_bounds(True, equal, None, ())
    others = [data.draw(_values[next(iter(one))] | st.just(one)) for one in equal]
    last = data.draw(st.sampled_from("SBN").flatmap(_values.__getitem__))
    expected = [comparable(one) for one in others] == [comparable(one) for one in equal]
    assert selected(low, high, encoding.pack_index_sort([*others, last], b"p" * 24, b"")) == expected


def test_between_with_bounds_in_the_wrong_order_selects_nothing() -> None:
    low, high = ranges.sort_bounds(False, (), "BETWEEN", [{"N": "5"}, {"N": "1"}])
    assert high is not None
    assert low >= high


@given(st.binary(min_size=24, max_size=24), st.integers(1, 1_000_000))
def test_every_partition_is_in_exactly_one_segment(partition: bytes, segments: int) -> None:
    segment = ranges.segment_of(partition, segments)
    assert 0 <= segment < segments
    assert ranges._segment_start(segment, segments) <= partition
    assert segment + 1 == segments or partition < ranges._segment_start(segment + 1, segments)


PLAIN = Table(
    "t",
    "id",
    100,
    0.0,
    KeySchema((KeyAttribute("p", "S"),), (KeyAttribute("k", "N"),)),
    {"p": "S", "k": "N", "g": "S"},
    (Index("by-g", True, 101, KeySchema((KeyAttribute("g", "S"),)), "ALL"),),
)


def packed(item: Item) -> bytes:
    return records.pack(item, item_size(item))


def test_a_page_stops_at_its_limit_before_the_filter() -> None:
    found = [packed({"n": {"N": str(number)}}) for number in range(5)]
    page = ranges.read_page(
        iter(found), limit=3, test=lambda item: item["n"]["N"] == "2", show=lambda item: {"m": item["n"]}
    )
    assert (page.scanned, page.records, page.last) == (3, [found[2]], found[2])
    assert page.shown == [{"m": {"N": "2"}}]


def test_the_items_of_a_page_are_freed_one_by_one() -> None:
    """A hundred thousand decoded items that are freed in one step hold up all other threads."""
    held: list[int] = []

    def test(item: Item) -> bool:
        gc.collect()
        held.append(sum(type(found) is dict and "held" in found for found in gc.get_objects()))
        return True

    found = [packed({"held": {"L": [{"N": str(number)}]}}) for number in range(20)]
    with young_objects_only():
        page = ranges.read_page(iter(found), limit=None, test=test)
    assert len(page.records) == 20
    assert max(held) == min(held)


def test_a_page_that_stops_at_the_last_record_has_a_last_key_all_the_same() -> None:
    found = [packed({"n": {"N": str(number)}}) for number in range(3)]
    assert ranges.read_page(iter(found), limit=3, test=None).last == found[2]
    assert ranges.read_page(iter(found), limit=4, test=None).last is None
    assert ranges.read_page(iter([]), limit=1, test=None).last is None


def test_a_page_stops_when_it_reaches_a_megabyte() -> None:
    item: Item = {"v": {"S": "x" * (PAGE_BYTES_MAX // 4)}}
    found = [packed(item)] * 10
    page = ranges.read_page(iter(found), limit=None, test=lambda item: False)
    assert (page.scanned, page.records, page.shown) == (4, [], None)
    assert page.size == 4 * item_size(item)
    assert page.last is not None


@pytest.mark.parametrize(
    ("index", "key"),
    [
        (False, {}),
        (False, {"p": {"S": "a"}}),
        (False, {"p": {"S": "a"}, "k": {"S": "1"}}),
        (False, {"p": {"S": "a"}, "k": {"N": "1"}, "g": {"S": "x"}}),
        (True, {"p": {"S": "a"}, "k": {"N": "1"}}),
        (True, {"p": {"S": "a"}, "k": {"N": "1"}, "g": {"N": "1"}}),
        (True, {"p": {"S": "a"}, "k": {"N": "1"}, "g": {"S": ""}}),
    ],
)
def test_a_start_key_that_does_not_fit_is_refused(index: bool, key: Item) -> None:
    source = ReadSource(PLAIN, PLAIN.indexes[0] if index else None)
    # [report]
    with pytest.raises(ValidationException, match="The provided starting key is invalid"):
        ranges.start_position(source, key)


def test_a_last_key_holds_the_index_key_and_the_table_key() -> None:
    assert ReadSource(PLAIN, None).start_names() == ["p", "k"]
    assert ReadSource(PLAIN, PLAIN.indexes[0]).start_names() == ["g", "p", "k"]


def test_reading_goes_on_behind_the_start_in_both_directions() -> None:
    engine = MemoryEngine()
    source = ReadSource(PLAIN, None)
    key: Item = {"p": {"S": "a"}, "k": {"N": "2"}}
    partition, start = ranges.start_position(source, key)

    def numbers_after(*, reverse: bool) -> list[str]:
        def read(reader: Any) -> list[str]:
            low, high = ranges.sort_bounds(False, (), "BETWEEN", [{"N": "1"}, {"N": "4"}])
            found = ranges.query_records(reader, source, partition, low, high, reverse=reverse, start=start)
            return [records.item_of(record)["k"]["N"] for record in found]

        return engine.read(read)

    def write(txn: Any) -> None:
        for number in range(6):
            item: Item = {"p": {"S": "a"}, "k": {"N": str(number)}}
            txn.put(PLAIN.space, partition, encoding.pack_sort(item["k"]), packed(item))

    engine.write(write)
    assert numbers_after(reverse=False) == ["3", "4"]
    assert numbers_after(reverse=True) == ["1"]
