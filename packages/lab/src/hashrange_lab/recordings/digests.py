"""Digests of answers, to compare the answer of a replayed request with the one that was recorded.

Two answers have the same digest if they say the same: the order of members and of the elements of sets makes
no difference, nor does the consumed capacity.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final

import orjson

_LEFT_OUT: Final = frozenset({"ConsumedCapacity", "ItemCollectionMetrics", "ResponseMetadata", "NextToken"})
_SETS: Final = frozenset({"SS", "NS", "BS"})
_DIGEST_BYTES: Final = 8


def digest(answer: bytes | memoryview) -> str:
    """The digest of an answer in JSON; "" if it is not an object."""
    try:
        read = orjson.loads(answer)
    except ValueError:
        return ""
    if not isinstance(read, dict):
        return ""
    said = {name: _ordered(member) for name, member in read.items() if name not in _LEFT_OUT}
    return blake2b(orjson.dumps(said, option=orjson.OPT_SORT_KEYS), digest_size=_DIGEST_BYTES).hexdigest()


def _ordered(given: Any) -> Any:
    """A part of an answer, with the elements of its sets in order."""
    if isinstance(given, dict):
        if len(given) == 1:
            [(type_, content)] = given.items()
            if type_ in _SETS and isinstance(content, list):
                return {type_: sorted(map(str, content))}
        return {name: _ordered(member) for name, member in given.items()}
    return [_ordered(member) for member in given] if isinstance(given, list) else given
