"""A request as policies see it: who asks for which action on which resource, and what the request says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["User", "AssumedRole", "FederatedUser", "Account", "Service", "Anonymous"]


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks. `kind` is IAM's aws:PrincipalType; "Account" is the root user of an account.

    `arn` is the ARN of the user or of the role's session, `role_arn` the ARN of the role that a session has
    assumed ("" for others). `name` is a user's name (aws:username), `user_id` its unique id (aws:userid).
    """

    arn: str
    account: str
    kind: Kind = "User"
    role_arn: str = ""
    name: str = ""
    user_id: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def identities(self) -> tuple[str, ...]:
        """All ARNs by which a policy may name this principal: the account's, the role's and its own."""
        arns = (root_arn(self.account), self.role_arn, self.arn) if self.account else (self.arn,)
        return tuple(dict.fromkeys(arn for arn in arns if arn))


@dataclass(frozen=True, slots=True)
class Request:
    """One action on one resource.

    `keys` are the context keys of the request by their names in lower case, each with all its values as
    text. A key without values is one whose set is empty; a key that is missing is not in the request.
    `resource_account` owns the resource. `is_bounded`: the principal has a permissions boundary, which only
    NotPrincipal needs to know.
    """

    principal: Principal
    action: str
    resource: str
    resource_account: str
    keys: Mapping[str, tuple[str, ...]]
    is_bounded: bool = False


def root_arn(account: str) -> str:
    """The ARN that stands for a whole account."""
    return f"arn:aws:iam::{account}:root"


def principal_keys(principal: Principal) -> dict[str, tuple[str, ...]]:
    """The global condition keys that say who asks. Source: IAM User Guide, "AWS global condition context
    keys"."""
    keys = {
        "aws:principalarn": principal.role_arn or principal.arn,
        "aws:principalaccount": principal.account,
        "aws:principaltype": principal.kind,
        "aws:userid": principal.user_id,
    }
    if principal.kind == "User":
        keys["aws:username"] = principal.name
    for tag, value in principal.tags.items():
        keys[f"aws:principaltag/{tag.lower()}"] = value
    made: dict[str, tuple[str, ...]] = {key: (value,) for key, value in keys.items() if value}
    made["aws:principalisawsservice"] = ("true" if principal.kind == "Service" else "false",)
    return made
