"""The users file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hashrange_access.plain_yaml import YamlError
from hashrange_access.users import UsersError, load, read

FILE = """
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
        boundary: read-scores
        tags: {team: red}
        keys: [{id: AKIDALICE, secret: alice-secret}]
      bob:
        policies:
          - {Version: 2012-10-17, Statement: {Effect: Deny, Action: "*", Resource: "*"}}
        keys: [{id: AKIDBOB, secret: bob-secret}, {id: AKIDBOB2, secret: bob-secret}]
    roles:
      exporter:
        policies: [read-scores]
        sessions:
          - {name: nightly, id: ASIDEXPORTER, secret: role-secret, token: a-token, expires: 2027-01-01}
    root:
      keys: [{id: AKIDROOT, secret: root-secret}]
  000000000001:
    users: {carol: {keys: [{id: AKIDCAROL, secret: carol-secret}]}}
"""


def test_users_without_keys_roles_and_policies_are_known_by_their_arns() -> None:
    trust = {"Statement": {"Effect": "Allow", "Principal": {"AWS": "1" * 12}, "Action": "sts:AssumeRole"}}
    reading = {"Statement": {"Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": "*"}}
    account = {
        "policies": {"reading": reading},
        "users": {"alice": {"policies": ["reading"]}},
        "roles": {"reader": {"policies": ["reading"], "trust": trust, "max_session_duration": "7200"}},
    }
    users = read({"accounts": {"1" * 12: account}})
    assert users.keys == {}
    (policy,) = users.people[f"arn:aws:iam::{'1' * 12}:user/alice"].policies
    assert users.policies == {f"arn:aws:iam::{'1' * 12}:policy/reading": policy}
    role = users.roles[f"arn:aws:iam::{'1' * 12}:role/reader"]
    assert (role.policies, role.duration_seconds_max) == ((policy,), 7_200)
    assert role.trust is not None
    assert role.trust.statements[0].principals == (("AWS", f"arn:aws:iam::{'1' * 12}:root"),)


@pytest.mark.parametrize(
    ("role", "text"),
    [
        ({"trust": {"Statement": {"Effect": "Allow", "Action": "sts:AssumeRole"}}}, "neither Principal nor"),
        (
            {
                "trust": {
                    "Statement": {
                        "Effect": "Allow",
                        "Principal": "*",
                        "Action": "sts:AssumeRole",
                        "Resource": "*",
                    }
                }
            },
            "it has Resource, but a trust policy is about its role",
        ),
        ({"trust": "everybody"}, "a policy document is a JSON object, not a string"),
        ({"max_session_duration": "3599"}, "must be a number of seconds from 3600 to 43200"),
        ({"max_session_duration": "an hour"}, "a number of seconds from 3600 to 43200, not 'an hour'"),
    ],
)
def test_wrong_roles(role: dict[str, Any], text: str) -> None:
    with pytest.raises(UsersError, match=text):
        read({"accounts": {"1" * 12: {"roles": {"reader": role}}}})


def test_the_users_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "users.yaml"
    path.write_text(FILE)
    users = load(path)
    assert users.accounts == ("123456789012", "000000000001")
    assert list(users.keys) == ["AKIDALICE", "AKIDBOB", "AKIDBOB2", "ASIDEXPORTER", "AKIDROOT", "AKIDCAROL"]
    alice = users.identities["AKIDALICE"]
    assert alice.principal.arn == "arn:aws:iam::123456789012:user/alice"
    assert alice.principal.tags == {"team": "red"}
    assert [policy.name for policy in alice.policies] == ["read-scores"]
    assert alice.boundary == alice.policies
    assert alice.session is None
    session = users.identities["ASIDEXPORTER"]
    assert session.principal.arn == "arn:aws:sts::123456789012:assumed-role/exporter/nightly"
    assert session.principal.role_arn == "arn:aws:iam::123456789012:role/exporter"
    assert (users.keys["ASIDEXPORTER"].token, users.keys["ASIDEXPORTER"].expires) == ("a-token", 1798761600.0)
    assert users.identities["AKIDROOT"].principal.kind == "Account"
    assert users.identities["AKIDBOB"].boundary is None
    assert users.identities["AKIDCAROL"].principal.account == "000000000001"


def account(**content: Any) -> dict[str, Any]:
    return {"accounts": {"123456789012": content}}


def user(**content: Any) -> dict[str, Any]:
    return account(users={"alice": content})


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({}, "names no accounts"),
        ([], "the file must be an object"),
        ({"accounts": {"1": {}}}, "'1' is not an account id"),
        ({"accounts": {}, "more": 1}, "'more' is not known"),
        (account(user={}), "'user' is not known"),
        (user(boundry="x"), "'boundry' is not known"),
        (user(boundary="x"), "the account has no policy 'x'"),
        (user(groups=["x"]), "there is no group 'x'"),
        (user(policies="x"), "123456789012.users.alice.policies must be a list, not 'x'"),
        (user(policies={}), "123456789012.users.alice.policies must be a list"),
        (user(groups=[[]]), "alice.groups must be a text"),
        (user(tags={"team": ["red"]}), "alice.tags must be an object whose values are texts"),
        (user(boundary=""), "alice.boundary: the account has no policy ''"),
        (user(admin=""), "alice.admin must be one of read, write, admin, not ''"),
        (user(keys="x"), "alice.keys must be a list"),
        (user(keys=["x"]), "alice.keys[1] must be an object"),
        (account(users=[]), "123456789012.users must be an object with names and values"),
        (account(users={"alice": []}), "123456789012.users.alice must be an object"),
        (user(policies=[{"Statement": []}]), "Statement must be"),
        (user(keys=[{"id": "AKID"}]), "alice.keys[1] needs `secret`"),
        (user(keys=[{"id": "A/ID", "secret": "long-enough"}]), "alice.keys[1].id must be a key id: 4 to 128"),
        (user(keys=[{"id": "AKID", "secret": "short"}]), "secret must be a text of at least 8 characters"),
        (user(keys=[{"id": "AKID", "secret": "long-enough", "expires": "soon"}]), "in ISO 8601, not 'soon'"),
        (user(keys=[{"id": "AKID", "secret": "long-enough", "expires": ""}]), "expires must be a time"),
        (user(keys=[{"id": "AKID", "secret": "long-enough", "token": ""}]), "token must be a text"),
        (user(keys=[{"id": "AKID", "secret": "long-enough", "key": "x"}]), "[1]: 'key' is not known"),
        (user(keys=[{"id": "AKID", "secret": "long-enough"}] * 2), "the key AKID is given twice"),
        (account(users={"a/b": {}}), "'a/b' is not a name"),
        (
            account(roles={"r": {"sessions": [{"name": "n", "id": "AKID", "secret": "long-enough"}]}}),
            "r.sessions[1] needs `token`",
        ),
    ],
)
def test_what_is_wrong_in_a_file(document: Any, text: str) -> None:
    with pytest.raises(UsersError) as raised:
        read(document)
    assert text in str(raised.value)


@pytest.mark.parametrize(
    ("content", "text"), [("accounts: [", "it is not YAML"), ("accounts: {a: 1, a: 2}", "has a name twice")]
)
def test_a_file_that_is_not_sound_yaml(content: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "users.yaml"
    path.write_text(content)
    with pytest.raises(YamlError, match=text):
        load(path)
