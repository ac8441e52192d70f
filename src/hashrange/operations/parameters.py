"""Rules about parameters that several operations share: expressions beside legacy parameters, placeholders,
projections, conditions.

Wording: Developer Guide, "Legacy conditional parameters", and reports of the service's answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hashrange import expressions
from hashrange.errors import RequestViolation
from hashrange.expressions import Projection, Substitutions, legacy
from hashrange.operations.context import Request
from hashrange.shapes.vocabulary import Structure
from hashrange.values import Item


def check_styles(
    request: Request, expression: tuple[str, ...], older: tuple[str, ...], valued: tuple[str, ...] = ()
) -> None:
    """Refuse expressions beside legacy parameters, and placeholders without an expression.

    `valued` are the expressions that may hold values.
    """
    if not _has(request, older) and (not _has(request, _PLACEHOLDERS) or _has(request, valued)):
        # A shortcut for the usual request.
        return
    expressions_given = [name for name in expression if request.get(name) is not None]
    older_given = [name for name in older if request.get(name) is not None]
    if "KeyConditions" in older_given and "KeyConditionExpression" not in expressions_given:
        # KeyConditions is refused only beside KeyConditionExpression.
        older_given.remove("KeyConditions")
    if expressions_given and older_given:
        raise RequestViolation(
            "Can not use both expression and non-expression parameters in the same request: "
            f"Non-expression parameters: {{{', '.join(older_given)}}} "
            f"Expression parameters: {{{', '.join(expressions_given)}}}"
        )
    if request.get("ExpressionAttributeNames") is not None and not expressions_given:
        raise RequestViolation("ExpressionAttributeNames can only be specified when using expressions")
    if (
        valued
        and request.get("ExpressionAttributeValues") is not None
        and not any(name in expressions_given for name in valued)
    ):
        rule = "ExpressionAttributeValues can only be specified when using expressions"
        if len(valued) == 1:
                    raise RequestViolation(f"{rule}: {valued[0]} is null", rule)
        raise RequestViolation(f"{rule}: {' and '.join(valued)} are null")


def _has(request: Request, names: tuple[str, ...]) -> bool:
    for name in names:  # noqa: SIM110 (compiled, a loop costs less)
        if name in request:
            return True
    return False


def without_placeholders(member: Request) -> Request:
    """The member of a transaction without its placeholders, which are allowed even if it has no expression.

    [report] extenddb pull request 169; DynamoDB Local refuses them.
    """
    return {name: value for name, value in member.items() if name not in _PLACEHOLDERS}


_PLACEHOLDERS = ("ExpressionAttributeNames", "ExpressionAttributeValues")


def substitutions(request: Request, *, level: int = 1) -> Substitutions:
    """The placeholders of a request, checked; `level` as in `Substitutions`."""
    names, values = request.get("ExpressionAttributeNames"), request.get("ExpressionAttributeValues")
    return Substitutions(names, values, level=level)


def known(member: Request, shape: Structure) -> Request:
    """A transaction's member without the members that its shape does not have, because the functions that
    read it belong to operations with more members."""
    if member.keys() <= shape.members.keys():
        return member
    return {name: value for name, value in member.items() if name in shape.members}


def names_only(request: Request) -> Substitutions:
    """The placeholders of a request that takes no ExpressionAttributeValues and ignores such a member."""
    return Substitutions(request.get("ExpressionAttributeNames"))


def projection(request: Request, subs: Substitutions) -> Projection | None:
    """The projection of a read, in either style."""
    text = request.get("ProjectionExpression")
    if text is not None:
        return expressions.projection(text, subs)
    names = request.get("AttributesToGet")
    return legacy.attributes_to_get(names) if names is not None else None


def write_condition(request: Request, subs: Substitutions) -> Callable[[Item], bool] | None:
    """The condition of a write, in either style."""
    text = request.get("ConditionExpression")
    if text is not None:
        return expressions.condition(text, subs, "ConditionExpression", tells_size=True).test
    if "Expected" not in request and "ConditionalOperator" not in request:
        return None
    expected = request.get("Expected")
    test = None
    if expected is not None:
        test = legacy.expected(expected, request.get("ConditionalOperator")).test
    check_operator(request, expected)
    return test


def check_operator(request: Request, conditions: Mapping[str, Any] | None) -> None:
    """Refuse a ConditionalOperator without legacy conditions, because it joins these."""
    if request.get("ConditionalOperator") is None:
        return
    if not conditions:
        raise RequestViolation("ConditionalOperator cannot be used without Filter or Expected")
    if len(conditions) == 1:
        raise RequestViolation(
            "ConditionalOperator can only be used when Filter or Expected has two or more elements"
        )
