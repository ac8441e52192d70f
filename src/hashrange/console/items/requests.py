"""The requests of the form on a table's page: a Query where a partition key is given, else a Scan."""

from __future__ import annotations

from typing import Any, Final

import orjson

from hashrange.console.reach import Refused, View, key_of

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
    elif view.given("sk"):
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
    sort = next((key for key in keys if key[1] == "RANGE"), None)
    operator = view.given("op") or ("=" if view.given("sk") else "")
    if sort is None or not operator:
        return " AND ".join(terms)
    if operator not in OPERATORS:
        raise Refused(f"{operator!r} is not a condition on a sort key.")
    names["#s"] = sort[0]
    values[":s"] = {sort[2]: view.request.query_params.get("sk", "")}
    if operator == "between":
        values[":t"] = {sort[2]: view.request.query_params.get("sk2", "")}
        terms.append("#s BETWEEN :s AND :t")
    elif operator == "begins_with":
        terms.append("begins_with(#s, :s)")
    else:
        terms.append(f"#s {operator} :s")
    return " AND ".join(terms)


def consumed_units(answer: dict[str, Any]) -> float | None:
    """The capacity units that an answer cost; None where the past was read, which costs nothing."""
    capacity = answer.get("ConsumedCapacity")
    return float(capacity["CapacityUnits"]) if capacity else None
