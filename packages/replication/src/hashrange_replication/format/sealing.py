"""The key file of a copy, and the encryption of the chunks of its objects.

The file holds 32 random bytes in Base64. HKDF derives from them an id, which names no secret, and with the
random salt of each object a key for this object alone. AES-256-GCM encrypts each chunk; its nonce is the
chunk's number, and it authenticates the object's header and the chunk's flags, which mark the last one. So
chunks can neither be changed, nor moved, nor cut off.

Refuses to know what is sealed. Randomness is an argument.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from hashrange.files import regular
from hashrange_replication.failures import CopyError, Damaged

KEY_BYTES: Final = 32
SALT_BYTES: Final = 16
Data = bytes | bytearray | memoryview
_NONCE_BYTES: Final = 12
_ID_BYTES: Final = 4
_FLAGS_BYTES: Final = 4
_FILE_BYTES_MAX: Final = 4_096
_MAKE_ONE: Final = "`openssl rand -base64 32` makes one"


class Key:
    """The key of a copy. `random` returns so many random bytes."""

    def __init__(self, secret: bytes, random: Callable[[int], bytes]) -> None:
        """Raises CopyError without the package cryptography."""
        self._secret = secret
        self.random = random
        self.id = self._derived(b"", b"id", _ID_BYTES).hex()

    def cipher(self, salt: bytes, header: bytes) -> Cipher:
        """The cipher of one object."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return Cipher(AESGCM(self._derived(salt, b"object", KEY_BYTES)), header)

    def _derived(self, salt: bytes, purpose: bytes, length: int) -> bytes:
        try:
            from cryptography.hazmat.primitives.hashes import SHA256
            from cryptography.hazmat.primitives.kdf.hkdf import HKDF
        except ImportError as error:
            raise CopyError(
                "A copy with a key file needs the package cryptography: pip install cryptography"
            ) from error
        return HKDF(SHA256(), length, salt or None, b"hashrange copy " + purpose).derive(self._secret)


class Cipher:
    """Encrypts and decrypts the chunks of one object, in order."""

    def __init__(self, cipher: object, header: bytes) -> None:
        self._cipher: Any = cipher
        self._header = header
        self._number = 0

    def seal(self, chunk: Data, flags: int) -> bytes:
        return self._cipher.encrypt(self._nonce(), chunk, self._about(flags))  # type: ignore[no-any-return]

    def open(self, chunk: bytes, flags: int) -> bytes:
        """Raises Damaged for what this key has not sealed at this place."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(self._nonce(), chunk, self._about(flags))  # type: ignore[no-any-return]
        except InvalidTag:
            raise Damaged("a chunk cannot be decrypted: it was changed, or has another key") from None

    def _nonce(self) -> bytes:
        self._number += 1
        return self._number.to_bytes(_NONCE_BYTES)

    def _about(self, flags: int) -> bytes:
        return self._header + flags.to_bytes(_FLAGS_BYTES)


def read_key(path: Path, random: Callable[[int], bytes]) -> Key:
    """The key in a file. Raises CopyError."""
    try:
        text = regular.read(path, _FILE_BYTES_MAX)
    except OSError as error:
        raise CopyError(
            f"The key file {path} cannot be read: {error.strerror or error}; {_MAKE_ONE}. Keep the key "
            "elsewhere as well: without it nobody can restore the copy."
        ) from error
    try:
        secret = base64.b64decode(text.strip(), validate=True)
    except binascii.Error:
        secret = b""
    if len(secret) != KEY_BYTES:
        raise CopyError(f"The key file {path} does not hold {KEY_BYTES} bytes in Base64: {_MAKE_ONE}.")
    if regular.others_may(path):
        raise CopyError(f"Other users of this machine may use the key file {path}: `chmod 600 {path}`.")
    return Key(secret, random)
