"""Unit tests of the expression languages beyond what the golden scripts show: limits, caches, interfaces."""

from __future__ import annotations

from typing import Any

import pytest

from hashrange import expressions
from hashrange.errors import SerializationException, ValidationException
from hashrange.expressions import Substitutions, legacy
from hashrange.expressions.lexer import Cursor, tokens
from hashrange.expressions.reserved import RESERVED_WORDS
from hashrange.limits import EXPRESSION_BYTES_MAX

ONE = {"N": "1"}


def refusal(prepare: Any, *arguments: Any) -> str:
    with pytest.raises(ValidationException) as caught:
        prepare(*arguments)
    return str(caught.value.message)


def test_tokens_know_their_place() -> None:
    assert [(token.kind, token.text, token.start, token.stop) for token in tokens(" a<=:v_1 ! #2")] == [
        ("word", "a", 1, 2),
        ("symbol", "<=", 2, 4),
        ("value", ":v_1", 4, 8),
        ("other", "!", 9, 10),
        ("name", "#2", 11, 13),
        ("end", "<EOF>", 13, 13),
    ]


def test_a_cursor_stays_at_the_end() -> None:
    cursor = Cursor("a")
    assert cursor.accept_keyword("A")
    assert cursor.take().kind == cursor.take().kind == cursor.peek().kind == "end"


def test_there_are_573_reserved_words() -> None:
    # [docs] Developer Guide, "Reserved words in DynamoDB"
    assert len(RESERVED_WORDS) == 573


def test_an_expression_has_at_most_4096_bytes() -> None:
    text = "a = " + "b" * (EXPRESSION_BYTES_MAX - 4)
    expressions.condition(text, Substitutions())
    # [report] pynamodb issue 979, floci pull request 3447: only the filter of a Scan tells the size
    with pytest.raises(ValidationException) as caught:
        expressions.condition(text + "b", Substitutions(), "FilterExpression", tells_size=True)
    assert caught.value.message == (
        "Invalid FilterExpression: Expression size has exceeded the maximum allowed size; "
        "expression size: 4097"
    )
    assert refusal(expressions.condition, text + "b", Substitutions()) == (
        "Invalid ConditionExpression: Expression size has exceeded the maximum allowed size;"
    )
    assert refusal(expressions.projection, text + "b", Substitutions()) == (
        "Invalid ProjectionExpression: Expression size has exceeded the maximum allowed size;"
    )


def test_an_expression_has_at_most_300_operators() -> None:
    assert expressions.condition("NOT a=b" + " OR a=b" * 149, Substitutions()).test({})
    # [report] aws-sdk-js issue 3721, scylladb issue 14473: counting stops at 301
    assert refusal(expressions.condition, "a=b" + " OR a=b" * 200, Substitutions(), "FilterExpression") == (
        "Invalid FilterExpression: The expression contains too many operators; operator count: 301"
    )


def test_the_deepest_expressions_that_the_limits_allow_work() -> None:
    assert not expressions.condition("NOT (" * 299 + "a<>b" + ")" * 299, Substitutions()).test({})
    chain = "a<>b AND (" * 149 + "a<>b" + ")" * 149
    assert expressions.condition(chain, Substitutions()).test({})
    calls = "SET a = " + "if_not_exists(b," * 230 + "c" + ")" * 230
    assert expressions.update(calls, Substitutions()).apply({"c": ONE})["a"] == ONE


def test_in_takes_at_most_100_operands() -> None:
    values: dict[str, Any] = {f":v{number}": {"N": str(number)} for number in range(101)}
    assert expressions.condition(f"a IN ({', '.join(list(values)[:100])})", Substitutions(None, values)).test(
        {"a": {"N": "99"}}
    )
    # [report] reapit foundations issue 8255
    assert refusal(
        expressions.condition, f"a IN ({', '.join(values)})", Substitutions(None, values), "FilterExpression"
    ) == (
        "Invalid FilterExpression: The IN operator is provided with too many operands; "
        "number of operands: 101"
    )


def test_substitutions_have_at_most_2_mb() -> None:
    value = {"S": "x" * (2 * 1024 * 1024)}
    # [report] local
    assert refusal(Substitutions, None, {":v": value}) == "ExpressionAttributeValues exceeds max size"
    nearly = {":v": {"S": value["S"][2:]}}
    Substitutions(None, nearly)
    assert refusal(Substitutions, {"#a": "a"}, nearly) == (
        "Combined size of ExpressionAttributeNames and ExpressionAttributeValues exceeds max size"
    )


def test_a_placeholder_has_at_most_255_bytes() -> None:
    Substitutions({"#" + "a" * 254: "a"}, {":" + "a" * 254: {"S": "a"}})
    too_long = "contains invalid key: The expression attribute map contains a key that is too long;"
    # [report] local; extenddb pull request 181: before the syntax
    assert refusal(Substitutions, {"#" + "-" * 255: "a"}) == (
        f"ExpressionAttributeNames {too_long} size of key: 256"
    )
    assert refusal(Substitutions, None, {":" + "a" * 255: {}}) == f"ExpressionAttributeValues {too_long}"
    assert refusal(Substitutions, {"": "a"}) == (
        "ExpressionAttributeNames contains invalid key: The expression attribute map contains an empty key;"
    )


def test_all_keys_come_before_any_value() -> None:
    # [report] extenddb pull request 201 of one map, DynamoDB Local of both
    values: dict[str, dict[str, Any]] = {":a": {"N": "x"}, "b": {"S": "x"}}
    assert refusal(Substitutions, {"#a": ""}, values) == (
        'ExpressionAttributeValues contains invalid key: Syntax error; key: "b"'
    )
    assert refusal(Substitutions, {"#a": ""}, {}) == "ExpressionAttributeValues must not be empty"
    assert refusal(Substitutions, {"#a": "", "b": "a"}) == (
        'ExpressionAttributeNames contains invalid key: Syntax error; key: "b"'
    )
    assert refusal(Substitutions, {"#a": ""}, {":a": {}}).startswith("ExpressionAttributeValues contains")


def test_a_malformed_value_is_a_serialization_error() -> None:
    with pytest.raises(SerializationException):
        Substitutions(None, {":v": {"S": 1}})


def test_values_are_normalised_in_place() -> None:
    values = {":v": {"N": "01.0"}}
    assert Substitutions(None, values).values == {":v": {"N": "1"}}


def test_unused_placeholders_count_over_all_expressions() -> None:
    substitutions = Substitutions({"#a": "a", "#b": "b"}, {":v": ONE})
    expressions.condition("#a = :v", substitutions)
    assert refusal(substitutions.check_all_used) == (
        # [assumed]
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#b}"
    )
    expressions.projection("#b", substitutions)
    substitutions.check_all_used()


def test_a_cached_expression_serves_new_values_and_checks_them() -> None:
    text = "a < :v"
    assert expressions.condition(text, Substitutions(None, {":v": {"N": "2"}})).test({"a": ONE})
    assert not expressions.condition(text, Substitutions(None, {":v": {"N": "1"}})).test({"a": ONE})
    # [assumed]
    assert "operand type: BOOL" in refusal(
        expressions.condition, text, Substitutions(None, {":v": {"BOOL": True}})
    )
    assert "not defined" in refusal(expressions.condition, text, Substitutions())


def test_a_cached_expression_serves_other_names() -> None:
    values = {":v": ONE}
    assert expressions.condition("#a = :v", Substitutions({"#a": "a"}, values)).test({"a": ONE})
    assert expressions.condition("#a = :v", Substitutions({"#a": "b"}, values)).test({"b": ONE})


def test_names_too_big_to_cache_still_work() -> None:
    name = "n" * 20_000
    condition = expressions.condition("#a = :v", Substitutions({"#a": name}, {":v": ONE}))
    assert condition.test({name: ONE})


def test_attributes_are_the_top_level_names() -> None:
    substitutions = Substitutions({"#b": "b"}, {":v": ONE})
    assert expressions.condition("a.x = :v OR size(#b[0]) > c", substitutions).attributes == {"a", "b", "c"}
    assert expressions.update("SET a.x = c ADD #b :v", substitutions).attributes == {"a", "b"}
    projection = expressions.projection("a, #b", substitutions)
    assert projection.attributes == {"a", "b"}
    assert projection.is_top_level
    assert not expressions.projection("a.x", substitutions).is_top_level


def test_changed_paths_before_and_after() -> None:
    update = expressions.update("SET a = :v, m.x = :v REMOVE l[0], b", Substitutions(None, {":v": ONE}))
    before: Any = {
        "a": {"S": "old"},
        "b": {"S": "gone"},
        "l": {"L": [{"S": "0"}, {"S": "1"}]},
        "m": {"M": {"y": ONE}},
    }
    after = update.apply(before)
    assert update.changed_paths(before) == {
        "a": {"S": "old"},
        "b": {"S": "gone"},
        "l": {"L": [{"S": "0"}]},
    }
    # [report] paritysuite pull request 107, of RETURNING MODIFIED NEW: an index means the list as it is now
    assert update.changed_paths(after) == {
        "a": ONE,
        "l": {"L": [{"S": "1"}]},
        "m": {"M": {"x": ONE}},
    }


def test_nothing_is_where_the_last_element_was_removed() -> None:
    update = expressions.update("REMOVE l[1]", Substitutions())
    after = update.apply({"l": {"L": [ONE, ONE]}})
    assert update.changed_paths(after) == {}


def test_an_update_shares_no_container_it_changes() -> None:
    item: Any = {"m": {"M": {"l": {"L": [ONE]}}}}
    values: Any = {":v": {"N": "2"}}
    after = expressions.update("SET m.l[0] = :v", Substitutions(None, values)).apply(item)
    assert item == {"m": {"M": {"l": {"L": [{"N": "1"}]}}}}
    assert after == {"m": {"M": {"l": {"L": [{"N": "2"}]}}}}


def test_the_count_of_writes_is_left_to_operations() -> None:
    with pytest.raises(ValidationException, match=r"^Invalid UpdateExpression: The expression can not be"):
        expressions.update("", Substitutions())
    with pytest.raises(ValidationException, match=r"^Invalid ConditionExpression: The expression can not"):
        expressions.condition("", Substitutions())


def nested(levels: int) -> Any:
    value: Any = {"S": "x"}
    for _ in range(levels):
        value = {"L": [value]}
    return value


def test_an_update_nests_at_most_32_levels() -> None:
    item: Any = {"m": {"M": {}}}
    update = expressions.update("SET m.a = :v", Substitutions(None, {":v": nested(30)}))
    assert update.apply(item)["m"]["M"]["a"] == nested(30)
    update = expressions.update("SET m.a = :v", Substitutions(None, {":v": nested(31)}))
    # [report] dynoxide issue 110
    assert refusal(update.apply, item) == (
        "Nesting Levels have exceeded supported limits: "
        "Attributes in the item have nested levels beyond supported limit"
    )


def test_legacy_results_are_those_of_expressions() -> None:
    assert legacy.expected({}).test({"a": ONE})
    assert legacy.expected({"a": {"Exists": False}}).attributes == {"a"}
    assert legacy.attributes_to_get(["a"]).is_top_level
    update = legacy.attribute_updates({"a": {"Value": ONE}, "b": {"Action": "DELETE"}})
    assert update.attributes == {"a", "b"}
    assert update.changed_paths({"a": ONE, "c": ONE}) == {"a": ONE}


@pytest.mark.parametrize("function", [legacy.expected, legacy.filters])
@pytest.mark.parametrize(
    ("operator", "arguments", "holds"),
    [
        ("EQ", [{"N": "5"}], True),
        ("NE", [{"N": "5"}], False),
        ("LT", [{"N": "5"}], False),
        ("LE", [{"N": "5"}], True),
        ("GT", [{"N": "4"}], True),
        ("GE", [{"S": "4"}], False),
        ("IN", [{"N": "4"}, {"N": "5"}], True),
        ("BETWEEN", [{"N": "1"}, {"N": "5"}], True),
        ("NULL", [], False),
        ("NOT_NULL", [], True),
        ("CONTAINS", [{"N": "5"}], False),
        ("NOT_CONTAINS", [{"N": "5"}], True),
        ("BEGINS_WITH", [{"S": "5"}], False),
    ],
)
def test_legacy_operators(function: Any, operator: str, arguments: list[Any], holds: bool) -> None:
    condition = function({"a": {"ComparisonOperator": operator, "AttributeValueList": arguments}})
    assert condition.test({"a": {"N": "5"}}) is holds
    assert condition.test({}) is (operator in ("NE", "NULL"))
