"""Conditions keep what they computed from large values: the results are the same, and come sooner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hashrange.expressions import Condition, Substitutions, condition, legacy, update
from hashrange.expressions.conditions import compile_condition
from hashrange.expressions.memo import LARGE, with_memo
from hashrange.expressions.parser import parse_condition
from hashrange.values import canonical, equal, value_size
from hashrange.values.attributes import size_within

SCALARS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.sampled_from("abé").map(lambda text: {"S": text}),
    st.sampled_from(["0", "1", "-1.5", "-1.25", "9" * 38, "0.5"]).map(lambda text: {"N": text}),
    st.sampled_from(["", "AA==", "AAAA"]).map(lambda text: {"B": text}),
    st.booleans().map(lambda flag: {"BOOL": flag}),
    st.just({"NULL": True}),
    st.permutations(["a", "b", "c"]).map(lambda members: {"SS": members[:2]}),
    st.permutations(["1", "2", "3"]).map(lambda members: {"NS": members[:2]}),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2).map(lambda members: {"L": members}),
        st.dictionaries(st.sampled_from(["a", "SS", '"SS":[']), inner, max_size=2).map(
            lambda members: {"M": members}
        ),
    ),
    max_leaves=4,
)


@st.composite
def large(draw: st.DrawFn) -> dict[str, Any]:
    """A value with more members than need keeping."""
    some = draw(st.lists(VALUES, max_size=3))
    texts = draw(st.permutations([*map(str, range(LARGE + 1)), draw(st.sampled_from(["x", "y"]))]))
    lists = {"L": some + [{"N": text} for text in sorted(texts)]}
    maps = {"M": dict(zip(texts, lists["L"], strict=False))}
    return draw(
        st.sampled_from([lists, maps, {"SS": texts}, {"S": "ä" * LARGE + texts[0]}, {"B": "AAAA" * LARGE}])
    )


ANY = st.one_of(VALUES, large())
TESTS = [
    "a = :a", "a <> :a", "a = b", "a IN (:a, :b, :c, :d)", "a IN (:a, :b, :c, b)", ":a IN (a, :b, :c, :d)",
    "contains(a, :a)", "contains(a, :b)", "contains(a, b)", "contains(:a, a)", "contains(:a, :b)",
    "begins_with(a, :a)",
    "a < :a", "a >= b", ":a < :b", "a BETWEEN :a AND :b", "size(a) = size(:a)", "size(a) > size(b)",
    ":a = :b",
    "begins_with(:a, :b)", "NOT a = :c", "size(:a) = size(:b)",
]  # fmt: skip


@given(ANY, ANY)
def test_equal_values_and_no_others_have_the_same_form(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert (canonical(one) == canonical(other)) is equal(one, other)


@given(
    st.lists(st.sampled_from(TESTS), min_size=1, max_size=6),
    st.lists(st.fixed_dictionaries({}, optional={"a": ANY, "b": ANY}), min_size=1, max_size=4),
    st.fixed_dictionaries(dict.fromkeys((":a", ":b", ":c", ":d"), ANY)),
)
def test_a_memo_changes_no_result(tests: list[str], items: list[Any], values: dict[str, Any]) -> None:
    programs = [compile_condition(parse_condition(text), {}) for text in tests]
    kept = with_memo(values)
    for item in items * 2:
        for program in programs * 2:
            assert program(item, kept) is program(item, values)


@given(ANY, st.integers(-5, 500))
def test_a_size_is_exact_where_it_is_within_the_limit(value: dict[str, Any], bytes_max: int) -> None:
    size = value_size(value)
    assert (
        size_within(value, bytes_max) == size
        if size <= bytes_max
        else size_within(value, bytes_max) > bytes_max
    )


class Counted(list[Any]):
    """A list that counts how often its members are looked through."""

    walks = 0

    def __iter__(self) -> Iterator[Any]:
        self.walks += 1
        return super().__iter__()

    def __contains__(self, member: object) -> bool:
        self.walks += 1
        return super().__contains__(member)


class CountedValues(dict[str, Any]):
    """Values that count how often they are asked for."""

    lookups = 0

    def __getitem__(self, name: str) -> Any:
        self.lookups += 1
        return super().__getitem__(name)


def chain(test: str, count: int) -> str:
    return " OR ".join(test.format(number) for number in range(count))


def substituted(values: dict[str, Any]) -> Substitutions:
    return Substitutions(None, values)


def test_many_contains_look_through_a_list_twice_at_most() -> None:
    values = {f":{number}": {"N": str(-number - 1)} for number in range(140)}
    test = condition(chain("contains(l, :{})", 140), substituted(values))
    for _ in range(3):
        members = Counted([{"N": str(number)} for number in range(1_000)])
        assert not test.test({"l": {"L": members}})
        assert members.walks <= 2


def test_many_contains_look_through_a_constant_twice_for_all_items() -> None:
    members = Counted([str(number) for number in range(1_000)])
    test = condition("contains(:s, n)", substituted({":s": {"NS": ["0"]}}), "FilterExpression")
    test = Condition(test.run, with_memo({":s": {"NS": members}}), test.attributes)
    found = [test.test({"n": {"N": str(number)}}) for number in range(-500, 500)]
    assert found == [False] * 500 + [True] * 500
    assert members.walks <= 2


def test_the_constants_of_an_in_are_looked_at_twice_for_all_items() -> None:
    values = {f":{number}": {"N": str(number)} for number in range(100)}
    text = f"n IN ({', '.join(values)})"
    test = condition(text, substituted(values), "FilterExpression")
    counted = CountedValues(with_memo(values))
    test = Condition(test.run, counted, test.attributes)
    assert sum(test.test({"n": {"N": str(number)}}) for number in range(-5_000, 5_000)) == 100
    assert counted.lookups <= 2 * len(values)


def test_a_test_of_constants_is_made_once_for_all_items() -> None:
    members = Counted([{"N": str(number)} for number in range(1_000)])
    test = condition(
        "contains(:l, :n)", substituted({":l": {"L": []}, ":n": {"N": "-1"}}), "FilterExpression"
    )
    test = Condition(test.run, with_memo({":l": {"L": members}, ":n": {"N": "-1"}}), test.attributes)
    assert not any(test.test({"n": {"N": str(number)}}) for number in range(100))
    assert members.walks <= 2


def test_an_update_measures_the_depth_of_a_value_once() -> None:
    members = Counted([{"N": str(number)} for number in range(1_000)])
    change = update(
        "SET " + ", ".join(f"m[{number}] = l" for number in range(200)), substituted({":x": {"N": "1"}})
    )
    members.walks = 0
    item: dict[str, dict[str, Any]] = {"l": {"L": members}, "m": {"L": [{"N": "1"}]}}
    assert len(change.apply(item)["m"]["L"]) == 200
    assert members.walks <= 2


def test_a_legacy_in_does_not_look_at_each_choice_for_each_item() -> None:
    choices = [{"N": str(number)} for number in range(1_000)]
    test = legacy.filters({"n": {"ComparisonOperator": "IN", "AttributeValueList": choices}})
    choices.clear()
    assert sum(test.test({"n": {"N": str(number)}}) for number in range(-100, 100)) == 100
