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
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from hashrange.files import regular
from hashrange.server.admin.roles import OPERATOR_ROLES
from hashrange_access import plain_yaml
from hashrange_access.policies import Policy, PolicyError, Principal, parse
from hashrange_access.policies.requests import root_arn
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
_ID: Final = re.compile(r"\w{4,128}", re.ASCII)
_SECONDS: Final = re.compile(r"[0-9]{1,6}")
_SECRET_CHARS_MIN: Final = 8
_RATE: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?")


Node = Mapping[str, Any]

__all__ = ["Identity", "Users", "UsersError", "documents_of", "load", "parsed", "read", "root_of", "user_arn"]


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


def load(path: Path) -> Users:
    """The users of a file. Raises `UsersError`; OSError if it cannot be read; ImportError without PyYAML."""
    return read(parsed(regular.read(path, FILE_BYTES_MAX).decode()))


def parsed(text: str) -> Any:
    """The content of YAML or JSON, whose scalars all stay text. Raises `UsersError`; ImportError without
    PyYAML."""
    try:
        return plain_yaml.parsed(text)
    except plain_yaml.YamlError as error:
        raise UsersError(str(error)) from error


def read(document: Any) -> Users:
    """The users of a decoded document. Raises `UsersError`."""
    accounts = _node(_node(document, "the file", {"accounts"}).get("accounts", {}), "accounts", None)
    if not accounts:
        raise UsersError("the file names no accounts: it begins with `accounts:`")
    users = Users(accounts=tuple(accounts))
    for account, content in accounts.items():
        if not _ACCOUNT.fullmatch(account):
            raise UsersError(f"accounts: {account!r} is not an account id, which has 12 digits")
        members = _node(content, account, {"policies", "groups", "users", "roles", "root"})
        _Account(account, members, users).read()
    return users


def documents_of(document: Any) -> list[tuple[str, Any]]:
    """The policy documents in a users file, sound or not, with the names of their places."""
    found: list[tuple[str, Any]] = []
    stack: list[tuple[str, Any]] = [("", document)]
    while stack:
        where, value = stack.pop()
        if isinstance(value, list):
            stack += [(f"{where}[{place}]", member) for place, member in enumerate(value, 1)]
        elif isinstance(value, dict):
            if "Statement" in value:
                found.append((where, value))
            else:
                stack += [(f"{where}.{name}".lstrip("."), member) for name, member in value.items()]
    return sorted(found, key=lambda place: place[0])


class _Account:
    """Reads one account into `users`."""

    def __init__(self, account: str, content: Node, users: Users) -> None:
        self._account = account
        self._content = content
        self._users = users
        self._policies = {
            name: self._document(name, document, f"{account}.policies.{name}")
            for name, document in self._named("policies").items()
        }
        for name, policy in self._policies.items():
            users.policies[f"arn:aws:iam::{account}:policy/{name}"] = policy

    def read(self) -> None:
        account = self._account
        groups = {
            name: self._list_of_policies(_node(group, f"group {name}", {"policies"}), f"group {name}")
            for name, group in self._named("groups").items()
        }
        for name, user in self._named("users").items():
            self._user(name, user, groups, f"{account}.users.{name}")
        for name, role in self._named("roles").items():
            self._role(name, role, f"{account}.roles.{name}")
        if "root" in self._content:
            root = _node(self._content["root"], f"{account}.root", {"keys"})
            for key in _keys(root, f"{account}.root"):
                self._users.add(key, root_of(account))

    def _user(self, name: str, content: Any, groups: dict[str, tuple[Policy, ...]], where: str) -> None:
        members = {"policies", "groups", "boundary", "tags", "keys", "requests_per_second", "admin"}
        user = _node(content, where, members)
        policies = self._list_of_policies(user, where)
        for group in _list(user.get("groups", []), f"{where}.groups"):
            if not isinstance(group, str) or group not in groups:
                raise UsersError(f"{where}.groups: there is no group {group!r}")
            policies += groups[group]
        tags = _tags(user, where)
        account = self._account
        principal = Principal(
            user_arn(account, name), account, "User", name=name, user_id=name, tags=tags
        )
        identity = Identity(
            principal,
            policies,
            self._boundary(user, where),
            requests_per_second=_rate(user, where),
            operates=_role(user, where),
        )
        self._users.people[principal.arn] = identity
        for key in _keys(user, where):
            self._users.add(key, identity)

    def _role(self, name: str, content: Any, where: str) -> None:
        members = {"policies", "boundary", "tags", "sessions", "trust", "max_session_duration"}
        node = _node(content, where, members)
        role = Role(
            self._account,
            name,
            self._list_of_policies(node, where),
            self._boundary(node, where),
            _tags(node, where),
            self._trust(node, f"{where}.trust"),
            _duration(node, f"{where}.max_session_duration"),
        )
        self._users.roles[role.arn] = role
        for place, given in enumerate(_list(node.get("sessions", []), f"{where}.sessions"), 1):
            here = f"{where}, session {place}"
            session = _node(given, here, {"name", "id", "secret", "token", "expires", "policies"})
            session_name = _text(session, "name", here)
            key = _key(session, here)
            if not key.token:
                raise UsersError(f"{here} has no token: the keys of a session have one")
            limits = self._list_of_policies(session, here) if "policies" in session else None
            self._users.add(key, role.session(session_name, limits))

    def _trust(self, content: Node, where: str) -> Policy | None:
        if "trust" not in content:
            return None
        try:
            return parse_trust(content["trust"], name="the role's trust policy")
        except PolicyError as error:
            raise UsersError(f"{where}: {error}") from error

    def _boundary(self, content: Node, where: str) -> tuple[Policy, ...] | None:
        if "boundary" not in content:
            return None
        return (self._policy(content["boundary"], f"{where}.boundary"),)

    def _list_of_policies(self, content: Node, where: str) -> tuple[Policy, ...]:
        listed = _list(content.get("policies", []), f"{where}.policies")
        return tuple(self._policy(given, f"{where}.policies") for given in listed)

    def _policy(self, given: Any, where: str) -> Policy:
        if not isinstance(given, str):
            return self._document(f"the policy of {where}", given, where)
        if given not in self._policies:
            raise UsersError(f"{where}: the account has no policy {given!r}")
        return self._policies[given]

    def _document(self, name: str, document: Any, where: str) -> Policy:
        try:
            return parse(document, name=name)
        except PolicyError as error:
            raise UsersError(f"{where}: {error}") from error

    def _named(self, member: str) -> Node:
        where = f"{self._account}.{member}"
        content = _node(self._content.get(member, {}), where, None)
        for name in content:
            if not _NAME.fullmatch(name):
                raise UsersError(f"{where}: {name!r} is not a name; it may have letters, digits and +=,.@_-")
        return content


def _keys(content: Node, where: str) -> list[Key]:
    listed = _list(content.get("keys", []), f"{where}.keys")
    return [
        _key(_node(key, f"{where}.keys", {"id", "secret", "token", "expires"}), f"{where}.keys")
        for key in listed
    ]


def _key(content: Node, where: str) -> Key:
    key_id, secret = _text(content, "id", where), _text(content, "secret", where)
    if not _ID.fullmatch(key_id):
        raise UsersError(f"{where}: {key_id!r} is not a key id, which has 4 to 128 letters and digits")
    if len(secret) < _SECRET_CHARS_MIN:
        raise UsersError(f"{where}: the secret of {key_id} has fewer than {_SECRET_CHARS_MIN} characters")
    expires = None
    if "expires" in content:
        text = _text(content, "expires", where)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise UsersError(f"{where}.expires: {text!r} is not a time in ISO 8601") from None
        expires = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    return Key(key_id, secret, _text(content, "token", where) if "token" in content else "", expires)


def _duration(content: Node, where: str) -> int:
    """The longest time that a session of a role may last, in seconds."""
    text = content.get("max_session_duration", str(DURATION_SECONDS_DEFAULT))
    least, most = DURATION_SECONDS_DEFAULT, DURATION_SECONDS_MAX
    if not isinstance(text, str) or not _SECONDS.fullmatch(text) or not least <= int(text) <= most:
        raise UsersError(f"{where}: {text!r} is not a number of seconds from {least} to {most}")
    return int(text)


def _rate(content: Node, where: str) -> float | None:
    """The most requests per second of a user; None if there is no limit."""
    if "requests_per_second" not in content:
        return None
    text = content["requests_per_second"]
    if not isinstance(text, str) or not _RATE.fullmatch(text) or float(text) <= 0:
        raise UsersError(f"{where}.requests_per_second: {text!r} is not a number above 0")
    return float(text)


def _role(content: Node, where: str) -> str:
    """The role of a user on the admin plane, "" for none."""
    role = content.get("admin", "")
    if "admin" in content and role not in OPERATOR_ROLES:
        raise UsersError(f"{where}.admin: {role!r} is none of {', '.join(OPERATOR_ROLES)}")
    return str(role)


def _tags(content: Node, where: str) -> Mapping[str, str]:
    tags = _node(content.get("tags", {}), f"{where}.tags", None)
    for name in tags:
        if not isinstance(tags[name], str):
            raise UsersError(f"{where}.tags.{name} must be a text")
    return tags


def _text(content: Node, member: str, where: str) -> str:
    value = content.get(member)
    if not isinstance(value, str) or not value:
        raise UsersError(f"{where} needs `{member}`, a text")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise UsersError(f"{where} must be a list")
    return value


def _node(value: Any, where: str, members: set[str] | None) -> Node:
    """An object with no other members than these (None: any)."""
    if value is None or value == "":
        value = {}
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise UsersError(f"{where} must be an object with names and values")
    others = [] if members is None else [name for name in value if name not in members]
    if others:
        known = ", ".join(sorted(members or ()))
        raise UsersError(f"{where}: {others[0]!r} is not known; it may have {known}")
    return value
