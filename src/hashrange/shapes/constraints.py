"""Checks which values a shape allows, and makes the message that reports all violations.

    2 validation errors detected: Value 'x' at 'limit' failed to satisfy constraint: ...; Value null at ...

Order of the violations: members in the order of the API model, a container before its contents; for one
text the pattern, then the minimum, then the maximum. DynamoDB's own order changes between releases and
regions, so no program can depend on it. It reports ten at most [report], and so does this module. How much
of a long value DynamoDB shows is unknown; this module cuts long values off to keep answers small [assumed].

Paths are Java's: `keySchema.1.member.attributeName` (lists count from 1),
`requestItems.TABLE.member.keys`. Rejected values are printed as Java prints them.

This module expects that JSON types have been checked (`wire_types`), and never looks into attribute values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final
from zlib import crc32

import orjson

from hashrange.errors import shown
from hashrange.limits import NAME_CHARS_MAX, NAME_CHARS_MIN, SHOWN_CHARS_MAX
from hashrange.shapes.vocabulary import (
    NAME_PATTERN,
    AttributeValue,
    List,
    Map,
    Number,
    Shape,
    String,
    Structure,
    camel,
)

VIOLATIONS_MAX: Final = 10
_PATH_KEY_CHARS_MAX: Final = 1_024

# The rules of a table's name that is not an ARN.
TABLE_NAME: Final = String(NAME_CHARS_MIN, NAME_CHARS_MAX, NAME_PATTERN, length_first=True)

NOT_NULL: Final = "Member must not be null"


# The parts of Java's patterns that differ from Python's.
_FROM_JAVA: Final = {r"\p{Print}": r"[\x20-\x7E]", r"\uD800\uDC00-\uDBFF\uDFFF": r"\U00010000-\U0010FFFF"}


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of the API model as Python reads it."""
    for java, python in _FROM_JAVA.items():
        pattern = pattern.replace(java, python)
    return re.compile(pattern)


def violations(shape: Shape, value: Any, path: str = "", *, terse: bool = False) -> Iterator[str]:
    """Every violation in `value`, which is present; each is a part of the message between two semicolons.

    `terse` as in `layers.Layer`.
    """
    match shape:
        case Structure():
            for name in shape.members:
                yield from member_violations(shape, value, name, path, terse=terse)
        case String():
            for rule in _broken_by_text(shape, value):
                is_brief = shape.brief or (terse and shape.names_table and not value)
                yield _terse(path, rule) if is_brief else violation(value, path, rule)
        case Number():
            value = int(value) if shape.cuts else value
            for rule in _out_of_bounds(shape.minimum, shape.maximum, value, "value"):
                yield _terse(path, rule) if terse else violation(value, path, rule)
        case List():
            for rule in _out_of_bounds(shape.minimum, shape.maximum, len(value), "length"):
                is_brief = terse or shape.brief
                yield _terse(path, rule) if is_brief else violation(java_text(shape, value), path, rule)
            for position, element in enumerate(value, 1):
                yield from _element(shape.member, element, f"{path}.{position}.member", terse)
        case Map():
            yield from _in_map(shape, value, path, terse)


def member_violations(
    shape: Structure, value: dict[str, Any], name: str, path: str = "", *, terse: bool = False
) -> Iterator[str]:
    """Every violation in the member `name` of a structure."""
    inner = f"{path}.{camel(name)}" if path else camel(name)
    content = value.get(name)
    if content is not None:
        yield from violations(shape.members[name], content, inner, terse=terse)
    elif name in shape.needed:
        yield violation(None, inner, NOT_NULL)


def _in_map(shape: Map, value: dict[str, Any], path: str, terse: bool) -> Iterator[str]:
    for rule in _out_of_bounds(shape.minimum, shape.maximum, len(value), "length"):
        yield _terse(path, rule) if terse else violation(java_text(shape, value), path, rule)
    if any(True for key in value for _ in _broken_by_text(shape.key, key)):
        rules = ", ".join(_all_rules(shape.key))
        text = _beginning(_json_pieces(value)) if terse else java_text(shape, value)
        yield violation(text, path, f"Map keys must satisfy constraint: [{rules}]")
    if shape.whole and isinstance(shape.value, List) and _any_of_wrong_size(shape.value, value):
        rules = ", ".join(_all_rules(shape.value))
        yield violation(java_text(shape, value), path, f"Map value must satisfy constraint: [{rules}]")
        return
    for key, member in value.items():
        yield from _element(shape.value, member, f"{path}.{shown(key, _PATH_KEY_CHARS_MAX)}.member", terse)


def _any_of_wrong_size(shape: List, value: dict[str, list[Any] | None]) -> bool:
    sizes = [len(elements) for elements in value.values() if elements is not None]
    return any(True for size in sizes for _ in _out_of_bounds(shape.minimum, shape.maximum, size, "length"))


def _element(shape: Shape, value: Any, path: str, terse: bool) -> Iterator[str]:
    if value is not None:
        yield from violations(shape, value, path, terse=terse)
    elif not isinstance(shape, AttributeValue):
        yield violation(None, path, NOT_NULL)


def _broken_by_text(shape: String, value: str) -> Iterator[str]:
    if shape.words:
        if value not in shape.words:
            yield _enum_rule(shape)
        return
    if shape.names_table and (value or shape.empty_is_name) and not value.startswith("arn:"):
        shape = TABLE_NAME
    lengths = _out_of_bounds(shape.minimum, shape.maximum, len(value), "length")
    if shape.length_first:
        yield from lengths
    if shape.pattern is not None and not compiled(shape.pattern).fullmatch(value):
        yield _pattern_rule(shape.pattern)
    if not shape.length_first:
        yield from lengths


def _out_of_bounds(minimum: int | None, maximum: int | None, size: float, measure: str) -> Iterator[str]:
    if minimum is not None and size < minimum:
        yield _minimum_rule(minimum, measure)
    if maximum is not None and size > maximum:
        yield _maximum_rule(maximum, measure)


def _all_rules(shape: String | List) -> Iterator[str]:
    """Every rule of a shape, broken or not, in the order of messages about map keys and values."""
    if isinstance(shape, String) and shape.names_table:
        shape = TABLE_NAME
    if shape.maximum is not None:
        yield _maximum_rule(shape.maximum, "length")
    if shape.minimum is not None:
        yield _minimum_rule(shape.minimum, "length")
    if isinstance(shape, String) and shape.pattern is not None:
        yield _pattern_rule(shape.pattern)


def _minimum_rule(minimum: int, measure: str) -> str:
    return f"Member must have {measure} greater than or equal to {minimum}"


def _maximum_rule(maximum: int, measure: str) -> str:
    return f"Member must have {measure} less than or equal to {maximum}"


def _pattern_rule(pattern: str) -> str:
    return f"Member must satisfy regular expression pattern: {pattern}"


def _enum_rule(shape: String) -> str:
    return f"Member must satisfy enum value set: [{', '.join(shape.words)}]"


def violation(value: Any, path: str, rule: str) -> str:
    text = "null" if value is None else f"'{shown(str(value), SHOWN_CHARS_MAX)}'"
    return f"Value {text} at '{path}' failed to satisfy constraint: {rule}"


def _terse(path: str, rule: str) -> str:
    """A violation without its value, at the API's own path: `RequestItems.TABLE.member.Keys`."""
    head, _, last = path.rpartition(".")
    shown_path = f"{_capital(head)}.{_capital(last)}" if head else _capital(last)
    return f"Value at '{shown_path}' failed to satisfy constraint: {rule}"


def unlisted(words: Iterable[str]) -> str:
    """The violation of an enum, in a layer that does not print the value."""
    return f"Failed to satisfy constraint: Member must satisfy enum value set: [{', '.join(words)}]"


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]


def message(violation_texts: Iterable[str]) -> str:
    """The text of the ValidationException for one or more violations.

    It shows ten at most, and stops when the message is full; further violations are not computed.
    """
    texts: list[str] = []
    length = 0
    for text in violation_texts:
        texts.append(text)
        length += len(text)
        if len(texts) == VIOLATIONS_MAX or length >= SHOWN_CHARS_MAX:
            break
    errors = "error" if len(texts) == 1 else "errors"
    return f"{len(texts)} validation {errors} detected: {'; '.join(texts)}"


def java_text(shape: Shape, value: Any) -> str:
    """A rejected value as Java's toString prints it; only the beginning if it is long.

    Structures print their members, `KeySchemaElement(attributeName=pk, keyType=HASH)` [report]. An attribute
    value prints its class and a hash code. DynamoDB's hash code is arbitrary; here it is a checksum, so that
    equal requests get equal answers.
    """
    return _beginning(_java_pieces(shape, value))


def _beginning(text: Iterator[str]) -> str:
    """The part of a text that messages show."""
    pieces: list[str] = []
    length = 0
    for piece in text:
        pieces.append(piece)
        length += len(piece)
        if length > SHOWN_CHARS_MAX:
            break
    return shown("".join(pieces), SHOWN_CHARS_MAX)


def _json_pieces(value: Any) -> Iterator[str]:
    """A value as JSON, piece by piece, so that the caller can stop."""
    if type(value) is dict:
        lead = "{"
        for key, content in value.items():
            yield f"{lead}{orjson.dumps(shown(key, SHOWN_CHARS_MAX)).decode()}:"
            yield from _json_pieces(content)
            lead = ","
        yield "}" if value else "{}"
    elif type(value) is list:
        lead = "["
        for content in value:
            yield lead
            yield from _json_pieces(content)
            lead = ","
        yield "]" if value else "[]"
    elif type(value) is str:
        yield orjson.dumps(shown(value, SHOWN_CHARS_MAX)).decode()
    else:
        yield orjson.dumps(value).decode()


def _java_pieces(shape: Shape, value: Any) -> Iterator[str]:
    """The printed text of a value, piece by piece, so that the caller can stop."""
    if value is None:
        yield "null"
        return
    match shape:
        case List():
            lead = "["
            for content in value:
                yield lead
                yield from _java_pieces(shape.member, content)
                lead = ", "
            yield "]" if value else "[]"
        case Map():
            lead = "{"
            for key, content in value.items():
                yield f"{lead}{shown(key, SHOWN_CHARS_MAX)}="
                yield from _java_pieces(shape.value, content)
                lead = ", "
            yield "}" if value else "{}"
        case Structure():
            lead = f"{shape.name}("
            for name, member in shape.members.items():
                yield f"{lead}{camel(name)}="
                yield from _java_pieces(member, value.get(name))
                lead = ", "
            yield ")" if shape.members else f"{shape.name}()"
        case AttributeValue():
            yield f"com.amazonaws.dynamodb.v20120810.AttributeValue@{_checksum(value):x}"
        case _:
            yield str(value).lower() if value is True or value is False else str(value)


def _checksum(value: Any) -> int:
    try:
        return crc32(orjson.dumps(value))
    except TypeError:
        # An unknown member, which DynamoDB ignores, may be nested too deeply to be written as JSON.
        return 0
