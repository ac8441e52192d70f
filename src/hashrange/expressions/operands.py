"""The rules of operators and functions for their operands, checked before any item is read.

Rules: if the text alone breaks a rule, ExpressionError is raised at once. A rule about the type of a value
becomes a check, which runs with each request's values. Operands are checked before the operator or function
that they belong to. Attributes of items may have any type, so only values in the request can break a rule
here. Knows no evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from hashrange.expressions.lexer import ExpressionError
from hashrange.expressions.paths import check_apart, describe
from hashrange.expressions.preparing import Check, ValueCheck, Values, checked_path, checked_paths, resolve
from hashrange.expressions.tree import (
    Add,
    Arithmetic,
    Between,
    Call,
    Comparison,
    Delete,
    In,
    Node,
    Operand,
    Path,
    Remove,
    UpdateTree,
    Value,
    post_order,
    walk,
)
from hashrange.limits import EXPRESSION_IN_OPERANDS_MAX
from hashrange.values import AttributeValue, kind, order, value_size

CONDITION_FUNCTIONS: Final = frozenset(
    {"attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains", "size"}
)
UPDATE_FUNCTIONS: Final = frozenset({"if_not_exists", "list_append"})

ARGUMENT_COUNTS: Final = {
    "attribute_exists": 1,
    "attribute_not_exists": 1,
    "attribute_type": 2,
    "begins_with": 2,
    "contains": 2,
    "size": 1,
    "if_not_exists": 2,
    "list_append": 2,
}
_ORDERED: Final = frozenset({"S", "N", "B"})
_TEXTUAL: Final = frozenset({"S", "B"})
_SIZED: Final = frozenset({"S", "B", "SS", "NS", "BS", "L", "M"})
_NUMBER: Final = frozenset({"N"})
_LIST: Final = frozenset({"L"})
_STRING: Final = frozenset({"S"})
_ADDABLE: Final = frozenset({"N", "SS", "NS", "BS"})
_SETS: Final = frozenset({"SS", "NS", "BS"})
_LONG_TYPES: Final = {
    "S": "STRING",
    "N": "NUMBER",
    "B": "BINARY",
    "BOOL": "BOOLEAN",
    "NULL": "NULL",
    "L": "LIST",
    "M": "MAP",
    "SS": "STRING_SET",
    "NS": "NUMBER_SET",
    "BS": "BINARY_SET",
}
# In the order of DynamoDB's own message.
_TYPE_NAMES: Final = ("B", "NULL", "SS", "BOOL", "L", "BS", "N", "NS", "S", "M")
_ANY_TYPE: Final = f"{{{','.join(_TYPE_NAMES)}}}"


def condition_steps(tree: Node, names: Mapping[str, str]) -> Iterator[Check]:
    """The checks of a condition's placeholders and operands, from left to right."""
    for node in post_order(tree):
        yield from _steps(node, names, condition_rules)


def update_steps(tree: UpdateTree, names: Mapping[str, str]) -> Iterator[Check]:
    """The checks of an update's placeholders and operands: first of its paths, then of its actions from the
    last to the first, as in DynamoDB Local.
    """
    actions = tree.actions[::-1]
    check_apart(checked_paths([action.path for action in actions], names))
    for action in actions:
        if not isinstance(action, Remove):
            for node in post_order(action.value):
                yield from _steps(node, names, update_rules)
            yield from update_rules(action, names)


def _steps(
    node: Node, names: Mapping[str, str], rules: Callable[[Node, Mapping[str, str]], Iterable[ValueCheck]]
) -> Iterator[Check]:
    match node:
        case Path():
            checked_path(node, names)
        case Value(name):
            yield name
        case _:
            yield from rules(node, names)


def condition_checks(tree: Node, names: Mapping[str, str]) -> list[ValueCheck]:
    """The operand rules of a condition or filter whose placeholders were checked before."""
    return [check for node in post_order(tree) for check in condition_rules(node, names)]


def condition_rules(node: Node, names: Mapping[str, str]) -> Iterator[ValueCheck]:
    """The rules of one node of a condition, whose operands were checked before."""
    match node:
        case Call():
            yield from _call_checks(node, names)
        case Comparison(operator, left, right):
            _check_distinct(operator, left, (right,), names)
            if operator not in ("=", "<>"):
                yield from _type_checks(operator, (left, right), _ORDERED)
        case Between(operand, low, high):
            yield from _type_checks("BETWEEN", (operand, low, high), _ORDERED)
            _check_distinct("BETWEEN", operand, (low, high), names)
            yield from _bounds_checks(low, high)
        case In(operand, choices):
            if len(choices) > EXPRESSION_IN_OPERANDS_MAX:
                raise ExpressionError(
                    f"The IN operator is provided with too many operands; number of operands: {len(choices)}"
                )
            _check_distinct("IN", operand, choices, names)
        case _:
            pass


def _check_operands_are_no_conditions(*operands: Operand) -> None:
    """A statement may compare the result of a condition function, but not pass it to another function."""
    for operand in operands:
        if isinstance(operand, Call) and operand.function in CONDITION_FUNCTIONS - {"size"}:
            raise misplaced(operand.function)


def misplaced(function: str) -> ExpressionError:
    """The error for a function of this language in a wrong place."""
    return ExpressionError(
        f"The function is not allowed to be used this way in an expression; function: {function}"
    )


def _call_checks(node: Call, names: Mapping[str, str]) -> Iterator[ValueCheck]:
    function, arguments = node.function, node.arguments
    _check_count(node)
    _check_operands_are_no_conditions(*arguments)
    first = arguments[0]
    if function in ("attribute_exists", "attribute_not_exists"):
        _check_path(function, first)
        return
    if function == "size":
        yield from _type_checks(function, (first,), _SIZED)
        return
    second = arguments[1]
    _check_distinct(function, first, (second,), names)
    if function == "attribute_type":
        if isinstance(second, Path):
            # The second operand must be a string that names a type, but an attribute may have any type.
            raise _wrong_type(function, _ANY_TYPE)
        yield from _type_checks(function, (second,), _STRING)
        yield from _type_name_checks(second)
    if function == "begins_with":
        yield from _type_checks(function, arguments, _TEXTUAL)
    # `contains` accepts operands of all types; for a type without members it is false.


def update_checks(tree: UpdateTree) -> list[ValueCheck]:
    """The operand rules of an update whose placeholders were checked before."""
    return [check for node in walk(tree) for check in update_rules(node, {})]


def update_rules(node: Node, names: Mapping[str, str]) -> Iterator[ValueCheck]:
    """The rules of one node of an update, whose operands were checked before."""
    match node:
        case Call(function, arguments):
            _check_count(node)
            if function == "if_not_exists":
                _check_path(function, arguments[0])
                _check_distinct(function, arguments[0], arguments[1:], names)
            else:
                yield from _type_checks(function, arguments, _LIST)
        case Arithmetic(operator, left, right):
            yield from _type_checks(operator, (left, right), _NUMBER)
        case Add(_, value):
            yield _clause_check("ADD", value, _ADDABLE)
        case Delete(_, value):
            yield _clause_check("DELETE", value, _SETS)
        case _:
            pass


def _clause_check(clause: str, value: Value, allowed: frozenset[str]) -> ValueCheck:
    def check(values: Values) -> None:
        operand_type = kind(values[value.name])
        if operand_type not in allowed:
            raise ExpressionError(
                f"Incorrect operand type for operator or function; operator: {clause}, "
                f"operand type: {_LONG_TYPES[operand_type]}, typeSet: ALLOWED_FOR_{clause}_OPERAND"
            )

    return check


def _check_count(node: Call) -> None:
    if len(node.arguments) != ARGUMENT_COUNTS[node.function]:
        raise ExpressionError(
            "Incorrect number of operands for operator or function; "
            f"operator or function: {node.function}, number of operands: {len(node.arguments)}"
        )


def _check_path(function: str, operand: Operand) -> None:
    if not isinstance(operand, Path):
        raise ExpressionError(
            f"Operator or function requires a document path; operator or function: {function}"
        )


def _check_distinct(operator: str, first: Operand, rest: Iterable[Operand], names: Mapping[str, str]) -> None:
    if not isinstance(first, Path):
        return
    path = resolve(first, names)
    if any(isinstance(other, Path) and resolve(other, names) == path for other in rest):
        raise ExpressionError(
            "The first operand must be distinct from the remaining operands for this operator or function; "
            f"operator: {operator}, first operand: {describe(path)}"
        )


def _wrong_type(operator: str, operand_type: str) -> ExpressionError:
    return ExpressionError(
        "Incorrect operand type for operator or function; "
        f"operator or function: {operator}, operand type: {operand_type}"
    )


def _type_checks(operator: str, operands: Iterable[Operand], allowed: frozenset[str]) -> Iterator[ValueCheck]:
    """Checks that every value among `operands` has one of the `allowed` types."""
    for operand in operands:
        if isinstance(operand, Value):
            yield _type_check(operator, operand.name, allowed)
        else:
            result_type = _result_type(operand)
            if result_type is not None and result_type not in allowed:
                raise _wrong_type(operator, result_type)


def _result_type(operand: Operand) -> str | None:
    """The type of an operator's or function's result; None if it depends on an item or a value."""
    match operand:
        case Arithmetic() | Call("size"):
            return "N"
        case Call("list_append"):
            return "L"
        case Call(function) if function in CONDITION_FUNCTIONS:
            return "BOOL"
        case _:
            return None


def _type_check(operator: str, name: str, allowed: frozenset[str]) -> ValueCheck:
    def check(values: Values) -> None:
        operand_type = kind(values[name])
        if operand_type not in allowed:
            raise _wrong_type(operator, operand_type)

    return check


def _type_name_checks(operand: Operand) -> list[ValueCheck]:
    if not isinstance(operand, Value):
        return []
    name = operand.name

    def check(values: Values) -> None:
        type_name = values[name].get("S")
        if type_name not in _TYPE_NAMES:
            raise ExpressionError(
                f"Invalid attribute type name found; type: {type_name}, valid types: {_ANY_TYPE}"
            )

    return [check]


def _bounds_checks(low: Operand, high: Operand) -> list[ValueCheck]:
    if not (isinstance(low, Value) and isinstance(high, Value)):
        return []
    lower, upper = low.name, high.name

    def check(values: Values) -> None:
        check_bounds(values[lower], values[upper])

    return [check]


def check_bounds(low: AttributeValue, high: AttributeValue) -> None:
    """Refuse the bounds of a BETWEEN if their types differ, or if the lower bound is above the upper one."""
    if kind(low) != kind(high):
        rule = "same data type for lower and upper bounds"
    elif order(low, high) == 1:
        rule = "upper bound to be greater than or equal to lower bound"
    else:
        return
    raise ExpressionError(
        f"The BETWEEN operator requires {rule}; "
        f"lower bound operand: {_show_value(low)}, upper bound operand: {_show_value(high)}"
    )


def _show_value(value: AttributeValue) -> str:
    name = kind(value)
    shown = value[name]
    if name == "B":
        size = value_size(value)
        shown = f"java.nio.HeapByteBuffer[pos=0 lim={size} cap={size}]"
    return f"AttributeValue: {{{name}:{shown}}}"
