"""Literals: turns tokens into attribute values.

    'text'  12.5  -1  TRUE  NULL  [value, …]  {'name': value, …}  <<'a', 'b'>>  <<1, 2>>

Rules: sets hold strings or numbers and are never empty; names in maps are strings, each once; parameters
stand for whole values only, never inside a literal. There are no binary literals.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from hashrange.errors import INVALID, RequestViolation
from hashrange.expressions.lexer import ExpressionError, Token
from hashrange.limits import NESTING_LEVELS_MAX
from hashrange.partiql.tokens import StatementCursor, malformed
from hashrange.values import AttributeValue, numbers

_WORDS: Final[dict[str, AttributeValue]] = {
    "TRUE": {"BOOL": True},
    "FALSE": {"BOOL": False},
    "NULL": {"NULL": True},
}
_OPENING: Final = ("[", "{", "<<")
EMPTY_NAME: Final = "Path component cannot be an empty string"
_KEY_KINDS: Final = {
    "parameter": "Parameter",
    "number": "INT",
    "word": "VariableReference",
    "quoted": "VariableReference",
}
LiteralPath: TypeAlias = tuple[str | int, ...]
"""The place of a literal in an outer one: names and list indexes. Messages write it in two ways."""
_BAG_TYPES: Final = "Unsupported data type in Bag. DynamoDB only supports either numbers or strings in bags"


def begins_literal(cursor: StatementCursor) -> bool:
    """Whether a literal begins at the current token."""
    token = cursor.token
    if token.kind in ("string", "number"):
        return True
    if token.kind == "symbol":
        return token.text in _OPENING or (token.text in "+-" and cursor.peek().kind == "number")
    return token.kind == "word" and token.text.upper() in _WORDS


def literal(cursor: StatementCursor, where: LiteralPath = (), level: int = 1) -> AttributeValue:
    """Take the literal at the cursor. `where` is its place in an outer literal, for messages."""
    if level > NESTING_LEVELS_MAX + 1:
        raise ExpressionError("Nesting Levels have exceeded supported limits")
    token = cursor.token
    if not begins_literal(cursor):
        raise _unsupported(cursor, where)
    if token.kind == "string":
        return {"S": text_of(cursor.take())}
    if token.kind == "word":
        return dict(_WORDS[cursor.take().text.upper()])
    if cursor.accept("["):
        return {"L": _list(cursor, where, level)}
    if cursor.accept("{"):
        names = members(cursor, where, token)
        return {"M": {name: literal(cursor, (*where, name), level + 1) for name in names}}
    if cursor.accept("<<"):
        return _bag(cursor, where)
    return {"N": _number(cursor, where)}


def _key(where: LiteralPath) -> str:
    """A place as messages about types write it: `root.a.0`."""
    return ".".join(["root", *map(str, where)])


def _path(where: LiteralPath) -> str:
    """A place as messages about numbers write it: `root.a[0]`."""
    return "root" + "".join([f"[{part}]" if isinstance(part, int) else f".{part}" for part in where])


def text_of(token: Token) -> str:
    """The text of a string token, without its quotes."""
    return token.text[1:-1].replace("''", "'")


def members(cursor: StatementCursor, where: LiteralPath, opening: Token | None = None) -> _Members:
    """The names of a map, one at a time, after its opening brace; the caller takes the value of each.

    The error for a repeated name shows the place of the name, or the place of `opening` if it is given.
    """
    return _Members(cursor, where, opening)


class _Members:
    """Iterates over the names of a map literal."""

    __slots__ = ("_cursor", "_opening", "_seen", "_where")

    def __init__(self, cursor: StatementCursor, where: LiteralPath, opening: Token | None) -> None:
        self._cursor = cursor
        self._opening = opening
        self._where = where
        self._seen: set[str] = set()

    def __iter__(self) -> _Members:
        return self

    def __next__(self) -> str:
        cursor = self._cursor
        if not self._seen:
            if cursor.accept("}"):
                raise StopIteration
        elif not cursor.accept(","):
            _refuse_operator(cursor, self._where)
            cursor.demand("}")
            raise StopIteration
        token = cursor.token
        if token.kind != "string":
            kind = _KEY_KINDS.get(token.kind)
            if kind is None:
                raise malformed("Unexpected term")
            raise ExpressionError(
                f"Tuple keys must be of type String. Actual type: {kind} under {_key(self._where)} "
                f"{cursor.place(token)}"
            )
        name = text_of(cursor.take())
        if not name:
            raise ExpressionError(EMPTY_NAME)
        if name in self._seen:
            raise ExpressionError(
                f"Duplicate keys in tuple. Key: {name} under {_key(self._where)} "
                f"{cursor.place(self._opening or token)}"
            )
        self._seen.add(name)
        cursor.demand(":")
        return name


def _list(cursor: StatementCursor, where: LiteralPath, level: int) -> list[AttributeValue]:
    elements: list[AttributeValue] = []
    if cursor.accept("]"):
        return elements
    while True:
        elements.append(literal(cursor, (*where, len(elements)), level + 1))
        if not cursor.accept(","):
            _refuse_operator(cursor, where)
            cursor.demand("]")
            return elements


def _bag(cursor: StatementCursor, where: LiteralPath) -> AttributeValue:
    if cursor.at(">>"):
        raise ExpressionError("Empty bags are not supported")
    members: list[AttributeValue] = []
    while True:
        token = cursor.token
        if not begins_literal(cursor) or token.kind == "word" or token.text in _OPENING:
            raise ExpressionError(f"{_BAG_TYPES} {cursor.place(token)}")
        members.append(literal(cursor, (*where, len(members))))
        if not cursor.accept(","):
            break
    cursor.demand(">>")
    kinds = {kind for element in members for kind in element}
    if len(kinds) > 1:
        raise ExpressionError(_BAG_TYPES)
    kind = kinds.pop()
    texts = [element[kind] for element in members]
    if len(set(texts)) < len(texts):
        raise ExpressionError(f"{INVALID}Input collection [{', '.join(texts)}] contains duplicates.")
    return {f"{kind}S": texts}


def _refuse_operator(cursor: StatementCursor, where: LiteralPath) -> None:
    """Refuse an operator after a literal, with its own error."""
    token = cursor.token
    if token.kind == "symbol" and token.text in ("+", "-", "*", "/", "%", "||"):
        place = f"under key {_key(where)} {cursor.place(token)}"
        raise ExpressionError(f"Unsupported data type: {token.text} {place}")


def _number(cursor: StatementCursor, where: LiteralPath) -> str:
    sign = cursor.take().text if cursor.token.kind == "symbol" else ""
    try:
        return numbers.normalise(sign + cursor.take().text)
    except RequestViolation as error:
        # [report] paritysuite: the newer text, with the place.
        raise ExpressionError(f"{error.newer} under {_path(where)}") from None


def _unsupported(cursor: StatementCursor, where: LiteralPath) -> ExpressionError:
    token = cursor.token
    if token.kind in ("end", "other") or (token.kind == "symbol" and token.text not in "(+-"):
        return malformed("Unexpected term")
    shown = token.text
    if token.kind == "parameter":
        shown = "Parameter"
    elif token.kind in ("word", "quoted") and where and cursor.peek().text != "(":
        shown = "VariableReference"
    elif token.kind == "quoted":
        shown = shown[1:-1]
    elif shown.upper() == "MISSING":
        shown = "MISSING"
    return ExpressionError(f"Unsupported data type: {shown} under key {_key(where)} {cursor.place(token)}")
