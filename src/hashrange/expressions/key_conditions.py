"""Key conditions: the conditions that a Query can turn into a range of keys.

Rules: a key condition is a condition of a restricted form: comparisons of top-level attributes with values,
joined by AND, one for each attribute. Whether the attributes are key attributes, and whether the comparison
fits the key, is checked later, when the table's schema is known.
Source: Developer Guide, "Key condition expressions for the Query operation".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from hashrange.errors import RequestViolation
from hashrange.expressions.lexer import ExpressionError
from hashrange.expressions.operands import condition_steps
from hashrange.expressions.parser import parse_condition
from hashrange.expressions.preparing import (
    CACHED_EXPRESSIONS_MAX,
    Compiled,
    NamesKey,
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
from hashrange.values import AttributeValue

INDEXABLE: Final = frozenset({"=", "<", "<=", ">", ">=", "BETWEEN", "begins_with"})


class KeyComparison(NamedTuple):
    """A condition on one key attribute.

    `operator` is one of `INDEXABLE`, or a legacy one that no key condition can have; `operands` are its
    values.
    """

    attribute: str
    operator: str
    operands: tuple[AttributeValue, ...]


_Term: TypeAlias = tuple[str, str, tuple[str, ...]]
"""Attribute, operator and the placeholders of the operands."""

class _Misfit(NamedTuple):
    """Why a valid condition is not a key condition."""

    message: str


_Terms: TypeAlias = tuple[_Term, ...] | _Misfit

_MIRRORED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class KeyCondition:
    """A valid condition. Only `comparisons` checks that it is a key condition, because the service looks for
    unused placeholders before that ([report] paritysuite; so does Local).
    """

    __slots__ = ("_terms", "_values")

    def __init__(self, terms: _Terms, values: Mapping[str, AttributeValue]) -> None:
        self._terms = terms
        self._values = values

    def comparisons(self) -> list[KeyComparison]:
        """The comparisons in the order of the text. Raises ValidationException."""
        terms, values = self._terms, self._values
        if isinstance(terms, _Misfit):
            raise RequestViolation(terms.message)
        return [
            KeyComparison(attribute, operator, tuple([values[name] for name in operands]))
            for attribute, operator, operands in terms
        ]


def key_condition(text: str, substitutions: Substitutions) -> KeyCondition:
    """Prepare a key condition. Raises ValidationException."""
    compiled = prepare(_compile_cached, _compile, text, substitutions, "KeyConditionExpression")
    return KeyCondition(compiled.program, substitutions.values)


def _compile(text: str, names_key: NamesKey) -> Compiled[_Terms]:
    names = dict(names_key)
    tree = parse_condition(text)
    check_words(tree, CONDITION)
    # Check the rules of conditions before those of key conditions: DynamoDB Local reports wrong operands
    # first.
    steps, sound = judge(condition_steps(tree, names))
    terms: _Terms = ()
    if sound:
        try:
            terms = tuple(_term_list(tree, names))
        except ExpressionError as error:
            prefix = "Invalid KeyConditionExpression: " if error.prefixed else ""
            terms = _Misfit(prefix + error.message)
    return Compiled(terms, placeholders(tree, names), steps)


_compile_cached = lru_cache(CACHED_EXPRESSIONS_MAX)(_compile)


def _term_list(tree: ConditionTree, names: dict[str, str]) -> list[_Term]:
    terms = [_term(node, names) for node in joined(tree, And)]
    if len({attribute for attribute, _, _ in terms}) < len(terms):
        raise ExpressionError("KeyConditionExpressions must only contain one condition per key")
    return terms


def _term(node: ConditionTree, names: dict[str, str]) -> _Term:
    match node:
        case Comparison(operator, left, right) if operator != "<>":
            if isinstance(right, Path) and not isinstance(left, Path):
                operator, left, right = _MIRRORED[operator], right, left
            return _simple_term(operator, (left, right), names)
        case Between(operand, low, high):
            return _simple_term("BETWEEN", (operand, low, high), names)
        case Call("begins_with", arguments):
            return _simple_term("begins_with", arguments, names)
        case Comparison(operator):
            raise _invalid_operator(operator)
        case Call(function):
            raise _invalid_operator(function)
        case Or() | Not() | In() | And():
            raise _invalid_operator(type(node).__name__.upper())


def _invalid_operator(operator: str) -> ExpressionError:
    return ExpressionError(f"Invalid operator used in KeyConditionExpression: {operator}", prefixed=False)


def _simple_term(operator: str, operands: Sequence[Operand], names: dict[str, str]) -> _Term:
    """The term of one comparison. The number and places of its attributes are checked before its other
    operands: [report] dynalite's recordings."""
    places = [place for place, operand in enumerate(operands) if isinstance(operand, Path)]
    if len(places) > 1:
        raise _misplaced("Multiple attribute names used in one condition", prefixed=True)
    if places and places[0] != 0:
        raise _misplaced(f"{operator} operator must have the key attribute as its first operand")
    values = []
    attribute = None
    for operand in operands:
        match operand:
            case Path(elements):
                if len(elements) > 1:
                    raise ExpressionError(
                        "KeyConditionExpressions cannot have conditions on nested attributes"
                    )
                attribute = str(resolve(operand, names)[0])
            case Value(name):
                values.append(name)
            case _:
                raise ExpressionError(
                    "KeyConditionExpressions cannot contain nested operations", prefixed=False
                )
    if attribute is None:
        raise _misplaced("No key attribute specified")
    return attribute, operator, tuple(values)


def _misplaced(complaint: str, *, prefixed: bool = False) -> ExpressionError:
    return ExpressionError(f"Invalid condition in KeyConditionExpression: {complaint}", prefixed=prefixed)
