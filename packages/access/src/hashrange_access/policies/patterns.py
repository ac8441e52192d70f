"""Wildcards and policy variables.

A pattern is text in which `*` stands for any characters and `?` for one. A document of the version
2012-10-17 may hold variables: `${aws:username}` stands for the value of that context key,
`${aws:username, 'nobody'}` has a default, and `${*}`, `${?}` and `${$}` stand for the character itself. A
value that a variable stands for is never a wildcard, even if it holds `*`: otherwise a user named `*` could
read everything.

Source: IAM User Guide, "IAM policy elements: Variables and tags".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from hashrange.operations.policies.documents import matches

Keys = Mapping[str, tuple[str, ...]]

# Half of a surrogate pair is in no text that was decoded from UTF-8 or JSON, so these stand for the
# characters `*` and `?` themselves.
_LITERAL: Final = {ord("*"): 0xDC2A, ord("?"): 0xDC3F}
_PLAIN: Final = {half: character for character, half in _LITERAL.items()}
_VARIABLE: Final = re.compile(r"\$\{([^{}]*)\}")
_NAMED: Final = re.compile(r"\s*([^,']+?)\s*(?:,\s*'([^']*)'\s*)?")
_CHARACTERS: Final = frozenset("*?$")


def has_variables(text: str) -> bool:
    """Whether a pattern holds a variable."""
    return "${" in text


def substituted(pattern: str, keys: Keys) -> str | None:
    """A pattern with the values of its variables, whose wildcards are only those of the pattern itself.

    None if a variable without a default has no value, or several: then the pattern matches nothing.
    """
    if "${" not in pattern:
        return pattern
    made: list[str] = []
    place = 0
    for variable in _VARIABLE.finditer(pattern):
        value = _value(variable[1], keys)
        if value is None:
            return None
        made += (pattern[place : variable.start()], value.translate(_LITERAL))
        place = variable.end()
    made.append(pattern[place:])
    return "".join(made)


def plain(text: str) -> str:
    """The text of a `substituted` pattern for a comparison that knows no wildcards."""
    return text.translate(_PLAIN)


def fits(pattern: str, text: str) -> bool:
    """Whether a `substituted` pattern matches all of a text; upper and lower case differ."""
    return matches(pattern, text.translate(_LITERAL))


def arn_fits(pattern: str, arn: str) -> bool:
    """Whether a `substituted` pattern matches an ARN for ArnLike: each of its six parts by itself.

    Source: IAM User Guide, "Condition operators".
    """
    asked, parts = pattern.split(":", 5), arn.split(":", 5)
    return len(asked) == len(parts) and all(map(fits, asked, parts))


def resource_fits(pattern: str, arn: str) -> bool:
    """Whether a `substituted` pattern of a Resource element matches an ARN, part by part. Only a `*` at the
    end of a part matches across a colon.

    Source: IAM User Guide, "IAM JSON policy elements: Resource".
    """
    parts = arn.split(":")
    places = {0}
    for asked in pattern.split(":"):
        spans = asked.endswith("*")
        ends: set[int] = set()
        for place in places:
            if place < len(parts) and fits(asked, parts[place]):
                ends.update(range(place + 1, len(parts) + 1) if spans else (place + 1,))
        places = ends
    return len(parts) in places


def _value(variable: str, keys: Keys) -> str | None:
    if variable in _CHARACTERS:
        return variable
    named = _NAMED.fullmatch(variable)
    if named is None:
        return None
    values = keys.get(named[1].lower(), ())
    return values[0] if len(values) == 1 else named[2]
