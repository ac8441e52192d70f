"""The options of `hashrange serve` for TLS, and the certificates that they name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hashrange.cli.serving.options import option

if TYPE_CHECKING:
    from hashrange.server.tls import Certificates

_FILE: Final = click.Path(path_type=Path, dir_okay=False)


def tls_options(function: Any) -> Any:
    """The two options."""
    function = option(
        "--tls-key", type=_FILE, metavar="FILE", help="Key of --tls-cert, in PEM.  [default: none]"
    )(function)
    return option(
        "--tls-cert",
        type=_FILE,
        metavar="FILE",
        help="Certificate in PEM, followed by the intermediate certificates; both ports then speak only TLS. "
        "The file is read again when it changes; see packages/access/docs/access.md.  [default: none]",
    )(function)


def certificates_of(given: Mapping[str, Any]) -> Certificates | None:
    """The certificate of --tls-cert and --tls-key. Raises ClickException."""
    certificate, key = given["tls_cert"], given["tls_key"]
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        missing = "--tls-key" if key is None else "--tls-cert"
        raise click.UsageError(f"TLS needs a certificate and its key: give {missing} as well.")
    from hashrange.server.tls import CertificateError, Certificates

    try:
        return Certificates(certificate, key)
    except CertificateError as error:
        raise click.ClickException(str(error)) from error
