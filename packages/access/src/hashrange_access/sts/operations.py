"""The operations of STS: AssumeRole, GetSessionToken, GetCallerIdentity.

A role is assumed if its trust policy allows the caller, and the policies of the caller do so too. A trust
policy that names a user or a session by its ARN suffices. On a server without --auth any credentials are
accepted, so there the operations answer every caller, and the credentials that they give away are only
names: the access key is the account's id.

Source: AWS Security Token Service API Reference; IAM User Guide, "Methods to assume a role", "Pass session
tags in AWS STS". The texts are those that clients of AWS report; those of what Hashrange lacks are its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from hashrange_access.directory import Directory
from hashrange_access.keys.sealing import VaultError
from hashrange_access.policies.documents import Policy
from hashrange_access.policies.errors import PolicyError
from hashrange_access.policies.evaluation import Attached, evaluate, mismatch
from hashrange_access.policies.requests import Principal, Request, principal_keys
from hashrange_access.roles import Identity, Role
from hashrange_access.signatures import Key
from hashrange_access.sts.answers import Result, StsError
from hashrange_access.sts.parameters import Form
from hashrange_access.sts.tokens import Session, Tokens, inline

_DURATION_MIN: Final = 900
_ROLE_DEFAULT: Final = 3_600
_ROLE_MAX: Final = 43_200
_CHAINED_MAX: Final = 3_600
_USER_DEFAULT: Final = 43_200
_USER_MAX: Final = 129_600
_ROOT_MAX: Final = 3_600
_TAGS_MAX: Final = 50
_POLICY_ARNS_MAX: Final = 10
_POLICY_CHARS_MAX: Final = 2_048
_SESSION_NAME: Final = re.compile(r"[\w+=,.@-]*", re.ASCII)
_EXTERNAL_ID: Final = re.compile(r"[\w+=,.@:\/-]*", re.ASCII)
_ROLE_ARN: Final = re.compile(r"arn:aws:iam::([0-9]{12}):role/(?:[\x21-\x7e]*/)?([\w+=,.@-]{1,64})", re.ASCII)
_NO_DEVICES: Final = {
    "SerialNumber": "Hashrange knows no MFA devices.",
    "TokenCode": "Hashrange knows no MFA devices.",
}
_NOT_THERE: Final = {
    **_NO_DEVICES,
    "SourceIdentity": "Hashrange keeps no source identities.",
    "ProvidedContexts": "Hashrange knows no providers of contexts.",
    "TransitiveTagKeys": "Hashrange passes no tags on to the next role.",
}
_ANY_SECRET: Final = "any-secret-is-accepted-here"

Keys = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Desk:
    """What the operations need of a server with users. `connection` are the condition keys of the request's
    connection. Without `tokens` there are no sessions."""

    directory: Directory
    tokens: Tokens | None
    connection: Keys


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks. `key` is the key that has signed the request; None where no signature was verified."""

    identity: Identity
    key: Key | None = None


Operation = Callable[[Form, Asker, Desk | None, float], Result]
"""An operation: the form, who asks, the desk (None: any credentials are accepted), and the time."""


def get_caller_identity(form: Form, asker: Asker, desk: Desk | None, now: float) -> Result:
    principal = asker.identity.principal
    return {"UserId": principal.user_id, "Account": principal.account, "Arn": principal.arn}


def get_session_token(form: Form, asker: Asker, desk: Desk | None, now: float) -> Result:
    form.refuse(_NO_DEVICES)
    principal = asker.identity.principal
    is_root = principal.kind == "Account"
    seconds = form.seconds("DurationSeconds", _USER_DEFAULT, _DURATION_MIN, _USER_MAX)
    expires = now + (min(seconds, _ROOT_MAX) if is_root else seconds)
    if desk is None:
        return {"Credentials": _any_credentials(principal.account, expires)}
    assert asker.key is not None
    if asker.key.token:
        raise StsError("AccessDenied", "Cannot call GetSessionToken with session credentials", 403)
    return {"Credentials": _credentials(desk, Session(expires=expires, by=asker.key.id))}


def assume_role(form: Form, asker: Asker, desk: Desk | None, now: float) -> Result:
    form.refuse(_NOT_THERE)
    arn = form.required("RoleArn", 20, 2_048)
    name = form.required("RoleSessionName", 2, 64, _SESSION_NAME)
    seconds = form.seconds("DurationSeconds", _ROLE_DEFAULT, _DURATION_MIN, _ROLE_MAX)
    external = form.text("ExternalId", 2, 1_224, _EXTERNAL_ID)
    policy = form.text("Policy", 1, _POLICY_CHARS_MAX) or ""
    policy_arns = tuple(arn for (arn,) in form.members("PolicyArns", "arn"))
    tags = _tags(form)
    matched = _ROLE_ARN.fullmatch(arn)
    if matched is None:
        raise StsError("ValidationError", f"{arn} is invalid")
    if len(policy_arns) > _POLICY_ARNS_MAX:
        raise StsError("ValidationError", f"PolicyArns: there are more than {_POLICY_ARNS_MAX} policies")
    if policy:
        _check_policy(policy)
    account, role_name = matched.groups()
    if desk is None:
        credentials = _any_credentials(account, now + seconds)
        return {"AssumedRoleUser": _assumed(Role(account, role_name), name), "Credentials": credentials}
    keys: dict[str, tuple[str, ...]] = {
        **desk.connection,
        **principal_keys(asker.identity.principal),
        **_of_time(now),
        "sts:rolesessionname": (name,),
        **{f"aws:requesttag/{tag.lower()}": (value,) for tag, value in tags.items()},
    }
    if tags:
        keys["aws:tagkeys"] = tuple(tags)
    if external is not None:
        keys["sts:externalid"] = (external,)
    role = _permitted(arn, account, asker.identity, desk.directory, keys, tagged=bool(tags))
    _check_duration(seconds, role, asker.identity.principal)
    known = desk.directory.state.users.policies
    unknown = [each for each in policy_arns if each not in known or each.split(":")[4] != account]
    if unknown:
        raise StsError("ValidationError", f"PolicyArns: the account {account} has no policy {unknown[0]}")
    session = Session(
        expires=now + seconds, role=role.arn, name=name, policy=policy, policy_arns=policy_arns, tags=tags
    )
    return {"AssumedRoleUser": _assumed(role, name), "Credentials": _credentials(desk, session)}


OPERATIONS: Final[Mapping[str, Operation]] = {
    "AssumeRole": assume_role,
    "GetCallerIdentity": get_caller_identity,
    "GetSessionToken": get_session_token,
}


def _permitted(
    arn: str, account: str, identity: Identity, directory: Directory, keys: Keys, *, tagged: bool
) -> Role:
    """The role, if the caller may assume it. A role that does not exist is refused with the same text, so
    that nobody can find out which roles there are."""
    principal = identity.principal
    if principal.kind == "Account":
        raise StsError("AccessDenied", "Roles may not be assumed by root accounts.", 403)
    role = directory.role(arn)
    for action in ("sts:AssumeRole", "sts:TagSession") if tagged else ("sts:AssumeRole",):
        if role is None or not _allows(role, action, arn, account, identity, keys):
            raise StsError("AccessDenied", _refusal(principal, action, arn), 403)
    assert role is not None
    return role


def _allows(
    role: Role, action: str, arn: str, account: str, identity: Identity, keys: Keys
) -> bool:
    """Whether the trust policy and the caller's own policies allow an action. Unlike the policy of a table,
    a trust policy must always allow it, also within the account."""
    if role.trust is None:
        return False
    request = Request(
        identity.principal, action, arn, account, {**keys, "aws:resourceaccount": (account,)}
    )
    attached = Attached(identity.policies, (role.trust,), identity.boundary, identity.session)
    return _grants(role.trust, request) and evaluate(request, attached).allowed


def _grants(trust: Policy, request: Request) -> bool:
    return any(
        statement.allows and mismatch(statement, request) is None for statement in trust.statements
    )


def _refusal(principal: Principal, action: str, arn: str) -> str:
    return f"User: {principal.arn} is not authorized to perform: {action} on resource: {arn}"


def _check_duration(seconds: int, role: Role, principal: Principal) -> None:
    exceeds = "The requested DurationSeconds exceeds the"
    if seconds > role.duration_seconds_max:
        raise StsError("ValidationError", f"{exceeds} MaxSessionDuration set for this role.")
    if principal.kind == "AssumedRole" and seconds > _CHAINED_MAX:
        limit = "1 hour session limit for roles assumed by role chaining"
        raise StsError("ValidationError", f"{exceeds} {limit}")


def _check_policy(document: str) -> None:
    try:
        inline(document)
    except PolicyError as error:
        raise StsError("MalformedPolicyDocument", str(error)) from error


def _tags(form: Form) -> dict[str, str]:
    """The session tags. The texts are [assumed]."""
    listed = [(key, value) for key, value in form.members("Tags", "Key", "Value")]
    if len(listed) > _TAGS_MAX:
        raise StsError("ValidationError", f"Tags: there are more than {_TAGS_MAX} tags")
    for key, value in listed:
        if not 1 <= len(key) <= 128 or len(value) > 256:
            raise StsError(
                "ValidationError", f"Tags: {key!r}: a key has 1 to 128 characters, a value at most 256"
            )
    if len({key.lower() for key, _ in listed}) < len(listed):
        raise StsError("InvalidParameterValue", "Duplicate tag keys found. Tag keys are case insensitive.")
    return dict(listed)


def _of_time(now: float) -> Keys:
    moment = datetime.fromtimestamp(now, UTC)
    return {
        "aws:currenttime": (moment.strftime("%Y-%m-%dT%H:%M:%SZ"),),
        "aws:epochtime": (str(int(now)),),
    }


def _assumed(role: Role, name: str) -> Result:
    principal = role.session(name).principal
    return {"AssumedRoleId": principal.user_id, "Arn": principal.arn}


def _credentials(desk: Desk, session: Session) -> Result:
    if desk.tokens is None:
        raise StsError("AccessDenied", "This server issues no sessions.", 403)
    try:
        made, token = desk.tokens.make(session)
    except VaultError as error:
        raise StsError("AccessDenied", f"This server issues no sessions: {error}", 403) from error
    return _shown(made.key_id, made.secret, token, made.expires)


def _any_credentials(account: str, expires: float) -> Result:
    """Credentials for a server that accepts any. With --separate-accounts the access key says whose tables
    they reach."""
    return _shown(account, _ANY_SECRET, _ANY_SECRET, expires)


def _shown(key_id: str, secret: str, token: str, expires: float) -> Result:
    moment = datetime.fromtimestamp(int(expires), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"AccessKeyId": key_id, "SecretAccessKey": secret, "SessionToken": token, "Expiration": moment}
