"""What to do about the authority and the certificates it issued: pure decisions on PEM bytes and a time.

Rotation leaves no gap: a new authority is first trusted beside the old one everywhere, and only then does
any leaf come from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from apiserver.serving.authority import (
    KeyPair,
    bundle,
    covers,
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
    """The authority in use, and everything that clients are to trust: itself and those it succeeded."""

    pair: KeyPair
    trusted: bytes

    def as_data(self) -> Mapping[str, bytes]:
        """Return the data of its Secret."""
        return {_CERTIFICATE: self.pair.certificate, _KEY: self.pair.key, _TRUSTED: self.trusted}


def authority_of(data: Mapping[str, bytes]) -> Authority | None:
    """Return the authority that a Secret holds, or None when it holds none."""
    if not all(data.get(name) for name in (_CERTIFICATE, _KEY)):
        return None
    pair = KeyPair(certificate=data[_CERTIFICATE], key=data[_KEY])
    return Authority(pair=pair, trusted=data.get(_TRUSTED) or pair.certificate)


def current_authority(known: Authority | None, *, lifetime: timedelta, now: datetime) -> Authority:
    """Return the authority to use: the known one while it is young, else a new one that trusts both."""
    if known is not None and not needs_renewal(known.pair.certificate, now):
        return known
    pair = new_authority(AUTHORITY_NAME, lifetime=lifetime, now=now)
    old = known.trusted if known is not None and _is_readable(known.trusted, now) else b""
    return Authority(pair=pair, trusted=bundle(pair.certificate, old, now=now))


def leaf_of(data: Mapping[str, bytes]) -> KeyPair | None:
    """Return the certificate that a Secret holds, or None when it holds none."""
    if not all(data.get(name) for name in (_CERTIFICATE, _KEY)):
        return None
    return KeyPair(certificate=data[_CERTIFICATE], key=data[_KEY])


def leaf_data(leaf: KeyPair) -> Mapping[str, bytes]:
    """Return the data of the Secret that pods mount."""
    return {_CERTIFICATE: leaf.certificate, _KEY: leaf.key}


def current_leaf(
    known: KeyPair | None, authority: Authority, names: tuple[str, ...], *, lifetime: timedelta, now: datetime
) -> KeyPair:
    """Return the certificate to serve with: the known one while it is young, ours and complete."""
    if known is not None and _is_good(known, authority, names, now):
        return known
    return new_leaf(authority.pair, names, lifetime=lifetime, now=now)


def _is_good(leaf: KeyPair, authority: Authority, names: tuple[str, ...], now: datetime) -> bool:
    return (
        not needs_renewal(leaf.certificate, now)
        and covers(leaf.certificate, names)
        and is_issued_by(leaf.certificate, authority.pair.certificate)
    )


def _is_readable(trusted: bytes, now: datetime) -> bool:
    try:
        bundle(trusted, now=now)
    except ValueError:
        return False
    return True
