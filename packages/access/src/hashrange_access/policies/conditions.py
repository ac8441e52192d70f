"""The condition operators of IAM.

A condition compares the values of one context key of the request with the values in the policy:

    StringEquals …             the request's value equals one of the policy's values
    StringNotEquals …          it equals none of them; also true if the request does not have the key
    …IfExists                  also true if the request does not have the key
    Null                       whether the request does not have the key
    ForAllValues:…             every value of the request's key; also true if there is none
    ForAnyValue:…              at least one value of the request's key

A key that may have several values, such as dynamodb:LeadingKeys, needs ForAllValues or ForAnyValue. An
operator without them never matches it, so a Deny with such a condition does nothing (`linting` reports it).

Source: IAM User Guide, "IAM JSON policy elements: Condition operators", "Single-valued vs. multivalued
context keys".
"""

from __future__ import annotations

import base64
import binascii
import operator as operators
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, Final

from hashrange import pace
from hashrange.operations.policies.operators import (
    FOR_ALL,
    FOR_ANY,
    NULL,
    exists,
    fault,
    moment,
    number,
    parts_of,
)
from hashrange_access.policies.errors import PolicyError
from hashrange_access.policies.patterns import Keys, arn_fits, fits, plain, substituted

MULTIVALUED: Final = frozenset({
    "dynamodb:leadingkeys", "dynamodb:firstpartitionkeyvalues", "dynamodb:secondpartitionkeyvalues",
    "dynamodb:thirdpartitionkeyvalues", "dynamodb:fourthpartitionkeyvalues", "dynamodb:attributes",
    "aws:tagkeys", "aws:calledvia", "aws:principalorgpaths", "aws:principalservicenameslist",
})  # fmt: skip
"""The keys that may have several values, in lower case. Sources: Service Authorization Reference, "Actions,
resources, and condition keys for Amazon DynamoDB"; IAM User Guide, "AWS global condition context keys"."""

Test = Callable[[str, str], bool]
"""Whether a value of the policy (with its variables replaced) fits a value of the request."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One operator with one key. `operator` is in lower case, without its qualifier ("": none) and IfExists.

    `key` is in lower case; `text` is how the document names the operator and the key.
    """

    operator: str
    qualifier: str
    if_exists: bool
    key: str
    values: tuple[str, ...]
    text: str

    @property
    def is_multivalued(self) -> bool:
        """Whether the key may have several values."""
        return self.key in MULTIVALUED

    def holds(self, keys: Keys, *, variables: bool) -> bool:
        """Whether a request with these context keys fulfils the condition. `variables`: the document's
        version knows policy variables."""
        pace.point()
        found = keys.get(self.key)
        if self.operator == NULL:
            return (found is None or not found) is (self.values[0].lower() == "true")
        is_negated, test = OPERATORS[self.operator]
        if self.qualifier == FOR_ALL:
            return all(self._one(value, test, is_negated, keys, variables) for value in found or () if value)
        if found is None or not found:
            return self.if_exists or (is_negated and not self.qualifier)
        if self.qualifier == FOR_ANY:
            return any(self._one(value, test, is_negated, keys, variables) for value in found)
        if self.is_multivalued or len(found) > 1:
            return False
        return self._one(found[0], test, is_negated, keys, variables)

    def _one(self, value: str, test: Test, is_negated: bool, keys: Keys, variables: bool) -> bool:
        """Whether one value of the request fits any value of the policy; none, if the operator is negated.

        A variable without a value makes its value of the policy fit nothing, and a negated operator false: it
        cannot be known what the request's value must not be.
        """
        for written in self.values:
            pace.point()
            wanted = substituted(written, keys) if variables else written
            if wanted is None:
                if is_negated:
                    return False
            elif test(wanted, value):
                return not is_negated
        return is_negated

    def explained(self, keys: Keys) -> str:
        """What the condition compares, for an explanation."""
        found = keys.get(self.key)
        has = "does not have the key" if found is None else f"has {_listed(found)}"
        reason = f"{self.text}: the request {has}, the policy has {_listed(self.values)}"
        if found and self.is_multivalued and not self.qualifier and self.operator != NULL:
            reason += "; the key may have several values, so only ForAllValues and ForAnyValue match it"
        return reason


def read_condition(operator: str, key: str, values: Any, where: str) -> Condition:
    """One condition of a document. Raises `PolicyError`."""
    listed = values if isinstance(values, list) else [values]
    qualifier, name, if_exists = parts_of(operator)
    if not exists(operator):
        if name == NULL:
            raise PolicyError(f"{where}: Null takes neither IfExists nor ForAllValues nor ForAnyValue")
        raise PolicyError(f"{where}: {operator!r} is not a condition operator")
    texts = tuple(_text(value, f"{where}, {operator} {key}") for value in listed)
    if not texts:
        raise PolicyError(f"{where}, {operator} {key}: there is no value")
    for text in texts:
        form = fault(operator, text)
        if form:
            raise PolicyError(f"{where}, {operator} {key} must be {form}, not {text!r}")
    return Condition(name, qualifier, if_exists, key.lower(), texts, f"{operator} {key}")


def _text(value: Any, where: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise PolicyError(f"{where} must be a string, a number, true or false")


def _listed(values: tuple[str, ...]) -> str:
    shown = ", ".join(repr(value) for value in values[:5])
    return f"[{shown}{', …' if len(values) > 5 else ''}]"


# -- The comparisons: each takes the policy's value and the request's ---------------------------------------


def _equals(wanted: str, value: str) -> bool:
    return plain(wanted) == value


def _equals_in_any_case(wanted: str, value: str) -> bool:
    return plain(wanted).lower() == value.lower()


def _ordered(
    read: Callable[[str], Decimal | None], compare: Callable[[Decimal, Decimal], bool]
) -> Test:
    """A comparison of the request's value with the policy's; values that cannot be read fit nothing."""

    def test(wanted: str, value: str) -> bool:
        limit, own = read(plain(wanted)), read(value)
        return limit is not None and own is not None and compare(own, limit)

    return test


def _bool(wanted: str, value: str) -> bool:
    return plain(wanted).lower() == value.lower()


def _binary(wanted: str, value: str) -> bool:
    try:
        return base64.b64decode(plain(wanted), validate=True) == base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return False


def _address(wanted: str, value: str) -> bool:
    try:
        network: IPv4Network | IPv6Network = ip_network(plain(wanted), strict=False)
        return ip_address(value) in network
    except ValueError:
        return False


_ORDERS: Final[Mapping[str, Callable[[Decimal, Decimal], bool]]] = {
    "equals": operators.eq,
    "lessthan": operators.lt,
    "lessthanequals": operators.le,
    "greaterthan": operators.gt,
    "greaterthanequals": operators.ge,
}

OPERATORS: Final[Mapping[str, tuple[bool, Test]]] = {
    "stringequals": (False, _equals),
    "stringnotequals": (True, _equals),
    "stringequalsignorecase": (False, _equals_in_any_case),
    "stringnotequalsignorecase": (True, _equals_in_any_case),
    "stringlike": (False, fits),
    "stringnotlike": (True, fits),
    **{f"numeric{name}": (False, _ordered(number, order)) for name, order in _ORDERS.items()},
    "numericnotequals": (True, _ordered(number, operators.eq)),
    **{f"date{name}": (False, _ordered(moment, order)) for name, order in _ORDERS.items()},
    "datenotequals": (True, _ordered(moment, operators.eq)),
    "bool": (False, _bool),
    "binaryequals": (False, _binary),
    "ipaddress": (False, _address),
    "notipaddress": (True, _address),
    "arnequals": (False, arn_fits),
    "arnlike": (False, arn_fits),
    "arnnotequals": (True, arn_fits),
    "arnnotlike": (True, arn_fits),
}
"""Each operator in lower case: whether it is negated, and its comparison."""
