"""YAML, and so JSON, whose scalars all stay text: `parsed`.

The document is built of the parser's events in a loop and not by recursion, so a deeply nested file cannot
exhaust the stack. That is also much faster than PyYAML's own loaders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

DEPTH_MAX: Final = 64
"""How deep objects and lists may be nested; a users file with policies needs a dozen levels."""
NODES_MAX: Final = 2_000_000
"""How many values a document may have. Those of aliases count, because a few lines of aliases could stand for
billions of values."""


class YamlError(ValueError):
    """A text that cannot be read. The message says why, and where."""


def parsed(text: str) -> Any:
    """The content of a text, made of dicts, lists and texts; None for an empty one. Refuses an object that
    has a name twice, because the second value would silently replace the first.

    Raises `YamlError`; ImportError without PyYAML.
    """
    try:
        import yaml
    except ImportError as error:
        raise ImportError("a users file needs PyYAML; install it with: pip install pyyaml") from error
    try:
        return _built(yaml.parse(text, getattr(yaml, "CBaseLoader", yaml.BaseLoader)))
    except yaml.YAMLError as error:
        raise YamlError(f"it is not YAML: {error}") from error


def _built(events: Iterable[Any]) -> Any:
    """The document of some events."""
    # The members of the containers that have not ended, names and values in turn; the anchor of each, and how
    # many values came before it. The first is the stream of documents.
    begun: list[tuple[list[Any], str | None, int]] = [([], None, 0)]
    anchored: dict[str, tuple[Any, int]] = {}
    nodes = 0
    for event in events:
        kind = type(event).__name__
        before, anchor = nodes, None
        made: Any
        if kind == "ScalarEvent":
            made, anchor = event.value, event.anchor
            nodes += 1
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            begun.append(([], event.anchor, nodes))
            nodes += 1
            if len(begun) > DEPTH_MAX:
                raise YamlError(f"it is nested more than {DEPTH_MAX} deep{_place(event)}")
            continue
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            made, anchor, before = begun.pop()
            if kind == "MappingEndEvent":
                made = _object(made, event)
        elif kind == "AliasEvent":
            if event.anchor not in anchored:
                raise YamlError(f"the alias {event.anchor!r} is not defined{_place(event)}")
            made, size = anchored[event.anchor]
            nodes += size
        else:
            continue
        if nodes > NODES_MAX:
            raise YamlError(f"it has more than {NODES_MAX} values")
        if anchor is not None:
            anchored[anchor] = made, nodes - before
        begun[-1][0].append(made)
    documents = begun[0][0]
    if len(documents) > 1:
        raise YamlError("it has more than one document")
    return documents[0] if documents else None


def _object(members: list[Any], end: Any) -> dict[str, Any]:
    """The object with these members: names and values in turn."""
    names = members[::2]
    if not all(isinstance(name, str) for name in names):
        raise YamlError(f"an object has a name that is not a string, in the object that ends{_place(end)}")
    made = dict(zip(names, members[1::2], strict=True))
    if len(made) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise YamlError(f"an object has a name twice: {twice!r}, in the object that ends{_place(end)}")
    return made


def _place(event: Any) -> str:
    return f" in line {event.start_mark.line + 1}"
