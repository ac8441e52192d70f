"""The key file, and what is encrypted by it: the secrets of stored keys, and the tokens of sessions.

The file holds 32 random bytes in Base64. For each purpose HKDF derives a key of its own from them, and
AES-GCM encrypts and authenticates: a sealed text that was changed, or belongs to another purpose or to
something else, cannot be opened. A sealed text is a nonce of 12 random bytes and the ciphertext.

Refuses to know what is sealed. Randomness is an argument.
"""

from __future__ import annotations

import base64
import binascii
import logging
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from hashrange.files import regular
from hashrange.files.durable import private, sync, sync_directory

KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_FILE_BYTES_MAX: Final = 4_096
_MAKE_ONE: Final = "`openssl rand -base64 32` makes one"

_log = logging.getLogger("hashrange.access")


class VaultError(ValueError):
    """The key file cannot be used, or does not open what was sealed. The text says why, and the remedy."""


class Seal:
    """Seals for one purpose. Thread-safe."""

    def __init__(self, key: bytes, purpose: str, random: Callable[[int], bytes]) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        derived = HKDF(SHA256(), KEY_BYTES, None, f"hashrange {purpose}".encode()).derive(key)
        self._cipher = AESGCM(derived)
        self._random = random

    def seal(self, plain: bytes, about: bytes = b"") -> bytes:
        """Encrypt. Only with the same `about` can it be opened again."""
        nonce = self._random(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, plain, about)

    def open(self, sealed: bytes, about: bytes = b"") -> bytes | None:
        """Decrypt; None for what this seal has not sealed."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], about)
        except (InvalidTag, ValueError):
            return None


class Vault:
    """The seals of a server, by the key that `load` returns: it is called once, when a seal is first needed,
    with True if the key may be made. It returns None if there is none yet and none may be made."""

    def __init__(self, load: Callable[[bool], bytes | None], random: Callable[[int], bytes]) -> None:
        self._load = load
        self.random = random
        self._lock = threading.Lock()
        self._key: bytes | None = None
        self._seals: dict[str, Seal] = {}

    def seal(self, purpose: str, *, make: bool = False) -> Seal | None:
        """The seal for a purpose; None if there is no key yet. `make`: then make a key, so that the result is
        never None.

        Raises `VaultError`.
        """
        made = self._seals.get(purpose)
        if made is not None:
            return made
        with self._lock:
            if self._key is None:
                self._key = self._load(make)
            if self._key is None:
                return None
            try:
                made = self._seals[purpose] = Seal(self._key, purpose, self.random)
            except ImportError as error:
                raise VaultError(
                    "keys in the store and sessions need the package cryptography; install it with: pip "
                    "install cryptography"
                ) from error
            return made

    def made(self, purpose: str) -> Seal:
        """The seal for a purpose, whose key is made if there is none yet. Raises `VaultError`."""
        seal = self.seal(purpose, make=True)
        assert seal is not None
        return seal


def in_memory(random: Callable[[int], bytes]) -> Vault:
    """A vault whose key ends with the server, for a store that does so too."""
    return Vault(lambda _: random(KEY_BYTES), random)


def in_file(path: Path, random: Callable[[int], bytes], *, may_make: bool) -> Vault:
    """A vault whose key is in a file. `may_make`: a file that is missing is made when it is first needed."""

    def load(make: bool) -> bytes | None:
        try:
            return _read(path)
        except FileNotFoundError:
            if not may_make:
                raise VaultError(
                    f"the key file {path} does not exist: {_MAKE_ONE}; all servers over a store need the same"
                ) from None
            return _made(path, random(KEY_BYTES)) if make else None
        except OSError as error:
            raise VaultError(f"the key file {path} cannot be read: {error.strerror}") from error

    return Vault(load, random)


def missing(remedy: str) -> Vault:
    """A vault without a key: whatever needs one is refused with this text."""

    def load(make: bool) -> bytes | None:
        if make:
            raise VaultError(remedy)
        return None

    def random(length: int) -> Any:
        raise VaultError(remedy)

    return Vault(load, random)


def _read(path: Path) -> bytes:
    text = regular.read(path, _FILE_BYTES_MAX)
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except binascii.Error:
        key = b""
    if len(key) != KEY_BYTES:
        raise VaultError(f"the key file {path} does not hold {KEY_BYTES} bytes in Base64: {_MAKE_ONE}")
    if (others := regular.others_may(path)) and path.stat().st_uid == os.geteuid():
        # As ssh does with private keys. A file of another owner, such as a mounted secret, is not ours to
        # judge.
        raise VaultError(
            f"other users of this machine may have access to the key file {path}, whose mode ends in "
            f"{others:02o}: `chmod 600 {path}`"
        )
    if others & stat.S_IROTH:
        fields = {"file": str(path)}
        _log.warning("every user of this machine can read the key file", extra={"fields": fields})
    return key


def _made(path: Path, key: bytes) -> bytes:
    """Write a new key file, which only its owner may read. If another program has made it meanwhile, that
    one counts."""
    try:
        file = open(path, "xb", opener=private)  # noqa: SIM115 (it is closed below)
    except FileExistsError:
        return _read(path)
    except OSError as error:
        raise VaultError(f"the key file {path} cannot be made: {error.strerror}") from error
    with file:
        file.write(base64.b64encode(key) + b"\n")
        file.flush()
        sync(file.fileno())
    sync_directory(path.parent)
    _log.info("made a key file", extra={"fields": {"file": str(path)}})
    return key
