"""The conditions of a vector search: tests of top-level attributes, joined by AND, OR and NOT.

A condition is kept as its conjuncts, because one of them must compare the HASH of the index by `=`. Each leaf
reads one attribute, so that a search can run it once for each content that occurs. Which attributes there may
be is checked later, when the index is known.

Source: Developer Guide, "SearchConditionExpression reference for vector indexes": Boolean combinations of
conditions of the form `#name operator :value`, with IN, BETWEEN, OR and functions, on top-level attributes.
Older pages and the API reference know only `=` and AND. Which functions there are is [assumed]. A wrong
operator is reported before attributes that the schema lacks ([report] scylladb pull request 31181). "Invalid
operator" is the service's text for BETWEEN and IN from when it had neither ([report] measurements of August
2026), and [assumed] for what it lacks today. The words about attributes are [assumed].
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, TypeAlias

import msgspec

from hashrange.expressions.conditions import Test, compile_condition
from hashrange.expressions.lexer import ExpressionError
from hashrange.expressions.operands import condition_steps
from hashrange.expressions.parser import parse_condition
from hashrange.expressions.preparing import (
    CACHED_EXPRESSIONS_MAX,
    Compiled,
    NamesKey,
    Values,
    always,
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

PARAMETER: Final = "SearchConditionExpression"

INVALID_COMPARATOR: Final = f"Invalid comparator used in {PARAMETER}"
INVALID_OPERATOR: Final = f"Invalid operator used in {PARAMETER}"
_FUNCTIONS: Final = frozenset({"attribute_exists", "attribute_not_exists", "begins_with", "contains"})


class Leaf(msgspec.Struct, frozen=True):
    """A test of one attribute. `operands` are the placeholders of the values that it compares the attribute
    with; `comparator` is that of a comparison, "" for other tests."""

    attribute: str
    comparator: str
    operands: tuple[str, ...]
    run: Test


class Every(msgspec.Struct, frozen=True):
    """All of the parts."""

    parts: tuple[Choice, ...]


class Either(msgspec.Struct, frozen=True):
    """At least one of the parts."""

    parts: tuple[Choice, ...]


class Except(msgspec.Struct, frozen=True):
    """Not the part."""

    part: Choice


Choice: TypeAlias = Leaf | Every | Either | Except


class SearchCondition(msgspec.Struct, frozen=True):
    """The conjuncts of a condition, with the values of its request."""

    parts: tuple[Choice, ...]
    values: Values


EVERYTHING: Final = SearchCondition((), {})
"""The condition of a search that has none."""


def search_condition(text: str, substitutions: Substitutions) -> SearchCondition:
    """Prepare the condition of a search. Raises ValidationException."""
    compiled = prepare(_compile_cached, _compile, text, substitutions, PARAMETER)
    return SearchCondition(compiled.program, substitutions.values)


def leaves(choice: Choice) -> Iterator[Leaf]:
    """The tests of a condition, from left to right."""
    match choice:
        case Leaf():
            yield choice
        case Every(parts) | Either(parts):
            for part in parts:
                yield from leaves(part)
        case Except(part):
            yield from leaves(part)


def _compile(text: str, names_key: NamesKey) -> Compiled[tuple[Choice, ...]]:
    names = dict(names_key)
    tree = parse_condition(text)
    check_words(tree, CONDITION)
    steps, sound = judge(condition_steps(tree, names))
    parts: tuple[Choice, ...] = ()
    if sound:
        try:
            choice = _choice(tree, names)
            parts = choice.parts if isinstance(choice, Every) else (choice,)
            _check_distinct(parts)
        except ExpressionError as error:
            steps = (*steps, always(error))
    return Compiled(parts, placeholders(tree, names), steps)


_compile_cached = lru_cache(CACHED_EXPRESSIONS_MAX)(_compile)


def _check_distinct(parts: tuple[Choice, ...]) -> None:
    """Refuse two conjuncts that compare one attribute by `=`. [report] dynoxide's captures of August 2026;
    that several other conditions on an attribute are accepted is [assumed], as the guide has ranges."""
    equal = [part.attribute for part in parts if isinstance(part, Leaf) and part.comparator == "="]
    if len(set(equal)) < len(equal):
        raise ExpressionError(f"{PARAMETER} must only contain one condition per attribute")


def _choice(tree: ConditionTree, names: dict[str, str]) -> Choice:
    match tree:
        case And():
            return Every(tuple(_choice(part, names) for part in joined(tree, And)))
        case Or():
            return Either(tuple(_choice(part, names) for part in joined(tree, Or)))
        case Not(inner):
            return Except(_choice(inner, names))
        case Comparison(comparator, left, right):
            if isinstance(right, Path):
                left, right = right, left
            return _leaf(tree, names, left, (right,), comparator)
        case Between(operand, low, high):
            return _leaf(tree, names, operand, (low, high))
        case In(operand, choices):
            return _leaf(tree, names, operand, choices)
        case Call(function, arguments):
            if function not in _FUNCTIONS:
                raise ExpressionError(INVALID_OPERATOR)
            return _leaf(tree, names, arguments[0], arguments[1:])


def _leaf(
    tree: ConditionTree,
    names: dict[str, str],
    first: Operand,
    rest: tuple[Operand, ...],
    comparator: str = "",
) -> Leaf:
    if any(isinstance(operand, Call) for operand in (first, *rest)):
        raise ExpressionError(INVALID_OPERATOR)
    operands = tuple(operand.name for operand in rest if isinstance(operand, Value))
    if not isinstance(first, Path) or len(operands) < len(rest):
        raise ExpressionError(f"{PARAMETER} must compare an attribute with a value")
    if len(first.elements) > 1:
        raise ExpressionError(f"{PARAMETER} cannot have conditions on nested attributes")
    attribute = str(resolve(first, names)[0])
    return Leaf(attribute, comparator, operands, compile_condition(tree, names))
