"""The placeholders of one request: `ExpressionAttributeNames` and `ExpressionAttributeValues`.

Rules: both maps are validated as a whole before any expression is parsed, and values are normalised in place.
Every placeholder must be used by at least one expression of the request. `shapes` checks the types of
members. Knows no expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from hashrange.errors import NAME_EMPTY, NAME_TOO_LONG, RequestViolation, ServiceError, ValidationException
from hashrange.limits import (
    ATTRIBUTE_NAME_BYTES_MAX,
    EXPRESSION_SUBSTITUTION_BYTES_MAX,
    EXPRESSION_TOKEN_BYTES_MAX,
)
from hashrange.values import AttributeValue, admit_members, admit_value, java_order, levels

_NAME_KEY: Final = re.compile(r"#[A-Za-z0-9_]+").fullmatch
_VALUE_KEY: Final = re.compile(r":[A-Za-z0-9_]+").fullmatch
_NAMES: Final = "ExpressionAttributeNames"
_VALUES: Final = "ExpressionAttributeValues"


class MapViolation(RequestViolation):
    """A map of placeholders is empty or has a wrong key; its values have not been checked."""


class Substitutions:
    """The placeholders of a request, and which of them its expressions use.

    `names` maps `#x` to attribute names, `values` maps `:x` to attribute values. `size` is the size of both
    in bytes. `level` is the level of the values, as in `values.admit_value`. `nested` are the top-level
    attributes of the paths with several parts; they cannot be key attributes. Raises RequestViolation for a
    map or member that breaks a rule.
    """

    __slots__ = ("_used_names", "_used_values", "cache_key", "names", "nested", "size", "values")

    def __init__(
        self,
        names: dict[str, str] | None = None,
        values: dict[str, AttributeValue] | None = None,
        *,
        level: int = 1,
    ) -> None:
        self.names: dict[str, str] = {} if names is None else names
        self.values: dict[str, AttributeValue] = {} if values is None else values
        self._used_names: frozenset[str] = frozenset()
        self._used_values: frozenset[str] = frozenset()
        self.nested: frozenset[str] = frozenset()
        # The key under which compiled expressions are cached; None if it is too big.
        self.cache_key: tuple[tuple[str, str], ...] | None = ()
        # As DynamoDB Local, check all keys before any value (also [report] extenddb pull request 201).
        size = 0
        if names is not None:
            _check_keys(_NAMES, names)
        if values is not None:
            _check_keys(_VALUES, values)
            size = _admit_values(values, level)
        if names is not None:
            names_size = _admit_names(names)
            self.cache_key = tuple(names.items()) if names_size <= _CACHED_NAMES_CHARS_MAX else None
            size += names_size
            if size > EXPRESSION_SUBSTITUTION_BYTES_MAX:
                both = f"{_NAMES} and {_VALUES}"
                raise RequestViolation(f"Combined size of {both} exceeds max size")
        self.size = size

    def use(self, names: frozenset[str], values: frozenset[str], nested: frozenset[str]) -> None:
        """Mark placeholders as used by an expression, and attributes as those of nested paths."""
        # Most requests have one expression with placeholders: a union with nothing need not be made.
        self._used_names = self._used_names | names if self._used_names else names
        self._used_values = self._used_values | values if self._used_values else values
        self.nested = self.nested | nested if self.nested else nested

    def uses_deeper(self, levels_max: int) -> bool:
        """Whether a value that was used so far has more than `levels_max` levels."""
        return any(levels(self.values[name]) > levels_max for name in self._used_values)

    def check_all_used(self) -> None:
        """Raise ValidationException if a placeholder is unused. Call it after the last expression."""
        if len(self._used_names) < len(self.names):
            _refuse_unused(_NAMES, self.names, self._used_names)
        if len(self._used_values) < len(self.values):
            _refuse_unused(_VALUES, self.values, self._used_values)


_CACHED_NAMES_CHARS_MAX: Final = 16 * 1024
"""A larger map of names is not used as a key of the cache, because it would take too much memory."""


def _refuse_unused(member: str, defined: Iterable[str], used: frozenset[str]) -> None:
    unused = ", ".join(key for key in _in_hash_order(list(defined)) if key not in used)
    raise RequestViolation(f"Value provided in {member} unused in expressions: keys: {{{unused}}}")


def _in_hash_order(keys: list[str]) -> list[str]:
    """The keys in the order of a hash set of Java (observed on DynamoDB Local)."""
    buckets = 16
    while buckets <= len(keys) * 4 // 3:
        buckets *= 2
    return java_order.in_hash_order(keys, buckets)


_known_keys: Final[dict[str, set[str]]] = {_NAMES: set(), _VALUES: set()}
_KNOWN_KEYS_MAX: Final = 4_096
"""This many keys are kept of each map, because programs use the same few."""


def _check_keys(member: str, members: dict[str, Any]) -> None:
    if not members:
        raise MapViolation(f"{member} must not be empty")
    known = _known_keys[member]
    for key in members:
        if key not in known:
            _check_key(member, key)
            if len(known) >= _KNOWN_KEYS_MAX:
                known.clear()
            known.add(key)


def _admit_names(names: dict[str, Any]) -> int:
    """Check the names. Returns their size in bytes."""
    size = 0
    for key, name in names.items():
        if not name:
            raise RequestViolation(f"{_NAMES} contains invalid value: {NAME_EMPTY} for key {key}")
        length = len(name) if name.isascii() else len(name.encode("utf-8", "surrogatepass"))
        if length > ATTRIBUTE_NAME_BYTES_MAX:
            # The newer layer does not say which name. [report] extenddb issue 365.
            raise RequestViolation(
                f"{_NAMES} contains invalid value: {NAME_TOO_LONG} for key {key}", NAME_TOO_LONG
            )
        size += len(key) + length
    return size


def _admit_values(values: dict[str, Any], level: int) -> int:
    """Check and normalise the values. Returns their size in bytes."""
    try:
        size = admit_members(values, level=level)
    except ServiceError:
        # A value is wrong: the exact walk finds it, and the error's text.
        size = 0
        for key, value in values.items():
            try:
                size += len(key) + admit_value(value, level=level)
            except ValidationException as error:
                raise _invalid_value(key, error) from None
    if size > EXPRESSION_SUBSTITUTION_BYTES_MAX:
        raise RequestViolation(f"{_VALUES} exceeds max size")
    return size


def _invalid_value(key: str, error: ServiceError) -> ValidationException:
    message = f"{_VALUES} contains invalid value: {error.message} for key {key}"
    if isinstance(error, RequestViolation):
        # The newer layer does not say where. [report] ministack issue 1038.
        return RequestViolation(message, error.newer)
    return ValidationException(message)


_TOO_LONG: Final = "The expression attribute map contains a key that is too long;"


def _check_key(member: str, key: str) -> None:
    """Refuse a key that is not a placeholder."""
    size = len(key.encode("utf-8", "surrogatepass"))
    if size > EXPRESSION_TOKEN_BYTES_MAX:
        # DynamoDB Local names the size for one of the two members only.
        complaint = f"{_TOO_LONG} size of key: {size}" if member == _NAMES else _TOO_LONG
    elif not key:
        complaint = "The expression attribute map contains an empty key;"
    elif not (_NAME_KEY if member == _NAMES else _VALUE_KEY)(key):
        complaint = f'Syntax error; key: "{key}"'
    else:
        return
    raise MapViolation(f"{member} contains invalid key: {complaint}")
