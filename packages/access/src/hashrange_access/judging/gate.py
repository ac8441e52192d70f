"""The gate of a server: who has signed a request.

    off      there is no gate: any credentials are accepted
    soft     requests are answered as without it; what strict would refuse is logged, with the reason
    strict   refused is a request without a valid signature of a known key, and what policies do not allow
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hashrange.credentials import SOURCE
from hashrange.errors import AccessDeniedException, ServiceError
from hashrange.operations.context import Caller
from hashrange.server.admin.roles import ADMIN, SERVICE
from hashrange_access.directory import Directory
from hashrange_access.judging.judge import WOULD_REFUSE, Identified
from hashrange_access.rates import Limiter
from hashrange_access.roles import Identity
from hashrange_access.signatures import Key, Verifier
from hashrange_access.users import Users

if TYPE_CHECKING:
    from hashrange_access.keys.keyring import Keyring
    from hashrange_access.sts.tokens import Tokens

_log = logging.getLogger("hashrange.access")

_SHOWN_CHARS_MAX = 128
_KEYS_OF_HEADERS: Final = {
    "aws:useragent": b"user-agent",
    "aws:referer": b"referer",
    "aws:sourceip": SOURCE,
}


@dataclass(frozen=True, slots=True)
class Operator:
    """A user who may use the admin plane by a key, with a role of `server.admin.roles`."""

    key: Key
    arn: str
    role: str

    @property
    def key_id(self) -> str:
        """The id of the key."""
        return self.key.id


class LimitingGate:
    """The gate of a server that serves everybody, and limits how many requests a key makes."""

    identifies = False
    strict = False

    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter

    def admit(
        self,
        caller: Caller,
        method: bytes,
        target: bytes,
        headers: Mapping[bytes, bytes],
        body: bytes | bytearray,
    ) -> Caller:
        """The caller. Raises ThrottlingException."""
        self._limiter.take(caller)
        return caller

    def operator(
        self, method: bytes, target: bytes, headers: Mapping[bytes, bytes], body: bytes | bytearray
    ) -> Operator:
        """Nobody. Raises AccessDeniedException."""
        raise AccessDeniedException("the server has no users: start it with --auth")

    def still_operates(self, operator: object) -> bool:
        """Nobody does."""
        return False


class Gate:
    """Identifies callers by their signatures. `now` is the machine's time in epoch seconds. Thread-safe.

    `limiter` counts the requests. `users` are the users, or the directory that looks them up. `secure`: the
    server speaks TLS. `tokens` reads the tokens of sessions, `keyring` holds the keys of the store; None if
    the server has none.
    """

    identifies = True

    def __init__(
        self,
        users: Users | Directory,
        now: Callable[[], float],
        *,
        strict: bool,
        secure: bool = False,
        tokens: Tokens | None = None,
        keyring: Keyring | None = None,
        limiter: Limiter | None = None,
    ) -> None:
        self.directory = users if isinstance(users, Directory) else Directory(users)
        self.strict = strict
        self._limiter = limiter
        self.tokens = tokens
        self.keyring = keyring
        self._now = now
        self._secure = ("true",) if secure else ("false",)
        sessions = None if tokens is None else tokens.key
        self._verifier = Verifier(self.directory, now, sessions=sessions)
        self._others: dict[str, Verifier] = {}

    def operator(
        self, method: bytes, target: bytes, headers: Mapping[bytes, bytes], body: bytes | bytearray
    ) -> Operator:
        """Who has signed a request to the admin plane. Raises the errors of `Verifier.verify`, and
        AccessDeniedException for a user without a role there."""
        key = self.signer(SERVICE, method, target, headers, body)
        arn, role = key.owner.principal.arn, _role(key.owner)
        if not role:
            raise AccessDeniedException(f"{arn} has no role on the admin plane")
        return Operator(key, arn, role)

    def still_operates(self, operator: object) -> bool:
        """Whether an operator's key counts at the moment, and gives the same role."""
        if not isinstance(operator, Operator):
            return False
        was = operator.key
        key = self.directory.get(was.id)
        if key is None and was.token and self.tokens is not None:
            key = self.tokens.key(was.id, was.token)
        if key is None or key.secret != was.secret or _role(key.owner) != operator.role:
            return False
        return key.expires is None or self._now() < key.expires

    def admit(
        self,
        caller: Caller,
        method: bytes,
        target: bytes,
        headers: Mapping[bytes, bytes],
        body: bytes | bytearray,
    ) -> Caller:
        """The caller, identified, and counted by the limiter. Raises as `identified`, and
        ThrottlingException."""
        caller = self.identified(caller, method, target, headers, body)
        if self._limiter is not None:
            self._limiter.take(caller)
        return caller

    def identified(
        self,
        caller: Caller,
        method: bytes,
        target: bytes,
        headers: Mapping[bytes, bytes],
        body: bytes | bytearray,
    ) -> Caller:
        """The caller, with the identity whose key has signed the request.

        Raises the errors of `Verifier.verify`, if it is strict.
        """
        try:
            key = self._verifier.verify(method, target, headers, body)
        except Exception as error:
            if self.strict:
                raise
            if not isinstance(error, ServiceError):
                _log.exception("a signature could not be verified")
                return caller
            fields = {"key": caller.access_key[:_SHOWN_CHARS_MAX], "error": error.code, "why": error.message}
            _log.warning(WOULD_REFUSE, extra={"fields": fields})
            return caller
        identity: Identity = key.owner
        identified = Identified(identity, self.connection_keys(headers), self.strict)
        if not self.strict:
            return caller._replace(identified=identified)
        return caller._replace(account_id=identity.principal.account, identified=identified)

    def signer(
        self,
        service: str,
        method: bytes,
        target: bytes,
        headers: Mapping[bytes, bytes],
        body: bytes | bytearray,
    ) -> Key:
        """The key that has signed a request to another service than DynamoDB. Raises as `Verifier.verify`."""
        verifier = self._others.get(service)
        if verifier is None:
            sessions = None if self.tokens is None else self.tokens.key
            verifier = Verifier(self.directory, self._now, service=service, sessions=sessions)
            self._others[service] = verifier
        return verifier.verify(method, target, headers, body)

    def connection_keys(self, headers: Mapping[bytes, bytes]) -> dict[str, tuple[str, ...]]:
        """The condition keys that the connection gives."""
        keys: dict[str, tuple[str, ...]] = {"aws:securetransport": self._secure}
        for name, header in _KEYS_OF_HEADERS.items():
            value = headers.get(header)
            if value:
                keys[name] = (value.decode("latin-1"),)
        return keys


def _role(identity: Identity) -> str:
    """The role of an identity on the admin plane, "" for none."""
    return ADMIN if identity.principal.kind == "Account" else identity.operates
