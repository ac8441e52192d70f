"""The gate of a server: who has signed a request.

    off      there is no gate: any credentials are accepted
    soft     requests are answered as without it; what strict would refuse is logged, with the reason
    strict   refused is a request without a valid signature of a known key, and what policies do not allow
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hashrange.access.judging.judge import Identified
from hashrange.access.signatures import Verifier
from hashrange.access.signing import OPERATORS
from hashrange.access.users import ADMIN, Users
from hashrange.errors import AccessDeniedException, ServiceError
from hashrange.operations.context import Caller

_log = logging.getLogger(__name__)

_SHOWN_CHARS_MAX = 128


@dataclass(frozen=True, slots=True)
class Operator:
    """A user who may use the admin plane, with a role of `access.users.OPERATOR_ROLES`."""

    key_id: str
    arn: str
    role: str


class Gate:
    """Identifies callers by their signatures. `now` is the machine's time in epoch seconds. `secure`: the
    server speaks TLS. Thread-safe."""

    def __init__(
        self, users: Users, now: Callable[[], float], *, strict: bool, secure: bool = False
    ) -> None:
        self._identities = users.identities
        self._verifier = Verifier(users.keys, now)
        self._operators = Verifier(users.keys, now, service=OPERATORS)
        self._strict = strict
        self._secure = ("true",) if secure else ("false",)

    @property
    def has_operators(self) -> bool:
        """Whether users have roles on the admin plane, which is then closed to all others."""
        return self._strict and any(identity.operates for identity in self._identities.values())

    def operator(
        self, method: bytes, target: bytes, headers: Mapping[bytes, bytes], body: bytes | bytearray
    ) -> Operator:
        """Who has signed a request to the admin plane. Raises the errors of `Verifier.verify`, and
        AccessDeniedException for a user without a role there."""
        key = self._operators.verify(method, target, headers, body)
        identity = self._identities[key.id]
        principal = identity.principal
        role = ADMIN if principal.kind == "Account" else identity.operates
        if not role:
            raise AccessDeniedException(f"{principal.arn} has no role on the admin plane")
        return Operator(key.id, principal.arn, role)

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
        except ServiceError as error:
            if self._strict:
                raise
            fields = {"key": caller.access_key[:_SHOWN_CHARS_MAX], "error": error.code, "why": error.message}
            _log.warning("strict would refuse a request", extra={"fields": fields})
            return caller
        identity = self._identities[key.id]
        agent = headers.get(b"user-agent", b"").decode("latin-1")
        keys: dict[str, tuple[str, ...]] = {"aws:securetransport": self._secure}
        if agent:
            keys["aws:useragent"] = (agent,)
        identified = Identified(identity, keys, self._strict)
        if not self._strict:
            return caller._replace(identified=identified)
        return caller._replace(account_id=identity.principal.account, identified=identified)
