"""The differences that are known, each with its reason: `reason`.

A difference is known only if Hashrange decides as the other simulator does once the case is rewritten in the
way in which that simulator reads it. So a reason never hides another difference.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from judges.cases import ACCOUNT, ROLE, Case, Json

Decide = Callable[[Case], str]
"""Hashrange's decision on a case, in the words of the other simulator."""


def reason(case: Case, other: str, decide: Decide) -> str:
    """Why the other simulator decides otherwise; "" if there is no known reason."""
    for why, rewrite in _READINGS.items():
        if decide(rewrite(case)) == other:
            return why
    everything = case
    for rewrite in _READINGS.values():
        everything = rewrite(everything)
    return "several of these" if decide(everything) == other else ""


def _without_any_ipv4(case: Case) -> Case:
    return _with_values(case, ("IpAddress",), lambda value: "192.0.2.1/32" if value == "0.0.0.0/0" else value)


def _without_other_families(case: Case) -> Case:
    is_v6 = ":" in str(case.keys.get("aws:SourceIp", ""))

    def conditions(statement: Json) -> Json:
        made = {
            operator: {
                key: ["0.0.0.0/1", "128.0.0.0/1", "::/0"]
                if any("/" not in value and (":" in value) is not is_v6 for value in _listed(values))
                else values
                for key, values in keys.items()
            }
            if operator.startswith("NotIpAddress")
            else keys
            for operator, keys in statement.get("Condition", {}).items()
        }
        return statement | ({"Condition": made} if made else {})

    return _with_statements(case, conditions)


def _with_milliseconds(case: Case) -> Case:
    return _with_values(
        case, ("Date",), lambda value: "1970-01-21T10:53:45Z" if str(value).isdigit() else value
    )


def _without_short_arns(case: Case) -> Case:
    def conditions(statement: Json) -> Json:
        made = {}
        for operator, keys in statement.get("Condition", {}).items():
            made[operator] = keys
            if operator.startswith("ArnNot"):
                made[operator] = {
                    key: "arn:*:*:*:*:*" if "*" in _listed(values) else values for key, values in keys.items()
                }
        return statement | ({"Condition": made} if made else {})

    return _with_statements(case, conditions)


def _without_existence(case: Case) -> Case:
    def conditions(statement: Json) -> Json:
        made: Json = {}
        for operator, keys in statement.get("Condition", {}).items():
            name = operator.removesuffix("IfExists") if operator.startswith("ForAnyValue:") else operator
            made.setdefault(name, {}).update(keys)
        return statement | ({"Condition": made} if made else {})

    return _with_statements(case, conditions)


def _with_variables(case: Case) -> Case:
    def newest(document: Json | None) -> Json | None:
        return None if document is None else {"Version": "2012-10-17"} | document

    return replace(
        case,
        identity=[newest(document) or {} for document in case.identity],
        resource_policy=newest(case.resource_policy),
        boundary=newest(case.boundary),
        session=newest(case.session),
    )


def _without_escaped_stars(case: Case) -> Case:
    return _with_values(case, ("Equals",), lambda value: "nothing" if value == "${*}" else value)


def _with_spared_accounts(case: Case) -> Case:
    own = {case.principal, case.principal.split(":")[4], f"arn:aws:iam::{case.principal.split(':')[4]}:root"}
    if ":assumed-role/" in case.principal:
        own.add(ROLE)

    def principals(statement: Json) -> Json | None:
        if "NotPrincipal" not in statement or statement["Effect"] != "Deny":
            return statement
        if own & set(_listed(statement["NotPrincipal"]["AWS"])):
            return None
        others = {name: value for name, value in statement.items() if name != "NotPrincipal"}
        return others | {"Principal": "*"}

    return _with_statements(case, principals)


def _with_limiting_session(case: Case) -> Case:
    """A session policy limits what a resource's policy grants to everybody, or to the session by its ARN: as
    if the role were named. A permissions boundary does not."""
    if case.session is None:
        return case
    session = f"arn:aws:sts::{ACCOUNT}:assumed-role/player/night"

    def principals(statement: Json) -> Json:
        principal = statement.get("Principal")
        if principal is None or statement["Effect"] != "Allow":
            return statement
        names = ["*"] if principal == "*" else _listed(principal["AWS"])
        made = [ROLE if name in ("*", session) else name for name in names]
        return statement | {"Principal": {"AWS": made}}

    return replace(_with_statements(case, principals), boundary=_without_allows(case.boundary))


_READINGS: Final[dict[str, Callable[[Case], Case]]] = {
    # "Variables and tags": the version 2008-10-17, which holds without a Version, has no variables.
    "documents without a version have variables there": _with_variables,
    # "Variables and tags": ${*} stands for the character, in whatever operator.
    "${*} stands for a star only in patterns there": _without_escaped_stars,
    # IAM User Guide, "Condition operators": the value is in the standard CIDR format.
    "0.0.0.0/0 contains no address there": _without_any_ipv4,
    # An address of IPv6 is not one of IPv4.
    "NotIpAddress with an address of the other family is never true there": _without_other_families,
    # "Condition operators": a date may be given in seconds since the epoch.
    "seconds since the epoch are milliseconds there": _with_milliseconds,
    # "Condition operators": each of the six parts of an ARN is compared; `*` alone is none.
    "an ARN operator whose value is no ARN never matches there, not even a negated one": _without_short_arns,
    # "Condition operators": with IfExists a condition is true if the request does not have the key.
    "ForAnyValue with IfExists needs the key there": _without_existence,
    # "NotPrincipal": the account has to be listed as well as its user; and a principal with a permissions
    # boundary is always denied.
    "NotPrincipal spares principals that are listed in part there": _with_spared_accounts,
    # "Policy evaluation logic": a grant to a session by its ARN, and one to everybody, is not limited by an
    # implicit deny of a session policy.
    "session policies limit grants to a session and to everybody there": _with_limiting_session,
}


def _without_allows(document: Json | None) -> Json | None:
    """The Deny statements of a boundary, and an Allow of everything."""
    if document is None:
        return None
    denials = [statement for statement in _listed(document["Statement"]) if statement["Effect"] == "Deny"]
    return document | {"Statement": [*denials, {"Effect": "Allow", "Action": "*", "Resource": "*"}]}


def _with_values(case: Case, operators: tuple[str, ...], change: Callable[[Any], Any]) -> Case:
    """The case with other values for operators whose names hold one of these."""

    def conditions(statement: Json) -> Json:
        made = {
            operator: {key: [change(value) for value in _listed(values)] for key, values in keys.items()}
            if any(name in operator for name in operators)
            else keys
            for operator, keys in statement.get("Condition", {}).items()
        }
        return statement | ({"Condition": made} if made else {})

    return _with_statements(case, conditions)


def _with_statements(case: Case, change: Callable[[Json], Json | None]) -> Case:
    def of(document: Json | None) -> Json | None:
        if document is None:
            return None
        return document | {"Statement": list(_changed(document, change)) or [_inert(document)]}

    return replace(
        case,
        identity=[of(document) or {} for document in case.identity],
        resource_policy=of(case.resource_policy),
        boundary=of(case.boundary),
        session=of(case.session),
    )


def _changed(document: Json, change: Callable[[Json], Json | None]) -> Iterator[Json]:
    for statement in _listed(document["Statement"]):
        made = change(copy.deepcopy(statement))
        if made is not None:
            yield made


def _inert(document: Json) -> Json:
    """A statement that applies to nothing, because a document needs one."""
    is_on_resource = any(
        "Principal" in part or "NotPrincipal" in part for part in _listed(document["Statement"])
    )
    principal = {"Principal": "*"} if is_on_resource else {}
    return {"Effect": "Deny", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::none"} | principal


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
