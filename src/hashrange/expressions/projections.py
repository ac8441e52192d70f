"""Projection expressions: the parts of an item that an answer holds.

Rules: paths that find no value are left out; siblings merge into one map or list; list elements keep their
order, without gaps. Source: Developer Guide, "Projection expressions".
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from hashrange.expressions.parser import parse_projection
from hashrange.expressions.paths import Leaf, Trie, check_apart, grow, pick
from hashrange.expressions.preparing import (
    CACHED_EXPRESSIONS_MAX,
    Compiled,
    NamesKey,
    checked_paths,
    placeholders,
    prepare,
    resolve,
)
from hashrange.expressions.substitutions import Substitutions
from hashrange.expressions.words import CONDITION, check_words
from hashrange.values import Item


class Projection(NamedTuple):
    """The paths to keep. `attributes` are their top-level names; if `is_top_level`, no path has more
    parts."""

    paths: Trie
    attributes: frozenset[str]
    is_top_level: bool

    @property
    def nested(self) -> frozenset[str]:
        """The top-level names of paths that have more than one part."""
        if self.is_top_level:
            return frozenset()
        return frozenset(str(name) for name, node in self.paths.items() if not isinstance(node, Leaf))

    def apply(self, item: Item) -> Item:
        """The projected copy of `item`; values are shared with it."""
        if self.is_top_level:
            return {name: item[name] for name in self.paths if name in item}
        return pick(item, self.paths)


def projection(text: str, substitutions: Substitutions) -> Projection:
    """Prepare a projection. Raises ValidationException."""
    return prepare(_compile_cached, _compile, text, substitutions, "ProjectionExpression").program


def _compile(text: str, names_key: NamesKey) -> Compiled[Projection]:
    names = dict(names_key)
    tree = parse_projection(text)
    check_words(tree, CONDITION)
    check_apart(checked_paths(tree.paths[::-1], names))
    used = placeholders(tree, names)
    paths = [resolve(path, names) for path in tree.paths]
    program = Projection(
        grow([(path, None) for path in paths]), used.attributes, all(len(path) == 1 for path in paths)
    )
    return Compiled(program, used, ())


_compile_cached = lru_cache(CACHED_EXPRESSIONS_MAX)(_compile)
