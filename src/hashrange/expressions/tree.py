"""The trees that expressions parse to, and the printer that turns a tree back into text.

Rules: trees are values (frozen, compared by content). Placeholders stay as they were written (`#n`, `:v`)
and are resolved when a tree is compiled. Parentheses have no node; the printer adds them where the tree
needs them. `parse(show(tree)) == tree` for every tree that a parser returns.
Knows nothing of items, of values, or of the purpose of an expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from hashrange import pace


class Path(msgspec.Struct, frozen=True):
    """A document path: names (`#n` where a placeholder was written) and list indexes."""

    elements: tuple[str | int, ...]


class Value(msgspec.Struct, frozen=True):
    """A value placeholder, with its colon."""

    name: str


class Call(msgspec.Struct, frozen=True):
    """A function and its arguments."""

    function: str
    arguments: tuple[Operand, ...]


class Arithmetic(msgspec.Struct, frozen=True):
    """`left + right` or `left - right`, in a SET action."""

    operator: str
    left: Operand
    right: Operand


class Comparison(msgspec.Struct, frozen=True):
    """`left operator right`; the operator is one of = <> < <= > >=."""

    operator: str
    left: Operand
    right: Operand


class Between(msgspec.Struct, frozen=True):
    """`operand BETWEEN low AND high`."""

    operand: Operand
    low: Operand
    high: Operand


class In(msgspec.Struct, frozen=True):
    """`operand IN (choices)`."""

    operand: Operand
    choices: tuple[Operand, ...]


class Not(msgspec.Struct, frozen=True):
    condition: ConditionTree


class And(msgspec.Struct, frozen=True):
    left: ConditionTree
    right: ConditionTree


class Or(msgspec.Struct, frozen=True):
    left: ConditionTree
    right: ConditionTree


class Set(msgspec.Struct, frozen=True):
    """`path = value`."""

    path: Path
    value: Operand


class Remove(msgspec.Struct, frozen=True):
    """`path`, in a REMOVE clause."""

    path: Path


class Add(msgspec.Struct, frozen=True):
    """`path value`, in an ADD clause."""

    path: Path
    value: Value


class Delete(msgspec.Struct, frozen=True):
    """`path value`, in a DELETE clause."""

    path: Path
    value: Value


class UpdateTree(msgspec.Struct, frozen=True):
    """The actions in the order written; the actions of one clause stand together."""

    actions: tuple[Action, ...]


class ProjectionTree(msgspec.Struct, frozen=True):
    paths: tuple[Path, ...]


Operand: TypeAlias = Path | Value | Call | Arithmetic
ConditionTree: TypeAlias = Comparison | Between | In | Not | And | Or | Call
Action: TypeAlias = Set | Remove | Add | Delete
Node: TypeAlias = Operand | ConditionTree | Action | UpdateTree | ProjectionTree


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below `node`, from left to right."""
    match node:
        case Path() | Value():
            return ()
        case Call(_, arguments):
            return arguments
        case Arithmetic(_, left, right) | Comparison(_, left, right) | And(left, right) | Or(left, right):
            return (left, right)
        case Between(operand, low, high):
            return (operand, low, high)
        case In(operand, choices):
            return (operand, *choices)
        case Not(condition):
            return (condition,)
        case Set(path, value) | Add(path, value) | Delete(path, value):
            return (path, value)
        case Remove(path):
            return (path,)
        case UpdateTree(actions):
            return actions
        case ProjectionTree(paths):
            return paths


def walk(node: Node) -> Iterator[Node]:
    """`node` and all nodes below it, in the order of the text, without recursion."""
    stack = [node]
    while stack:
        pace.step()
        current = stack.pop()
        yield current
        stack.extend(reversed(children(current)))


def post_order(node: Node) -> list[Node]:
    """`node` and all nodes below it from left to right, each after those below it, without recursion."""
    nodes = []
    stack = [node]
    while stack:
        pace.step()
        current = stack.pop()
        nodes.append(current)
        stack.extend(children(current))
    nodes.reverse()
    return nodes


def joined(tree: ConditionTree, connective: type[And] | type[Or]) -> list[ConditionTree]:
    """The operands of a chain of one connective, in the order of the text, without recursion."""
    parts: list[ConditionTree] = []
    stack: list[ConditionTree] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, And | Or) and isinstance(node, connective):
            stack += [node.right, node.left]
        else:
            parts.append(node)
    return parts


def show_path(elements: tuple[str | int, ...]) -> str:
    """The path as an expression writes it: ``a.b[1]``."""
    parts = [f"[{element}]" if isinstance(element, int) else f".{element}" for element in elements]
    return "".join(parts).removeprefix(".")


def show(node: Node) -> str:
    """The text of a tree."""
    match node:
        case Path(elements):
            return show_path(elements)
        case Value(name):
            return name
        case Call(function, arguments):
            return f"{function}({', '.join(map(show, arguments))})"
        case Arithmetic(operator, left, right):
            return f"{_grouped(left, Arithmetic)} {operator} {_grouped(right, Arithmetic)}"
        case Comparison(operator, left, right):
            return f"{show(left)} {operator} {show(right)}"
        case Between(operand, low, high):
            return f"{show(operand)} BETWEEN {show(low)} AND {show(high)}"
        case In(operand, choices):
            return f"{show(operand)} IN ({', '.join(map(show, choices))})"
        case Not(condition):
            return f"NOT {_grouped(condition, And, Or)}"
        case And(left, right):
            return f"{_grouped(left, Or)} AND {_grouped(right, And, Or)}"
        case Or(left, right):
            return f"{show(left)} OR {_grouped(right, Or)}"
        case Set(path, value):
            return f"{show(path)} = {show(value)}"
        case Remove(path):
            return show(path)
        case Add(path, value) | Delete(path, value):
            return f"{show(path)} {show(value)}"
        case UpdateTree(actions):
            return " ".join(_clauses(actions))
        case ProjectionTree(paths):
            return ", ".join(map(show, paths))


def _grouped(node: Node, *loose: type) -> str:
    """The text of `node`, in parentheses where its kind binds less tightly than its parent."""
    return f"({show(node)})" if isinstance(node, loose) else show(node)


def _clauses(actions: tuple[Action, ...]) -> Iterator[str]:
    keyword = None
    group: list[str] = []
    for action in actions:
        if keyword is not None and type(action) is not keyword:
            yield f"{keyword.__name__.upper()} {', '.join(group)}"
            group = []
        keyword = type(action)
        group.append(show(action))
    if keyword is not None:
        yield f"{keyword.__name__.upper()} {', '.join(group)}"
