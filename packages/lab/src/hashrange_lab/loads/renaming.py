"""Requests for tables of other names: the names in all places where a request names a table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from hashrange.operations.targets import name_in
from hashrange.partiql.tokens import STATEMENT

_BEFORE_A_TABLE: Final = frozenset({"FROM", "INTO", "UPDATE"})


def renamed(request: Any, names: Mapping[str, str]) -> Any:
    """A request for the tables of `names`, old to new. A table's ARN becomes its new name."""
    if not isinstance(request, dict):
        return request
    changed = dict(request)
    for member, given in request.items():
        if member == "TableName" and isinstance(given, str):
            changed[member] = names.get(name_in(given), given)
        elif member == "Statement" and isinstance(given, str):
            changed[member] = _statement(given, names)
        elif member == "RequestItems" and isinstance(given, dict):
            changed[member] = {names.get(name_in(table), table): wanted for table, wanted in given.items()}
        elif member in ("TransactItems", "Statements", "TransactStatements") and isinstance(given, list):
            changed[member] = [_member(content, names) for content in given]
    return changed


def _member(content: Any, names: Mapping[str, str]) -> Any:
    if isinstance(content, dict) and "Statement" not in content:
        return {action: renamed(request, names) for action, request in content.items()}
    return renamed(content, names)


def _statement(text: str, names: Mapping[str, str]) -> str:
    before = ""

    def token(match: re.Match[str]) -> str:
        nonlocal before
        word, earlier = match[0], before
        if match.lastgroup != "comment":
            before = word.upper()
        name = word[1:-1].replace('""', '"') if match.lastgroup == "quoted" else word
        if earlier not in _BEFORE_A_TABLE or name not in names:
            return word
        return '"' + names[name].replace('"', '""') + '"'

    return STATEMENT.sub(token, text)
