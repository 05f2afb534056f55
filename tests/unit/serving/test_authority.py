"""Certificates for strict verifiers, and their renewal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError
from hypothesis import given
from hypothesis import strategies as st

from apiserver.serving import authority
from apiserver.serving.authority import KeyPair

NOW = datetime(2026, 7, 1, 12, 0, 0, tzinfo=UTC)
DAY = timedelta(days=1)
NAMES = authority.service_names("stowplan-webhooks", "stowplan-system")


def verify(leaf: bytes, trusted: bytes, *, name: str = NAMES[2], now: datetime = NOW) -> None:
    """Verify a server certificate as a strict client does (the Web PKI profile)."""
    store = Store(x509.load_pem_x509_certificates(trusted))
    verifier = PolicyBuilder().store(store).time(now).build_server_verifier(x509.DNSName(name))
    verifier.verify(x509.load_pem_x509_certificate(leaf), [])


@pytest.fixture(scope="module")
def ca() -> KeyPair:
    """Return an authority that is valid for ten days."""
    return authority.new_authority("test", lifetime=10 * DAY, now=NOW)


@pytest.fixture(scope="module")
def leaf(ca: KeyPair) -> KeyPair:
    """Return a server certificate that is valid for three days."""
    return authority.new_leaf(ca, NAMES, lifetime=3 * DAY, now=NOW)


@pytest.mark.parametrize("name", NAMES[1:])
def test_a_strict_client_accepts_every_dns_name_of_the_service(ca: KeyPair, leaf: KeyPair, name: str) -> None:
    """The certificate contains all of them."""
    verify(leaf.certificate, ca.certificate, name=name)


@pytest.mark.parametrize(
    ("name", "now"),
    [
        pytest.param("other.stowplan-system.svc", NOW, id="another Service"),
        pytest.param(NAMES[2], NOW + 3 * DAY + timedelta(seconds=1), id="after its expiry"),
        pytest.param(NAMES[2], NOW - timedelta(hours=2), id="long before its validity starts"),
    ],
)
def test_a_strict_client_rejects_another_name_or_time(
    ca: KeyPair, leaf: KeyPair, name: str, *, now: datetime
) -> None:
    """The certificate is valid only for its Service and its period."""
    with pytest.raises(VerificationError):
        verify(leaf.certificate, ca.certificate, name=name, now=now)


def test_a_client_whose_clock_is_an_hour_behind_accepts_a_new_certificate(ca: KeyPair, leaf: KeyPair) -> None:
    """The validity starts before the time of issue."""
    verify(leaf.certificate, ca.certificate, now=NOW - timedelta(minutes=59))


def test_certificates_have_the_extensions_that_strict_verifiers_require(ca: KeyPair, leaf: KeyPair) -> None:
    """Checked are key, basic constraints, key usage and key identifiers."""
    root, cert = (x509.load_pem_x509_certificate(pair.certificate) for pair in (ca, leaf))
    public_key = cert.public_key()
    assert isinstance(public_key, ec.EllipticCurvePublicKey)
    assert public_key.curve.name == "secp256r1"
    of_root, of_leaf = root.extensions, cert.extensions
    assert of_root.get_extension_for_class(x509.BasicConstraints).critical
    assert of_root.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    assert not of_leaf.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    subject_id = of_root.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    authority_id = of_leaf.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier
    assert authority_id == subject_id


def test_the_joint_bundle_accepts_certificates_of_both_authorities(ca: KeyPair, leaf: KeyPair) -> None:
    """A client that has only the old authority rejects the new certificate."""
    new_ca = authority.new_authority("test", lifetime=10 * DAY, now=NOW + DAY)
    new_leaf = authority.new_leaf(new_ca, NAMES, lifetime=3 * DAY, now=NOW + DAY)
    both = authority.bundle(new_ca.certificate, ca.certificate, now=NOW + DAY)

    verify(leaf.certificate, both, now=NOW + DAY)
    verify(new_leaf.certificate, both, now=NOW + DAY)
    with pytest.raises(VerificationError):
        verify(new_leaf.certificate, ca.certificate, now=NOW + DAY)


def test_bundle_omits_duplicate_and_expired_certificates(ca: KeyPair) -> None:
    """Without certificates, the bundle is empty."""
    new_ca = authority.new_authority("test", lifetime=100 * DAY, now=NOW)
    both = authority.bundle(new_ca.certificate, ca.certificate, now=NOW)

    assert authority.bundle(both, ca.certificate, now=NOW) == both
    assert authority.bundle(both, now=NOW + 11 * DAY) == new_ca.certificate
    assert authority.bundle(b"", b"\n", now=NOW) == b""


def test_a_leaf_does_not_outlive_its_authority(ca: KeyPair) -> None:
    """Near its expiry, an authority issues certificates with a shorter lifetime, and afterwards none."""
    late = NOW + 9 * DAY
    leaf = authority.new_leaf(ca, NAMES, lifetime=3 * DAY, now=late)
    assert x509.load_pem_x509_certificate(leaf.certificate).not_valid_after_utc == NOW + 10 * DAY
    with pytest.raises(ValueError, match="expired"):
        authority.new_leaf(ca, NAMES, lifetime=3 * DAY, now=NOW + 10 * DAY)


def test_the_key_must_belong_to_the_authority(ca: KeyPair, leaf: KeyPair) -> None:
    """A key pair of different origins is rejected."""
    mixed = KeyPair(certificate=ca.certificate, key=leaf.key)
    with pytest.raises(ValueError, match="does not belong"):
        authority.new_leaf(mixed, NAMES, lifetime=DAY, now=NOW)


@given(part=st.floats(min_value=-0.5, max_value=1.5), seconds=st.integers(min_value=60, max_value=10**8))
def test_renewal_is_due_after_two_thirds_of_the_lifetime(part: float, seconds: int) -> None:
    """This holds for every lifetime from one minute; before its validity a certificate is due as well."""
    pair = authority.new_authority("test", lifetime=timedelta(seconds=seconds), now=NOW)
    parsed = x509.load_pem_x509_certificate(pair.certificate)
    begin, end = parsed.not_valid_before_utc, parsed.not_valid_after_utc
    moment = begin + (end - begin) * part
    if abs(moment - begin) < timedelta(seconds=1):
        return

    assert authority.needs_renewal(pair.certificate, moment) == (not 0 <= part < 2 / 3)


def test_a_new_certificate_is_not_due(ca: KeyPair) -> None:
    """Otherwise it would be replaced as soon as it was issued."""
    for seconds in (2, 90, 10**9):
        pair = authority.new_leaf(ca, NAMES, lifetime=timedelta(seconds=seconds), now=NOW)
        assert not authority.needs_renewal(pair.certificate, NOW)


@pytest.mark.parametrize("damaged", [b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_an_unreadable_certificate_is_due_for_renewal(damaged: bytes, ca: KeyPair) -> None:
    """It covers no name and has no issuer."""
    assert authority.needs_renewal(damaged, NOW)
    assert not authority.covers(damaged, NAMES)
    assert not authority.is_issued_by(damaged, ca.certificate)


def test_names_and_issuer_of_a_certificate_are_checked(ca: KeyPair, leaf: KeyPair) -> None:
    """All names must be covered, and the signature must be the issuer's."""
    other = authority.new_authority("test", lifetime=DAY, now=NOW)

    assert authority.covers(leaf.certificate, NAMES[:2])
    assert not authority.covers(leaf.certificate, (*NAMES, "x"))
    assert authority.is_issued_by(leaf.certificate, ca.certificate)
    assert not authority.is_issued_by(leaf.certificate, other.certificate)


def test_service_name_and_namespace_may_have_the_maximum_length(ca: KeyPair) -> None:
    """The subject, whose length is more limited, does not prevent it."""
    names = authority.service_names("s" * 63, "n" * 63)
    pair = authority.new_leaf(ca, names[::-1], lifetime=DAY, now=NOW)

    verify(pair.certificate, ca.certificate, name=names[2])
