"""Checks the words of an expression: reserved words, list indexes, and the places of functions.

Rules: the text alone decides, and the first wrong word of the text is reported, before any placeholder is
checked (observed on DynamoDB Local). Knows no names, values or items.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from hashrange.expressions.lexer import ExpressionError
from hashrange.expressions.operands import CONDITION_FUNCTIONS, UPDATE_FUNCTIONS, misplaced
from hashrange.expressions.preparing import unknown_function
from hashrange.expressions.reserved import RESERVED, RESERVED_WORDS
from hashrange.expressions.tree import And, Call, Node, Not, Or, Path, Set, UpdateTree, children

# [report] floci issue 3073: measured.
_INDEX_MAX: Final = 2**32 - 2


class Language(NamedTuple):
    """The functions that may be a whole condition or the whole right-hand side of SET, and the functions
    that may be an operand. `foreign` are the functions of the other language."""

    name: str
    whole: frozenset[str]
    inner: frozenset[str]
    foreign: frozenset[str]


CONDITION: Final = Language(
    "a condition", CONDITION_FUNCTIONS - {"size"}, frozenset({"size"}), UPDATE_FUNCTIONS
)
UPDATE: Final = Language("an update", UPDATE_FUNCTIONS, frozenset({"if_not_exists"}), CONDITION_FUNCTIONS)


def check_words(tree: Node, language: Language) -> None:
    """Raise ExpressionError for the first word in a place where it is not allowed."""
    for node, is_whole in _places(tree):
        if isinstance(node, Path):
            _check_elements(node)
        elif isinstance(node, Call):
            _check_function(node.function, language, is_whole=is_whole)


def _places(tree: Node) -> Iterator[tuple[Node, bool]]:
    """The nodes in the order of the text, and whether each is a whole condition or the whole right-hand side
    of SET."""
    stack: list[tuple[Node, bool]] = [(tree, True)]
    while stack:
        node, is_whole = stack.pop()
        yield node, is_whole
        below = isinstance(node, And | Or | Not | Set | UpdateTree)
        stack.extend((child, below) for child in reversed(children(node)))


def _check_elements(path: Path) -> None:
    for element in path.elements:
        if isinstance(element, int):
            if element > _INDEX_MAX:
                raise ExpressionError(f"List index is not within the allowable range; index: [{element}]")
        elif element[0] != "#" and element.upper() in RESERVED_WORDS:
            raise ExpressionError(RESERVED + element)


def _check_function(function: str, language: Language, *, is_whole: bool) -> None:
    if function not in language.whole and function not in language.inner:
        raise unknown_function(function, language.foreign, language.name)
    if function not in (language.whole if is_whole else language.inner):
        raise misplaced(function)
