"""Certificates for tests, made as `hashrange tls create` makes them."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from hashrange.clock import SystemClock
from hashrange.server.tls import Certificates
from hashrange_access.certificates import authority, server


@dataclass(frozen=True)
class Files:
    """The files of a server's certificate, and of the authority by which clients trust it."""

    ca: Path
    certificate: Path
    key: Path

    def certificates(self) -> Certificates:
        return Certificates(self.certificate, self.key)

    def context(self) -> ssl.SSLContext:
        """A client's context, which trusts the authority."""
        return ssl.create_default_context(cafile=self.ca)

    def options(self) -> list[str]:
        """The options of `hashrange serve`."""
        return ["--tls-cert", str(self.certificate), "--tls-key", str(self.key)]


def make(folder: Path, *hosts: str) -> Files:
    """A certificate in `folder`, of a new authority."""
    now = SystemClock().now()
    signer = authority(now)
    made = server(signer, hosts or ("localhost", "127.0.0.1"), now)
    files = Files(folder / "ca.pem", folder / "server.pem", folder / "server-key.pem")
    files.ca.write_bytes(signer.certificate)
    files.certificate.write_bytes(made.certificate)
    files.key.write_bytes(made.key)
    return files
