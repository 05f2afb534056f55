"""Names with the syntax that Kubernetes requires, mostly of RFC 1123."""

from __future__ import annotations

import re
from typing import Annotated, Final

from apiserver.schema.markers import Length, Pattern

LABEL_PATTERN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
"""The pattern of a DNS label: lower-case letters, digits and dashes, with no dash at either end."""

LABEL_SAYS: Final = "lower-case letters, digits and dashes, such as my-name"
"""The description of the pattern."""

DnsLabel = Annotated[str, Length(maximum=63), Pattern(LABEL_PATTERN, says=LABEL_SAYS)]
"""A DNS label, such as the name of a volume or a namespace."""

SUBDOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
"""The pattern of a DNS subdomain, without anchors."""

SUBDOMAIN_SAYS: Final = "lower-case letters, digits, dashes and dots, such as my-name or my.name"
"""The description of the pattern."""

DnsSubdomain = Annotated[str, Length(maximum=253), Pattern(f"^{SUBDOMAIN}$", says=SUBDOMAIN_SAYS)]
"""A DNS subdomain, such as the name of most objects."""

KeyName = Annotated[
    str,
    Length(maximum=253),
    Pattern(
        r"^\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]*$", says="letters, digits, '-', '_' and '.', not '..' in front"
    ),
]
"""A key of a ConfigMap or Secret."""

VariableName = Annotated[
    str, Length(maximum=1024), Pattern(r"^[ -<>-~]+$", says="printable ASCII characters other than '='")
]
"""The name of an environment variable, as Kubernetes 1.34 and later accept it."""

_KIND: Final = "[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?"
_KIND_SAYS: Final = "a kind such as Deployment: a letter, then letters, digits and dashes"

KindName = Annotated[str, Length(1, 63), Pattern(f"^{_KIND}$", says=_KIND_SAYS)]
"""The name of a kind."""

KindNameOrEmpty = Annotated[str, Length(maximum=63), Pattern(f"^({_KIND})?$", says=_KIND_SAYS)]
"""The name of a kind. Empty means unset."""

_LONGEST_API_VERSION: Final = 317
_API_VERSION: Final = rf"^(({SUBDOMAIN}/)?v([-a-z0-9]*[a-z0-9])?)?$"

ApiVersion = Annotated[
    str,
    Length(maximum=_LONGEST_API_VERSION),
    Pattern(_API_VERSION, says="a group and version such as apps/v1, or v1 for the core group"),
]
"""An API group and version, as in the `apiVersion` of a manifest. Empty means unset."""

DnsSubdomainOrEmpty = Annotated[str, Length(maximum=253), Pattern(f"^({SUBDOMAIN})?$", says=SUBDOMAIN_SAYS)]
"""The name of an object. Empty means unset."""

DnsLabelOrEmpty = Annotated[
    str, Length(maximum=63), Pattern(r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$", says=LABEL_SAYS)
]
"""The name of a namespace. Empty means unset."""

_is_api_version: Final = re.compile(_API_VERSION).fullmatch


def group_of(api_version: str) -> str | None:
    """Return the group of an API version; empty for the core group, None for text of another form."""
    if len(api_version) > _LONGEST_API_VERSION or not _is_api_version(api_version):
        return None
    return api_version.rpartition("/")[0]
