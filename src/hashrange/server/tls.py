"""TLS: the server's certificate with its key, and the context that new connections get.

`Certificates` reads the two files when the server starts, and again when they have changed. Running
connections keep the certificate with which they began. Files that do not fit each other change nothing: the
server goes on with the former certificate and logs why.

A file is read only when it has looked the same twice, because the certificate and the key are not replaced in
one step: read in between, they would not fit.

The protocol is TLS 1.2 or newer, with the ciphers of the machine's OpenSSL, and HTTP/1.1 inside. Refuses to
know connections.
"""

from __future__ import annotations

import contextlib
import logging
import os
import ssl
from pathlib import Path
from typing import Final

from hashrange.files import regular

HANDSHAKE_SECONDS_MAX: Final = 10.0
"""How long a client may take for its handshake."""

HANDSHAKES_MAX: Final = 1_000
"""How many handshakes a listener has under way. For one more, the oldest is given up: clients that never
finish theirs cannot keep others out."""

_LOOK_SECONDS: Final = 2.0
_FILE_BYTES_MAX: Final = 1024 * 1024

_log = logging.getLogger(__name__)

Stamp = tuple[tuple[int, int, int], ...]


class CertificateError(ValueError):
    """A certificate and a key that cannot be used. The text names the file, and the remedy."""


class Certificates:
    """The certificate of a server. Raises `CertificateError` if it cannot be used.

    `context` is for new connections. `look` reads the files again if they have changed.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate = certificate
        self._key = key
        self._used = self._seen = self._stamp()
        self._next_look = 0.0
        self.context = _context(certificate, key)

    def look(self, now: float) -> None:
        """Read the files again if they have changed and are at rest. `now` is in seconds, of any steady
        clock; calls within two seconds of the last look do nothing."""
        if now < self._next_look:
            return
        self._next_look = now + _LOOK_SECONDS
        seen = self._stamp()
        at_rest, self._seen = seen == self._seen, seen
        if not at_rest or seen == self._used:
            return
        self._used = seen
        fields = {"certificate": str(self._certificate), "key": str(self._key)}
        try:
            self.context = _context(self._certificate, self._key)
        except CertificateError as error:
            _log.error("the new certificate is not used", extra={"fields": {**fields, "why": str(error)}})
        else:
            _log.info("new connections use the new certificate", extra={"fields": fields})

    def _stamp(self) -> Stamp:
        """By what a change of the files is noticed. A file that is missing has no stamp."""
        stamps = []
        for path in (self._certificate, self._key):
            with contextlib.suppress(OSError):
                state = os.stat(path)
                stamps.append((state.st_mtime_ns, state.st_ino, state.st_size))
        return tuple(stamps)


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # A client of TLS 1.2 could make the server compute one handshake after the other on a connection.
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    encrypted = f"The key {key} is encrypted. Give a key without a passphrase that only the server can read."

    def ask_passphrase() -> str:
        # Without this OpenSSL would ask on the terminal, and the server would wait.
        raise CertificateError(encrypted)

    for path in (certificate, key):
        try:
            # Reading a named pipe would stop the event loop forever.
            regular.read(path, _FILE_BYTES_MAX)
        except OSError as error:
            raise CertificateError(f"{path} cannot be read: {error.strerror}.") from error
    try:
        context.load_cert_chain(certificate, key, ask_passphrase)
    except CertificateError:
        raise
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            why = f"The key {key} is not the key of the certificate {certificate}."
        else:
            why = f"{certificate} and {key} are not a certificate and its key in PEM ({error.reason})."
        raise CertificateError(f"{why}") from error
    except OSError as error:  # pragma: no cover (a file that has just disappeared)
        raise CertificateError(f"{certificate} or {key} cannot be read: {error.strerror}.") from error
    return context
