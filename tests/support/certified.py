"""Valid and invalid certificates, for tests of authentication."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = dt.timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Certified:
    """A certificate with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> bytes:
        """The certificate as PEM."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def der(self) -> bytes:
        """The certificate as DER."""
        return self.certificate.public_bytes(serialization.Encoding.DER)

    def write(self, directory: Path) -> tuple[Path, Path]:
        """Write `tls.crt` and `tls.key`."""
        key = self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        directory.mkdir(exist_ok=True)
        (directory / "tls.crt").write_bytes(self.pem)
        (directory / "tls.key").write_bytes(key)
        return directory / "tls.crt", directory / "tls.key"


def issued(
    name: str,
    authority: Certified | None = None,
    *,
    usage: x509.ObjectIdentifier | None = ExtendedKeyUsageOID.CLIENT_AUTH,
    life: tuple[dt.timedelta, dt.timedelta] = (-DAY, DAY),
) -> Certified:
    """Issue a certificate, for a client by default; without an authority it is a CA certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(authority.certificate.subject if authority else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + life[0])
        .not_valid_after(now + life[1])
        .add_extension(x509.BasicConstraints(ca=authority is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
    )
    if authority and usage:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    return Certified(certificate=builder.sign(authority.key if authority else key, hashes.SHA256()), key=key)
