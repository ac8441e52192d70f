"""Condition and filter expressions: compile a tree to a function of an item.

Rules: if an operand is missing, or has a type that the operator does not compare, a comparison is false
(`<>` is true). AND and OR stop at the first operand that decides. A compiled condition takes the request's
values as an argument, so that it serves every request with the same text and names.
Source: Developer Guide, "Comparison operator and function reference".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

import msgspec

from hashrange import pace
from hashrange.expressions.memo import (
    BRIEF_CHARS_MAX,
    LARGE,
    contains_in_list,
    forgetting,
    memo_of,
    same,
    text_size,
    with_memo,
)
from hashrange.expressions.operands import condition_steps
from hashrange.expressions.parser import parse_condition
from hashrange.expressions.paths import reader
from hashrange.expressions.preparing import (
    CACHED_EXPRESSIONS_MAX,
    Compiled,
    NamesKey,
    Values,
    judge,
    placeholders,
    prepare,
    resolve,
)
from hashrange.expressions.substitutions import Substitutions
from hashrange.expressions.tree import (
    And,
    Between,
    Call,
    Comparison,
    ConditionTree,
    In,
    Not,
    Operand,
    Or,
    Path,
    Value,
    joined,
)
from hashrange.expressions.words import CONDITION, check_words
from hashrange.values import AttributeValue, Item, decode_binary, equal, order, value_size

Test: TypeAlias = Callable[[Item, Values], bool]
Read: TypeAlias = Callable[[Item, Values], "AttributeValue | None"]


class Condition(msgspec.Struct, frozen=True):
    """A condition with the values of its request; `attributes` are the top-level names that it reads."""

    run: Test
    values: Values
    attributes: frozenset[str]

    def test(self, item: Item) -> bool:
        """Whether `item` meets the condition; an absent item is an empty one."""
        return self.run(item, self.values)


def condition(
    text: str,
    substitutions: Substitutions,
    parameter: str = "ConditionExpression",
    *,
    tells_size: bool = False,
) -> Condition:
    """Prepare a condition or, with `parameter="FilterExpression"`, a filter. Raises ValidationException.

    `tells_size` as in `preparing.prepare`.
    """
    compiled = prepare(_compile_cached, _compile, text, substitutions, parameter, tells_size)
    values, program = substitutions.values, compiled.program
    if parameter == "FilterExpression":
        values = with_memo(values)
    elif len(text) > BRIEF_CHARS_MAX:
        values, program = with_memo(values), forgetting(program)
    return Condition(program, values, compiled.attributes)


def _compile(text: str, names_key: NamesKey) -> Compiled[Test]:
    names = dict(names_key)
    tree = parse_condition(text)
    check_words(tree, CONDITION)
    steps, sound = judge(condition_steps(tree, names))
    program = compile_condition(tree, names) if sound else _never
    return Compiled(program, placeholders(tree, names), steps)


_compile_cached = lru_cache(CACHED_EXPRESSIONS_MAX)(_compile)


def _never(item: Item, values: Values) -> bool:
    return False


def compile_condition(tree: ConditionTree, names: dict[str, str]) -> Test:
    """The function that evaluates a checked tree."""
    match tree:
        case And():
            return _all([compile_condition(part, names) for part in joined(tree, And)])
        case Or():
            return _any([compile_condition(part, names) for part in joined(tree, Or)])
        case Not(inner):
            run = compile_condition(inner, names)
            return lambda item, values: not run(item, values)
        case Comparison(operator, left, right):
            test = _compare(operator, _operand(left, names), _operand(right, names))
            return _once((left, right), test)
        case Between(operand, low, high):
            test = _between(_operand(operand, names), _operand(low, names), _operand(high, names))
            return _once((operand, low, high), test)
        case In(operand, choices):
            constants = [choice.name for choice in choices if isinstance(choice, Value)]
            computed = [_operand(choice, names) for choice in choices if not isinstance(choice, Value)]
            return _once((operand, *choices), _in(_operand(operand, names), constants, computed))
        case Call(function, arguments):
            test = _FUNCTIONS[function](*[_operand(argument, names) for argument in arguments])
            return _once(arguments, test)


def _operand(operand: Operand, names: dict[str, str]) -> Read:
    match operand:
        case Path():
            return reader(resolve(operand, names))
        case Value(name):
            return lambda item, values: values[name]
        case Call("size", (argument,)):
            return _size(_operand(argument, names))
        case Call(function, arguments) if function in _FUNCTIONS:
            # Only statements have it: `attribute_exists(a) = true`.
            return _truth(_FUNCTIONS[function](*[_operand(argument, names) for argument in arguments]))
        case _:
            raise AssertionError(f"no operand: {operand}")  # condition_checks refuses the others


def _truth(test: Test) -> Read:
    return lambda item, values: {"BOOL": test(item, values)}


def _all(tests: list[Test]) -> Test:
    if len(tests) == 2:
        first, second = tests
        return lambda item, values: first(item, values) and second(item, values)

    def run(item: Item, values: Values) -> bool:
        for test in tests:
            pace.point()
            if not test(item, values):
                return False
        return True

    return run


def _any(tests: list[Test]) -> Test:
    def run(item: Item, values: Values) -> bool:
        for test in tests:
            pace.point()
            if test(item, values):
                return True
        return False

    return run


def _once(operands: Sequence[Operand], test: Test) -> Test:
    """`test`; if all its operands are constants, it runs once for each request."""
    if not all(map(_is_constant, operands)):
        return test
    node = object()

    def run(item: Item, values: Values) -> bool:
        memo = memo_of(values)
        if memo is None:
            return test(item, values)
        verdict = memo.verdict(node)
        if verdict is None:
            verdict = test(item, values)
            memo.keep_verdict(node, verdict)
        return verdict

    return run


def _is_constant(operand: Operand) -> bool:
    while isinstance(operand, Call) and len(operand.arguments) == 1:
        operand = operand.arguments[0]
    return isinstance(operand, Value)


_ACCEPTED = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (1, 0)}


def _compare(operator: str, left: Read, right: Read) -> Test:
    if operator in ("=", "<>"):
        is_equality = operator == "="

        def run_equal(item: Item, values: Values) -> bool:
            left_value = left(item, values)
            right_value = right(item, values)
            if left_value is None or right_value is None:
                return not is_equality
            if "S" in left_value or "N" in left_value:
                return (left_value == right_value) is is_equality
            return _same(left_value, right_value, item, values) is is_equality

        return run_equal
    accepted = _ACCEPTED[operator]

    def run(item: Item, values: Values) -> bool:
        left_value = left(item, values)
        right_value = right(item, values)
        if left_value is None or right_value is None:
            return False
        return _order(left_value, right_value, item, values) in accepted

    return run


def _between(operand: Read, low: Read, high: Read) -> Test:
    def run(item: Item, values: Values) -> bool:
        value = operand(item, values)
        lower = low(item, values)
        upper = high(item, values)
        if value is None or lower is None or upper is None:
            return False
        return _order(lower, value, item, values) in (-1, 0) and _order(value, upper, item, values) in (-1, 0)

    return run


def _order(first: AttributeValue, second: AttributeValue, item: Item, values: Values) -> int | None:
    if "B" in first and "B" in second and len(first["B"]) + len(second["B"]) > LARGE:
        memo = memo_of(values)
        if memo is not None:
            left, right = memo.binary(first, item), memo.binary(second, item)
            return int(left > right) - int(left < right)
    return order(first, second)


def _same(first: AttributeValue, second: AttributeValue, item: Item, values: Values) -> bool:
    for name, content in first.items():
        if name in ("L", "M", "SS", "NS", "BS") and len(content) > LARGE:
            memo = memo_of(values)
            if memo is not None:
                return same(first, second, item, memo)
    return first == second or equal(first, second)


def _in(operand: Read, constants: list[str], computed_choices: list[Read]) -> Test:
    node = object()

    def run(item: Item, values: Values) -> bool:
        value = operand(item, values)
        if value is None:
            return False
        memo = memo_of(values)
        forms = memo.choices(node, constants, values) if memo is not None and len(constants) > 2 else None
        if memo is not None and forms is not None:
            if memo.canonical(value, item) in forms:
                return True
        else:
            for name in constants:
                pace.point()
                if _same(value, values[name], item, values):
                    return True
        for choice in computed_choices:
            pace.point()
            computed = choice(item, values)
            if computed is not None and _same(value, computed, item, values):
                return True
        return False

    return run


def _exists(operand: Read) -> Test:
    return lambda item, values: operand(item, values) is not None


def _not_exists(operand: Read) -> Test:
    return lambda item, values: operand(item, values) is None


def _type(operand: Read, type_name: Read) -> Test:
    def run(item: Item, values: Values) -> bool:
        value = operand(item, values)
        type_value = type_name(item, values)
        return value is not None and type_value is not None and type_value.get("S") in value

    return run


def _begins_with(operand: Read, prefix: Read) -> Test:
    def run(item: Item, values: Values) -> bool:
        value = operand(item, values)
        start = prefix(item, values)
        return value is not None and start is not None and begins_with(value, start)

    return run


def _contains(operand: Read, member: Read) -> Test:
    def run(item: Item, values: Values) -> bool:
        value = operand(item, values)
        part = member(item, values)
        if value is None or part is None:
            return False
        if "S" not in value:
            memo = memo_of(values)
            if memo is not None:
                for name, content in value.items():
                    if name == "B":
                        return "B" in part and memo.binary(part, item) in memo.binary(value, item)
                    if name in ("L", "SS", "NS", "BS") and len(content) > LARGE:
                        is_member = memo.has(value, part, item)
                        if is_member is not None:
                            return is_member
        return contains(value, part)

    return run


def begins_with(value: AttributeValue, prefix: AttributeValue) -> bool:
    """Whether a string or binary begins with another; false for all other types."""
    if "S" in value and "S" in prefix:
        return bool(value["S"].startswith(prefix["S"]))
    if "B" in value and "B" in prefix:
        # Decode only as many characters as the prefix needs: four characters are three bytes.
        begin: str = prefix["B"]
        return decode_binary(value["B"][: len(begin)]).startswith(decode_binary(begin))
    return False


def contains(value: AttributeValue, part: AttributeValue) -> bool:
    """Whether a string or binary has a part, or a set or list has a member; false for all other types."""
    for name, content in value.items():
        if name == "S":
            return "S" in part and part["S"] in content
        if name == "L":
            return contains_in_list(content, part)
        if name == "B":
            return "B" in part and decode_binary(part["B"]) in decode_binary(content)
        if name in ("SS", "NS", "BS"):
            return name[0] in part and part[name[0]] in content
    return False


def _size(operand: Read) -> Read:
    def run(item: Item, values: Values) -> AttributeValue | None:
        value = operand(item, values)
        if value is None:
            return None
        text = value.get("S")
        if text is not None and len(text) > LARGE:
            memo = memo_of(values)
            if memo is not None:
                return memo.size(value, item)
        return size(value)

    return run


def size(value: AttributeValue) -> AttributeValue | None:
    """The number that `size` gives: UTF-16 units, bytes or members; None for types without a size."""
    for name, content in value.items():
        if name == "S":
            return {"N": str(text_size(content))}
        if name == "B":
            return {"N": str(value_size(value))}
        if name in ("L", "M", "SS", "NS", "BS"):
            return {"N": str(len(content))}
    return None


_FUNCTIONS: dict[str, Callable[..., Test]] = {
    "attribute_exists": _exists,
    "attribute_not_exists": _not_exists,
    "attribute_type": _type,
    "begins_with": _begins_with,
    "contains": _contains,
}
