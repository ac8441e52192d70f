"""Attribute values as agents write and read them: DynamoDB's JSON, which keeps all digits of a number.

{"N": "0.1"} is exact to 38 digits. A plain text, whole number, truth value, null, list or object is taken as
well; a plain number with a fraction is refused, because readers of JSON round it.
"""

from __future__ import annotations

from base64 import b64decode
from typing import Any

from hashrange.interchange.item_texts import from_boto3
from hashrange.interchange.plain_json import is_typed, typed

Item = dict[str, Any]


class WrongValue(ValueError):
    """A value that is none of DynamoDB's; the text says how to write it."""


def given_item(item: Item) -> Item:
    """An item, a key, or values of an expression, for boto3. Raises WrongValue."""
    return {name: _given(name, value) for name, value in item.items()}


def given_values(values: list[Any]) -> list[Any]:
    """The parameters of a statement, for boto3. Raises WrongValue."""
    return [_given(f"parameter {place}", value) for place, value in enumerate(values, 1)]


def wire_item(item: Item) -> Item:
    """The same in DynamoDB's JSON, for the admin plane. Raises WrongValue."""
    return shown_item(given_item(item))


def shown_item(item: Item) -> Item:
    """An item of boto3 in DynamoDB's JSON."""
    return {name: from_boto3(value) for name, value in item.items()}


def _given(name: str, value: Any) -> Any:
    _refuse_fractions(name, value)
    try:
        return _to_boto3(value if is_typed(value) else typed(value))
    except ValueError as error:
        raise WrongValue(f'{name}: {error}. Write it in DynamoDB\'s JSON, such as {{"S": "x"}}.') from error


def _refuse_fractions(name: str, value: Any) -> None:
    if isinstance(value, float):
        raise WrongValue(f'{name} is {value!r}, whose digits may be lost: write {{"N": "{value!r}"}}.')
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _refuse_fractions(name, inner)


def _to_boto3(value: dict[str, Any]) -> dict[str, Any]:
    """A value in DynamoDB's JSON for boto3, which encodes binary itself. Raises ValueError for what is not
    base64."""
    ((kind, content),) = value.items()
    match kind:
        case "B":
            return {"B": b64decode(content, validate=True)}
        case "BS":
            return {"BS": [b64decode(member, validate=True) for member in content]}
        case "M":
            return {"M": {name: _inner(member) for name, member in content.items()}}
        case "L":
            return {"L": [_inner(member) for member in content]}
    return value


def _inner(value: Any) -> dict[str, Any]:
    return _to_boto3(value if is_typed(value) else typed(value))
