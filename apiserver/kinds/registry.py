"""The registry of all served kinds, in the order of their families."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from apiserver.kinds.inference.inferenceobjective import INFERENCE_OBJECTIVE
from apiserver.kinds.kthena.autoscaling import AUTOSCALING_POLICY, AUTOSCALING_POLICY_BINDING
from apiserver.kinds.kthena.models import MODEL
from apiserver.kinds.kthena.routing import (
    MODEL_ROUTE,
    MODEL_SERVER,
    SERVING_MODEL_ROUTE,
    SERVING_MODEL_SERVER,
)
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from apiserver.schema.kind import Kind, Version


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """The kinds that one project defines."""

    name: str
    """The name of the family's manifest folders."""

    kinds: tuple[Kind, ...]
    is_foreign: bool = True
    """Whether another project may have installed these kinds. If so, they are optional, and objects are still
    admitted while the webhooks are unavailable."""

    has_definitions: bool = True
    """Whether Stowplan has definitions of these kinds to install; otherwise only the other project does."""

    @property
    def configuration_name(self) -> str:
        """Return the name shared by both webhook configurations of the family."""
        return f"stowplan-{self.name}" if self.is_foreign else "stowplan"

    @property
    def webhook_domain(self) -> str:
        """Return the domain suffix of the family's webhook names."""
        return f"{self.name}.stowplan.dev" if self.is_foreign else "stowplan.dev"


FAMILIES: Final = (
    Family(name="llmd", kinds=(VARIANT_AUTOSCALING,), is_foreign=False),
    Family(
        name="kthena",
        kinds=(AUTOSCALING_POLICY, AUTOSCALING_POLICY_BINDING, MODEL, MODEL_ROUTE, MODEL_SERVER),
    ),
    Family(name="kthena-serving", kinds=(SERVING_MODEL_ROUTE, SERVING_MODEL_SERVER), has_definitions=False),
    Family(name="inference-extension", kinds=(INFERENCE_OBJECTIVE,)),
)
"""All families. The base manifests install the first one; the others are optional components."""


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
