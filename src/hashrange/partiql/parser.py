"""Parses texts to statements, by recursive descent.

    select ::= SELECT ( '*' | path { ',' path } ) FROM table [ '.' index ] [ WHERE condition ]
               [ ORDER BY name [ ASC | DESC ] { ',' name [ ASC | DESC ] } ]
    insert ::= INSERT INTO table VALUE '{' string ':' value { ',' string ':' value } '}'
    update ::= ( UPDATE table changes [ WHERE condition ] | FROM table [ WHERE condition ] changes )
               [ RETURNING ( ALL | MODIFIED ) ( OLD | NEW ) '*' ]
    changes ::= { SET path '=' sum { ',' path '=' sum } | REMOVE path }
    delete ::= DELETE FROM table [ WHERE condition ] [ RETURNING ALL OLD '*' ]
    exists ::= EXISTS '(' select ')'

Source: Developer Guide, "PartiQL statements for DynamoDB". Wording: observed on DynamoDB Local, unless a
comment names another source. Clauses of SQL that DynamoDB does not have are refused by name. Knows no
table's schema.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from hashrange.expressions.lexer import ExpressionError, Token
from hashrange.expressions.tree import (
    Action,
    Add,
    Call,
    ConditionTree,
    Delete,
    Path,
    Remove,
    Set,
    Value,
)
from hashrange.partiql.conditions import IS_TYPE, SET_FUNCTIONS, ExpressionParser
from hashrange.partiql.literals import EMPTY_NAME, begins_literal, members
from hashrange.partiql.statements import Constants, DeleteFrom, Exists, Insert, Select, Statement, Update
from hashrange.partiql.tokens import StatementCursor, malformed
from hashrange.values import AttributeValue, kind

SETS: Final = ("SS", "NS", "BS")
_TABLE_NAME: Final = re.compile(r"[a-zA-Z0-9_.\-]{3,255}")
_BAD_TABLE_NAME: Final = (
    "Table name should be within the length [3, 255] and only contain 'a-z', 'A-Z', '0-9', '-', '_', '.'."
)
_ONE_SOURCE: Final = "Only select from a single table or index is supported."
_NO_ALIASES: Final = "Aliasing is not supported"
_STRUCT: Final = (
    "Unsupported format in item expression. Please use struct format {...} to express item values for insert "
    "statement."
)
_ONE_TABLE: Final = "FROM clause may only contain a single table name in data manipulation statements"
_ON_INDEX: Final = "This operation is not supported on an index"
_VALUES: Final = ("<<", "[", "{")
_NO_SOURCES: Final = ("string", "number", "parameter", "symbol")
_RETURNING: Final = "Expected '*' after ( MODIFIED | ALL ) ( NEW | OLD ) in RETURNING clause"


class _Tail(NamedTuple):
    """The end of a statement that writes: its WHERE and RETURNING clauses."""

    where: ConditionTree | None
    returning: str | None


def parse(text: str) -> Statement:
    """The statement of a text. Raises ExpressionError."""
    cursor = StatementCursor(text)
    parser = _Parser(cursor)
    statement = parser.statement()
    cursor.accept(";")
    if cursor.token.kind != "end":
        raise malformed("Unexpected token after expression")
    return statement


class _Parser:
    __slots__ = ("cursor", "expressions")

    def __init__(self, cursor: StatementCursor) -> None:
        self.cursor = cursor
        self.expressions = ExpressionParser(cursor)

    def statement(self) -> Statement:
        cursor = self.cursor
        if cursor.accept_keyword("SELECT"):
            return self.select()
        if cursor.accept_keyword("INSERT"):
            return self.insert()
        if cursor.accept_keyword("UPDATE"):
            return self.update()
        opening = cursor.token
        if cursor.accept_keyword("FROM"):
            return self.update_from(opening)
        if cursor.accept_keyword("DELETE"):
            return self.delete()
        if cursor.accept_keyword("EXISTS"):
            cursor.demand("(")
            cursor.demand_keyword("SELECT")
            select = self.select()
            cursor.demand(")")
            return Exists(select)
        if cursor.keyword() in ("CREATE", "DROP") and cursor.peek().text.upper() in ("TABLE", "INDEX"):
            raise ExpressionError(
                f"Unsupported operation: {cursor.token.text.title()}{cursor.peek().text.title()}"
            )
        self._refuse_type_test()
        raise malformed("Expected data manipulation")

    def _refuse_type_test(self) -> None:
        """Refuse an expression like `x IS INT4` in place of a statement, if it names a type of SQL.

        [report] paritysuite's captures to October 2026
        """
        if not self.cursor.at_name() or self.cursor.peek().text.upper() != "IS":
            return
        try:
            self.expressions.where()
        except ExpressionError as error:
            if error.message == IS_TYPE:
                raise

    def select(self) -> Select:
        refusal = self._count()
        paths = self._projection() if refusal is None else None
        self.cursor.demand_keyword("FROM")
        table, index = self._source()
        if refusal is not None and index is None:
            raise refusal
        where = self._where()
        self._refuse_clause("GROUP", "GROUP BY", "HAVING", "LET")
        order = self._order()
        self._refuse_clause("LIMIT")
        refused = None if refusal is None else refusal.message
        return Select(table, index, paths, where, order, *self._values(), refused)

    def _count(self) -> ExpressionError | None:
        """Take `COUNT(*)`, if it is here, and return its error, because the errors of an index's key come
        first.

        [report] paritysuite, captures of 2026.
        """
        cursor = self.cursor
        following = [cursor.peek(ahead).text.upper() for ahead in range(1, 5)]
        if cursor.keyword() != "COUNT" or following != ["(", "*", ")", "FROM"]:
            return None
        error = _unexpected_path(cursor.place(cursor.token))
        for _ in range(4):
            cursor.take()
        return error

    def _values(self) -> tuple[Constants, int]:
        return tuple(self.expressions.constants), self.expressions.parameters

    def _refuse_clause(self, *clauses: str) -> None:
        keyword = self.cursor.keyword()
        if keyword not in clauses:
            return
        self.cursor.take()
        if keyword in ("LIMIT", "HAVING"):
            place = self.cursor.place(self.cursor.token)
            raise ExpressionError(f"Unsupported clause: {keyword} {place}")
        raise ExpressionError(f"Unsupported clause: {'GROUP BY' if keyword == 'GROUP' else keyword}")

    def _projection(self) -> tuple[Path, ...] | None:
        cursor = self.cursor
        if cursor.keyword() == "DISTINCT":
            raise ExpressionError("Unsupported token in expression: DISTINCT")
        if cursor.keyword() in ("VALUE", "PIVOT"):
            raise ExpressionError("Select projection doesn't support value or pivot keywords")
        if cursor.accept("*"):
            return None
        paths = [self._projected()]
        while cursor.accept(","):
            paths.append(self._projected())
        return tuple(paths)

    def _projected(self) -> Path:
        cursor = self.cursor
        token = cursor.token
        if not cursor.at_name() or cursor.peek().text == "(":
            if token.kind in ("string", "number", "parameter") or cursor.peek().text == "(":
                raise _unexpected_path(cursor.place(token))
            cursor.refuse_term()
        try:
            path = self.expressions.path()
        except ExpressionError as error:
            if error.message.startswith("Unpivot"):
                raise ExpressionError("Changing item's hierarchy while reading isn't supported") from None
            raise
        token = cursor.token
        if cursor.keyword() == "AS" or cursor.at_name():
            raise ExpressionError(_NO_ALIASES)
        if token.kind == "symbol" and token.text not in (",", ")", "]", "}", ">>", ":", ";", "."):
            raise _unexpected_path(cursor.place(token))
        return path

    def _source(self) -> tuple[str, str | None]:
        names = self._source_names()
        if "" in names:
            raise ExpressionError(EMPTY_NAME)
        _check_names(names)
        return names[0], names[1] if len(names) > 1 else None

    def _source_names(self) -> list[str]:
        cursor = self.cursor
        if cursor.at("("):
            self._skip_parentheses()
            raise ExpressionError("Unexpected from source")
        if cursor.token.kind in ("string", "number", "parameter") or (
            cursor.token.kind == "symbol" and cursor.token.text in ("<<", "[", "{")
        ):
            raise ExpressionError("Unexpected from source")
        if cursor.at_end():
            raise malformed("Unexpected term")
        names = self._dotted_names()
        if cursor.at(",") or cursor.keyword() in ("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "OUTER", "CROSS"):
            raise ExpressionError(_ONE_SOURCE)
        if cursor.keyword() in ("AS", "AT", "BY"):
            raise ExpressionError(_NO_ALIASES)
        if cursor.at_name():
            cursor.take()
            if cursor.at_name():
                raise malformed("Unexpected token after expression")
            raise ExpressionError(_NO_ALIASES)
        if len(names) > 2:
            raise ExpressionError("A path may contain at most 2 components in the FROM clause")
        return names

    def _dotted_names(self) -> list[str]:
        names = [self.cursor.name()]
        while self.cursor.accept("."):
            names.append(self.cursor.name())
        return names

    def _skip_parentheses(self) -> None:
        """Skip everything up to the closing parenthesis, which must be there."""
        depth = 0
        while True:
            token = self.cursor.token
            if token.kind == "end":
                raise malformed("Expected RIGHT_PAREN")
            if token.kind == "symbol":
                depth += {"(": 1, ")": -1}.get(token.text, 0)
            self.cursor.take()
            if not depth:
                return

    def _where(self) -> ConditionTree | None:
        return self.expressions.where() if self.cursor.accept_keyword("WHERE") else None

    def _order(self) -> tuple[tuple[str, bool], ...]:
        cursor = self.cursor
        if not cursor.accept_keyword("ORDER"):
            return ()
        cursor.demand_keyword("BY")
        order: list[tuple[str, bool]] = []
        while True:
            path = self.expressions.path()
            if len(path.elements) > 1:
                raise ExpressionError("Argument to ORDER BY must be of type VariableReference. Type: PATH")
            descends = cursor.accept_keyword("DESC") or (cursor.accept_keyword("ASC") and False)
            order.append((str(path.elements[0]), descends))
            if not cursor.accept(","):
                return tuple(order)

    def insert(self) -> Insert:
        cursor = self.cursor
        cursor.demand_keyword("INTO")
        table = self._inserted_into()
        if cursor.keyword() == "SELECT" or (cursor.token.kind == "symbol" and cursor.token.text in _VALUES):
            raise ExpressionError("Unsupported operation: InsertOp")
        if cursor.at("("):
            raise malformed("Unexpected keyword")
        cursor.demand_keyword("VALUE")
        token = cursor.token
        if not cursor.accept("{"):
            is_word = token.kind == "word" and not cursor.at_name() and not begins_literal(cursor)
            if is_word or token.kind in ("end", "other", "ion"):
                cursor.refuse_term()
            raise ExpressionError(f"{_STRUCT} {cursor.place(token)}")
        item: list[tuple[str, Value]] = [(name, self.expressions.value()) for name in members(cursor, ())]
        if cursor.keyword() == "RETURNING":
            raise ExpressionError("RETURNING is not supported in INSERT")
        return Insert(table, tuple(item), *self._values())

    def _inserted_into(self) -> str:
        """The table of an INSERT."""
        self._demand_path()
        cursor = self.cursor
        if cursor.token.kind in _NO_SOURCES:
            return self._table(_ONE_TABLE)
        names = self._dotted_names()
        if cursor.keyword() in ("AS", "AT", "BY") or cursor.at_name():
            raise malformed("Unexpected token after expression")
        if len(names) > 1:
            raise ExpressionError(_ONE_TABLE)
        _check_names(names)
        return names[0]

    def _table(self, on_index: str) -> str:
        table, index = self._source()
        if index is not None:
            raise ExpressionError(on_index)
        return table

    def _demand_path(self) -> None:
        """Refuse a token that cannot be the table's name, with which the rest of a change begins."""
        cursor = self.cursor
        if cursor.at_end() or (cursor.token.kind == "word" and not cursor.at_name()):
            raise malformed("Expected identifier for simple path")

    def update(self) -> Update:
        self._demand_path()
        table = self._table(_ON_INDEX)
        actions = self._actions()
        tail = self._tail()
        return Update(table, actions, tail.where, tail.returning, *self._values())

    def update_from(self, opening: Token) -> Update:
        """An UPDATE that begins with its table: [report] paritysuite, captures of 2026."""
        table = self._table(_ON_INDEX)
        where = self._where()
        if self.cursor.keyword() == "INSERT":
            place = self.cursor.place(opening)
            raise ExpressionError(f"Unsupported FROM ... WHERE ... clause in INSERT statement. {place}")
        actions = self._actions()
        returning = self._returning()
        return Update(table, actions, where, returning, *self._values(), from_first=True)

    def _actions(self) -> tuple[Action, ...]:
        cursor = self.cursor
        actions: list[Action] = []
        while True:
            if cursor.accept_keyword("SET"):
                actions.append(self._assignment())
                while cursor.accept(","):
                    actions.append(self._assignment())
            elif cursor.accept_keyword("REMOVE"):
                actions.append(Remove(self.expressions.path()))
            else:
                break
        if not actions:
            raise malformed("Expected data manipulation")
        return tuple(actions)

    def _assignment(self) -> Action:
        path = self.expressions.path()
        self.cursor.demand("=")
        call, argument = self.cursor.token, self.cursor.peek(2)
        operand = self.expressions.sum()
        if isinstance(operand, Call) and operand.function in SET_FUNCTIONS:
            if len(operand.arguments) != 2:
                raise ExpressionError(
                    f"{operand.function.upper()} must have exactly two arguments {self.cursor.place(call)}"
                )
            # DynamoDB Local does not show the place of an argument that is a path of several parts.
            place = self.cursor.place(argument) if len(path.elements) == 1 else ""
            return _set_change(path, operand, self.expressions.constants, self.cursor.place(call), place)
        return Set(path, operand)

    def delete(self) -> DeleteFrom:
        self.cursor.demand_keyword("FROM")
        self._demand_path()
        table = self._table(_ON_INDEX)
        tail = self._tail()
        if tail.returning not in (None, "ALL OLD"):
            raise ExpressionError(
                f"Invalid returning clause: RETURNING {tail.returning} *. Only RETURNING ALL OLD * is "
                "allowed in DELETE statements."
            )
        return DeleteFrom(table, tail.where, tail.returning, *self._values())

    def _tail(self) -> _Tail:
        where = self._where()
        return _Tail(where, self._returning())

    def _returning(self) -> str | None:
        cursor = self.cursor
        if not cursor.accept_keyword("RETURNING"):
            return None
        which, when = cursor.keyword(), cursor.peek().text.upper()
        if which not in ("ALL", "MODIFIED") or when not in ("OLD", "NEW"):
            raise malformed("Expected ( MODIFIED | ALL ) ( NEW | OLD ) in RETURNING clause")
        cursor.take()
        cursor.take()
        if not cursor.accept("*"):
            raise ExpressionError(_RETURNING)
        if cursor.at(","):
            raise ExpressionError("Invalid syntax with multiple returning elements in RETURNING clause")
        return f"{which} {when}"


def _unexpected_path(place: str) -> ExpressionError:
    return ExpressionError(f"Unexpected path component {place}")


def _check_names(names: Sequence[str]) -> None:
    if not all(map(_TABLE_NAME.fullmatch, names)):
        raise ExpressionError(_BAD_TABLE_NAME)


def _set_change(
    path: Path, call: Call, constants: Sequence[AttributeValue], call_place: str, place: str
) -> Action:
    """`path = set_add(path, value)` and `set_delete`, which are the ADD and DELETE of an update.

    Messages about the first argument show `call_place`, the place of the function's name ([report]
    paritysuite, captures of 2026); messages about the second argument show `place`.
    """
    name = call.function.upper()
    first, second = call.arguments
    if first != path:
        raise ExpressionError(f"The first argument to {name} must equal the assignment value {call_place}")
    is_literal = isinstance(second, Value) and second.name[0] == ":"
    if not isinstance(second, Value) or (is_literal and kind(constants[int(second.name[1:])]) not in SETS):
        raise ExpressionError(not_a_set(name, place))
    return Add(path, second) if name == "SET_ADD" else Delete(path, second)


def not_a_set(function: str, place: str = "") -> str:
    """The message for a second argument that is not a set."""
    return f"The second argument to {function} must be a value with type SET {place}".rstrip()
