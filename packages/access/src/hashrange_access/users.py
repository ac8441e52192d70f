"""The users of a server, from a file in YAML or JSON: accounts, users, groups, roles, policies and keys.

    accounts:
      "123456789012":
        policies:
          read-scores:
            Version: 2012-10-17
            Statement: {Effect: Allow, Action: dynamodb:GetItem, Resource: "*"}
        groups:
          players: {policies: [read-scores]}
        users:
          alice:
            groups: [players]
            policies: []
            boundary: read-scores
            tags: {team: red}
            requests_per_second: 50
            admin: read
            keys: [{id: AKIDALICE, secret: …}]
        roles:
          exporter:
            policies: [read-scores]
            trust:
              Version: 2012-10-17
              Statement: {Effect: Allow, Principal: {AWS: "123456789012"}, Action: sts:AssumeRole}
            max_session_duration: 7200
            sessions:
              - {name: nightly, id: ASIDEXPORTER, secret: …, token: …, expires: 2027-01-01T00:00:00Z}
        root:
          keys: [{id: AKIDROOT, secret: …}]

A policy is a name of `policies` or a document. Every value of the file is read as text, so a date or an
account id needs no quotes. `read` raises `UsersError` for everything that it does not know, and names the
place: a misspelled `boundary` must not pass for none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from msgspec import Meta, Struct, ValidationError, convert

from hashrange.files import regular
from hashrange.server.admin.roles import OPERATOR_ROLES
from hashrange_access import plain_yaml
from hashrange_access.policies.documents import Policy, parse
from hashrange_access.policies.errors import PolicyError
from hashrange_access.policies.requests import Principal, root_arn
from hashrange_access.roles import (
    DURATION_SECONDS_DEFAULT,
    DURATION_SECONDS_MAX,
    Identity,
    Role,
    parse_trust,
)
from hashrange_access.signatures import Key

FILE_BYTES_MAX: Final = 16 * 1024 * 1024
"""The most bytes of a users file; 20,000 users with a group and a key each take 2.5 MB."""
_ACCOUNT: Final = re.compile(r"[0-9]{12}")
_NAME: Final = re.compile(r"[\w+=,.@-]{1,64}", re.ASCII)


class UsersError(ValueError):
    """A users file that cannot be used. The text names the place and the fault."""


@dataclass(frozen=True, slots=True)
class Users:
    """Who has access: the keys by their ids, the identity that each key belongs to, and all accounts.

    `people` are the users of all accounts by their ARNs, with keys or without. `roles` and `policies` are by
    their ARNs too.
    """

    keys: dict[str, Key] = field(default_factory=dict)
    identities: dict[str, Identity] = field(default_factory=dict)
    accounts: tuple[str, ...] = ()
    people: dict[str, Identity] = field(default_factory=dict)
    roles: dict[str, Role] = field(default_factory=dict)
    policies: dict[str, Policy] = field(default_factory=dict)

    def add(self, key: Key, identity: Identity) -> None:
        """Add a key of an identity. Raises `UsersError` for an id that another key has."""
        if key.id in self.keys:
            raise UsersError(f"the key {key.id} is given twice")
        self.keys[key.id] = replace(key, owner=identity)
        self.identities[key.id] = identity


def user_arn(account: str, name: str) -> str:
    """The ARN of a user; of the root user of the account for the name ""."""
    return f"arn:aws:iam::{account}:user/{name}" if name else root_arn(account)


def root_of(account: str) -> Identity:
    """The root user of an account."""
    return Identity(Principal(root_arn(account), account, "Account", user_id=account))


# -- The objects of the file --------------------------------------------------------------------------------

Kind = TypeVar("Kind", bound=Struct)
_Text = Annotated[str, Meta(min_length=1)]


class _Object(Struct, forbid_unknown_fields=True):
    """An object of the file. What stands under a name is read by itself, so that errors say the name."""


class _File(_Object):
    accounts: dict[str, Any] = {}


class _Account(_Object):
    policies: dict[str, Any] = {}
    groups: dict[str, Any] = {}
    users: dict[str, Any] = {}
    roles: dict[str, Any] = {}
    root: Any = None


class _Group(_Object):
    policies: list[Any] = []


class _Root(_Object):
    keys: list[Any] = []


class _User(_Group):
    groups: list[str] = []
    boundary: Any = None
    tags: dict[str, str] = {}
    keys: list[Any] = []
    requests_per_second: Annotated[str, Meta(pattern=r"\A(?=.*[1-9])[0-9]{1,9}(\.[0-9]{1,6})?\Z")] = ""
    admin: Annotated[str, Meta(pattern=rf"\A({'|'.join(OPERATOR_ROLES)})\Z")] = ""


class _Role(_Group):
    boundary: Any = None
    tags: dict[str, str] = {}
    trust: Any = None
    max_session_duration: Annotated[str, Meta(pattern=r"\A[0-9]{1,6}\Z")] = str(DURATION_SECONDS_DEFAULT)
    sessions: list[Any] = []


class _Key(_Object, kw_only=True):
    id: Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_]{4,128}\Z")]
    secret: Annotated[str, Meta(min_length=8)]
    token: _Text = ""
    expires: _Text = ""


class _Session(_Key, kw_only=True):
    name: _Text
    token: _Text
    policies: list[Any] | None = None


_MUST_BE: Final = {
    "admin": f"one of {', '.join(OPERATOR_ROLES)}",
    "expires": "a time in ISO 8601",
    "id": "a key id: 4 to 128 letters and digits",
    "max_session_duration": f"a number of seconds from {DURATION_SECONDS_DEFAULT} to {DURATION_SECONDS_MAX}",
    "requests_per_second": "a number above 0",
    "secret": "a text of at least 8 characters",
    "tags": "an object whose values are texts",
    "Expected `array": "a list",
    "Expected `object": "an object with names and values",
    "Expected `str": "a text",
}
"""What the values of members must be, by their names or by the errors of msgspec."""
_FAULT: Final = re.compile(
    r"unknown field `(?P<unknown>.*)`|required field `(?P<missing>.*)`|"
    r"(?P<expected>Expected `[a-z]+).*? at `\$\.(?P<member>\w+)",
    re.DOTALL,
)


def _object(kind: type[Kind], given: Any, where: str) -> Kind:
    """An object of the file, which stands at the place `where`. Raises `UsersError`."""
    given = {} if given is None or given == "" else given
    try:
        return convert(given, kind)
    except ValidationError as error:
        fault = _FAULT.match(str(error).removeprefix("Object contains ").removeprefix("Object missing "))
    if fault is None:
        raise UsersError(f"{where} must be an object with names and values")
    if fault["member"] is not None:
        raise _wrong(fault["member"], given[fault["member"]], where, fault["expected"])
    if fault["missing"] is not None:
        raise UsersError(f"{where} needs `{fault['missing']}`, a text")
    known = ", ".join(sorted(kind.__struct_fields__))
    raise UsersError(f"{where}: {fault['unknown']!r} is not known; it may have {known}")


def _wrong(member: str, value: Any, where: str, expected: str = "") -> UsersError:
    """The error for the value of a member. A secret is not shown."""
    shown = f", not {value!r}" if isinstance(value, str) and member not in ("secret", "token") else ""
    return UsersError(f"{where}.{member} must be {_MUST_BE.get(member) or _MUST_BE[expected]}{shown}")


# -- Reading ------------------------------------------------------------------------------------------------


def load(path: Path) -> Users:
    """The users of a file. Raises ValueError if it cannot be used; OSError if it cannot be read; ImportError
    without PyYAML."""
    return read(plain_yaml.parsed(regular.read(path, FILE_BYTES_MAX).decode()))


def read(document: Any) -> Users:
    """The users of a decoded document. Raises `UsersError`."""
    accounts = _object(_File, document, "the file").accounts
    if not accounts:
        raise UsersError("the file names no accounts: it begins with `accounts:`")
    users = Users(accounts=tuple(accounts))
    for account, content in accounts.items():
        if not _ACCOUNT.fullmatch(account):
            raise UsersError(f"accounts: {account!r} is not an account id, which has 12 digits")
        _Reader(account, users).read(_object(_Account, content, account))
    return users


class _Reader:
    """Reads an account into `users`."""

    def __init__(self, account: str, users: Users) -> None:
        self._account = account
        self._users = users
        self._policies: dict[str, Policy] = {}
        self._groups: dict[str, tuple[Policy, ...]] = {}

    def read(self, content: _Account) -> None:
        for member, named, add in (
            ("policies", content.policies, self._add_policy),
            ("groups", content.groups, self._add_group),
            ("users", content.users, self._add_user),
            ("roles", content.roles, self._add_role),
        ):
            where = f"{self._account}.{member}"
            for name, given in named.items():
                if not _NAME.fullmatch(name):
                    raise UsersError(
                        f"{where}: {name!r} is not a name; it may have letters, digits and +=,.@_-"
                    )
                add(name, given, f"{where}.{name}")
        where = f"{self._account}.root"
        self._add_keys(_object(_Root, content.root, where).keys, root_of(self._account), where)

    def _add_policy(self, name: str, given: Any, where: str) -> None:
        policy = _document(parse, given, name, where)
        self._policies[name] = self._users.policies[f"arn:aws:iam::{self._account}:policy/{name}"] = policy

    def _add_group(self, name: str, given: Any, where: str) -> None:
        self._groups[name] = self._listed(_object(_Group, given, where).policies, where)

    def _add_user(self, name: str, given: Any, where: str) -> None:
        user = _object(_User, given, where)
        policies = self._listed(user.policies, where)
        for group in user.groups:
            if group not in self._groups:
                raise UsersError(f"{where}.groups: there is no group {group!r}")
            policies += self._groups[group]
        arn = user_arn(self._account, name)
        identity = Identity(
            Principal(arn, self._account, "User", name=name, user_id=name, tags=user.tags),
            policies,
            self._boundary(user, where),
            requests_per_second=float(user.requests_per_second) if user.requests_per_second else None,
            operates=user.admin,
        )
        self._users.people[arn] = identity
        self._add_keys(user.keys, identity, where)

    def _add_role(self, name: str, given: Any, where: str) -> None:
        content = _object(_Role, given, where)
        seconds = int(content.max_session_duration)
        if not DURATION_SECONDS_DEFAULT <= seconds <= DURATION_SECONDS_MAX:
            raise _wrong("max_session_duration", content.max_session_duration, where)
        trust = content.trust
        if trust is not None:
            trust = _document(parse_trust, trust, "the role's trust policy", f"{where}.trust")
        policies, boundary = self._listed(content.policies, where), self._boundary(content, where)
        role = Role(self._account, name, policies, boundary, content.tags, trust, seconds)
        self._users.roles[role.arn] = role
        for place, one in enumerate(content.sessions, 1):
            here = f"{where}.sessions[{place}]"
            session = _object(_Session, one, here)
            limits = None if session.policies is None else self._listed(session.policies, here)
            self._users.add(_key(session, here), role.session(session.name, limits))

    def _add_keys(self, keys: list[Any], identity: Identity, where: str) -> None:
        for place, given in enumerate(keys, 1):
            here = f"{where}.keys[{place}]"
            self._users.add(_key(_object(_Key, given, here), here), identity)

    def _boundary(self, content: _User | _Role, where: str) -> tuple[Policy, ...] | None:
        given = content.boundary
        return None if given is None else (self._policy(given, f"{where}.boundary"),)

    def _listed(self, policies: list[Any], where: str) -> tuple[Policy, ...]:
        return tuple(self._policy(given, f"{where}.policies") for given in policies)

    def _policy(self, given: Any, where: str) -> Policy:
        if not isinstance(given, str):
            return _document(parse, given, f"the policy of {where}", where)
        if given not in self._policies:
            raise UsersError(f"{where}: the account has no policy {given!r}")
        return self._policies[given]


def _document(read_it: Callable[..., Policy], document: Any, name: str, where: str) -> Policy:
    try:
        return read_it(document, name=name)
    except PolicyError as error:
        raise UsersError(f"{where}: {error}") from error


def _key(content: _Key, where: str) -> Key:
    expires = None
    if content.expires:
        try:
            moment = datetime.fromisoformat(content.expires)
        except ValueError:
            raise _wrong("expires", content.expires, where) from None
        expires = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    return Key(content.id, content.secret, content.token, expires)
