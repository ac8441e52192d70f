"""The names of the top-level attributes that a request uses: the condition key dynamodb:Attributes.

They are those of keys, of whole items, of every expression and of the parameters that came before
expressions. The request has been checked, so its expressions are well-formed, and a word in them that is
neither a function nor a keyword is an attribute.

Source: Developer Guide, "Using IAM policy conditions for fine-grained access control".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from hashrange.expressions.lexer import tokens

_EXPRESSIONS: Final = (
    "ProjectionExpression",
    "FilterExpression",
    "KeyConditionExpression",
    "ConditionExpression",
    "UpdateExpression",
)
_MAPS: Final = (
    *("Key", "Item", "AttributeUpdates", "Expected"),
    *("KeyConditions", "QueryFilter", "ScanFilter"),
)
_KEYWORDS: Final = frozenset({"AND", "OR", "NOT", "IN", "BETWEEN", "SET", "REMOVE", "ADD", "DELETE"})


def attributes_of(part: Mapping[str, Any]) -> set[str]:
    """The attributes that a request uses, or a part of it with the same members."""
    found: set[str] = set()
    for member in _MAPS:
        found.update(part.get(member) or ())
    found.update(part.get("AttributesToGet") or ())
    names = part.get("ExpressionAttributeNames") or {}
    for member in _EXPRESSIONS:
        if part.get(member):
            found.update(_of_expression(part[member], names))
    return found


def _of_expression(text: str, names: Mapping[str, str]) -> Iterator[str]:
    before = ""
    for token, following in pairwise(tokens(text)):
        if before != ".":
            if token.kind == "name":
                yield names.get(token.text, token.text)
            elif token.kind == "word" and following.text != "(" and token.text.upper() not in _KEYWORDS:
                yield token.text
        before = token.text
