"""Finds what is wrong in a policy document, and what has no effect or another one than it seems: `lint`.

An error means that the document is refused. A danger means that the policy permits or refuses something else
than it says. A note is about style.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from hashrange.operations.policies.documents import matches
from hashrange.operations.policies.operators import FOR_ALL
from hashrange_access.policies.conditions import Condition
from hashrange_access.policies.documents import OLD_VERSION, Policy, Statement, parse
from hashrange_access.policies.errors import PolicyError
from hashrange_access.policies.patterns import has_variables

Severity = Literal["error", "danger", "note"]

_SERVICE: Final = "dynamodb"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: where it is, and what to do."""

    severity: Severity
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.severity.upper()}: {self.where}: {self.text}"


def lint(
    document: Any,
    known_actions: frozenset[str],
    known_keys: frozenset[str],
    *,
    name: str = "policy",
    on_resource: bool = False,
) -> list[Finding]:
    """What is wrong in a decoded document; [] if nothing is.

    `known_actions` are the names of DynamoDB's actions without the service, `known_keys` the condition keys
    that requests may have; a key that ends in a slash is followed by a name. Both in lower case.
    """
    try:
        policy = parse(document, name=name, on_resource=on_resource)
    except PolicyError as error:
        return [Finding("error", name, str(error).removeprefix(name).lstrip(":, "))]
    return [
        finding
        for statement in policy.statements
        for finding in _of(policy, statement, known_actions, known_keys)
    ]


def _of(
    policy: Policy, statement: Statement, known_actions: frozenset[str], known_keys: frozenset[str]
) -> Iterator[Finding]:
    where = f"{policy.name}, {statement.label}"
    for action in statement.actions:
        service, _, named = action.partition(":")
        if service == _SERVICE and not any(matches(named, known) for known in known_actions):
            yield Finding("danger", where, f"{action} matches no action of DynamoDB, so it has no effect")
    if statement.allows and statement.excludes_actions and not statement.excludes_resources:
        yield Finding(
            "danger", where, "Allow with NotAction permits every other action, also those of later versions"
        )
    if statement.allows and statement.excludes_principals:
        yield Finding("danger", where, "Allow with NotPrincipal permits anyone else, strangers included")
    is_public = any(name == "*" for _, name in statement.principals or ())
    if statement.allows and is_public and not statement.conditions:
        yield Finding("danger", where, 'Principal "*" without a condition permits anyone, strangers included')
    if not statement.variables:
        texts = [*statement.resources, *(value for part in statement.conditions for value in part.values)]
        if any(map(has_variables, texts)):
            yield Finding(
                "danger",
                where,
                f"the version {OLD_VERSION} has no variables: ${{…}} is compared literally. "
                'Add "Version": "2012-10-17"',
            )
    for condition in statement.conditions:
        start, slash, _ = condition.key.partition("/")
        if start + slash not in known_keys:
            yield Finding(
                "danger", where, f"{condition.text}: no request to Hashrange ever has this key"
            )
        yield from _of_condition(statement, condition, where)


def _of_condition(statement: Statement, condition: Condition, where: str) -> Iterator[Finding]:
    effect = "Allow" if statement.allows else "Deny"
    if condition.operator == "null":
        return
    if condition.is_multivalued and not condition.qualifier:
        result = "permits nothing" if statement.allows else "REFUSES NOTHING"
        yield Finding(
            "danger",
            where,
            f"{condition.text} never matches, because the key may have several values: this {effect} "
            f"{result}. Write {'ForAllValues' if statement.allows else 'ForAnyValue'}:{condition.text}",
        )
    if condition.qualifier and not condition.is_multivalued:
        severity: Severity = "danger" if condition.qualifier == FOR_ALL else "note"
        yield Finding(
            severity, where, f"{condition.text}: the key has at most one value, so use the operator alone"
        )
    if condition.is_multivalued and condition.qualifier == FOR_ALL and statement.allows:
        nulls = {other.key for other in statement.conditions if other.operator == "null"}
        guarded = condition.key in nulls
        if not guarded and (statement.excludes_actions or _reads_all(statement)):
            yield Finding(
                "danger",
                where,
                f"{condition.text} is also true for a request without the key, such as a Scan, which this "
                f'Allow therefore permits. Name the actions, or add "Null": {{"{condition.key}": "false"}}',
            )
    if condition.is_multivalued and condition.qualifier == FOR_ALL and not statement.allows:
        yield Finding(
            "danger",
            where,
            f"{condition.text} of a Deny needs all values of a request to match: a batch with one other "
            "value escapes it. Write ForAnyValue",
        )
    if condition.operator in ("stringequals", "stringnotequals") and any(
        "*" in value.replace("${*}", "") for value in condition.values
    ):
        yield Finding("danger", where, f"{condition.text} has no wildcards: * is compared literally")


def _reads_all(statement: Statement) -> bool:
    """Whether a statement's actions include a Scan."""
    return any(matches(action, "dynamodb:scan") for action in statement.actions)
