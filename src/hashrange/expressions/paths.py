"""Document paths: reads the value at a path, makes sparse copies, and finds out whether paths conflict.

A resolved path is a tuple of attribute names (str) and list indexes (int). Several paths together form a
`Trie`, whose leaves hold the contents that belong to each path. Rules: items are never changed; a path
through a missing element, or through one of the wrong type, finds no value. Knows no expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from hashrange import pace
from hashrange.errors import shown
from hashrange.expressions.lexer import ExpressionError
from hashrange.limits import SHOWN_CHARS_MAX
from hashrange.values import AttributeValue, Item

ResolvedPath: TypeAlias = tuple[str | int, ...]
Trie: TypeAlias = "dict[str | int, Trie | Leaf]"


@dataclass(frozen=True, slots=True)
class Leaf:
    """The end of a path, and the content that belongs to the path."""

    content: Any = None


def read(item: Item, path: ResolvedPath) -> AttributeValue | None:
    """The value at `path`, or None."""
    value = item.get(path[0])  # type: ignore[arg-type]
    for element in path[1:]:
        if value is None:
            return None
        if isinstance(element, str):
            value = value["M"].get(element) if "M" in value else None
        else:
            value = value["L"][element] if "L" in value and element < len(value["L"]) else None
    return value


def reader(path: ResolvedPath) -> Callable[[Item, Mapping[str, AttributeValue]], AttributeValue | None]:
    """A function of an item (and the request's values, ignored) that reads the value at `path`."""
    if len(path) == 1:
        name = path[0]
        return lambda item, values: item.get(name)  # type: ignore[arg-type]
    return lambda item, values: read(item, path)


def describe(path: ResolvedPath) -> str:
    """The path as error messages write it: ``[a, b, [1]]``; only its beginning if it is long.

    A placeholder of two characters may stand for a name of 64 KB, and a path may use it many times.
    """
    text = f"[{', '.join([f'[{part}]' if isinstance(part, int) else part for part in path])}]"
    return shown(text, SHOWN_CHARS_MAX)


def grow(paths: Iterable[tuple[ResolvedPath, Any]]) -> Trie:
    """The trie of `(path, content)` pairs. Raises as `check_apart` does."""
    pairs = list(paths)
    check_apart([path for path, _ in pairs][::-1])
    root: Trie = {}
    for path, content in pairs:
        node = root
        for element in path[:-1]:
            below = node.setdefault(element, {})
            assert isinstance(below, dict)
            node = below
        node[path[-1]] = Leaf(content)
    return root


def check_apart(paths: Iterable[ResolvedPath]) -> None:
    """Raise ExpressionError if one path equals another or leads through it, or if two paths need the same
    value to be a map and a list.

    The paths come in the reverse order of the text; the error names the path that is later in the text
    second.
    """
    root: Trie = {}
    placed: list[ResolvedPath] = []
    for path in paths:
        node = root
        for depth, element in enumerate(path):
            if node and isinstance(next(iter(node)), int) != isinstance(element, int):
                raise _clash("conflict", path, _owner(placed, path[:depth]))
            last = depth == len(path) - 1
            child = node.get(element)
            if child is None:
                node[element] = Leaf() if last else {}
            elif last or isinstance(child, Leaf):
                raise _clash("overlap", path, _owner(placed, path[: depth + 1]))
            if not last:
                below = node[element]
                assert isinstance(below, dict)
                node = below
        placed.append(path)


def _owner(placed: list[ResolvedPath], prefix: ResolvedPath) -> ResolvedPath:
    """The first path placed under `prefix`."""
    return next(path for path in placed if path[: len(prefix)] == prefix)


def _clash(verb: str, first: ResolvedPath, second: ResolvedPath) -> ExpressionError:
    return ExpressionError(
        f"Two document paths {verb} with each other; must remove or rewrite one of these paths; "
        f"path one: {describe(first)}, path two: {describe(second)}"
    )


def pick(item: Item, trie: Trie) -> Item:
    """The sparse copy of an item with the paths of `trie`: siblings merge, and list elements keep their order
    without gaps."""
    result: Item = {}
    for name, node in trie.items():
        pace.step()
        value = item.get(name)  # type: ignore[arg-type]
        if value is not None:
            picked = value if isinstance(node, Leaf) else _pick_value(value, node)
            if picked is not None:
                result[name] = picked  # type: ignore[index]
    return result


def _pick_value(value: AttributeValue, trie: Trie) -> AttributeValue | None:
    """The parts of a map or list that `trie` leads to; None if there are none."""
    first = next(iter(trie))
    if isinstance(first, str):
        members = pick(value["M"], trie) if "M" in value else None
        return {"M": members} if members else None
    elements = []
    if "L" in value:
        for index, node in sorted(trie.items()):
            assert isinstance(index, int)
            if index < len(value["L"]):
                element = value["L"][index]
                picked = element if isinstance(node, Leaf) else _pick_value(element, node)
                if picked is not None:
                    elements.append(picked)
    return {"L": elements} if elements else None
