"""Certificate authorities and certificates for one control plane, with P-256 keys."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFE = dt.timedelta(days=365)
_BACKDATED = dt.timedelta(hours=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyPair:
    """A certificate and its private key, both as PEM."""

    certificate: bytes
    key: bytes

    @classmethod
    def read(cls, directory: Path, name: str) -> Self:
        """Read the files that `write` creates."""
        certificate, key = ((directory / f"{name}.{suffix}").read_bytes() for suffix in ("crt", "key"))
        return cls(certificate=certificate, key=key)

    def write(self, directory: Path, name: str) -> None:
        """Write `NAME.crt` and `NAME.key`."""
        (directory / f"{name}.crt").write_bytes(self.certificate)
        write_secret(directory / f"{name}.key", self.key)


class Authority:
    """A certificate authority for server and client certificates."""

    def __init__(self, pair: KeyPair) -> None:
        self.pair = pair
        key = serialization.load_pem_private_key(pair.key, password=None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self._key = key
        self._name = x509.load_pem_x509_certificate(pair.certificate).subject

    @classmethod
    def create(cls, common_name: str) -> Self:
        """Create a key and a self-signed certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name(common_name, groups=())
        certificate = (
            _builder(name, issuer=name, key=key, issuer_key=key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(KeyPair(certificate=_pem(certificate), key=private_pem(key)))

    def server(self, common_name: str, *, names: tuple[str, ...], is_client: bool = False) -> KeyPair:
        """Issue a server certificate for these DNS names and addresses; `is_client` lets it call others."""
        alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
        purposes = [
            ExtendedKeyUsageOID.SERVER_AUTH,
            *([ExtendedKeyUsageOID.CLIENT_AUTH] if is_client else []),
        ]
        return self._leaf(common_name, groups=(), purposes=purposes, names=alternatives)

    def client(self, common_name: str, *, groups: tuple[str, ...] = ()) -> KeyPair:
        """Issue a client certificate: the common name is the user, organizations are groups."""
        return self._leaf(common_name, groups=groups, purposes=[ExtendedKeyUsageOID.CLIENT_AUTH], names=None)

    def _leaf(
        self,
        common_name: str,
        *,
        groups: tuple[str, ...],
        purposes: list[x509.ObjectIdentifier],
        names: x509.SubjectAlternativeName | None,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(_name(common_name, groups=groups), issuer=self._name, key=key, issuer_key=self._key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        return KeyPair(certificate=_pem(builder.sign(self._key, hashes.SHA256())), key=private_pem(key))


def signing_key() -> tuple[bytes, bytes]:
    """Create a key pair as PEM for signing and verifying service account tokens."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return private_pem(key), public


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a private key as unencrypted PEM, in the format that Kubernetes reads for every purpose."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def write_secret(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read."""
    path.touch(mode=0o600)
    path.write_bytes(content)


def _builder(
    subject: x509.Name,
    *,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer_key: ec.EllipticCurvePrivateKey,
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + _LIFE)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str, *, groups: tuple[str, ...]) -> x509.Name:
    organisations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organisations, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
