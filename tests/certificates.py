"""Certificates for tests, of an authority that nobody else knows."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import trustme

from hashrange.server.tls import Certificates


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
    authority = trustme.CA()
    made = authority.issue_cert(*(hosts or ("localhost", "127.0.0.1")))
    files = Files(folder / "ca.pem", folder / "server.pem", folder / "server-key.pem")
    authority.cert_pem.write_to_path(str(files.ca))
    files.certificate.write_bytes(b"".join(part.bytes() for part in made.cert_chain_pems))
    made.private_key_pem.write_to_path(str(files.key))
    return files
