"""Rotation of certificates, which conversion webhooks get the trusted authorities, and what is logged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, cast

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from support.logs import capture_logs

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, NotFound, Unavailable
from apiserver.schema.json import Json
from apiserver.serving.authority import KeyPair, new_authority
from controller.certificates.authority import (
    authority_of,
    current_authority,
    current_leaf,
    leaf_data,
    leaf_of,
    why_unfit,
    why_unusable,
)
from controller.certificates.certificates import (
    CONVERSION,
    CertificateReconciler,
    CertificateSettings,
    conversion_patch,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
LIFETIME = timedelta(days=300)
NAMES = ("stowplan-webhooks", "stowplan-webhooks.ns.svc")


def test_an_authority_that_is_not_near_its_end_is_kept() -> None:
    """A second call changes nothing."""
    first = current_authority(None, lifetime=LIFETIME, now=START)

    assert current_authority(first, lifetime=LIFETIME, now=START + timedelta(days=150)) == first


def test_an_old_authority_is_replaced_and_still_trusted() -> None:
    """Both are trusted, because leaf certificates of the old one are still in use."""
    first = current_authority(None, lifetime=LIFETIME, now=START)

    second = current_authority(first, lifetime=LIFETIME, now=START + timedelta(days=250))

    assert second.pair != first.pair
    assert second.pair.certificate.strip() in second.trusted
    assert first.pair.certificate.strip() in second.trusted


def test_an_authority_is_read_from_its_secret_as_it_was_written() -> None:
    """Missing or empty data is no authority."""
    first = current_authority(None, lifetime=LIFETIME, now=START)

    assert authority_of(first.as_data()) == first
    assert authority_of({}) is None
    assert authority_of({"tls.crt": b"", "tls.key": b"x"}) is None


def test_a_leaf_is_replaced_if_old_incomplete_or_of_another_authority() -> None:
    """Otherwise it is kept."""
    authority = current_authority(None, lifetime=LIFETIME, now=START)
    other = current_authority(None, lifetime=LIFETIME, now=START)
    lifetime = timedelta(days=30)

    leaf = current_leaf(None, authority, NAMES, lifetime=lifetime, now=START)

    assert leaf_of(leaf_data(leaf)) == leaf
    assert current_leaf(leaf, authority, NAMES, lifetime=lifetime, now=START + timedelta(days=10)) == leaf
    assert current_leaf(leaf, authority, NAMES, lifetime=lifetime, now=START + timedelta(days=25)) != leaf
    assert current_leaf(leaf, authority, (*NAMES, "more"), lifetime=lifetime, now=START) != leaf
    assert current_leaf(leaf, other, NAMES, lifetime=lifetime, now=START) != leaf


USELESS_KEYS = {
    "a damaged key": lambda _: b"garbage",
    "the key of another certificate": lambda _: new_authority("other", lifetime=LIFETIME, now=START).key,
    "a key of another kind": lambda _: generate_private_key(65537, 2048).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    ),
}


@pytest.mark.parametrize("key_of", USELESS_KEYS.values(), ids=USELESS_KEYS.keys())
def test_a_certificate_without_a_matching_key_is_replaced(key_of: Callable[[KeyPair], bytes]) -> None:
    """This holds for a leaf and for an authority, which stays trusted for what it issued."""
    first = current_authority(None, lifetime=LIFETIME, now=START)
    leaf = current_leaf(None, first, NAMES, lifetime=LIFETIME, now=START)

    damaged = replace(first, pair=replace(first.pair, key=key_of(first.pair)))
    second = current_authority(damaged, lifetime=LIFETIME, now=START)

    assert second.pair != damaged.pair
    assert first.pair.certificate.strip() in second.trusted
    unusable = replace(leaf, key=key_of(leaf))
    assert current_leaf(unusable, first, NAMES, lifetime=LIFETIME, now=START) != unusable


@pytest.mark.parametrize(
    "trusted", [b"garbage", new_authority("x", lifetime=LIFETIME, now=START).certificate]
)
def test_the_authority_in_use_is_always_trusted(trusted: bytes) -> None:
    """It is added to the trusted certificates of the Secret, of which the valid ones are kept."""
    first = current_authority(None, lifetime=LIFETIME, now=START)

    mended = current_authority(replace(first, trusted=trusted), lifetime=LIFETIME, now=START)

    assert mended.pair == first.pair
    assert first.pair.certificate.strip() in mended.trusted
    assert (trusted.strip() in mended.trusted) is (trusted != b"garbage")
    assert current_authority(mended, lifetime=LIFETIME, now=START) == mended


def test_invalid_secrets_are_replaced() -> None:
    """Invalid data counts as an expired certificate."""
    damaged = authority_of({"tls.crt": b"garbage", "tls.key": b"garbage", "trusted.crt": b"garbage"})
    fresh = current_authority(damaged, lifetime=LIFETIME, now=START)

    assert b"BEGIN CERTIFICATE" in fresh.pair.certificate
    assert b"garbage" not in fresh.trusted


def test_the_reason_for_a_replacement_is_named() -> None:
    """It is logged, so that an unexpected rotation can be explained."""
    first, other = (current_authority(None, lifetime=LIFETIME, now=START) for _ in range(2))
    leaf = current_leaf(None, first, NAMES, lifetime=LIFETIME, now=START)
    late = START + LIFETIME

    assert why_unusable(None, START) == "there is none in the Secret"
    assert why_unusable(first, START) is None
    assert "two thirds" in str(why_unusable(first, late))
    assert "not valid yet" in str(why_unusable(first, START - LIFETIME))
    assert "is no CA" in str(why_unusable(replace(first, pair=leaf), START))
    assert why_unfit(None, first, NAMES, START) == "there is none in the Secret"
    assert why_unfit(leaf, first, NAMES, START) is None
    assert "two thirds" in str(why_unfit(leaf, first, NAMES, late))
    assert "not valid yet" in str(why_unfit(leaf, first, NAMES, START - LIFETIME))
    assert why_unfit(leaf, first, (*NAMES, "more"), START) == "it lacks a name"
    assert why_unfit(leaf, other, NAMES, START) == "it is from another CA"
    assert why_unfit(replace(leaf, key=first.pair.key), first, NAMES, START) == "it has another key"


SETTINGS = CertificateSettings(
    namespace="stowplan-system", leaf_lifetime=timedelta(hours=720), authority_lifetime=timedelta(hours=87600)
)
MISSING = (
    "Secret 'stowplan-authority' does not exist: apply the manifests again, which contain it without data"
)


class Server:
    """Refuses every read, with one error after the other."""

    def __init__(self, *errors: ClusterError) -> None:
        self._errors = iter(errors)

    async def get(self, *_: object, **__: object) -> None:
        """Refuse a read; the test ends after the last error."""
        error = next(self._errors, None)
        if error is None:
            raise asyncio.CancelledError
        raise error


async def test_a_failure_is_logged_once_until_it_changes_and_says_what_to_do() -> None:
    """A Secret that somebody deleted stays away until somebody applies the manifests."""
    gone = NotFound('secrets "stowplan-authority" not found', code=404)
    server = Server(gone, gone, gone, Unavailable("no answer"), gone)
    reconciler = CertificateReconciler(cast("Cluster", server), SETTINGS, now=lambda: datetime.now(UTC))
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    with capture_logs() as lines, pytest.raises(asyncio.CancelledError):
        await reconciler.keep(sleep=sleep)

    assert [line["error"] for line in lines] == [MISSING, "no answer", MISSING]
    assert {line["event"] for line in lines} == {"certificates not renewed"}
    assert pauses == [2.0] * 5


NAMESPACE: Final = "gpu-system"
OURS: Final[Json] = {"name": CONVERSION, "namespace": NAMESPACE, "path": "/convert", "port": 9443}


def converted(client: Json | None) -> Json:
    """Return a definition with a conversion webhook, or without any."""
    if client is None:
        return {"spec": {"conversion": {"strategy": "None"}}}
    return {"spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": client}}}}


def test_our_conversion_webhook_gets_the_bundle() -> None:
    """The patch tests for concurrent changes, and is empty if the bundle is already there."""
    test, add = conversion_patch(converted({"service": OURS}), "QQ==", namespace=NAMESPACE)

    assert (test["op"], test["value"]) == ("test", OURS)
    assert add == {"op": "add", "path": "/spec/conversion/webhook/clientConfig/caBundle", "value": "QQ=="}
    assert not conversion_patch(converted({"service": OURS, "caBundle": "QQ=="}), "QQ==", namespace=NAMESPACE)


OTHERS: Final[dict[str, Json | None]] = {
    "another Service": {"service": OURS | {"name": "converter"}},
    "our Service in another namespace": {"service": OURS | {"namespace": "other"}},
    "an address outside the cluster": {"url": "https://converter.example.com/convert"},
    "nothing": None,
}


@pytest.mark.parametrize("client", OTHERS.values(), ids=OTHERS.keys())
def test_conversion_webhooks_of_others_get_no_bundle(client: Json | None) -> None:
    """They trust their own authority."""
    assert not conversion_patch(converted(client), "QQ==", namespace=NAMESPACE)
