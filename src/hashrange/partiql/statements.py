"""The statements that texts parse to, and the printer that turns a statement back into text.

Rules: statements are values. Their conditions, updates and paths are trees of `expressions`, so that the
same code compiles them; names in them are attribute names, not placeholders. A literal is the value `:n`,
the n-th of the statement's `constants`; a parameter is the value `?n`, for the n-th question mark.
`parse(show(statement)) == statement` for every statement that the parser returns.
Knows nothing of tables, of items, or of the effect of a statement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from hashrange.expressions.tree import (
    Action,
    Add,
    And,
    Arithmetic,
    Between,
    Call,
    Comparison,
    ConditionTree,
    Delete,
    In,
    Node,
    Not,
    Or,
    Path,
    Remove,
    Set,
    Value,
)
from hashrange.values import AttributeValue

Constants: TypeAlias = tuple[AttributeValue, ...]


@dataclass(frozen=True, slots=True)
class Select:
    """`paths` are None for `*`; `order` are pairs of an attribute and whether it descends.

    `refusal` is the error of `COUNT(*)` on an index; an error of the index's key is raised before it.
    """

    table: str
    index: str | None
    paths: tuple[Path, ...] | None
    where: ConditionTree | None
    order: tuple[tuple[str, bool], ...]
    constants: Constants
    parameters: int
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Insert:
    """`item` are pairs of attribute and value."""

    table: str
    item: tuple[tuple[str, Value], ...]
    constants: Constants
    parameters: int


@dataclass(frozen=True, slots=True)
class Update:
    """`returning` is two words, for example "ALL OLD", or None. `from_first`: the statement begins with FROM,
    not with UPDATE."""

    table: str
    actions: tuple[Action, ...]
    where: ConditionTree | None
    returning: str | None
    constants: Constants
    parameters: int
    from_first: bool = False


@dataclass(frozen=True, slots=True)
class DeleteFrom:
    """`returning` is "ALL OLD" or None."""

    table: str
    where: ConditionTree | None
    returning: str | None
    constants: Constants
    parameters: int


@dataclass(frozen=True, slots=True)
class Exists:
    """A condition check, in a transaction."""

    select: Select

    @property
    def table(self) -> str:
        return self.select.table

    @property
    def constants(self) -> Constants:
        return self.select.constants

    @property
    def parameters(self) -> int:
        return self.select.parameters


Statement: TypeAlias = Select | Insert | Update | DeleteFrom | Exists


def show(statement: Statement) -> str:
    """The text of a statement."""
    match statement:
        case Exists(select):
            return f"EXISTS({show(select)})"
        case Insert(table, item):
            members = ", ".join(f"{_string(name)}: {_node(value, statement)}" for name, value in item)
            return f"INSERT INTO {_name(table)} VALUE {{{members}}}"
        case Select():
            return _show_select(statement)
        case Update(table, actions):
            changes = " ".join(_action(action, statement) for action in actions)
            returning = f" RETURNING {statement.returning} *" if statement.returning else ""
            if statement.from_first:
                return f"FROM {_name(table)}{_where(statement)} {changes}{returning}"
            head = f"UPDATE {_name(table)} {changes}"
        case DeleteFrom(table):
            head = f"DELETE FROM {_name(table)}"
    returning = f" RETURNING {statement.returning} *" if statement.returning else ""
    return f"{head}{_where(statement)}{returning}"


def _show_select(select: Select) -> str:
    columns = "COUNT(*)" if select.refusal is not None else "*"
    if select.paths is not None:
        columns = ", ".join(_node(path, select) for path in select.paths)
    source = _name(select.table) + (f".{_name(select.index)}" if select.index is not None else "")
    order = ", ".join(f"{_name(name)} {'DESC' if descends else 'ASC'}" for name, descends in select.order)
    return f"SELECT {columns} FROM {source}{_where(select)}" + (f" ORDER BY {order}" if order else "")


def _where(statement: Select | Update | DeleteFrom) -> str:
    return "" if statement.where is None else f" WHERE {_node(statement.where, statement)}"


def _action(action: Action, statement: Statement) -> str:
    match action:
        case Set(path, value):
            return f"SET {_node(path, statement)} = {_node(value, statement)}"
        case Remove(path):
            return f"REMOVE {_node(path, statement)}"
        case Add(path, value) | Delete(path, value):
            target = _node(path, statement)
            function = "set_add" if isinstance(action, Add) else "set_delete"
            return f"SET {target} = {function}({target}, {_node(value, statement)})"


def _node(node: Node, statement: Statement) -> str:
    """The text of a condition or operand, with parentheses where the text could be parsed in another way."""

    def text(part: Node) -> str:
        return _node(part, statement)

    def group(part: Node) -> str:
        return f"({text(part)})" if isinstance(part, And | Or | Not | Arithmetic) else text(part)

    match node:
        case Path(elements):
            return _path(elements)
        case Value(name):
            return "?" if name[0] == "?" else _literal(statement.constants[int(name[1:])])
        case Call(function, arguments):
            return f"{function}({', '.join(map(text, arguments))})"
        case Arithmetic(operator, left, right) | Comparison(operator, left, right):
            return f"{group(left)} {operator} {group(right)}"
        case Between(operand, low, high):
            return f"{text(operand)} BETWEEN {text(low)} AND {text(high)}"
        case In(operand, choices):
            return f"{text(operand)} IN [{', '.join(map(text, choices))}]"
        case Not():
            negations = 0
            while isinstance(node, Not):
                negations += 1
                node = node.condition
            return f"{'NOT (' * negations}{text(node)}{')' * negations}"
        case And(left, right):
            return f"{text(left) if isinstance(left, And) else group(left)} AND {group(right)}"
        case Or(left, right):
            return f"{text(left) if isinstance(left, Or) else group(left)} OR {group(right)}"
    raise AssertionError(f"no part of a condition: {node}")


def _path(elements: tuple[str | int, ...]) -> str:
    parts = [f"[{element}]" if isinstance(element, int) else f".{_name(element)}" for element in elements]
    return "".join(parts).removeprefix(".")


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _literal(value: AttributeValue) -> str:
    for kind, content in value.items():
        match kind:
            case "S":
                return _string(content)
            case "N":
                return str(content)
            case "BOOL":
                return "TRUE" if content else "FALSE"
            case "NULL":
                return "NULL"
            case "L":
                return f"[{', '.join(map(_literal, content))}]"
            case "M":
                members = (f"{_string(name)}: {_literal(member)}" for name, member in content.items())
                return f"{{{', '.join(members)}}}"
            case "SS":
                return f"<<{', '.join(map(_string, content))}>>"
            case "NS":
                return f"<<{', '.join(content)}>>"
    raise AssertionError(f"no literal: {value}")
