"""Credentials of sessions: `Tokens`.

No server stores a session. Its token holds the session, sealed by the key file's key (`access.keys.sealing`):
every server with the key file, so every server over one store, can read the token, and nobody can make or
change one. The policies of the role, its boundary and its tags are not in the token: they are those that the
role has when a request arrives. A session ends at its time, or when its role or its user's key is there no
longer. A session whose own policies are not all there any more may do nothing: one that is missing may have
had a Deny.
"""

from __future__ import annotations

import base64
import binascii
import logging
import threading
from typing import Final

import msgspec
import orjson

from hashrange_access.directory import Directory, State
from hashrange_access.keys.sealing import Vault, VaultError
from hashrange_access.policies.documents import Policy, parse
from hashrange_access.policies.errors import PolicyError
from hashrange_access.roles import Identity
from hashrange_access.signatures import Key

PURPOSE: Final = "session tokens"
_ID_BYTES: Final = 10
_SECRET_BYTES: Final = 30
_READ_MAX: Final = 1_000
_TOKEN_CHARS_MAX: Final = 16_384

_log = logging.getLogger("hashrange.access")


class Session(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session: of the role with the ARN `role`, or of the user whose key has the id `by`.

    `key_id` and `secret` are those of the session. `expires` is in epoch seconds. `policy` is its inline
    session policy in JSON ("": none), `policy_arns` are the managed ones.
    """

    key_id: str = ""
    secret: str = ""
    expires: float
    role: str = ""
    name: str = ""
    policy: str = ""
    policy_arns: tuple[str, ...] = ()
    tags: dict[str, str] = {}
    by: str = ""


_DECODER: Final = msgspec.json.Decoder(Session)
_ENCODER: Final = msgspec.json.Encoder()


class Tokens:
    """Makes and reads tokens of sessions. Thread-safe."""

    def __init__(self, vault: Vault, directory: Directory) -> None:
        self._vault = vault
        self._directory = directory
        self._lock = threading.Lock()
        self._read: dict[str, tuple[State, Key]] = {}

    def make(self, session: Session) -> tuple[Session, str]:
        """The session with a new key, and its token. Raises `VaultError`."""
        seal = self._vault.made(PURPOSE)
        random = self._vault.random
        made = msgspec.structs.replace(
            session,
            key_id="ASIA" + base64.b32encode(random(_ID_BYTES)).decode(),
            secret=base64.b64encode(random(_SECRET_BYTES)).decode(),
        )
        return made, base64.b64encode(seal.seal(_ENCODER.encode(made))).decode()

    def key(self, key_id: str, token: str) -> Key | None:
        """The key of the session of a token; None if the token is not ours, or belongs to another key, or
        there is no such role or user any more. The caller checks whether it has expired."""
        state = self._directory.state
        known = self._read.get(token)
        if known is not None and known[0] is state:
            return known[1] if known[1].id == key_id else None
        session = self.session(token)
        if session is None or session.key_id != key_id:
            return None
        owner = self._owner(session)
        if owner is None:
            return None
        identity, ends = owner
        expires = session.expires if ends is None else min(session.expires, ends)
        key = Key(session.key_id, session.secret, token, expires, identity)
        with self._lock:
            if len(self._read) >= _READ_MAX:
                self._read.clear()
            self._read[token] = state, key
        return key

    def session(self, token: str) -> Session | None:
        """The session of a token, whether it has expired or not; None for a text that is not a token of
        ours."""
        if len(token) > _TOKEN_CHARS_MAX:
            return None
        try:
            sealed = base64.b64decode(token, validate=True)
            seal = self._vault.seal(PURPOSE)
        except (binascii.Error, ValueError) as error:
            if isinstance(error, VaultError):
                _log.error("the key file cannot be used: %s", error)
            return None
        plain = None if seal is None else seal.open(sealed)
        return None if plain is None else _DECODER.decode(plain)

    def _owner(self, session: Session) -> tuple[Identity, float | None] | None:
        """Who has the session, and when the user's key ends that asked for it."""
        if session.by:
            key = self._directory.get(session.by)
            return None if key is None else (key.owner, key.expires)
        role = self._directory.role(session.role)
        if role is None:
            return None
        return role.session(session.name, self._limits(session), session.tags), None

    def _limits(self, session: Session) -> tuple[Policy, ...] | None:
        """The session policies: in place of one that is there no longer, one that refuses everything."""
        if not session.policy and not session.policy_arns:
            return None
        policies = self._directory.state.users.policies
        found = [policies.get(arn) or _refusing(f"{arn}, which is gone") for arn in session.policy_arns]
        if session.policy:
            try:
                found.append(inline(session.policy))
            except PolicyError as error:  # of a version that read more
                found.append(_refusing(f"the session policy, which cannot be read: {error}"))
        return tuple(found)


def _refusing(name: str) -> Policy:
    """A policy that refuses everything, in place of one that is not known."""
    return parse({"Statement": {"Effect": "Deny", "Action": "*", "Resource": "*"}}, name=name)


def inline(document: str) -> Policy:
    """An inline session policy. Raises `PolicyError`."""
    try:
        return parse(orjson.loads(document), name="the session policy")
    except orjson.JSONDecodeError as error:
        raise PolicyError(f"the session policy is not JSON: {error}") from error
