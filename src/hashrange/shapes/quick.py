"""Tests for the hot path: compiles a shape to a function that accepts good values quickly.

A test may refuse a good value (then the slow, exact walk decides), but never accepts a bad one. It does not
look into attribute values, because `values` checks them later anyway; a map of attribute values only has to
be a map.

Tests of members are plain lambdas or bound methods, so that a request costs one dict lookup and one call for
each member.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from hashrange import pace
from hashrange.limits import NAME_CHARS_MAX, NAME_CHARS_MIN
from hashrange.shapes.constraints import compiled
from hashrange.shapes.vocabulary import (
    NAME_PATTERN,
    AttributeValue,
    Blob,
    Boolean,
    List,
    Map,
    Number,
    Shape,
    String,
    Structure,
    Timestamp,
)

Test: TypeAlias = Callable[[Any], object]

_NAMES_SEEN_MAX: Final = 1_000


def compile_test(shape: Shape) -> Test:
    """A test that is true only for values that satisfy every rule of `shape`."""
    match shape:
        case String():
            return _text_test(shape)
        case Number():
            return _number_test(shape)
        case Boolean():
            return lambda value: value is True or value is False
        case AttributeValue():
            return lambda value: type(value) is dict
        case Timestamp():
            return lambda value: type(value) is float or type(value) is int
        case Blob():
            return lambda value: False
        case List():
            return _list_test(shape)
        case Map():
            return _map_test(shape)
        case Structure():
            return structure_test(shape)


def _text_test(shape: String) -> Test:
    low, high = shape.minimum, shape.maximum
    if shape.words:
        # It raises TypeError for a list or map; `check` treats this as a refusal.
        return frozenset(shape.words).__contains__
    if shape.names_table:
        return _table_name_test(high or 0)
    if shape.pattern is not None:
        matches = compiled(shape.pattern).fullmatch
        least, most = low or 0, high if high is not None else 1 << 30
        return lambda value: type(value) is str and least <= len(value) <= most and matches(value)
    if high is not None:
        return lambda value: type(value) is str and (low or 0) <= len(value) <= high
    return lambda value: type(value) is str


def _table_name_test(arn_chars_max: int) -> Test:
    is_name = compiled(f"{NAME_PATTERN[:-1]}{{{NAME_CHARS_MIN},{NAME_CHARS_MAX}}}").fullmatch
    # The names of the last requests, because looking a name up takes a tenth of a match.
    seen: set[str] = set()

    def is_good(value: Any) -> bool:
        if type(value) is not str:
            return False
        if value in seen:
            return True
        if not is_name(value):
            return value.startswith("arn:") and len(value) <= arn_chars_max
        if len(seen) >= _NAMES_SEEN_MAX:
            seen.clear()
        seen.add(value)
        return True

    return is_good


def _number_test(shape: Number) -> Test:
    low, high = shape.minimum, shape.maximum
    kinds = (int, float) if shape.kind == "Double" else (int,)
    return lambda value: (
        type(value) in kinds and (low is None or value >= low) and (high is None or value <= high)
    )


def _list_test(shape: List) -> Test:
    test = compile_test(shape.member)
    low = shape.minimum or 0
    high = shape.maximum if shape.maximum is not None else 1 << 30

    def is_good(value: Any) -> bool:
        if type(value) is not list or not low <= len(value) <= high:
            return False
        for content in value:
            pace.step()
            if not test(content):
                return False
        return True

    return is_good


def _map_test(shape: Map) -> Test:
    low = shape.minimum or 0
    high = shape.maximum if shape.maximum is not None else 1 << 30
    if isinstance(shape.value, AttributeValue):
        if low or shape.maximum is not None:
            return lambda value: type(value) is dict and low <= len(value) <= high
        return lambda value: type(value) is dict
    test_key, test_value = compile_test(shape.key), compile_test(shape.value)

    def is_good(value: Any) -> bool:
        if type(value) is not dict or not low <= len(value) <= high:
            return False
        for key, content in value.items():  # noqa: SIM110
            if not (test_key(key) and test_value(content)):
                return False
        return True

    return is_good


class _Member:
    """A member of a structure: its test, and 1 if it must be present."""

    __slots__ = ("needed", "test")

    def __init__(self, test: Test, needed: int) -> None:
        self.test = test
        self.needed = needed


def structure_test(shape: Structure) -> Test:
    """The test of a structure: known members are good, required members present, unknown members ignored.

    A null member is allowed but must be removed, so the test refuses it: the exact walk removes it.
    """
    members = {
        name: _Member(compile_test(member), 1 if name in shape.needed else 0)
        for name, member in shape.members.items()
    }
    needed = len(shape.needed)

    def is_good(value: Any) -> bool:
        if type(value) is not dict:
            return False
        given: dict[str, Any] = value
        present = 0
        for name, content in given.items():
            member = members.get(name)
            if member is not None:
                if not member.test(content):
                    return False
                present += member.needed
        return present == needed

    return is_good


def fits(test: Test, request: dict[str, Any]) -> bool:
    """Whether a request passes its test."""
    try:
        return bool(test(request))
    except TypeError:
        # A list or map in place of an enum's word is not hashable. The exact walk reports it.
        return False
