"""Authentication of the cluster's front proxy, through which kube-apiserver forwards users' requests.

kube-apiserver authenticates the user and authorizes the request before it forwards it. What remains is to
verify that the caller is kube-apiserver: it presents a client certificate issued directly by the front
proxy's authority. Intermediate authorities are not supported.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from apiserver.metrics.status import UnauthorizedError
from apiserver.schema.json import Json

CONFIG_MAP_NAMESPACE: Final = "kube-system"
CONFIG_MAP_NAME: Final = "extension-apiserver-authentication"
"""The ConfigMap in which kube-apiserver publishes the authority and names of its front proxy."""


class FrontProxyUnknownError(ValueError):
    """The ConfigMap does not describe the front proxy; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FrontProxy:
    """The properties by which the front proxy is authenticated."""

    authorities_pem: str
    """One or more certificates (PEM), one of which has issued that of the front proxy."""

    allowed_names: frozenset[str]
    """The allowed common names; empty allows any."""

    username_headers: tuple[str, ...]
    """The headers that may contain the name of the forwarded user."""

    @classmethod
    def from_config_map(cls, config_map: Json | None) -> FrontProxy:
        """Return the front proxy from the ConfigMap `kube-system/extension-apiserver-authentication`.

        Raises FrontProxyUnknownError if it is missing, incomplete or invalid.
        """
        data = (config_map or {}).get("data") or {}
        authorities_pem = data.get("requestheader-client-ca-file", "")
        try:
            x509.load_pem_x509_certificates(authorities_pem.encode())
            return cls(
                authorities_pem=authorities_pem,
                allowed_names=frozenset(_names(data, "requestheader-allowed-names")),
                username_headers=tuple(_names(data, "requestheader-username-headers")) or ("X-Remote-User",),
            )
        except ValueError as error:
            where = f"ConfigMap {CONFIG_MAP_NAMESPACE}/{CONFIG_MAP_NAME}"
            raise FrontProxyUnknownError(f"{where} does not identify the front proxy: {error}") from error


class Gate:
    """Admits only the front proxy."""

    def __init__(self, front_proxy: FrontProxy) -> None:
        self._front_proxy = front_proxy
        self._authorities = x509.load_pem_x509_certificates(front_proxy.authorities_pem.encode())
        self._judge = functools.lru_cache(maxsize=256)(self._check)

    def authenticate(
        self, certificate_der: bytes | None, headers: Mapping[str, str], *, now: dt.datetime
    ) -> None:
        """Raise UnauthorizedError unless the caller is the front proxy with a forwarded user.

        `certificate_der` is the verified client certificate of the connection; `headers` is case-insensitive.
        """
        if certificate_der is None:
            raise UnauthorizedError(
                "a client certificate of the cluster's front proxy, or a bearer token, is required"
            )
        certificate = self._judge(certificate_der)
        if isinstance(certificate, str):
            raise UnauthorizedError(certificate)
        if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
            raise UnauthorizedError("the client certificate is not valid at this time")
        if not any(headers.get(name) for name in self._front_proxy.username_headers):
            raise UnauthorizedError("the front proxy did not name the user of the request")

    def _check(self, certificate_der: bytes) -> x509.Certificate | str:
        """Return the certificate if it is that of the front proxy, else why it is not."""
        certificate = x509.load_der_x509_certificate(certificate_der)
        if not any(_has_issued(authority, certificate) for authority in self._authorities):
            return "the client certificate was not issued by the front proxy's authority"
        if not _is_for_clients(certificate):
            return "the certificate is not a client certificate"
        names = {str(attribute.value) for attribute in _common_names(certificate)}
        allowed = self._front_proxy.allowed_names
        if allowed and not names & allowed:
            return f"the client certificate names {sorted(names)}, not the front proxy"
        return certificate


def _names(data: Mapping[str, str], key: str) -> list[str]:
    """Return a list of names from JSON in a ConfigMap value; empty if absent."""
    try:
        return msgspec.json.decode(data.get(key) or "[]", type=list[str])
    except msgspec.DecodeError as error:
        raise ValueError(f"{key}: {error}") from error


def _has_issued(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _is_for_clients(certificate: x509.Certificate) -> bool:
    try:
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    return bool({ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE} & set(usage))


def _common_names(certificate: x509.Certificate) -> list[x509.NameAttribute[str | bytes]]:
    return certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
