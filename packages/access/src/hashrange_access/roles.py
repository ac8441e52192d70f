"""Identities, and the roles that they may assume.

A role has a trust policy, which says who may assume it: a policy with principals and without a resource,
because the resource is the role.

Source: IAM User Guide, "IAM roles", "Roles terms and concepts", "Update the maximum session duration for a
role".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hashrange_access.policies.documents import Policy, parse
from hashrange_access.policies.errors import PolicyError
from hashrange_access.policies.requests import Principal

DURATION_SECONDS_DEFAULT: Final = 3_600
DURATION_SECONDS_MAX: Final = 12 * 3_600
"""The least and the greatest maximum that a role's sessions may have."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who has signed a request, with the policies of this identity. `boundary` and `session` are None if it
    has none. `requests_per_second` limits its requests, unless it is None. `operates` is its role on the
    admin plane: "read", "write", "admin", or "" for none."""

    principal: Principal
    policies: tuple[Policy, ...] = ()
    boundary: tuple[Policy, ...] | None = None
    session: tuple[Policy, ...] | None = None
    requests_per_second: float | None = None
    operates: str = ""


@dataclass(frozen=True, slots=True)
class Role:
    """A role of an account. Without a `trust` policy nobody may assume it."""

    account: str
    name: str
    policies: tuple[Policy, ...] = ()
    boundary: tuple[Policy, ...] | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    trust: Policy | None = None
    duration_seconds_max: int = DURATION_SECONDS_DEFAULT

    @property
    def arn(self) -> str:
        return f"arn:aws:iam::{self.account}:role/{self.name}"

    def session(
        self, name: str, limits: tuple[Policy, ...] | None = None, tags: Mapping[str, str] | None = None
    ) -> Identity:
        """The identity of a session of the role. `limits` are its session policies, None for none; `tags`
        are added to those of the role, and replace tags of the same name."""
        principal = Principal(
            f"arn:aws:sts::{self.account}:assumed-role/{self.name}/{name}",
            self.account,
            "AssumedRole",
            self.arn,
            user_id=f"{self.name}:{name}",
            tags={**self.tags, **(tags or {})},
        )
        return Identity(principal, self.policies, self.boundary, limits)


def parse_trust(document: Any, *, name: str) -> Policy:
    """Read a trust policy. Raises `PolicyError`."""
    return parse(with_resource(document, name), name=name, on_resource=True)


def with_resource(document: Any, name: str) -> Any:
    """A trust policy in the form of a resource's policy: with the resource that it must not have itself.
    Raises `PolicyError` if it has."""
    if not isinstance(document, dict):
        return document
    listed = document.get("Statement")
    whole = []
    for number, statement in enumerate(listed if isinstance(listed, list) else [listed], 1):
        if not isinstance(statement, dict):
            whole.append(statement)
            continue
        for element in ("Resource", "NotResource"):
            if element in statement:
                raise PolicyError(
                    f"{name}, statement {number}: it has {element}, but a trust policy is about its role: "
                    "leave it out"
                )
        whole.append({**statement, "Resource": "*"})
    return {**document, "Statement": whole}
