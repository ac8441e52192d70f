"""Cursors for pages: opaque, signed, and valid for one list only.

A LastEvaluatedKey in a browser reveals the form of the keys, and a modified one reads from anywhere in the
table. A cursor here is a position in a list, signed with a secret together with the name of the list.

    cursors = Cursors(b"a secret of 32 bytes or more, kept by the servers")
    text = cursors.seal("home#alice", "0193…")
    cursors.open("home#alice", text)     # "0193…"
    cursors.open("home#bob", text)       # raises InvalidCursor

The position is signed but not encrypted: put nothing secret into it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final

SECRET_BYTES_MIN: Final = 16
_SIGNATURE_BYTES: Final = 16


class InvalidCursor(ValueError):
    """The cursor was made by another program or for another list, or was modified: answer with status 400."""


class Cursors:
    """Makes and checks cursors with `secret`, which all servers of a program share."""

    def __init__(self, secret: bytes) -> None:
        if len(secret) < SECRET_BYTES_MIN:
            raise ValueError(
                f"a secret of {len(secret)} bytes can be guessed: use {SECRET_BYTES_MIN} random bytes or more"
            )
        self._secret = secret

    def seal(self, scope: str, position: str) -> str:
        """A cursor for `position` in the list `scope`: letters, digits, ``-`` and ``_``."""
        data = position.encode()
        return base64.urlsafe_b64encode(self._signature(scope, data) + data).rstrip(b"=").decode()

    def open(self, scope: str, cursor: str) -> str:
        """The position that was sealed for the list `scope`. Raises `InvalidCursor`."""
        try:
            padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
            sealed = base64.b64decode(padded, altchars=b"-_", validate=True)
        except (UnicodeEncodeError, binascii.Error):
            raise InvalidCursor("the cursor was not made by this program") from None
        signature, data = sealed[:_SIGNATURE_BYTES], sealed[_SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._signature(scope, data)):
            raise InvalidCursor("the cursor was altered, or belongs to another list")
        return data.decode()

    def _signature(self, scope: str, data: bytes) -> bytes:
        name = scope.encode()
        # (the length first: no scope and position can be read as another scope and position)
        message = len(name).to_bytes(4, "big") + name + data
        return hmac.new(self._secret, message, hashlib.sha256).digest()[:_SIGNATURE_BYTES]
