"""FilterSpecification: which items, and which of their attributes, an export shows.

A filter is compiled when the request is checked, and again when the work begins or continues after a restart.
A key condition is tested on each item, like the filter. Both test each image of an incremental export
separately [assumed].

Source: API reference, FilterSpecification.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hashrange import expressions
from hashrange.errors import ValidationException
from hashrange.operations import parameters
from hashrange.operations.context import Request
from hashrange.values import Item

_EXPRESSIONS = ("FilterExpression", "ProjectionExpression", "KeyConditionExpression")


def compiled(request: Request) -> Callable[[Item], Item | None] | None:
    """The function from an item to its form in the export of `request`; None: all items are exported whole.

    Raises `ValidationException`.
    """
    specification: dict[str, Any] | None = request.get("FilterSpecification")
    if specification is None:
        return None
    if not any(specification.get(name) is not None for name in _EXPRESSIONS):
        # [report] ack-api-quirks DDB-EXPORT-008
        raise ValidationException(
            "Invalid Request: Invalid FilterSpecification: The specification can not be empty"
        )
    subs = parameters.substitutions(specification)
    tests: list[Callable[[Item], bool]] = []
    key_text, text = specification.get("KeyConditionExpression"), specification.get("FilterExpression")
    if key_text is not None:
        expressions.key_condition(key_text, subs)  # key conditions have more rules
        tests.append(expressions.condition(key_text, subs, "KeyConditionExpression").test)
    if text is not None:
        tests.append(expressions.condition(text, subs, "FilterExpression").test)
    shown = specification.get("ProjectionExpression")
    projection = expressions.projection(shown, subs) if shown is not None else None
    subs.check_all_used()

    def show(item: Item) -> Item | None:
        for test in tests:
            if not test(item):
                return None
        return item if projection is None else projection.apply(item)

    return show
