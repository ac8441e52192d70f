"""The gate of a server: who has signed a request.

    off      there is no gate: any credentials are accepted
    soft     requests are answered as without it; what strict would refuse is logged, with the reason
    strict   refused is a request without a valid signature of a known key, and what policies do not allow
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from hashrange.access.authorization import SOURCE
from hashrange.access.judging.judge import WOULD_REFUSE, Identified
from hashrange.access.signatures import Verifier
from hashrange.access.users import Users
from hashrange.errors import ServiceError
from hashrange.operations.context import Caller

_log = logging.getLogger(__name__)

_SHOWN_CHARS_MAX = 128
_KEYS_OF_HEADERS: Final = {
    "aws:useragent": b"user-agent",
    "aws:referer": b"referer",
    "aws:sourceip": SOURCE,
}


class Gate:
    """Identifies callers by their signatures. `now` is the machine's time in epoch seconds. Thread-safe."""

    def __init__(self, users: Users, now: Callable[[], float], *, strict: bool) -> None:
        self._identities = users.identities
        self._verifier = Verifier(users.keys, now)
        self._strict = strict

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
            _log.warning(WOULD_REFUSE, extra={"fields": fields})
            return caller
        identity = self._identities[key.id]
        keys: dict[str, tuple[str, ...]] = {"aws:securetransport": ("false",)}
        for name, header in _KEYS_OF_HEADERS.items():
            value = headers.get(header)
            if value:
                keys[name] = (value.decode("latin-1"),)
        identified = Identified(identity, keys, self._strict)
        if not self._strict:
            return caller._replace(identified=identified)
        return caller._replace(account_id=identity.principal.account, identified=identified)
