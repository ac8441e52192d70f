"""Reads a policy document in IAM's JSON: `parse`.

It reads identity policies, permissions boundaries and session policies, which name no principal, and resource
policies, which must. `operations.policies.documents` checks the resource policies that are attached to tables
with the words of DynamoDB; this module reads what is valid, and says in its own words what is not.

Source: IAM User Guide, "Grammar of the IAM JSON policy language".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hashrange_access.policies.conditions import Condition, read_condition
from hashrange_access.policies.errors import PolicyError

VERSION: Final = "2012-10-17"
OLD_VERSION: Final = "2008-10-17"
_MEMBERS: Final = frozenset({"Version", "Id", "Statement"})
_PRINCIPAL_KINDS: Final = ("AWS", "Service", "Federated", "CanonicalUser")
_STATEMENT: Final = frozenset({
    "Sid", "Effect", "Principal", "NotPrincipal", "Action", "NotAction", "Resource", "NotResource",
    "Condition",
})  # fmt: skip
_ACCOUNT: Final = re.compile(r"[0-9]{12}")
_ACTION: Final = re.compile(r"[A-Za-z0-9-]+:[A-Za-z0-9*?]+|\*+")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement. `excludes_…`: the element was NotAction, NotResource or NotPrincipal.

    `actions` are patterns in lower case. `principals` are pairs of a kind ("AWS", "Service", …) and a name,
    and "*" stands for everybody; None: the policy is attached to an identity, so it names no principal.
    `variables`: the document's version knows policy variables.
    """

    position: int
    sid: str
    allows: bool
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: tuple[Condition, ...] = ()
    principals: tuple[tuple[str, str], ...] | None = None
    excludes_actions: bool = False
    excludes_resources: bool = False
    excludes_principals: bool = False
    variables: bool = True

    @property
    def label(self) -> str:
        """What explanations call the statement: its Sid, or its position, from 1."""
        return f"statement {self.position}" + (f' "{self.sid}"' if self.sid else "")


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy document and the name by which explanations call it."""

    name: str
    statements: tuple[Statement, ...]
    version: str = OLD_VERSION


def parse(document: Any, *, name: str = "policy", on_resource: bool = False) -> Policy:
    """Read a decoded JSON document, which is attached to a resource (`on_resource`) or to an identity.

    Raises `PolicyError`, whose text names the policy, the statement and the fault.
    """
    if not isinstance(document, dict):
        raise PolicyError(f"{name}: a policy document is a JSON object, not {_kind(document)}")
    _no_others(document, _MEMBERS, name)
    version = document.get("Version", OLD_VERSION)
    if version not in (VERSION, OLD_VERSION):
        raise PolicyError(f"{name}: Version must be {VERSION} or {OLD_VERSION}, not {version!r}")
    listed = document.get("Statement")
    if isinstance(listed, dict):
        listed = [listed]
    if not isinstance(listed, list) or not listed:
        raise PolicyError(f"{name}: Statement must be a statement or a list of statements")
    statements = tuple(
        _statement(statement, position, f"{name}, statement {position}", version == VERSION, on_resource)
        for position, statement in enumerate(listed, 1)
    )
    sids = [statement.sid for statement in statements if statement.sid]
    if len(set(sids)) < len(sids):
        raise PolicyError(f"{name}: two statements have the same Sid")
    return Policy(name, statements, version)


def _statement(value: Any, position: int, where: str, variables: bool, on_resource: bool) -> Statement:
    if not isinstance(value, dict):
        raise PolicyError(f"{where}: a statement is a JSON object, not {_kind(value)}")
    _no_others(value, _STATEMENT, where)
    effect = value.get("Effect")
    if effect not in ("Allow", "Deny"):
        raise PolicyError(f"{where}: Effect must be Allow or Deny, not {effect!r}")
    sid = value.get("Sid", "")
    if not isinstance(sid, str):
        raise PolicyError(f"{where}: Sid must be a string, not {_kind(sid)}")
    action_element = _one_of(value, "Action", where)
    resource_element = _one_of(value, "Resource", where)
    principals, excludes_principals = None, False
    if on_resource:
        principal_element = _one_of(value, "Principal", where)
        principals = _principals(value[principal_element], f"{where}, {principal_element}")
        excludes_principals = principal_element == "NotPrincipal"
    elif "Principal" in value or "NotPrincipal" in value:
        raise PolicyError(f"{where}: only the policy of a resource names a Principal")
    actions = strings(value[action_element], f"{where}, {action_element}")
    for action in actions:
        if not _ACTION.fullmatch(action):
            raise PolicyError(f"{where}: {action!r} is not an action; one looks like dynamodb:GetItem")
    resources = strings(value[resource_element], f"{where}, {resource_element}")
    for resource in resources:
        if resource != "*" and not resource.startswith("arn:") and not resource.startswith("*"):
            raise PolicyError(f'{where}: {resource!r} is not a resource; it must be an ARN or "*"')
    return Statement(
        position,
        sid,
        effect == "Allow",
        tuple(action.lower() for action in actions),
        resources,
        _conditions(value.get("Condition", {}), where),
        principals,
        action_element == "NotAction",
        resource_element == "NotResource",
        excludes_principals,
        variables,
    )


def strings(value: Any, where: str) -> tuple[str, ...]:
    """A string, or a list of strings, of a document. Raises `PolicyError`."""
    listed = value if isinstance(value, list) else [value]
    if not listed or not all(isinstance(member, str) for member in listed):
        raise PolicyError(f"{where} must be a string or a list of strings")
    return tuple(listed)


def _conditions(value: Any, where: str) -> tuple[Condition, ...]:
    if not isinstance(value, dict):
        raise PolicyError(f"{where}: Condition must be an object of operators, not {_kind(value)}")
    made = []
    for operator, keys in value.items():
        if not isinstance(keys, dict) or not keys:
            raise PolicyError(f"{where}, Condition {operator} must be an object of context keys")
        made += [read_condition(operator, key, values, where) for key, values in keys.items()]
    return tuple(made)


def _principals(value: Any, where: str) -> tuple[tuple[str, str], ...]:
    if value == "*":
        return (("AWS", "*"),)
    if not isinstance(value, dict) or not value:
        raise PolicyError(f'{where} must be "*" or an object such as {{"AWS": "arn:…"}}')
    made = []
    for kind, names in value.items():
        if kind not in _PRINCIPAL_KINDS:
            raise PolicyError(f"{where}: {kind!r} is not one of {', '.join(_PRINCIPAL_KINDS)}")
        for name in strings(names, f"{where}, {kind}"):
            is_account = kind == "AWS" and _ACCOUNT.fullmatch(name) is not None
            made.append((kind, f"arn:aws:iam::{name}:root" if is_account else name))
    return tuple(made)


def _one_of(statement: Mapping[str, Any], element: str, where: str) -> str:
    """Which of an element and its opposite a statement has."""
    present = [name for name in (element, f"Not{element}") if name in statement]
    if len(present) != 1:
        word = "both" if present else "neither"
        raise PolicyError(f"{where}: it has {word} {element} {'and' if present else 'nor'} Not{element}")
    return present[0]


def _no_others(value: Mapping[str, Any], names: frozenset[str], where: str) -> None:
    for name in value:
        if name not in names:
            known = ", ".join(sorted(names))
            raise PolicyError(f"{where}: {name!r} is not an element here; there are {known}")


def _kind(value: Any) -> str:
    words = {dict: "an object", list: "a list", str: "a string", type(None): "null"}
    return words.get(type(value), "this value")
