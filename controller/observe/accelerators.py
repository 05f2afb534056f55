"""Accelerators in Kubernetes objects: resource names of pods, product labels of nodes."""

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
"""Pseudo-resource in a node's allocatable for accelerators that are devices of ResourceSlices."""

CLAIMED: Final = "stowplan.dev/claimed"
"""Pseudo-field in a pod spec for the number of accelerators that it holds or requests through ResourceClaims.
"""

UNKNOWN_CLAIM: Final = "stowplan.dev/unknown-claim"
"""Pseudo-field in a template's spec for why the number of accelerators in its claims is unknown."""

PRODUCT: Final = "stowplan.dev/device-product"
"""Pseudo-label of a node for the type of its devices, where no other label names it."""

PROVISIONED_PRODUCT_LABELS: Final = (
    "karpenter.k8s.aws/instance-gpu-name",
    "eks.amazonaws.com/instance-gpu-name",
    "karpenter.azure.com/sku-gpu-name",
)
"""Labels by which Karpenter names the accelerator type, of its nodes and in requirements for new ones."""

PRODUCT_LABELS: Final = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "amd.com/gpu.product",
    "intel.com/gpu.product",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu-accelerator",
    "k8s.amazonaws.com/accelerator",
    *PROVISIONED_PRODUCT_LABELS,
    PRODUCT,
)
"""Node labels that name the accelerator type, the most specific first."""

_QUANTITY: Final = re.compile(
    r"(?P<number>[0-9]{1,18}(\.[0-9]{1,18})?([eE]\+?[0-9]{1,2})?)(?P<suffix>[numkMGTPE]|[KMGTPE]i)?\Z"
)
_FACTORS: Final = (
    {"": Decimal(1), "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3")}
    | {suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)}
    | {f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)}
)

_VENDORS: Final = frozenset({"NVIDIA", "AMD", "INTEL", "TESLA", "GEFORCE", "INSTINCT", "RADEON"})
_DETAIL: Final = re.compile(r"^(\d+GB?|PCIE|SXM\d*|HBM\d*E?|NVL|OAM|MEGA)$")
"""Words about memory and form; `MEGA` is GKE's machine of H100 with more network."""
_PART: Final = frozenset({"MIG", "SHARED"})
"""Words that begin the description of a part of an accelerator: a MIG device, or a share of its time."""

_OTHERS: Final = ("kubernetes.io", "rdma", "vpc.amazonaws.com")
"""Domains of extended resources that are no accelerators."""


def short_name(product: str) -> str:
    """Return the short name of a product: `NVIDIA-A100-PCIE-80GB` becomes `A100`, as people call it.

    Vendor names are removed, and everything from the first memory size or form factor on, except that a part
    of an accelerator stays a type of its own: `NVIDIA-A100-SXM4-40GB-MIG-1g.5gb` becomes `A100-MIG-1G.5GB`.
    The result is upper-case, so that different spellings match.
    """
    words = [word for word in re.split(r"[-_ ]+", product.upper()) if word]
    while len(words) > 1 and words[0] in _VENDORS:
        words.pop(0)
    part = next((position for position, word in enumerate(words) if word in _PART), len(words))
    detail = (position for position in range(1, part) if _DETAIL.match(words[position]))
    return "-".join([*words[: next(detail, part)], *words[part:]])


def product_of(labels: Mapping[str, str]) -> str:
    """Return the normalized type that labels name, or an empty string."""
    return next((short_name(labels[name]) for name in PRODUCT_LABELS if labels.get(name)), "")


def accelerators_in(quantities: Json) -> int:
    """Return the number of accelerators in a resource list; extended resources are always integers."""
    return sum(whole(quantities[name]) for name in (*RESOURCE_NAMES, DEVICES) if name in quantities)


def accelerators_of(pod_spec: Json, names: Sequence[str] = RESOURCE_NAMES) -> int:
    """Return the accelerators that a pod requests: all containers together, or the largest init container.

    Restartable init containers (sidecars) count with the containers; `names` are the resources that count.
    Accelerators from claims are added, unless only some resources count.
    """
    claimed = int(pod_spec.get(CLAIMED) or 0) if names is RESOURCE_NAMES else 0
    starters = pod_spec.get("initContainers") or []
    sidecars = [item for item in starters if item.get("restartPolicy") == "Always"]
    steady = sum(_requests(item, names) for item in [*(pod_spec.get("containers") or []), *sidecars])
    return claimed + max([steady, *(_requests(item, names) for item in starters if item not in sidecars)])


def uncounted_resources(pod_spec: Json) -> Sequence[str]:
    """Return the extended resources that a pod without accelerators requests, such as parts of them."""
    if accelerators_of(pod_spec):
        return ()
    named = {
        name
        for container in [*(pod_spec.get("containers") or []), *(pod_spec.get("initContainers") or [])]
        for quantities in (container.get("resources") or {}).values()
        if isinstance(quantities, Mapping)
        for name in quantities
    }
    return sorted(name for name in named if "/" in name and not name.partition("/")[0].endswith(_OTHERS))


def _requests(container: Json, names: Sequence[str]) -> int:
    resources = container.get("resources") or {}
    quantities = (resources.get("limits") or {}) | (resources.get("requests") or {})
    return sum(whole(quantities[name]) for name in names if name in quantities)


def whole(quantity: str | int) -> int:
    """Return a quantity rounded up to an integer; 0 for an invalid one, which the API server rejects."""
    match = _QUANTITY.match(str(quantity))
    if match is None:
        return 0
    return math.ceil(Decimal(match["number"]) * _FACTORS[match["suffix"] or ""])
