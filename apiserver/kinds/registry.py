"""The registry of all served kinds, in the order of their families."""

from __future__ import annotations

from typing import Final

from apiserver.kinds.families import FAMILIES
from apiserver.schema.kind import Kind, Version

KINDS: Final[tuple[Kind, ...]] = tuple(kind for family in FAMILIES for kind in family.kinds)
"""All kinds of Stowplan."""

DEFINED: Final = tuple(kind for family in FAMILIES if family.has_definitions for kind in family.kinds)
"""The kinds whose definitions Stowplan installs, upgrades and removes."""

_VERSIONS: Final = {
    (f"{kind.group}/{version.name}", kind.kind): (kind, version)
    for kind in KINDS
    for version in kind.versions
}


def find_kind(group: str, kind: str) -> Kind | None:
    """Return the kind with that group and name, or None if it is not served."""
    return next((item for item in KINDS if (item.group, item.kind) == (group, kind)), None)


def find_version(api_version: str, kind: str) -> tuple[Kind, Version] | None:
    """Return the kind and version of a manifest's `apiVersion` and `kind`, or None if they are not served."""
    return _VERSIONS.get((api_version, kind))
