"""Network addresses of the form `host:port`: a DNS name, an IPv4 address, or an IPv6 address in brackets."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Annotated, Final

import re2

from apiserver.schema.errors import FieldError, invalid
from apiserver.schema.json import JsonValue
from apiserver.schema.markers import Length, Pattern
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import WebhookOnly

_LABEL: Final = r"[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?"
_NAME: Final = rf"{_LABEL}(\.{_LABEL})*\.?"
_PORT: Final = r"([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_LONGEST: Final = 320
_NUMERIC: Final = re2.compile(r"^(\[(?P<six>[^\]]*)\]|(?P<four>[0-9.]+)):")


def _numeric_host(value: JsonValue, path: FieldPath) -> Sequence[FieldError]:
    host = _NUMERIC.search(value) if len(value) <= _LONGEST else None
    if host is None:
        return ()
    try:
        if host.group("six") is not None:
            ipaddress.IPv6Address(host.group("six"))
        else:
            ipaddress.IPv4Address(host.group("four"))
    except ipaddress.AddressValueError:
        return [invalid(path, value, "must have a valid IP address where the host is no DNS name")]
    return ()


HostPort = Annotated[
    str,
    Length(maximum=_LONGEST),
    Pattern(
        rf"^({_NAME}|\[[0-9A-Fa-f:.]+\]):{_PORT}$",
        says="host:port, such as redis.cache.svc:6379, 10.0.0.7:6379 or [fd00::7]:6379: a host of letters,"
        " digits, '-' and '.' (no '_', no scheme, no path) and a port between 1 and 65535",
    ),
    WebhookOnly(_numeric_host, "A host in digits or in brackets is a valid IP address."),
]
"""A host and a port between 1 and 65535, without scheme, path or credentials."""
