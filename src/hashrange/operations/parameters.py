"""Rules that operations share about their parameters: expressions against their legacy forms, placeholders,
projections, conditions.

Wording: Developer Guide, "Legacy conditional parameters", and reports of the service's answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hashrange import expressions
from hashrange.errors import ValidationException
from hashrange.expressions import Projection, Substitutions, legacy
from hashrange.operations.context import Request
from hashrange.values import Item


def check_styles(request: Request, expression: Sequence[str], older: Sequence[str]) -> None:
    """Refuse expressions beside legacy parameters, and placeholders without an expression."""
    expressions_given = [name for name in expression if request.get(name) is not None]
    older_given = [name for name in older if request.get(name) is not None]
    if expressions_given and older_given:
        raise ValidationException(
            "Can not use both expression and non-expression parameters in the same request: "
            f"Non-expression parameters: {{{', '.join(older_given)}}} "
            f"Expression parameters: {{{', '.join(expressions_given)}}}"
        )
    if expressions_given:
        return
    for name in ("ExpressionAttributeNames", "ExpressionAttributeValues"):
        if request.get(name) is not None and (name == "ExpressionAttributeNames" or len(expression) > 1):
            raise ValidationException(f"{name} can only be specified when using expressions")


def substitutions(request: Request) -> Substitutions:
    """The placeholders of a request, checked."""
    return Substitutions(request.get("ExpressionAttributeNames"), request.get("ExpressionAttributeValues"))


def projection(request: Request, subs: Substitutions) -> Projection | None:
    """The projection that a read asks for, in either style."""
    text = request.get("ProjectionExpression")
    if text is not None:
        return expressions.projection(text, subs)
    names = request.get("AttributesToGet")
    return legacy.attributes_to_get(names) if names is not None else None


def write_condition(request: Request, subs: Substitutions) -> Callable[[Item], bool] | None:
    """The condition of a write, in either style."""
    text = request.get("ConditionExpression")
    if text is not None:
        return expressions.condition(text, subs, "ConditionExpression").test
    expected = request.get("Expected")
    if expected is not None:
        return legacy.expected(expected, request.get("ConditionalOperator")).test
    if request.get("ConditionalOperator") is not None:
        raise ValidationException("ConditionalOperator cannot be used without Filter or Expected")
    return None
