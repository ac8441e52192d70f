"""The keys in the store of a server: `Keyring`.

A key belongs to a user of the users file, to the root user of an account, or to a user whose only policy is
stored with the key. Its secret is sealed (`sealing`) and shown once, when the key is made. A change counts at
once on the server that makes it; other servers over the store see it when they call `refresh` next.

The time is the machine's, as for signatures.
"""

from __future__ import annotations

import base64
import logging
import re
import threading
from collections.abc import Callable
from typing import Any, Final

import msgspec
import orjson

from hashrange.storage.api import Engine, Transaction
from hashrange_access.directory import Directory
from hashrange_access.keys import records
from hashrange_access.keys.records import StoredKey
from hashrange_access.keys.sealing import Seal, Vault, VaultError
from hashrange_access.policies.documents import parse
from hashrange_access.policies.errors import PolicyError
from hashrange_access.policies.requests import Principal
from hashrange_access.roles import Identity
from hashrange_access.signatures import Key
from hashrange_access.users import Users, root_of, user_arn

PURPOSE: Final = "access keys"
_NAME: Final = re.compile(r"[\w+=,.@-]{1,64}", re.ASCII)
_ID_BYTES: Final = 10
_SECRET_BYTES: Final = 30

_log = logging.getLogger("hashrange.access")


class KeyringError(ValueError):
    """A change of the keys that is not possible. The text says why, and the remedy."""


class NoSuchKey(KeyringError):
    """There is no key with this id in the store."""


class Keyring:
    """Makes, lists and changes the keys of a store, and keeps `directory` up to date. Thread-safe."""

    def __init__(
        self, engine: Engine, vault: Vault, directory: Directory, now: Callable[[], float]
    ) -> None:
        self._engine = engine
        self._vault = vault
        self._directory = directory
        self._now = now
        self._lock = threading.Lock()
        self._version: int | None = None
        self._users: Users | None = None

    def create(self, user: str, account: str | None, policy: Any = None) -> tuple[StoredKey, str]:
        """Make a key of a user, "" for the root user of the account; returns it with its secret.

        `policy` is the policy document of a user who stands in no users file, `account` the account if the
        server has several. Raises `KeyringError` and `VaultError`.
        """
        users = self._directory.state.users
        account = _account(users, account)
        document = ""
        if policy is not None:
            document = _document(users, account, user, policy)
        elif user and user_arn(account, user) not in users.people:
            names = ", ".join(sorted(identity.principal.name for identity in users.people.values()))
            raise KeyringError(
                f"the users file has no user {user!r} in the account {account}"
                f"{f', but {names}' if names else ''}: add the user there, or give a policy"
            )
        return self._make(account, user, document)

    def overview(self) -> list[dict[str, Any]]:
        """All keys without their secrets, oldest first."""
        keys = sorted(self._engine.read(records.every), key=lambda key: key.created)
        return [self._shown(key) for key in keys]

    def set_enabled(self, id_: str, enabled: bool) -> dict[str, Any]:
        """Enable or disable a key. Raises `KeyringError`."""
        ends = {"ends": None} if enabled else {}
        return self._change(id_, lambda key: msgspec.structs.replace(key, enabled=enabled, **ends))

    def rotate(self, id_: str, grace_seconds: float) -> tuple[StoredKey, str]:
        """Make another key of the same user; the old one ends after `grace_seconds`. Returns the new key with
        its secret. Raises `KeyringError` and `VaultError`."""
        now = self._now()
        old = self._engine.read(lambda reader: records.find(reader, id_))
        if old is None:
            raise self._no_key(id_)
        if not _counts(old, now):
            raise KeyringError(f"the key {id_} is disabled: enable it first, or make a new one")
        made = self._make(old.account, old.user, old.policy)
        self._change(id_, lambda key: msgspec.structs.replace(key, ends=now + grace_seconds))
        return made

    def delete(self, id_: str) -> None:
        """Delete a key. Raises `KeyringError`."""

        def body(txn: Transaction) -> bool:
            key = records.find(txn, id_)
            if key is not None:
                records.forget(txn, key)
            return key is not None

        if not self._engine.write(body):
            raise self._no_key(id_)
        self.refresh()

    def refresh(self) -> bool:
        """Read the keys again, if they or the users have changed. Returns whether they have."""
        with self._lock:
            users = self._directory.state.users
            if self._engine.read(records.version) == self._version and users is self._users:
                return False
            version, keys = self._engine.read(lambda reader: (records.version(reader), records.every(reader)))
            self._directory.set_stored(self._opened(keys, users))
            self._version, self._users = version, users
            return True

    def _make(self, account: str, user: str, policy: str) -> tuple[StoredKey, str]:
        seal = self._vault.made(PURPOSE)
        random = self._vault.random
        secret = base64.b64encode(random(_SECRET_BYTES)).decode()
        id_ = "AKIA" + base64.b32encode(random(_ID_BYTES)).decode()
        key = StoredKey(id=id_, account=account, user=user, policy=policy, created=self._now())
        key = msgspec.structs.replace(key, sealed=seal.seal(secret.encode(), key.about))
        self._engine.write(lambda txn: records.save(txn, key))
        self.refresh()
        return key, secret

    def _change(self, id_: str, change: Callable[[StoredKey], StoredKey]) -> dict[str, Any]:
        def body(txn: Transaction) -> StoredKey | None:
            key = records.find(txn, id_)
            if key is None:
                return None
            changed = change(key)
            records.save(txn, changed)
            return changed

        changed = self._engine.write(body)
        if changed is None:
            raise self._no_key(id_)
        self.refresh()
        return self._shown(changed)

    def _no_key(self, id_: str) -> NoSuchKey:
        if id_ in self._directory.state.users.keys:
            return NoSuchKey(f"the key {id_} is not in the store, but in the users file: change it there")
        return NoSuchKey(f"there is no key {id_} in the store; `hashrange key list` shows all")

    def _opened(self, keys: list[StoredKey], users: Users) -> dict[str, Key]:
        """The keys that can be used, by their ids."""
        opened: dict[str, Key] = {}
        unreadable = []
        for key in keys:
            identity = identity_of(key, users)
            if not key.enabled or identity is None:
                continue
            secret = self._secret(key)
            if secret is None:
                unreadable.append(key.id)
            else:
                opened[key.id] = Key(key.id, secret, expires=key.ends, owner=identity)
        if unreadable:
            fields = {"keys": ", ".join(unreadable)}
            _log.error("keys of the store cannot be used: the key file is another", extra={"fields": fields})
        return opened

    def _secret(self, key: StoredKey) -> str | None:
        """The secret of a key; None if this server's key file does not open it."""
        try:
            seal: Seal | None = self._vault.seal(PURPOSE)
        except VaultError as error:
            _log.error("the key file cannot be used: %s", error)
            return None
        secret = None if seal is None else seal.open(key.sealed, key.about)
        return None if secret is None else secret.decode()

    def _shown(self, key: StoredKey) -> dict[str, Any]:
        """A key for operators."""
        state = self._directory.state
        problem = ""
        if identity_of(key, state.users) is None:
            problem = "the users file has no such user, or the policy cannot be read"
        elif self._secret(key) is None:
            problem = "the key file is not the one with which the secret was encrypted"
        status = "enabled" if _counts(key, self._now()) else "disabled"
        shown: dict[str, Any] = {"id": key.id, "account": key.account, "user": key.user or "root"}
        shown |= {"arn": user_arn(key.account, key.user), "created": key.created, "status": status}
        shown |= {"ends": key.ends, "policy": orjson.loads(key.policy) if key.policy else None}
        return shown | {"problem": problem}


def _counts(key: StoredKey, now: float) -> bool:
    return key.enabled and (key.ends is None or now < key.ends)


def identity_of(key: StoredKey, users: Users) -> Identity | None:
    """Who has a stored key; None if the users do not know its user. A user of the users file has the policies
    of the file, whatever is stored with the key."""
    if key.account not in users.accounts:
        return None
    if not key.user:
        return root_of(key.account)
    arn = user_arn(key.account, key.user)
    known = users.people.get(arn)
    if known is not None or not key.policy:
        return known
    try:
        policy = parse(orjson.loads(key.policy), name=f"the policy of {key.user}'s key")
    except PolicyError:  # of a version that read more
        return None
    return Identity(Principal(arn, key.account, name=key.user, user_id=key.user), (policy,))


def _account(users: Users, given: str | None) -> str:
    if given is None:
        if len(users.accounts) != 1:
            raise KeyringError(f"the server has several accounts: name one of {', '.join(users.accounts)}")
        return users.accounts[0]
    if given not in users.accounts:
        raise KeyringError(f"the server has no account {given}, but {', '.join(users.accounts)}")
    return given


def _document(users: Users, account: str, user: str, policy: Any) -> str:
    """The stored form of the policy of a user who stands in no users file."""
    if not user:
        raise KeyringError("the root user has no policy: name a user, or leave the policy out")
    if not _NAME.fullmatch(user):
        raise KeyringError(f"{user!r} is not a name; it may have letters, digits and +=,.@_-")
    if user_arn(account, user) in users.people:
        raise KeyringError(f"{user} is in the users file, which has this user's policies: give no other")
    try:
        parse(policy, name="the policy")
    except PolicyError as error:
        raise KeyringError(str(error)) from error
    return orjson.dumps(policy).decode()
