"""The requests of the form on a table's page: a Query where a partition key is given, else a Scan."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import orjson

from hashrange_console.reach import Refused, View, key_of

PAGE_ITEMS: Final = 50
OPERATORS: Final = {
    "": "any",
    "=": "=",
    "<": "<",
    "<=": "≤",
    ">": ">",
    ">=": "≥",
    "begins_with": "begins with",
    "between": "between",
}
"""The conditions on a sort key, and how the form shows them."""

Key = tuple[str, str, str]


class Sort(NamedTuple):
    """A condition on an attribute of a sort key, as the form has it; without an operator there is none."""

    operator: str = ""
    value: str = ""
    value2: str = ""


def sorts(view: View, count: int) -> list[Sort]:
    """The conditions of the address on the attributes of a sort key, of which there are `count`."""
    given = [view.request.query_params.getlist(name) for name in ("op", "sk", "sk2")]
    compared = []
    for place in range(count):
        operator, value, value2 = (texts[place] if place < len(texts) else "" for texts in given)
        compared.append(Sort(operator.strip() or ("=" if value.strip() else ""), value, value2))
    return compared


def asked(view: View, table: str, index: str, keys: list[Key]) -> tuple[str, dict[str, Any]]:
    """The operation and the request of a page. Raises `Refused` for what cannot be a request."""
    sent: dict[str, Any] = {"TableName": table, "Limit": PAGE_ITEMS, "ReturnConsumedCapacity": "INDEXES"}
    if index:
        sent["IndexName"] = index
    names, values = _placeholders(view)
    if text := view.given("filter"):
        sent["FilterExpression"] = text
    operation = "Scan"
    given = view.request.query_params.getlist("pk")
    if any(given):
        operation = "Query"
        sent["KeyConditionExpression"] = _key_condition(view, keys, given, names, values)
        if view.given("order") == "down":
            sent["ScanIndexForward"] = False
    elif any(view.request.query_params.getlist("sk")):
        raise Refused("A condition on the sort key needs the partition key as well.")
    if names:
        sent["ExpressionAttributeNames"] = names
    if values:
        sent["ExpressionAttributeValues"] = values
    if start := view.given("start"):
        sent["ExclusiveStartKey"] = key_of(start)
    return operation, sent


def _placeholders(view: View) -> tuple[dict[str, Any], dict[str, Any]]:
    """The names and the values of a filter expression."""
    return _object(view.given("names"), "names"), _object(view.given("values"), "values")


def _object(text: str, what: str) -> dict[str, Any]:
    if not text:
        return {}
    try:
        decoded = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Refused(f"The {what} of the filter are not JSON: {error}.") from None
    if not isinstance(decoded, dict):
        raise Refused(f"The {what} of the filter are not a JSON object.")
    return decoded


def _key_condition(
    view: View, keys: list[Key], given: list[str], names: dict[str, Any], values: dict[str, Any]
) -> str:
    partition = [key for key in keys if key[1] == "HASH"]
    if len(given) != len(partition) or not all(given):
        raise Refused("Give a value for each attribute of the partition key.")
    terms = []
    for number, (key, text) in enumerate(zip(partition, given, strict=True)):
        names[f"#p{number}"] = key[0]
        values[f":p{number}"] = {key[2]: text}
        terms.append(f"#p{number} = :p{number}")
    sort = [key for key in keys if key[1] == "RANGE"]
    last = ""
    for number, (key, compared) in enumerate(zip(sort, sorts(view, len(sort)), strict=True)):
        if not compared.operator:
            last = last or f"{key[0]} has none"
            continue
        if last:
            raise Refused(f"{key[0]} has a condition, but {last}: sort keys are compared from left to right.")
        if compared.operator != "=":
            last = f"the one of {key[0]} is not ="
        terms.append(_comparison(number, key, compared, names, values))
    return " AND ".join(terms)


def _comparison(
    number: int, key: Key, compared: Sort, names: dict[str, Any], values: dict[str, Any]
) -> str:
    """The text of a condition on an attribute of a sort key. Raises `Refused`."""
    if compared.operator not in OPERATORS:
        raise Refused(f"{compared.operator!r} is not a condition on a sort key.")
    suffix = str(number or "")
    name, low, high = f"#s{suffix}", f":s{suffix}", f":t{suffix}"
    names[name] = key[0]
    values[low] = {key[2]: compared.value}
    if compared.operator == "between":
        values[high] = {key[2]: compared.value2}
        return f"{name} BETWEEN {low} AND {high}"
    if compared.operator == "begins_with":
        return f"begins_with({name}, {low})"
    return f"{name} {compared.operator} {low}"


def consumed_units(answer: dict[str, Any]) -> float | None:
    """The capacity units that an answer cost; None where the past was read, which costs nothing."""
    capacity = answer.get("ConsumedCapacity")
    return float(capacity["CapacityUnits"]) if capacity else None
