"""Families of kinds: kinds that one project defines and that are installed together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from apiserver.kinds.inference.objectives import INFERENCE_OBJECTIVE
from apiserver.kinds.kthena.autoscaling import AUTOSCALING_POLICY, AUTOSCALING_POLICY_BINDING
from apiserver.kinds.kthena.models import MODEL
from apiserver.kinds.kthena.routing import (
    MODEL_ROUTE,
    MODEL_SERVER,
    SERVING_MODEL_ROUTE,
    SERVING_MODEL_SERVER,
)
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from apiserver.schema.kind import Kind


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
