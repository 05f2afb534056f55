"""Our own certificate authority: create it, issue server certificates, and determine when to renew.

Pure functions on PEM bytes. To rotate without a failed handshake: create a new authority, publish
`bundle(new, old)` to every client, wait until they have it, then issue the leaf from the new one. Expired
authorities are dropped from the bundle. Profile: RFC 5280, as strict verifiers require.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

RENEW_AFTER = 2 / 3
"""The fraction of a certificate's lifetime after which it is replaced."""
_MOST_BACKDATED = timedelta(hours=1)
_COMMON_NAME_LIMIT = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyPair:
    """A certificate and its private key, both in PEM format."""

    certificate: bytes
    key: bytes


def new_authority(name: str, *, lifetime: timedelta, now: datetime) -> KeyPair:
    """Return a self-signed authority. The time in its name distinguishes two during a rotation."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(f"{name}@{int(now.timestamp())}")
    extensions: list[tuple[x509.ExtensionType, bool]] = [
        (x509.BasicConstraints(ca=True, path_length=0), True),
        (_key_usage(signs_certificates=True), True),
        (x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False),
    ]
    builder = _builder(subject, key, now=now, end=now + lifetime).issuer_name(subject)
    return _issue(builder, extensions, key=key, signing_key=key)


def new_leaf(authority: KeyPair, names: tuple[str, ...], *, lifetime: timedelta, now: datetime) -> KeyPair:
    """Return a server certificate for these DNS names, which expires no later than its authority.

    Raises `ValueError` if the authority has expired or cannot be parsed.
    """
    issuer, signing_key = _load(authority)
    end = min(now + lifetime, issuer.not_valid_after_utc)
    if end <= now:
        raise ValueError(f"the authority {issuer.subject.rfc4514_string()} has expired: create a new one")
    key = ec.generate_private_key(ec.SECP256R1())
    authority_id = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    extensions: list[tuple[x509.ExtensionType, bool]] = [
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (_key_usage(signs_certificates=False), True),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
        (x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), False),
        (x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False),
        (x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(authority_id), False),
    ]
    builder = _builder(_name(names[0]), key, now=now, end=end).issuer_name(issuer.subject)
    return _issue(builder, extensions, key=key, signing_key=signing_key)


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """Return the DNS names of a Service; API servers use `service.namespace.svc`."""
    qualified = f"{service}.{namespace}.svc"
    return service, f"{service}.{namespace}", qualified, f"{qualified}.cluster.local"


def needs_renewal(certificate: bytes, now: datetime) -> bool:
    """Tell whether two thirds of a certificate's lifetime are over, or it is not valid yet or unreadable."""
    try:
        parsed = x509.load_pem_x509_certificate(certificate)
    except ValueError:
        return True
    begin, end = parsed.not_valid_before_utc, parsed.not_valid_after_utc
    return not begin <= now < begin + (end - begin) * RENEW_AFTER


def is_issued_by(leaf: bytes, authority: bytes) -> bool:
    """Tell whether the certificate, the first one of a chain, is signed by the authority's key."""
    try:
        issuer = x509.load_pem_x509_certificate(authority)
        x509.load_pem_x509_certificate(leaf).verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def covers(leaf: bytes, names: tuple[str, ...]) -> bool:
    """Tell whether the certificate is valid for all these DNS names."""
    try:
        extensions = x509.load_pem_x509_certificate(leaf).extensions
        alternatives = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return False
    return set(names) <= set(alternatives.get_values_for_type(x509.DNSName))


def bundle(*authorities: bytes, now: datetime) -> bytes:
    """Join authorities, or bundles of them, for clients to trust, without duplicates and expired ones."""
    kept: dict[bytes, None] = {}
    for pem in authorities:
        for certificate in x509.load_pem_x509_certificates(pem) if pem.strip() else []:
            if certificate.not_valid_after_utc > now:
                kept[certificate.public_bytes(Encoding.PEM)] = None
    return b"".join(kept)


def has_its_key(pair: KeyPair) -> bool:
    """Tell whether the key can be read, is an EC key, as all of ours are, and belongs to the certificate."""
    try:
        _load(pair)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return False
    return True


def can_issue(authority: KeyPair) -> bool:
    """Tell whether certificates can be issued: by an authority with its own key."""
    if not has_its_key(authority):
        return False
    try:
        extensions = x509.load_pem_x509_certificate(authority.certificate).extensions
        extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
        return extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (ValueError, x509.ExtensionNotFound, x509.DuplicateExtension):
        return False


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:_COMMON_NAME_LIMIT])])


def _builder(
    subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, now: datetime, end: datetime
) -> x509.CertificateBuilder:
    """Return a certificate builder; validity starts in the past, for verifiers whose clock is behind."""
    begin = now - min(_MOST_BACKDATED, (end - now) / 10)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
    )


def _issue(
    builder: x509.CertificateBuilder,
    extensions: list[tuple[x509.ExtensionType, bool]],
    *,
    key: ec.EllipticCurvePrivateKey,
    signing_key: ec.EllipticCurvePrivateKey,
) -> KeyPair:
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    certificate = builder.sign(signing_key, hashes.SHA256())
    return KeyPair(
        certificate=certificate.public_bytes(Encoding.PEM),
        key=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
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


def _load(authority: KeyPair) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    certificate = x509.load_pem_x509_certificate(authority.certificate)
    key = load_pem_private_key(authority.key, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise ValueError("the key is no EC key, or does not belong to its certificate")
    return certificate, key
