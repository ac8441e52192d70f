"""The conditions of a vector search: equality of top-level attributes with values, joined by AND.

Whether the attributes are in the search schema of an index is checked later, when the index is known.
Source: API reference, SearchVectors; Developer Guide, "Creating and searching vector indexes". A wrong
operator is reported before attributes that the schema lacks ([report] scylladb pull request 31181). The words
about attributes are [assumed].
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from hashrange.expressions.lexer import ExpressionError
from hashrange.expressions.operands import condition_steps
from hashrange.expressions.parser import parse_condition
from hashrange.expressions.preparing import (
    CACHED_EXPRESSIONS_MAX,
    Compiled,
    NamesKey,
    always,
    judge,
    placeholders,
    prepare,
    resolve,
)
from hashrange.expressions.substitutions import Substitutions
from hashrange.expressions.tree import And, Comparison, ConditionTree, Path, Value, joined
from hashrange.expressions.words import CONDITION, check_words
from hashrange.values import AttributeValue

PARAMETER: Final = "SearchConditionExpression"


def search_condition(text: str, substitutions: Substitutions) -> dict[str, AttributeValue]:
    """The values that a search demands, by attribute. Raises ValidationException."""
    compiled = prepare(_compile_cached, _compile, text, substitutions, PARAMETER)
    return {attribute: substitutions.values[name] for attribute, name in compiled.program}


_Terms = tuple[tuple[str, str], ...]


def _compile(text: str, names_key: NamesKey) -> Compiled[_Terms]:
    names = dict(names_key)
    tree = parse_condition(text)
    check_words(tree, CONDITION)
    steps, sound = judge(condition_steps(tree, names))
    terms: _Terms = ()
    if sound:
        try:
            terms = tuple(_term_list(tree, names))
        except ExpressionError as error:
            steps = (*steps, always(error))
    return Compiled(terms, placeholders(tree, names), steps)


_compile_cached = lru_cache(CACHED_EXPRESSIONS_MAX)(_compile)


def _term_list(tree: ConditionTree, names: dict[str, str]) -> list[tuple[str, str]]:
    nodes = joined(tree, And)
    comparisons = [node for node in nodes if isinstance(node, Comparison) and node.operator == "="]
    if len(comparisons) < len(nodes):
        raise ExpressionError(f"Invalid comparator used in {PARAMETER}")
    terms = [_term(comparison, names) for comparison in comparisons]
    if len({attribute for attribute, _ in terms}) < len(terms):
        raise ExpressionError(f"{PARAMETER} must only contain one condition per attribute")
    return terms


def _term(comparison: Comparison, names: dict[str, str]) -> tuple[str, str]:
    left, right = comparison.left, comparison.right
    if isinstance(right, Path):
        left, right = right, left
    if not isinstance(left, Path) or not isinstance(right, Value):
        raise ExpressionError(f"{PARAMETER} must compare an attribute with a value")
    if len(left.elements) > 1:
        raise ExpressionError(f"{PARAMETER} cannot have conditions on nested attributes")
    return str(resolve(left, names)[0]), right.name
