"""The builder's planner: a planned request returns what a filter over all items returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hashrange.database import Database
from hashrange_console.ask.conditions import Condition, condition_of, path_of, shown
from hashrange_console.ask.plans import AUTOMATIC, Plan, plan
from hashrange_console.items.sources import TableOrIndex, sources_of
from hashrange_console.reach import Refused
from worlds import index_on

TABLE: dict[str, Any] = {
    "TableName": "things",
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}, {"AttributeName": "s", "KeyType": "RANGE"}],
    "AttributeDefinitions": [
        {"AttributeName": name, "AttributeType": kind}
        for name, kind in {"p": "S", "s": "N", "g": "S", "h": "N", "l": "S"}.items()
    ],
    "GlobalSecondaryIndexes": [
        index_on("by-g", "g, h"),
        index_on("keys-of-g", "g | KEYS_ONLY"),
        {
            "IndexName": "by-both",
            "KeySchema": [
                {"AttributeName": "g", "KeyType": "HASH"},
                {"AttributeName": "l", "KeyType": "HASH"},
                {"AttributeName": "h", "KeyType": "RANGE"},
                {"AttributeName": "s", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        },
    ],
    "LocalSecondaryIndexes": [index_on("local", "p, l")],
    "BillingMode": "PAY_PER_REQUEST",
}
KEYS = {"": "ps", "by-g": "psgh", "keys-of-g": "psg", "by-both": "psglh", "local": "psl"}
TYPES = {"p": "S", "s": "N", "g": "S", "h": "N", "l": "S"}


def _copy(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))


def _filled(items: list[dict[str, Any]]) -> Database:
    database = Database.in_memory()
    database.execute("CreateTable", _copy(TABLE))
    for item in items:
        database.execute("PutItem", {"TableName": "things", "Item": _copy(item)})
    return database


def _sources(database: Database) -> list[TableOrIndex]:
    return [*sources_of(_copy(database.execute("DescribeTable", {"TableName": "things"}))["Table"])]


def _all(database: Database, operation: str, request: dict[str, Any]) -> list[dict[str, Any]]:
    """The items of all pages."""
    items: list[dict[str, Any]] = []
    start: dict[str, Any] = {}
    while True:
        answer = _copy(database.execute(operation, {**_copy(request), **start, "Limit": 3}))
        items += answer["Items"]
        if "LastEvaluatedKey" not in answer:
            return items
        start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}


def _compared(value: dict[str, Any]) -> tuple[str, Any]:
    [(kind, inner)] = value.items()
    return kind, float(inner) if kind == "N" else inner


ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def _holds(item: dict[str, Any], condition: Condition) -> bool:
    """What a condition says of an item, written a second time."""
    [name] = condition.path
    given = item.get(str(name))
    wanted = [_compared(value) for value in condition.values]
    match condition.operator:
        case "attribute_exists":
            return given is not None
        case "attribute_not_exists":
            return given is None
        case "<>":
            return given is None or _compared(given) != wanted[0]
    if given is None:
        return False
    kind, value = _compared(given)
    match condition.operator:
        case "=" | "in":
            return (kind, value) in wanted
        case "begins_with" | "contains":
            found = str(value).find(wanted[0][1]) if (kind, wanted[0][0]) == ("S", "S") else -1
            return found == 0 if condition.operator == "begins_with" else found >= 0
        case "between":
            return kind == wanted[0][0] == wanted[1][0] and wanted[0][1] <= value <= wanted[1][1]
        case "attribute_type":
            return bool(kind == wanted[0][1])
        case "size <=":
            return kind == "S" and len(value) <= wanted[0][1]
    return kind == wanted[0][0] and ORDERS[condition.operator](value, wanted[0][1])


strings = st.sampled_from(["a", "ab", "b"]).map(lambda text: {"S": text})
numbers = st.sampled_from(["1", "2", "3"]).map(lambda text: {"N": text})
either = st.one_of(strings, numbers)
items = st.lists(
    st.fixed_dictionaries(
        {"p": strings, "s": numbers},
        optional={"g": strings, "h": numbers, "l": strings, "x": either, "y": either},
    ),
    max_size=12,
    unique_by=lambda item: (item["p"]["S"], item["s"]["N"]),
)


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    name = draw(st.sampled_from("pppssggghhllxy"))
    of_type = {"S": strings, "N": numbers}.get(TYPES.get(name, ""), either)
    operator = draw(
        st.sampled_from(
            ["="] * 6
            + ["<>", "<", "<=", ">", ">=", "between", "begins_with", "contains", "in"]
            + ["attribute_exists", "attribute_not_exists", "attribute_type", "size <="]
        )
    )
    match operator:
        case "attribute_exists" | "attribute_not_exists":
            values: list[dict[str, str]] = []
        case "attribute_type":
            values = [{"S": draw(st.sampled_from("SN"))}]
        case "size <=":
            values = [{"N": draw(st.sampled_from("12"))}]
        case "between":
            kind = draw(st.sampled_from([strings, numbers]))
            values = sorted((draw(kind), draw(kind)), key=str)
        case "in":
            values = draw(st.lists(either, min_size=1, max_size=3))
        case "begins_with" | "contains":
            values = [draw(strings)]
        case _:
            values = [draw(st.one_of(of_type, of_type, of_type, either))]
    return Condition((name,), operator, tuple(values))


@settings(max_examples=250, deadline=None)
@given(
    stored=items,
    asked=st.lists(conditions(), max_size=4),
    any_of=st.booleans(),
    chosen=st.sampled_from([AUTOMATIC] * 4 + [*KEYS]),
    descending=st.booleans(),
)
def test_a_plan_returns_what_a_filter_over_all_items_returns(
    stored: list[dict[str, Any]], asked: list[Condition], any_of: bool, chosen: str, descending: bool
) -> None:
    with _filled(stored) as database:
        made = plan(_sources(database), asked, any_of=any_of, chosen=chosen, descending=descending)
        got = _all(database, made.operation, made.request)
    joined = any if any_of and len(asked) > 1 else all
    expected = [
        item
        for item in stored
        if joined([_holds(item, one) for one in asked])
        and all(TYPES[name] in item.get(name, ()) for name in made.leaves_out)
    ]
    if made.source.projected is not None:
        if made.operation == "Scan":
            return  # (a filter on a Scan of an index takes what is not projected for absent)
        kept = made.source.projected
        expected = [{name: value for name, value in item.items() if name in kept} for item in expected]
    assert sorted(got, key=str) == sorted(expected, key=str)
    if chosen == AUTOMATIC and made.operation == "Scan":
        assert made.source.index == ""
        assert len(made.why_not) == len(KEYS)


def _planned(asked: Mapping[str, tuple[str, str, str]], **options: Any) -> Plan:
    made = [
        condition_of(name.rstrip("'"), operator, kind, [text])
        for name, (operator, kind, text) in asked.items()
    ]
    with _filled([]) as database:
        return plan(_sources(database), made, **options)


def test_the_source_that_fits_best_is_chosen() -> None:
    cases: list[tuple[dict[str, tuple[str, str, str]], tuple[str, str]]] = [
        ({"p": ("=", "S", "a")}, ("Query", "")),
        ({"p": ("=", "S", "a"), "s": ("=", "N", "1")}, ("Query", "")),
        ({"p": ("=", "S", "a"), "l": ("begins_with", "S", "x")}, ("Query", "local")),
        ({"g": ("=", "S", "a"), "h": (">", "N", "1")}, ("Query", "by-g")),
        ({"g": ("=", "S", "a")}, ("Query", "keys-of-g")),
        ({"g": ("=", "S", "a"), "x": ("=", "S", "b")}, ("Query", "by-g")),
        ({"g": ("=", "S", "a"), "l": ("=", "S", "b"), "h": ("=", "N", "1"), "s": ("<", "N", "9")},
         ("Query", "by-both")),
        ({"x": ("=", "S", "a")}, ("Scan", "")),
        ({"p": ("=", "N", "1")}, ("Scan", "")),
        ({"p": ("=", "S", "")}, ("Scan", "")),
        ({"p.q": ("=", "S", "a")}, ("Scan", "")),
    ]  # fmt: skip
    for asked, expected in cases:
        made = _planned(asked)
        assert (made.operation, made.source.index) == expected, asked


def test_a_lower_and_an_upper_end_make_one_condition() -> None:
    made = _planned({"p": ("=", "S", "a"), "s": (">=", "N", "2"), "s'": ("<=", "N", "10")})
    assert made.request["KeyConditionExpression"] == "#n0 = :v0 AND #n1 BETWEEN :v1 AND :v2"
    assert "FilterExpression" not in made.request
    crossed = {"p": ("=", "S", "a"), "s": (">=", "N", "10"), "s'": ("<=", "N", "2")}
    assert _planned(crossed, chosen="").operation == "Scan"


def test_a_plan_says_why() -> None:
    made = _planned({"p": ("=", "S", "a"), "s": ("<>", "N", "2")})
    assert (made.operation, made.source.index, made.leaves_out) == ("Query", "local", ("l",))
    assert dict(made.why_not)[""] == "a Query cannot filter by its own key: s ≠ 2"
    assert dict(made.why_not)["by-g"] == "needs a value for g (S)"
    made = _planned({"g": ("=", "S", "a"), "x": ("=", "S", "b")})
    assert made.leaves_out == ("h",)
    assert dict(made.why_not)["keys-of-g"] == "does not have x, which is not projected"
    made = _planned({"p": ("=", "S", "a"), "g": ("=", "S", "b")}, any_of=True)
    assert (made.operation, made.request["FilterExpression"]) == ("Scan", "#n0 = :v0 OR #n1 = :v1")
    with pytest.raises(Refused, match="no index other"):
        _planned({}, chosen="other")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("", "=", "S", "x"), "is not an attribute"),
        (("[0]", "=", "S", "x"), "is not an attribute"),
        (("a..b", "=", "S", "x"), "is not an attribute"),
        (("a", "drop", "S", "x"), "is not a condition"),
        (("a", "=", "Q", "x"), "is not a condition"),
        (("a", "=", "N", " "), "a: Give a number"),
        (("a", "=", "B", "%"), "base64"),
        (("a", "=", "BOOL", "yes"), "true or false"),
        (("a", "=", "JSON", "{"), "not JSON"),
        (("a", "=", "JSON", "{}"), "has its type"),
        (("a", "=", "JSON", '{"N": 5}'), "has its type"),
        (("a", "=", "JSON", '{"SS": "x"}'), "has its type"),
        (("a", "=", "JSON", '{"L": [{"M": {"x": {"B": "%"}}}]}'), "base64"),
        (("a", "=", "JSON", '{"L": 5}'), "has its type"),
        (("a", "=", "JSON", "[" * 5_000), "not JSON"),
        (("a", "in", "S", "[1"), "not JSON"),
        (("a", "attribute_type", "S", "X"), "a: The types are"),
    ],
)
def test_a_wrong_condition_says_why(given: tuple[str, str, str, str], says: str) -> None:
    attribute, operator, kind, text = given
    with pytest.raises(Refused, match=says):
        condition_of(attribute, operator, kind, [text])


def test_paths_and_values() -> None:
    for text, path in {
        "a": ("a",),
        "a.b[0].c": ("a", "b", 0, "c"),
        '"a.b".c': ("a.b", "c"),
        '"say ""x"""': ('say "x"',),
        "a b": ("a b",),
    }.items():
        assert path_of(text) == path
        assert path_of(shown(path)) == path
    assert condition_of("a", "in", "N", ["1, 2.50"]).values == ({"N": "1"}, {"N": "2.50"})
    assert condition_of("a", "in", "S", ['["x,y", "z"]']).values == ({"S": "x,y"}, {"S": "z"})
    assert condition_of("a", "=", "JSON", ['{"SS": ["a"]}']).values == ({"SS": ["a"]},)
    deep = '{"M": {"x": {"L": [{"NS": ["1"]}, {"NULL": true}]}}}'
    assert condition_of("a", "=", "JSON", [deep]).values == (orjson.loads(deep),)
    assert condition_of("a", "=", "NULL", [""]).values == ({"NULL": True},)
    assert condition_of("a", "size >", "S", ["3"]).values == ({"N": "3"},)
