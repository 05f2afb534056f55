"""Accelerators as Kubernetes shows them: resource names on pods, product labels on nodes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from apiserver.schema.json import Json

RESOURCE_NAMES: Final = (
    "nvidia.com/gpu",
    "amd.com/gpu",
    "habana.ai/gaudi",
    "gpu.intel.com/xe",
    "intel.com/gpu",
    "google.com/tpu",
)
"""Extended resources that count as accelerators."""

DEVICES: Final = "stowplan.dev/devices"
"""Stands among a node's resources for accelerators that are devices of ResourceSlices."""

CLAIMED: Final = "stowplan.dev/claimed"
"""Stands in a pod's specification for the number of accelerators that it holds, or asks for, by claims."""

UNKNOWN_CLAIM: Final = "stowplan.dev/unknown-claim"
"""Stands in a template's specification for why nobody knows how many accelerators its claims are for."""

PRODUCT: Final = "stowplan.dev/device-product"
"""Stands among a node's labels for the type of its devices, where no other label names it."""

PRODUCT_LABELS: Final = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "amd.com/gpu.product",
    "intel.com/gpu.product",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu-accelerator",
    "k8s.amazonaws.com/accelerator",
    PRODUCT,
)
"""Node labels that name the type, most telling first."""

_QUANTITY: Final = re.compile(
    r"(?P<number>[0-9]{1,18}(\.[0-9]{1,18})?([eE]\+?[0-9]{1,2})?)(?P<suffix>[numkMGTPE]|[KMGTPE]i)?\Z"
)
_FACTORS: Final = (
    {"": Decimal(1), "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3")}
    | {suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)}
    | {f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)}
)

_VENDORS: Final = frozenset({"NVIDIA", "AMD", "INTEL", "TESLA", "GEFORCE", "INSTINCT", "RADEON"})
_DETAIL: Final = re.compile(r"^(\d+GB?|PCIE|SXM\d*|HBM\d*E?|NVL|OAM|MIG.*|SHARED)$")


def normalised(product: str) -> str:
    """Return the short name of a product: `NVIDIA-A100-PCIE-80GB` is `A100`, as people call it.

    Vendor words go, and so does everything from the first memory size or form factor on. Upper-case, so that
    differently spelled names meet.
    """
    words = [word for word in re.split(r"[-_ ]+", product.upper()) if word]
    while len(words) > 1 and words[0] in _VENDORS:
        words.pop(0)
    for position, word in enumerate(words):
        if position and _DETAIL.match(word):
            return "-".join(words[:position])
    return "-".join(words)


def product_of(labels: Mapping[str, str]) -> str:
    """Return the normalised type that labels name, or nothing."""
    return next((normalised(labels[name]) for name in PRODUCT_LABELS if labels.get(name)), "")


def accelerators_in(quantities: Json) -> int:
    """Return how many accelerators a resource list holds; extended resources are always whole numbers."""
    return sum(_count(quantities[name]) for name in (*RESOURCE_NAMES, DEVICES) if name in quantities)


def accelerators_of(pod_spec: Json, names: Sequence[str] = RESOURCE_NAMES) -> int:
    """Return how many accelerators a pod asks for: its containers together, or its hungriest init container.

    Containers that restart (sidecars) count with the others; `names` are the resources that count. What it
    has by claims comes on top, unless only some resources count.
    """
    claimed = int(pod_spec.get(CLAIMED) or 0) if names is RESOURCE_NAMES else 0
    starters = pod_spec.get("initContainers") or []
    sidecars = [item for item in starters if item.get("restartPolicy") == "Always"]
    steady = sum(_asked(item, names) for item in [*(pod_spec.get("containers") or []), *sidecars])
    return claimed + max([steady, *(_asked(item, names) for item in starters if item not in sidecars)])


def _asked(container: Json, names: Sequence[str]) -> int:
    resources = container.get("resources") or {}
    quantities = (resources.get("limits") or {}) | (resources.get("requests") or {})
    return accelerators_in({name: quantities[name] for name in names if name in quantities})


def _count(quantity: str | int) -> int:
    """Return a quantity as a whole number, rounded up; 0 for what is none, which no server lets pass."""
    found = _QUANTITY.match(str(quantity))
    if found is None:
        return 0
    return math.ceil(Decimal(found["number"]) * _FACTORS[found["suffix"] or ""])
