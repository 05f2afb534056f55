"""Who may ask: the front proxy of the cluster, which speaks for users that kube-apiserver has let through.

kube-apiserver has authenticated the user and authorised the very same request before it passes it on. What
is left to know is that the caller is kube-apiserver: it shows a client certificate that the front proxy's
authority has issued itself. An authority in between is not recognised.
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
"""Where kube-apiserver publishes who its front proxy is."""


class FrontProxyUnknownError(ValueError):
    """The ConfigMap does not say who the front proxy is; the text says what is wrong with it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FrontProxy:
    """How to recognise the front proxy."""

    authorities_pem: str
    """One certificate or several, of which one has issued the front proxy's."""

    allowed_names: frozenset[str]
    """Common names that it may have; empty for any."""

    username_headers: tuple[str, ...]
    """Headers of which one names the user that it speaks for."""

    @classmethod
    def from_config_map(cls, config_map: Json | None) -> FrontProxy:
        """Read the ConfigMap `kube-system/extension-apiserver-authentication`.

        Raises FrontProxyUnknownError when it is absent, incomplete or unreadable.
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
    """Lets the front proxy in and nobody else."""

    def __init__(self, front_proxy: FrontProxy) -> None:
        self._front_proxy = front_proxy
        self._authorities = x509.load_pem_x509_certificates(front_proxy.authorities_pem.encode())
        self._judge = functools.lru_cache(maxsize=256)(self._read)

    def authenticate(
        self, certificate_der: bytes | None, headers: Mapping[str, str], *, now: dt.datetime
    ) -> None:
        """Return if the caller is the front proxy speaking for somebody; else raise UnauthorizedError.

        `certificate_der` is what the peer has proved to own in the handshake; `headers` don't mind case.
        """
        if certificate_der is None:
            raise UnauthorizedError("a client certificate of the cluster's front proxy is required")
        certificate = self._judge(certificate_der)
        if isinstance(certificate, str):
            raise UnauthorizedError(certificate)
        if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
            raise UnauthorizedError("the client certificate is not valid at this time")
        if not any(headers.get(name) for name in self._front_proxy.username_headers):
            raise UnauthorizedError("the front proxy did not name the user of the request")

    def _read(self, certificate_der: bytes) -> x509.Certificate | str:
        """Return the certificate when it is the front proxy's, else why it is not."""
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
    """Read a list of names, JSON in the text of a ConfigMap value; absent is empty."""
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
