"""Authentication of the front proxy and of the user that it names."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID
from support.certified import Certified, issued

from apiserver.metrics.authentication import FrontProxy, FrontProxyUnknownError, Gate
from apiserver.metrics.status import UnauthorizedError

NOW = dt.datetime.now(dt.UTC)
YEAR = dt.timedelta(days=365)
USER = {"X-Remote-User": "system:serviceaccount:kube-system:horizontal-pod-autoscaler"}


def config_map(authorities: bytes, **data: str) -> dict[str, Any]:
    """Return the ConfigMap as kube-apiserver writes it."""
    written = {
        "requestheader-client-ca-file": authorities.decode(),
        "requestheader-allowed-names": json.dumps(["front-proxy-client"]),
        "requestheader-username-headers": json.dumps(["X-Remote-User"]),
        "requestheader-group-headers": json.dumps(["X-Remote-Group"]),
    }
    return {"data": written | {key.replace("_", "-"): text for key, text in data.items()}}


@pytest.fixture
def authority() -> Certified:
    """Return the front proxy's authority."""
    return issued("front-proxy-ca")


@pytest.fixture
def gate(authority: Certified) -> Gate:
    """Return the gate of a cluster with usual settings."""
    return Gate(FrontProxy.from_config_map(config_map(authority.pem)))


def test_the_front_proxy_is_accepted(gate: Gate, authority: Certified) -> None:
    """Its certificate has the right authority and name, and a header names the user."""
    gate.authenticate(issued("front-proxy-client", authority).der, USER, now=NOW)


STRANGERS: dict[str, tuple[Callable[[Certified], bytes | None], dict[str, str], str]] = {
    "no certificate": (lambda _: None, USER, "certificate .* is required"),
    "a certificate of another authority of the same name": (
        lambda _: issued("front-proxy-client", issued("front-proxy-ca")).der,
        USER,
        "not issued by the front proxy's authority",
    ),
    "a self-signed certificate": (
        lambda _: issued("front-proxy-client").der,
        USER,
        "not issued by the front proxy's authority",
    ),
    "a certificate for another name": (
        lambda ca: issued("admin", ca).der,
        USER,
        "names .'admin'., not the front proxy",
    ),
    "a server certificate": (
        lambda ca: issued("front-proxy-client", ca, usage=ExtendedKeyUsageOID.SERVER_AUTH).der,
        USER,
        "not a client certificate",
    ),
    "an expired certificate": (
        lambda ca: issued("front-proxy-client", ca, life=(-2 * YEAR, -YEAR)).der,
        USER,
        "not valid at this time",
    ),
    "a certificate that is not valid yet": (
        lambda ca: issued("front-proxy-client", ca, life=(YEAR, 2 * YEAR)).der,
        USER,
        "not valid at this time",
    ),
    "no user name": (
        lambda ca: issued("front-proxy-client", ca).der,
        {"X-Remote-Group": "system:masters"},
        "did not name the user",
    ),
    "an empty user name": (
        lambda ca: issued("front-proxy-client", ca).der,
        {"X-Remote-User": ""},
        "did not name the user",
    ),
}


@pytest.mark.parametrize(("certificate", "headers", "want"), STRANGERS.values(), ids=STRANGERS)
def test_other_requests_are_rejected_with_a_reason(
    gate: Gate,
    authority: Certified,
    *,
    certificate: Callable[[Certified], bytes | None],
    headers: dict[str, str],
    want: str,
) -> None:
    """The certificate must be the front proxy's, and a user must be named."""
    with pytest.raises(UnauthorizedError, match=want):
        gate.authenticate(certificate(authority), headers, now=NOW)


def test_a_cached_result_expires_with_the_certificate(gate: Gate, authority: Certified) -> None:
    """A connection may live longer than the certificate that opened it."""
    certificate = issued("front-proxy-client", authority).der
    gate.authenticate(certificate, USER, now=NOW)

    with pytest.raises(UnauthorizedError, match="not valid at this time"):
        gate.authenticate(certificate, USER, now=NOW + YEAR)


def test_an_empty_list_of_allowed_names_allows_every_name(authority: Certified) -> None:
    """Every aggregated API server treats an empty list so."""
    for names in ("[]", ""):
        gate = Gate(FrontProxy.from_config_map(config_map(authority.pem, requestheader_allowed_names=names)))

        gate.authenticate(issued("aggregator", authority).der, USER, now=NOW)


def test_during_a_rotation_both_authorities_are_trusted(authority: Certified) -> None:
    """The ConfigMap then contains two certificates."""
    newer = issued("front-proxy-ca-2")
    gate = Gate(FrontProxy.from_config_map(config_map(authority.pem + newer.pem)))

    for issuer in (authority, newer):
        gate.authenticate(issued("front-proxy-client", issuer).der, USER, now=NOW)


def test_the_user_header_is_that_of_the_config_map(authority: Certified) -> None:
    """The cluster configures the header names."""
    names = json.dumps(["X-Remote-User", "X-Forwarded-User"])
    gate = Gate(FrontProxy.from_config_map(config_map(authority.pem, requestheader_username_headers=names)))

    gate.authenticate(issued("front-proxy-client", authority).der, {"X-Forwarded-User": "a"}, now=NOW)


@pytest.mark.parametrize(
    "unusable",
    [
        pytest.param(None, id="it does not exist"),
        pytest.param({}, id="it is empty"),
        pytest.param({"data": {"client-ca-file": "x"}}, id="the cluster has no aggregation"),
        pytest.param(config_map(b"no certificate"), id="the authority is not a certificate"),
    ],
)
def test_a_config_map_without_a_front_proxy_is_rejected(unusable: dict[str, Any] | None) -> None:
    """The error names the ConfigMap."""
    with pytest.raises(FrontProxyUnknownError, match="ConfigMap kube-system/extension-apiserver-authent"):
        FrontProxy.from_config_map(unusable)


def test_an_invalid_list_of_allowed_names_is_rejected(authority: Certified) -> None:
    """Taken as an empty list, it would allow every certificate of the authority."""
    with pytest.raises(FrontProxyUnknownError, match="requestheader-allowed-names"):
        FrontProxy.from_config_map(config_map(authority.pem, requestheader_allowed_names="front-proxy"))
