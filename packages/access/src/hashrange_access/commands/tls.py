"""`hashrange tls create`: a certificate for a server that no public authority knows."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from hashrange.clock import SystemClock
from hashrange.files.durable import private
from hashrange_access.certificates import AUTHORITY, AUTHORITY_KEY, CERTIFICATE, KEY, Pair, authority, server

DIRECTORY: Final = Path("hashrange-tls")
_OWN_HOSTS: Final = ("localhost", "127.0.0.1", "::1")

_EPILOG: Final = """\b
Examples:
  hashrange tls create                                       for this machine only
  hashrange tls create --host db.internal --host 10.0.0.7
  hashrange tls create --force                               a new certificate, of the same authority"""


@click.group("tls")
def command() -> None:
    """Make certificates, with which `hashrange serve` encrypts connections."""


@command.command("create", epilog=_EPILOG)
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A name or an address by which clients reach the server; repeatable. localhost, 127.0.0.1 and ::1 "
    "are always among them.",
)
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=DIRECTORY,
    show_default=True,
    help="The folder of the files; it is made if it is missing.",
)
@click.option("--force", is_flag=True, help="Replace a certificate that is there.")
def create(hosts: tuple[str, ...], directory: Path, force: bool) -> None:
    """Make an authority and the certificate of a server, and say how programs trust it.

    The files are ca.pem, which clients need; server.pem and server-key.pem, which the server needs; and
    ca-key.pem, which signs the next certificate: keep it where nobody else reads it. If the folder has an
    authority already, it signs the new certificate, so clients need nothing new. A running server takes the
    new certificate by itself.
    """
    certificate = directory / CERTIFICATE
    if certificate.exists() and not force:
        raise click.ClickException(
            f"{certificate} is there already. --force replaces it; clients that trust {AUTHORITY} go on."
        )
    now = SystemClock().now()
    names = tuple(dict.fromkeys((*hosts, *_OWN_HOSTS)))
    try:
        signer = _kept(directory)
        made = server(signer or (fresh := authority(now)), names, now)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if signer is None:
            _write(directory / AUTHORITY_KEY, fresh.key, secret=True)
            _write(directory / AUTHORITY, fresh.certificate)
        # The key comes first: a server that looks in between keeps what it has, since the two do not fit.
        _write(directory / KEY, made.key, secret=True)
        _write(certificate, made.certificate)
    except ImportError as error:
        raise click.ClickException(
            "This command needs the package cryptography; install it with: pip install cryptography"
        ) from error
    except (OSError, ValueError, UnicodeError) as error:
        raise click.ClickException(f"No certificate was made in {directory}: {error}") from error
    click.echo(_told(directory.absolute(), names))


def _kept(directory: Path) -> Pair | None:
    """The authority that a folder has. Raises OSError."""
    certificate, key = directory / AUTHORITY, directory / AUTHORITY_KEY
    if not certificate.exists() and not key.exists():
        return None
    return Pair(certificate.read_bytes(), key.read_bytes())


def _write(path: Path, content: bytes, *, secret: bool = False) -> None:
    """Put a file in place in one step; a secret one is readable by its owner only, from its beginning."""
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    with open(beside, "xb", opener=private if secret else None) as file:
        file.write(content)
    beside.replace(path)


def _told(directory: Path, names: tuple[str, ...]) -> str:
    ca = directory / AUTHORITY
    return f"""\
Made a certificate for {", ".join(names)}, in {directory}.

The server:
    hashrange serve --tls-cert {directory / CERTIFICATE} --tls-key {directory / KEY}

Programs trust it by {AUTHORITY}:
    export AWS_CA_BUNDLE={ca}  # boto3, the AWS CLI, hashrange's commands
    export NODE_EXTRA_CA_CERTS={ca}  # the SDK for JavaScript
    export SSL_CERT_FILE={ca}  # the SDK for Go, and others that know OpenSSL's variable

Java needs a trust store, which this makes:
    keytool -importcert -noprompt -alias hashrange -file {ca} \\
        -storepass changeit -keystore {directory}/trust.p12
    java -Djavax.net.ssl.trustStore={directory}/trust.p12 -Djavax.net.ssl.trustStorePassword=changeit ...

Give {AUTHORITY} to clients, and {AUTHORITY_KEY} to nobody."""
