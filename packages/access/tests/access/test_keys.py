"""Access keys in the store: what they may do, how they end, and how their secrets are kept."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hashrange.storage.api import Engine
from hashrange.storage.memory import MemoryEngine
from hashrange_access.directory import Directory
from hashrange_access.keys import records, sealing
from hashrange_access.keys.keyring import Keyring, KeyringError, NoSuchKey
from hashrange_access.keys.sealing import Vault, VaultError
from hashrange_access.users import read

ACCOUNT = "123456789012"
EVERYTHING = {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
READING = {"Statement": {"Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": "*"}}
USERS = {"accounts": {ACCOUNT: {"users": {"alice": {"policies": [EVERYTHING]}, "bob": {}}}}}
NOW = 1_700_000_000.0


def counting() -> Callable[[int], bytes]:
    """Random bytes for tests: each call gives others."""
    calls = iter(range(1, 10_000))
    return lambda length: next(calls).to_bytes(length)


class Server:
    """The keys of a server, with a time that stands still."""

    def __init__(self, engine: Engine, vault: Vault, users: Any = USERS) -> None:
        self.now = NOW
        self.directory = Directory(read(users))
        self.keyring = Keyring(engine, vault, self.directory, lambda: self.now)
        self.keyring.refresh()

    def counts(self, key_id: str) -> bool:
        return self.directory.identity_of(key_id, self.now) is not None


@pytest.fixture
def engine() -> MemoryEngine:
    return MemoryEngine()


@pytest.fixture
def vault() -> Vault:
    return sealing.in_memory(counting())


@pytest.fixture
def server(engine: MemoryEngine, vault: Vault) -> Server:
    return Server(engine, vault)


def test_a_key_of_a_user_of_the_file(server: Server) -> None:
    key, secret = server.keyring.create("alice", None)
    assert key.id.startswith("AKIA")
    assert len(key.id) == 20
    assert len(secret) == 40
    known = server.directory.get(key.id)
    assert known is not None
    assert known.secret == secret
    identity = server.directory.identity_of(key.id, NOW)
    assert identity is not None
    assert identity.principal.arn == f"arn:aws:iam::{ACCOUNT}:user/alice"
    assert identity.policies == read(USERS).people[identity.principal.arn].policies
    (shown,) = server.keyring.overview()
    assert (shown["id"], shown["user"], shown["status"], shown["problem"]) == (key.id, "alice", "enabled", "")
    assert secret not in str(shown)


def test_the_root_user_has_keys_too(server: Server) -> None:
    key, _ = server.keyring.create("", ACCOUNT)
    identity = server.directory.identity_of(key.id, NOW)
    assert identity is not None
    assert identity.principal.kind == "Account"
    assert identity.principal.account == ACCOUNT


def test_a_user_with_a_policy_of_the_key(server: Server) -> None:
    key, _ = server.keyring.create("ci", None, READING)
    identity = server.directory.identity_of(key.id, NOW)
    assert identity is not None
    assert identity.principal.arn == f"arn:aws:iam::{ACCOUNT}:user/ci"
    (policy,) = identity.policies
    assert policy.statements[0].actions == ("dynamodb:getitem",)
    # Once the file has the user, the file decides.
    server.directory.set_users(read({"accounts": {ACCOUNT: {"users": {"ci": {}}}}}))
    server.keyring.refresh()
    identity = server.directory.identity_of(key.id, NOW)
    assert identity is not None
    assert identity.policies == ()


@pytest.mark.parametrize(
    ("user", "account", "policy", "text"),
    [
        ("carol", None, None, "no user 'carol' in the account 123456789012, but alice, bob"),
        ("alice", "999999999999", None, "no account 999999999999, but 123456789012"),
        ("alice", None, READING, "alice is in the users file"),
        ("", None, READING, "the root user has no policy"),
        ("a b", None, READING, "'a b' is not a name"),
        ("ci", None, {"Statement": {"Effect": "Perhaps"}}, "Effect must be Allow or Deny"),
    ],
)
def test_a_key_that_cannot_be_made(
    server: Server, user: str, account: str | None, policy: Any, text: str
) -> None:
    with pytest.raises(KeyringError, match=text):
        server.keyring.create(user, account, policy)
    assert server.keyring.overview() == []


def test_several_accounts_have_to_be_told_apart(engine: MemoryEngine, vault: Vault) -> None:
    server = Server(engine, vault, {"accounts": {"111111111111": {}, "222222222222": {}}})
    with pytest.raises(KeyringError, match="name one of 111111111111, 222222222222"):
        server.keyring.create("", None)
    key, _ = server.keyring.create("", "222222222222")
    assert key.account == "222222222222"


def test_a_key_is_disabled_enabled_and_deleted(server: Server) -> None:
    key, secret = server.keyring.create("alice", None)
    assert server.keyring.set_enabled(key.id, False)["status"] == "disabled"
    assert not server.counts(key.id)
    assert server.keyring.set_enabled(key.id, True)["status"] == "enabled"
    known = server.directory.get(key.id)
    assert known is not None
    assert known.secret == secret
    server.keyring.delete(key.id)
    assert not server.counts(key.id)
    assert server.keyring.overview() == []


def test_a_rotated_key_ends_after_a_while(server: Server) -> None:
    old, _ = server.keyring.create("ci", None, READING)
    new, _ = server.keyring.rotate(old.id, 3_600)
    assert (new.user, new.policy) == (old.user, old.policy)
    server.now += 3_599
    assert server.counts(old.id)
    assert server.counts(new.id)
    server.now += 1
    assert not server.counts(old.id)
    assert server.counts(new.id)
    assert [key["status"] for key in server.keyring.overview()] == ["disabled", "enabled"]
    with pytest.raises(KeyringError, match="is disabled"):
        server.keyring.rotate(old.id, 0)
    server.keyring.set_enabled(old.id, True)
    assert server.counts(old.id)


def test_a_rotation_without_grace_ends_the_key_at_once(server: Server) -> None:
    old, _ = server.keyring.create("alice", None)
    server.keyring.rotate(old.id, 0)
    assert not server.counts(old.id)


@pytest.mark.parametrize(
    "change",
    [
        lambda keyring, id_: keyring.set_enabled(id_, False),
        lambda keyring, id_: keyring.rotate(id_, 1),
        lambda keyring, id_: keyring.delete(id_),
    ],
)
def test_a_key_that_is_not_there(engine: MemoryEngine, vault: Vault, change: Any) -> None:
    owned = {"keys": [{"id": "AKIDALICE", "secret": "long-enough"}]}
    server = Server(engine, vault, {"accounts": {ACCOUNT: {"users": {"alice": owned}}}})
    with pytest.raises(NoSuchKey, match="no key AKIANOBODY"):
        change(server.keyring, "AKIANOBODY")
    with pytest.raises(NoSuchKey, match="in the users file: change it there"):
        change(server.keyring, "AKIDALICE")


def test_another_server_over_the_store_learns_of_changes(engine: MemoryEngine, vault: Vault) -> None:
    first, second = Server(engine, vault), Server(engine, vault)
    key, secret = first.keyring.create("alice", None)
    assert second.keyring.refresh()
    known = second.directory.get(key.id)
    assert known is not None
    assert known.secret == secret
    assert not second.keyring.refresh()
    first.keyring.set_enabled(key.id, False)
    second.keyring.refresh()
    assert not second.counts(key.id)


def test_a_user_who_leaves_the_file_loses_the_keys(server: Server) -> None:
    key, _ = server.keyring.create("alice", None)
    server.directory.set_users(read({"accounts": {ACCOUNT: {"users": {"bob": {}}}}}))
    assert server.keyring.refresh()
    assert not server.counts(key.id)
    assert "no such user" in server.keyring.overview()[0]["problem"]


def test_the_store_holds_no_secret_in_clear(engine: MemoryEngine, server: Server) -> None:
    _, secret = server.keyring.create("alice", None)
    (stored,) = engine.read(records.every)
    clear = base64.b64decode(secret)
    assert secret.encode() not in stored.sealed
    assert clear not in stored.sealed


def test_a_sealed_secret_cannot_be_given_to_another_user(
    engine: MemoryEngine, vault: Vault, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    import msgspec

    server.keyring.create("bob", None)
    (stored,) = engine.read(records.every)
    engine.write(lambda txn: records.save(txn, msgspec.structs.replace(stored, user="alice")))
    server.keyring.refresh()
    assert not server.counts(stored.id)
    assert "the key file is another" in caplog.text


def test_another_key_file_opens_nothing(engine: MemoryEngine, server: Server) -> None:
    key, _ = server.keyring.create("alice", None)
    other = Server(engine, sealing.in_memory(lambda length: b"x" * length))
    assert not other.counts(key.id)
    assert "key file is not the one" in other.keyring.overview()[0]["problem"]
    other.keyring.delete(key.id)
    assert other.keyring.overview() == []


def test_a_key_file_is_made_when_it_is_needed_and_only_its_owner_may_read_it(
    tmp_path: Path, engine: MemoryEngine
) -> None:
    path = tmp_path / "access.key"
    server = Server(engine, sealing.in_file(path, counting(), may_make=True))
    assert not path.exists()
    key, secret = server.keyring.create("alice", None)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(base64.b64decode(path.read_text())) == 32
    again = Server(engine, sealing.in_file(path, counting(), may_make=True))
    known = again.directory.get(key.id)
    assert known is not None
    assert known.secret == secret


@pytest.mark.parametrize("content", ["", "short", base64.b64encode(b"x" * 31).decode(), "ä"])
def test_a_key_file_that_is_none(tmp_path: Path, engine: MemoryEngine, content: str) -> None:
    path = tmp_path / "access.key"
    path.write_text(content, encoding="utf-8")
    server = Server(engine, sealing.in_file(path, counting(), may_make=True))
    with pytest.raises(VaultError, match="does not hold 32 bytes in Base64: `openssl rand -base64 32`"):
        server.keyring.create("alice", None)
    assert path.read_text(encoding="utf-8") == content


def test_a_named_key_file_is_not_made(tmp_path: Path, engine: MemoryEngine) -> None:
    server = Server(engine, sealing.in_file(tmp_path / "none.key", counting(), may_make=False))
    with pytest.raises(VaultError, match=r"none\.key does not exist"):
        server.keyring.create("alice", None)


def test_a_server_without_a_key_file_says_what_it_needs(engine: MemoryEngine) -> None:
    server = Server(engine, sealing.missing("it needs --key-file"))
    with pytest.raises(VaultError, match="it needs --key-file"):
        server.keyring.create("alice", None)


@pytest.mark.skipif(os.name != "posix", reason="there are no modes")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o601, 0o600, 0o400])
def test_a_key_file_that_others_may_reach_is_refused_as_ssh_does(
    tmp_path: Path,
    engine: MemoryEngine,
    mode: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = tmp_path / "access.key"
    path.write_bytes(base64.b64encode(b"x" * 32))
    path.chmod(mode)
    server = Server(engine, sealing.in_file(path, counting(), may_make=False))
    if mode & 0o077:
        with pytest.raises(VaultError, match=f"chmod 600 {path}"):
            server.keyring.create("alice", None)
        # A file that another user owns, such as a secret that a container gets, is only named.
        monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    server.keyring.create("alice", None)
    assert ("every user of this machine can read the key file" in caplog.text) == bool(mode & 0o004)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_key_file_that_is_no_file_keeps_nobody_waiting(tmp_path: Path, engine: MemoryEngine) -> None:
    path = tmp_path / "access.key"
    os.mkfifo(path)
    server = Server(engine, sealing.in_file(path, counting(), may_make=True))
    with pytest.raises(VaultError, match="cannot be read: it is a named pipe"):
        server.keyring.create("alice", None)
    path.unlink()
    path.write_bytes(b"x" * 5_000)
    with pytest.raises(VaultError, match="has more than 4096 bytes"):
        server.keyring.create("alice", None)


def test_a_seal_is_for_one_purpose(vault: Vault) -> None:
    one, other = vault.made("one"), vault.made("other")
    sealed = one.seal(b"text", b"about")
    assert one.open(sealed, b"about") == b"text"
    assert one.open(sealed, b"else") is None
    assert other.open(sealed, b"about") is None
    for place in range(len(sealed)):
        changed = bytearray(sealed)
        changed[place] ^= 1
        assert one.open(bytes(changed), b"about") is None
    assert one.open(b"", b"about") is None
