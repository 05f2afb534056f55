"""Families of kinds: what is installed together, since one project defines it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from apiserver.kinds.inference.objectives import INFERENCE_OBJECTIVE
from apiserver.kinds.kthena.autoscaling import AUTOSCALING_POLICY, AUTOSCALING_POLICY_BINDING
from apiserver.kinds.kthena.models import MODEL
from apiserver.kinds.kthena.routing import MODEL_ROUTE, MODEL_SERVER
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from apiserver.schema.kind import Kind


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """Kinds with one owner."""

    name: str
    """Names the family's folders of manifests."""

    kinds: tuple[Kind, ...]
    is_foreign: bool = True
    """Whether another project may have installed these kinds: they are optional then, and objects are still
    accepted while our webhooks do not answer."""

    @property
    def configuration_name(self) -> str:
        """Return the name of both webhook configurations of the family."""
        return f"stowplan-{self.name}" if self.is_foreign else "stowplan"

    @property
    def webhook_domain(self) -> str:
        """Return the domain that the family's webhooks are named in."""
        return f"{self.name}.stowplan.dev" if self.is_foreign else "stowplan.dev"


FAMILIES: Final = (
    Family(name="llmd", kinds=(VARIANT_AUTOSCALING,), is_foreign=False),
    Family(
        name="kthena",
        kinds=(AUTOSCALING_POLICY, AUTOSCALING_POLICY_BINDING, MODEL, MODEL_ROUTE, MODEL_SERVER),
    ),
    Family(name="inference-extension", kinds=(INFERENCE_OBJECTIVE,)),
)
"""All families; the first one is what the base installs, the others are components."""
