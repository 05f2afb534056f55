"""Of all who may knock, only the front proxy that speaks for a user is let in."""

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
    """Build the ConfigMap as kube-apiserver writes it."""
    written = {
        "requestheader-client-ca-file": authorities.decode(),
        "requestheader-allowed-names": json.dumps(["front-proxy-client"]),
        "requestheader-username-headers": json.dumps(["X-Remote-User"]),
        "requestheader-group-headers": json.dumps(["X-Remote-Group"]),
    }
    return {"data": written | {key.replace("_", "-"): text for key, text in data.items()}}


@pytest.fixture
def authority() -> Certified:
    """Make the front proxy's authority."""
    return issued("front-proxy-ca")


@pytest.fixture
def gate(authority: Certified) -> Gate:
    """Make the gate of a usual cluster."""
    return Gate(FrontProxy.from_config_map(config_map(authority.pem)))


def test_the_front_proxy_is_let_in(gate: Gate, authority: Certified) -> None:
    """The right authority, the right name, and a user."""
    gate.authenticate(issued("front-proxy-client", authority).der, USER, now=NOW)


STRANGERS: dict[str, tuple[Callable[[Certified], bytes | None], dict[str, str], str]] = {
    "nobody who shows no certificate": (lambda _: None, USER, "certificate .* is required"),
    "no certificate of another authority of the same name": (
        lambda _: issued("front-proxy-client", issued("front-proxy-ca")).der,
        USER,
        "not issued by the front proxy's authority",
    ),
    "no certificate that signed itself": (
        lambda _: issued("front-proxy-client").der,
        USER,
        "not issued by the front proxy's authority",
    ),
    "no other name": (lambda ca: issued("admin", ca).der, USER, "names .'admin'., not the front proxy"),
    "no server's certificate": (
        lambda ca: issued("front-proxy-client", ca, usage=ExtendedKeyUsageOID.SERVER_AUTH).der,
        USER,
        "not a client certificate",
    ),
    "no certificate that has expired": (
        lambda ca: issued("front-proxy-client", ca, life=(-2 * YEAR, -YEAR)).der,
        USER,
        "not valid at this time",
    ),
    "no certificate of the future": (
        lambda ca: issued("front-proxy-client", ca, life=(YEAR, 2 * YEAR)).der,
        USER,
        "not valid at this time",
    ),
    "no front proxy that speaks for nobody": (
        lambda ca: issued("front-proxy-client", ca).der,
        {"X-Remote-Group": "system:masters"},
        "did not name the user",
    ),
    "no front proxy that speaks for an empty name": (
        lambda ca: issued("front-proxy-client", ca).der,
        {"X-Remote-User": ""},
        "did not name the user",
    ),
}


@pytest.mark.parametrize(("certificate", "headers", "want"), STRANGERS.values(), ids=STRANGERS)
def test_let_in_is(
    gate: Gate,
    authority: Certified,
    *,
    certificate: Callable[[Certified], bytes | None],
    headers: dict[str, str],
    want: str,
) -> None:
    """Everybody else is told why not."""
    with pytest.raises(UnauthorizedError, match=want):
        gate.authenticate(certificate(authority), headers, now=NOW)


def test_a_verdict_that_is_remembered_ends_with_the_certificate(gate: Gate, authority: Certified) -> None:
    """A connection may live longer than the certificate that opened it."""
    certificate = issued("front-proxy-client", authority).der
    gate.authenticate(certificate, USER, now=NOW)

    with pytest.raises(UnauthorizedError, match="not valid at this time"):
        gate.authenticate(certificate, USER, now=NOW + YEAR)


def test_without_a_list_of_names_any_name_will_do(authority: Certified) -> None:
    """That is what an empty list means to every aggregated API server."""
    for names in ("[]", ""):
        gate = Gate(FrontProxy.from_config_map(config_map(authority.pem, requestheader_allowed_names=names)))

        gate.authenticate(issued("aggregator", authority).der, USER, now=NOW)


def test_during_a_rotation_both_authorities_count(authority: Certified) -> None:
    """The ConfigMap then holds two certificates."""
    newer = issued("front-proxy-ca-2")
    gate = Gate(FrontProxy.from_config_map(config_map(authority.pem + newer.pem)))

    for issuer in (authority, newer):
        gate.authenticate(issued("front-proxy-client", issuer).der, USER, now=NOW)


def test_the_user_may_come_under_another_header(authority: Certified) -> None:
    """The cluster says which headers it uses."""
    names = json.dumps(["X-Remote-User", "X-Forwarded-User"])
    gate = Gate(FrontProxy.from_config_map(config_map(authority.pem, requestheader_username_headers=names)))

    gate.authenticate(issued("front-proxy-client", authority).der, {"X-Forwarded-User": "a"}, now=NOW)


@pytest.mark.parametrize(
    "unusable",
    [
        pytest.param(None, id="it is not there"),
        pytest.param({}, id="it is empty"),
        pytest.param({"data": {"client-ca-file": "x"}}, id="the cluster has no aggregation"),
        pytest.param(config_map(b"no certificate"), id="the authority is no certificate"),
    ],
)
def test_a_config_map_that_names_no_front_proxy_is_refused(unusable: dict[str, Any] | None) -> None:
    """The error says which ConfigMap it is about."""
    with pytest.raises(FrontProxyUnknownError, match="ConfigMap kube-system/extension-apiserver-authent"):
        FrontProxy.from_config_map(unusable)


def test_a_list_of_names_that_cannot_be_read_is_no_empty_list(authority: Certified) -> None:
    """An empty list would let anybody of that authority in."""
    with pytest.raises(FrontProxyUnknownError, match="requestheader-allowed-names"):
        FrontProxy.from_config_map(config_map(authority.pem, requestheader_allowed_names="front-proxy"))
