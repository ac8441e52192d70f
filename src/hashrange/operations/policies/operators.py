"""The condition operators of policies: their names, and the form that their values must have.

`access.policies` compares values. A document with an operator that does not exist, or with a value that no
operator can read, is refused where it is stored, because its statement would never apply: a Deny would refuse
nothing.

Source: IAM User Guide, "IAM JSON policy elements: Condition operators".
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from ipaddress import ip_network
from typing import Final

FOR_ALL: Final = "forallvalues"
FOR_ANY: Final = "foranyvalue"
IF_EXISTS: Final = "ifexists"
NULL: Final = "null"

_ORDERS: Final = ("equals", "notequals", "lessthan", "lessthanequals", "greaterthan", "greaterthanequals")
OPERATORS: Final = frozenset({
    "stringequals", "stringnotequals", "stringequalsignorecase", "stringnotequalsignorecase", "stringlike",
    "stringnotlike", "bool", "binaryequals", "ipaddress", "notipaddress", "arnequals", "arnlike",
    "arnnotequals", "arnnotlike", *[f"{kind}{order}" for kind in ("numeric", "date") for order in _ORDERS],
})  # fmt: skip
"""All operators but Null, in lower case, without a qualifier and IfExists."""


def parts_of(operator: str) -> tuple[str, str, bool]:
    """The qualifier ("": none), the name and whether it has IfExists, in lower case."""
    qualifier, _, name = operator.lower().rpartition(":")
    return qualifier, name.removesuffix(IF_EXISTS), name.endswith(IF_EXISTS)


def exists(operator: str) -> bool:
    """Whether there is such an operator. Null takes neither a qualifier nor IfExists."""
    qualifier, name, if_exists = parts_of(operator)
    if name == NULL:
        return not qualifier and not if_exists
    return qualifier in ("", FOR_ALL, FOR_ANY) and name in OPERATORS


def fault(operator: str, value: str) -> str:
    """What a value of an existing operator must be; "" if it is that, or if it has variables."""
    name = parts_of(operator)[1]
    for start, (is_readable, form) in _FORMS.items():
        if name.startswith(start):
            return "" if "${" in value or is_readable(value) else form
    return ""


def number(text: str) -> Decimal | None:
    """A finite number."""
    try:
        read = Decimal(text.strip())
    except InvalidOperation:
        return None
    return read if read.is_finite() else None


def moment(text: str) -> Decimal | None:
    """Seconds since the epoch, of ISO 8601 or of a number."""
    try:
        read = datetime.fromisoformat(text.strip())
    except ValueError:
        return number(text)
    if read.tzinfo is None:
        read = read.replace(tzinfo=UTC)
    return Decimal(str(read.timestamp()))


def _is_network(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_boolean(text: str) -> bool:
    return text.lower() in ("true", "false")


_FORMS: Final[Mapping[str, tuple[Callable[[str], bool], str]]] = {
    "numeric": (lambda text: number(text) is not None, "a number"),
    "date": (lambda text: moment(text) is not None, "a date in ISO 8601, or seconds since the epoch"),
    "ipaddress": (_is_network, "an IP address or a range in CIDR form"),
    "notipaddress": (_is_network, "an IP address or a range in CIDR form"),
    "binary": (_is_base64, "in base64"),
    "bool": (_is_boolean, "true or false"),
    NULL: (_is_boolean, "true or false"),
}
"""The form of the values of some operators, by the start of their names."""
