"""Files of items, in all forms that programs write."""

from __future__ import annotations

import json
from typing import Any, Final

TYPED: Final = [{"pk": {"S": "a"}, "n": {"N": "1.5"}}, {"pk": {"S": "b"}}]
PLAIN: Final = [{"pk": "a", "n": 1.5}, {"pk": "b"}]
OTHER: Final = [{"PutRequest": {"Item": {"pk": {"S": "other"}}}}]


def puts(items: Any) -> Any:
    return [{"PutRequest": {"Item": item}} for item in items]


def as_lines(rows_: Any) -> str:
    return "\n" + "".join(json.dumps(row) + "\n" for row in rows_)


def forms(items: Any) -> dict[str, str]:
    """The items in all forms that programs write."""
    requests = {"users": OTHER, "none": [], "tab": puts(items)}
    return {
        "list": json.dumps(items),
        "list over lines": json.dumps(items, indent=2),
        "list of puts": json.dumps(puts(items)),
        "lines": as_lines(items),
        "export": as_lines({"Item": item} for item in items),
        "answer": json.dumps({"Items": items, "Count": 2, "ScannedCount": 2}),
        "answer over lines": json.dumps({"Items": items, "Count": 2}, indent=4),
        "items alone": json.dumps({"Items": items}),
        "requests": json.dumps(requests),
        "requests over lines": json.dumps(requests, indent=2),
        "requests of one table": json.dumps({"tab": puts(items)}, indent=1),
        "requests by ARN": json.dumps({"arn:aws:dynamodb:eu-west-1:1:table/tab": puts(items)}),
        "requests of a command": json.dumps({"RequestItems": requests, "ReturnConsumedCapacity": "TOTAL"}),
    }
