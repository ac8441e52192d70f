"""The options of `hashrange serve` that protect a server on a network, and the parts that they make."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hashrange.cli.serving.options import option

if TYPE_CHECKING:
    from hashrange.server.tls import Certificates

_FILE: Final = click.Path(path_type=Path, dir_okay=False)

_OPTIONS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    (
        "--tls-cert",
        {
            "type": _FILE,
            "metavar": "FILE",
            "help": "Certificate of the server, in PEM, with those between it and its authority; both ports "
            "then speak TLS only. Read again when it changes; see docs/tls.md.  [default: none]",
        },
    ),
    (
        "--tls-key",
        {"type": _FILE, "metavar": "FILE", "help": "Key of --tls-cert, in PEM.  [default: none]"},
    ),
)


def protection_options(function: Any) -> Any:
    """The options of this module, whose values stay together."""
    decorators: list[Callable[[Any], Any]] = [option(name, **more) for name, more in _OPTIONS]
    for decorate in reversed(decorators):
        function = decorate(function)
    return function


def certificates_of(given: dict[str, Any]) -> Certificates | None:
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
