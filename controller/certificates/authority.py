"""Rotation of the certificate authority (CA) and its leaf certificates, as pure functions of PEM and time.

Rotation leaves no gap: clients first trust the new CA in addition to the old one, and only then are leaf
certificates issued by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from apiserver.serving.authority import (
    KeyPair,
    bundle,
    can_issue,
    covers,
    has_its_key,
    is_issued_by,
    needs_renewal,
    new_authority,
    new_leaf,
)

AUTHORITY_NAME: Final = "stowplan"

_CERTIFICATE: Final = "tls.crt"
_KEY: Final = "tls.key"
_TRUSTED: Final = "trusted.crt"


@dataclass(frozen=True, kw_only=True, slots=True)
class Authority:
    """The CA in use, and the bundle that clients should trust: this CA and its predecessors."""

    pair: KeyPair
    trusted: bytes

    def as_data(self) -> Mapping[str, bytes]:
        """Return the data of its Secret."""
        return {**leaf_data(self.pair), _TRUSTED: self.trusted}


def authority_of(data: Mapping[str, bytes]) -> Authority | None:
    """Return the CA in a Secret, or None if there is none."""
    pair = leaf_of(data)
    return Authority(pair=pair, trusted=data.get(_TRUSTED) or pair.certificate) if pair else None


def current_authority(known: Authority | None, *, lifetime: timedelta, now: datetime) -> Authority:
    """Return the known CA while it can issue and needs no renewal, else a new one that also trusts it.

    The CA in use is always among those to trust.
    """
    old = known.trusted if known is not None and _is_readable(known.trusted, now) else b""
    if known is not None and why_unusable(known, now) is None:
        is_trusted = known.pair.certificate.strip() in old
        return known if is_trusted else _with_trust(known.pair, old, now)
    return _with_trust(new_authority(AUTHORITY_NAME, lifetime=lifetime, now=now), old, now)


def why_unusable(known: Authority | None, now: datetime) -> str | None:
    """Return why a new CA has to replace the known one, or None while that can be used."""
    if known is None:
        return "there is none in the Secret"
    if needs_renewal(known.pair.certificate, now):
        return "two thirds of its lifetime are over, or its certificate is not valid yet or cannot be read"
    if not can_issue(known.pair):
        return "its certificate is no CA, or has another key"
    return None


def _with_trust(pair: KeyPair, old: bytes, now: datetime) -> Authority:
    return Authority(pair=pair, trusted=bundle(pair.certificate, old, now=now))


def leaf_of(data: Mapping[str, bytes]) -> KeyPair | None:
    """Return the certificate in a Secret, or None if there is none."""
    if not all(data.get(name) for name in (_CERTIFICATE, _KEY)):
        return None
    return KeyPair(certificate=data[_CERTIFICATE], key=data[_KEY])


def leaf_data(leaf: KeyPair) -> Mapping[str, bytes]:
    """Return the data of the Secret that pods mount."""
    return {_CERTIFICATE: leaf.certificate, _KEY: leaf.key}


def current_leaf(
    known: KeyPair | None, authority: Authority, names: tuple[str, ...], *, lifetime: timedelta, now: datetime
) -> KeyPair:
    """Return the known certificate if it can be used, else a new one."""
    if known is not None and why_unfit(known, authority, names, now) is None:
        return known
    return new_leaf(authority.pair, names, lifetime=lifetime, now=now)


def why_unfit(
    leaf: KeyPair | None, authority: Authority, names: tuple[str, ...], now: datetime
) -> str | None:
    """Return why a new certificate has to replace the known one, or None while that can be used."""
    if leaf is None:
        return "there is none in the Secret"
    if needs_renewal(leaf.certificate, now):
        return "two thirds of its lifetime are over, or it is not valid yet or cannot be read"
    if not covers(leaf.certificate, names):
        return "it lacks a name"
    if not is_issued_by(leaf.certificate, authority.pair.certificate):
        return "it is from another CA"
    return None if has_its_key(leaf) else "it has another key"


def _is_readable(trusted: bytes, now: datetime) -> bool:
    try:
        bundle(trusted, now=now)
    except ValueError:
        return False
    return True
