"""Decides whether policies permit a request: `evaluate`.

1. A Deny that applies, in any policy, refuses.
2. Within one account: the identity's policies, its permissions boundary (if it has one) and its session
   policies (if there are any) must each allow the request; or the resource's policy names the identity.

       the resource's policy allows   then nothing is needed of
       an IAM user by its ARN         identity policies, permissions boundary, session policies
       a session by its ARN           identity policies, permissions boundary, session policies
       everybody, "*"                 identity policies, permissions boundary, session policies
       a role by its ARN              identity policies
       the account                    nothing: it only lets the account decide

3. From another account: the caller's side as above, and the resource's policy, must both allow.

The root user of an account needs no identity policy. Source: IAM User Guide, "Policy evaluation logic" (for
requests within a single account, and cross-account) and "Permissions boundaries for IAM entities". For "*"
the guide says so of statements with a condition on aws:PrincipalArn; that a condition makes no difference to
whom a statement names is [assumed]. Policies of organizations (SCP, RCP) do not exist here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal

from hashrange import pace
from hashrange.operations.policies.documents import matches
from hashrange_access.policies.conditions import Condition
from hashrange_access.policies.documents import Policy, Statement
from hashrange_access.policies.patterns import has_variables, resource_fits, substituted
from hashrange_access.policies.requests import Principal, Request, root_arn

Layer = Literal["identity-based policy", "resource-based policy", "permissions boundary", "session policy"]

IDENTITY: Final = "identity-based policy"
RESOURCE: Final = "resource-based policy"
BOUNDARY: Final = "permissions boundary"
SESSION: Final = "session policy"

_EVERYBODY: Final = "*"
_CACHED_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Attached:
    """The policies that take part. `identity` are those of the user, its groups or its role. `boundary` and
    `session` are None if there is none: an empty one allows nothing."""

    identity: tuple[Policy, ...] = ()
    resource: tuple[Policy, ...] = ()
    boundary: tuple[Policy, ...] | None = None
    session: tuple[Policy, ...] | None = None

    def layers(self) -> Iterator[tuple[Layer, tuple[Policy, ...]]]:
        """The policies by their layer, in the order in which a refusal names them."""
        yield IDENTITY, self.identity
        yield RESOURCE, self.resource
        yield BOUNDARY, self.boundary or ()
        yield SESSION, self.session or ()


@dataclass(frozen=True, slots=True)
class Considered:
    """What became of one statement: `mismatch` is why it does not apply ("": it applies)."""

    layer: Layer
    policy: str
    statement: Statement
    mismatch: str

    def __str__(self) -> str:
        effect = "Allow" if self.statement.allows else "Deny"
        outcome = f"does not apply: {self.mismatch}" if self.mismatch else "applies"
        return f"{effect} of {self.policy}, {self.statement.label} ({self.layer}) {outcome}"


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a request is allowed. For a refusal: the `layer` that refused, and the `statement` that denied
    it explicitly (None: no statement allowed it)."""

    request: Request
    attached: Attached
    allowed: bool
    layer: Layer = IDENTITY
    policy: str = ""
    statement: Statement | None = None

    def message(self) -> str:
        """The text of the AccessDeniedException for a refusal.

        Source: IAM User Guide, "Troubleshoot access denied error messages".
        """
        request = self.request
        opening = (
            f"User: {request.principal.arn} is not authorized to perform: {request.action} on resource: "
            f"{request.resource}"
        )
        article = "an" if self.layer == IDENTITY else "a"
        if self.statement is not None:
            return f"{opening} with an explicit deny in {article} {self.layer}"
        return f"{opening} because no {self.layer} allows the {request.action} action"

    def explained(self) -> list[str]:
        """The decision, and what became of each statement, a line each."""
        outcome = "allowed" if self.allowed else "refused"
        why = ""
        if self.statement is not None:
            word = "allowed by" if self.allowed else "denied by"
            why = f": {word} {self.policy}, {self.statement.label} ({self.layer})"
        elif not self.allowed:
            why = f": no {self.layer} allows it"
        elif self.request.principal.kind == "Account":
            why = ": the root user of the account needs no identity policy"
        lines = [f"{self.request.action} on {self.request.resource} is {outcome}{why}"]
        return lines + [str(considered) for considered in self.considered()]

    def considered(self) -> list[Considered]:
        """What became of each statement of all policies."""
        return [
            Considered(layer, policy.name, statement, _why(statement, self.request))
            for layer, policies in self.attached.layers()
            for policy in policies
            for statement in policy.statements
        ]


def evaluate(request: Request, attached: Attached) -> Decision:
    """Decide one request. `attached.resource` are the policies of the request's resource."""
    if attached.boundary is not None:
        request = replace(request, is_bounded=True)
    for layer, policies in attached.layers():
        denying = _applying(policies, request, allows=False)
        if denying is not None:
            return Decision(request, attached, False, layer, *denying)
    own = _own_side(request, attached)
    granting = list(_granting(attached.resource, request))
    if request.resource_account != request.principal.account:
        if not granting:
            return Decision(request, attached, False, RESOURCE)
        return own
    if own.allowed:
        return own
    for policy, statement in granting:
        if _suffices(statement, request, attached):
            return Decision(request, attached, True, RESOURCE, policy, statement)
    return own


def _own_side(request: Request, attached: Attached) -> Decision:
    """What the caller's account decides: identity policies, boundary and session policies must all allow."""
    by: tuple[str, Statement] | None = None
    if request.principal.kind != "Account":
        by = _applying(attached.identity, request, allows=True)
        if by is None:
            return Decision(request, attached, False, IDENTITY)
    for layer, policies in ((BOUNDARY, attached.boundary), (SESSION, attached.session)):
        if policies is not None and _applying(policies, request, allows=True) is None:
            return Decision(request, attached, False, BOUNDARY if layer == BOUNDARY else SESSION)
    if by is None:
        return Decision(request, attached, True, IDENTITY)
    return Decision(request, attached, True, IDENTITY, *by)


def _granting(policies: tuple[Policy, ...], request: Request) -> Iterator[tuple[str, Statement]]:
    """The statements of a resource's policies that allow a request."""
    for policy in policies:
        for statement in policy.statements:
            if statement.allows and mismatch(statement, request) is None:
                yield policy.name, statement


def _suffices(statement: Statement, request: Request, attached: Attached) -> bool:
    """Whether an Allow of the resource's policy needs no Allow of the identity's policies; see the table at
    the top."""
    principal = request.principal
    names = {name for kind, name in statement.principals or () if kind == "AWS"}
    if statement.excludes_principals:
        names = {_EVERYBODY}
    if _EVERYBODY in names or (principal.arn in names and principal.arn != root_arn(principal.account)):
        return True
    if principal.role_arn not in names:
        return False
    limits = (attached.boundary, attached.session)
    return all(limit is None or _applying(limit, request, allows=True) for limit in limits)


def _applying(policies: Iterable[Policy], request: Request, *, allows: bool) -> tuple[str, Statement] | None:
    """The first statement with this effect that applies to a request, with its policy's name."""
    for policy in policies:
        for statement in policy.statements:
            if statement.allows is allows and mismatch(statement, request) is None:
                return policy.name, statement
    return None


def mismatch(statement: Statement, request: Request) -> str | Condition | None:
    """Why a statement does not apply to a request: the name of an element, or a condition; None if it
    applies."""
    pace.point()
    if _includes(statement.actions, request.action) is statement.excludes_actions:
        return "NotAction" if statement.excludes_actions else "Action"
    if _names_resource(statement, request) is statement.excludes_resources:
        return "NotResource" if statement.excludes_resources else "Resource"
    if statement.principals is not None and not _is_about(statement, request):
        return "NotPrincipal" if statement.excludes_principals else "Principal"
    for condition in statement.conditions:
        if not condition.holds(request.keys, variables=statement.variables):
            return condition
    return None


def _why(statement: Statement, request: Request) -> str:
    """`mismatch` in words."""
    cause = mismatch(statement, request)
    if cause is None:
        return ""
    if isinstance(cause, Condition):
        return cause.explained(request.keys)
    element = cause.removeprefix("Not")
    asked = {"Action": request.action, "Resource": request.resource}.get(element, request.principal.arn)
    return f"its {cause} {'does not include' if element == cause else 'excludes'} {asked}"


@lru_cache(_CACHED_MAX)
def _includes(patterns: tuple[str, ...], action: str) -> bool:
    """Whether one of the patterns matches an action. Cached, because a client asks for few actions."""
    lowered = action.lower()
    return any(matches(pattern, lowered) for pattern in patterns)


def _names_resource(statement: Statement, request: Request) -> bool:
    if not statement.variables or not any(map(has_variables, statement.resources)):
        return _lists_resource(statement.resources, request.resource)
    patterns = (substituted(written, request.keys) for written in statement.resources)
    return _fits_one((pattern for pattern in patterns if pattern is not None), request.resource)


@lru_cache(_CACHED_MAX)
def _lists_resource(patterns: tuple[str, ...], resource: str) -> bool:
    """As `_fits_one`. Cached, because a client uses few resources."""
    return _fits_one(patterns, resource)


def _fits_one(patterns: Iterable[str], resource: str) -> bool:
    return any(pattern == _EVERYBODY or resource_fits(pattern, resource) for pattern in patterns)


def _is_about(statement: Statement, request: Request) -> bool:
    """Whether a statement of a resource's policy is about the principal of a request.

    NotPrincipal of a Deny spares only a principal all of whose identities it lists: the account's, the role's
    and its own; and nobody who has a permissions boundary. Source: IAM User Guide, "AWS JSON policy elements:
    NotPrincipal", "Permissions boundaries for IAM entities".
    """
    listed, principal = statement.principals or (), request.principal
    named = [identity for identity in principal.identities if _lists(listed, identity, principal)]
    if not statement.excludes_principals:
        return bool(named)
    if statement.allows:
        return not named
    return request.is_bounded or len(named) < len(principal.identities)


def _lists(listed: tuple[tuple[str, str], ...], identity: str, principal: Principal) -> bool:
    kind = "Service" if principal.kind == "Service" else "AWS"
    return any(written == kind and name in (_EVERYBODY, identity) for written, name in listed)
