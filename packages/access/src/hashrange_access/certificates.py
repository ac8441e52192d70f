"""Makes certificates for servers that no public authority knows: a local authority, and what it signs.

The keys are on the curve P-256, which every SDK takes. The authority may sign servers only, and no further
authorities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

AUTHORITY: Final = "ca.pem"
AUTHORITY_KEY: Final = "ca-key.pem"
CERTIFICATE: Final = "server.pem"
KEY: Final = "server-key.pem"
"""The names of the files that `hashrange tls create` makes."""

AUTHORITY_DAYS: Final = 3_650
SERVER_DAYS: Final = 397
"""Some programs refuse certificates of servers that are valid for longer."""

_EARLIER: Final = timedelta(hours=1)
"""Certificates are valid from a while ago, for clients whose clock is slow."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, in PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        """Without the key, so that no log or traceback shows it."""
        return f"Pair(certificate={self.certificate!r})"


def authority(now: float) -> Pair:
    """A new authority. `now` is in epoch seconds."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    key = _new_key()
    moment = datetime.fromtimestamp(now, UTC)
    label = f"Hashrange local authority {moment:%Y-%m-%d} {x509.random_serial_number():032x}"[:64]
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, label)])
    builder = _begun(name, name, key, moment, AUTHORITY_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return _signed(builder.add_extension(identifier, critical=False), key, key)


def server(by: Pair, hosts: Sequence[str], now: float) -> Pair:
    """A new certificate for the names and addresses `hosts`, signed by the authority `by`; its file has the
    authority's certificate as well. Raises ValueError for an authority that is damaged or has expired, and
    for a host that is no name."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    alternatives = [_alternative(host) for host in hosts]
    signer = x509.load_pem_x509_certificate(by.certificate)
    moment = datetime.fromtimestamp(now, UTC)
    end = signer.not_valid_after_utc
    if end <= moment:
        raise ValueError(f"the authority has expired on {end:%Y-%m-%d}")
    key = _new_key()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0][:64])])
    days = min(SERVER_DAYS, (end - moment).days)
    builder = _begun(name, signer.subject, key, moment, days)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    identifier = signer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False
    )
    signing = load_pem_private_key(by.key, None)
    made = _signed(builder, key, signing)  # type: ignore[arg-type]  # the key that `authority` made
    return Pair(made.certificate + by.certificate, made.key)


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _begun(
    subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey, moment: datetime, days: int
) -> x509.CertificateBuilder:
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(moment - _EARLIER)
        .not_valid_after(moment + timedelta(days=days))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(host.strip("[]")))
    except ValueError:
        pass
    if not host or "/" in host or ":" in host or any(character.isspace() for character in host):
        raise ValueError(f"{host!r} is neither a host name nor an address")
    return x509.DNSName(host.encode("idna").decode())


def _signed(
    builder: x509.CertificateBuilder, key: EllipticCurvePrivateKey, signer: EllipticCurvePrivateKey
) -> Pair:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    certificate = builder.sign(signer, hashes.SHA256())
    return Pair(
        certificate.public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )
