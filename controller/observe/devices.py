"""Accelerators by other names: devices of Dynamic Resource Allocation, and further extended resources.

Of the devices in ResourceSlices (`resource.k8s.io/v1`), only whole ones of a single node count: a partition
is not an accelerator, and a device that several nodes can reach has no location that a plan could rely on.
Nodes and pods with further resources, and types in further node labels, are passed on with the pseudo-fields
that also stand for these devices.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.schema.json import Json
from controller.observe.accelerators import (
    CLAIMED,
    DEVICES,
    PRODUCT,
    RESOURCE_NAMES,
    accelerators_of,
    short_name,
    whole,
)

_REPELLENT: Final = frozenset({"NoSchedule", "NoExecute"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Driver:
    """How a driver describes its devices."""

    product: str
    """Attribute that names the product."""

    whole: frozenset[str] = frozenset()
    """Values of the attribute `type` for whole devices; empty if all devices are whole."""


DRIVERS: Final[Mapping[str, Driver]] = {
    "gpu.nvidia.com": Driver(product="productName", whole=frozenset({"gpu"})),
    "gpu.amd.com": Driver(product="productName", whole=frozenset({"amdgpu"})),
    "gpu.intel.com": Driver(product="model"),
}
"""Drivers whose devices count as accelerators, by name."""

DeviceId = tuple[str, str, str]
"""(driver, pool, device)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeDevices:
    """The accelerators of one node."""

    product: str
    """Normalized type; with several types, only the most frequent one is counted."""

    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Devices:
    """All accelerators that ResourceSlices describe."""

    by_node: Mapping[str, NodeDevices]
    known: frozenset[DeviceId]
    """IDs of the devices that count."""


def devices_in(slices: Sequence[Json]) -> Devices:
    """Return the accelerators that slices describe, each once."""
    products: dict[str, Counter[str]] = defaultdict(Counter)
    known: dict[DeviceId, tuple[str, str]] = {}
    for (driver, pool), specs in _pools(slices).items():
        for spec in specs:
            for device in spec.get("devices") or []:
                product = _product(DRIVERS[driver], driver, device)
                if product is not None and not _is_repellent(device):
                    known[driver, pool, device["name"]] = spec["nodeName"], product
    for node, product in known.values():
        products[node][product] += 1
    most = {node: min(counts, key=lambda name: (-counts[name], name)) for node, counts in products.items()}
    return Devices(
        by_node={
            node: NodeDevices(product=product, count=products[node][product])
            for node, product in most.items()
        },
        known=frozenset(known),
    )


def _pools(slices: Iterable[Json]) -> Mapping[tuple[str, str], Sequence[Json]]:
    """Return the current slices of each pool: the newest generation, and older ones while it is incomplete.

    A driver that republishes its devices replaces the slices one by one; the devices exist in the meantime.
    """
    pools: dict[tuple[str, str], list[Json]] = defaultdict(list)
    for item in slices:
        spec = item["spec"]
        if spec.get("driver") in DRIVERS and spec.get("nodeName"):
            pools[spec["driver"], spec["pool"]["name"]].append(spec)
    return {key: _current(specs) for key, specs in pools.items()}


def _current(specs: list[Json]) -> Sequence[Json]:
    newest = max(spec["pool"].get("generation", 0) for spec in specs)
    current = [spec for spec in specs if spec["pool"].get("generation", 0) == newest]
    is_complete = len(current) >= current[0]["pool"].get("resourceSliceCount", 1)
    return current if is_complete else sorted(specs, key=lambda spec: spec["pool"].get("generation", 0))


def _product(driver: Driver, name: str, device: Json) -> str | None:
    """Return the type of a device; empty if it has none, None if it is not a whole device."""
    # v1beta1 has the attributes in the field `basic`.
    attributes = device.get("attributes") or (device.get("basic") or {}).get("attributes") or {}
    kind = _text(attributes, name, "type")
    if driver.whole and kind not in driver.whole:
        return None
    product = _text(attributes, name, driver.product)
    return short_name(product) if product else ""


def _text(attributes: Json, driver: str, name: str) -> str:
    """Return an attribute; a name without a domain belongs to the driver's domain."""
    attribute = attributes.get(name) or attributes.get(f"{driver}/{name}") or {}
    return str(attribute.get("string") or "")


def _is_repellent(device: Json) -> bool:
    return any(taint.get("effect") in _REPELLENT for taint in device.get("taints") or [])


@dataclass(frozen=True, kw_only=True, slots=True)
class FurtherAccelerators:
    """Names of resources and of node labels that a user declared."""

    resources: tuple[str, ...] = ()
    node_labels: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All extended resources that count, including those that always do."""
        return (*RESOURCE_NAMES, *self.resources)

    def node(self, node: Json) -> Json:
        """Return a node whose further accelerators and their type are known to planning."""
        metadata, status = node["metadata"], node.get("status") or {}
        labels = metadata.get("labels") or {}
        if product := next((labels[name] for name in self.node_labels if labels.get(name)), ""):
            metadata = metadata | {"labels": {PRODUCT: product} | labels}
        counted = {
            name: quantities | {DEVICES: str(count)}
            for name in ("allocatable", "capacity")
            if (quantities := status.get(name)) and (count := self._count(quantities))
        }
        if not counted:
            return node if metadata is node["metadata"] else node | {"metadata": metadata}
        return node | {"metadata": metadata, "status": status | counted}

    def spec(self, spec: Json) -> Json:
        """Return the spec of a pod or template with its further accelerators."""
        count = accelerators_of(spec, self.resources) if self.resources else 0
        return spec | {CLAIMED: int(spec.get(CLAIMED) or 0) + count} if count else spec

    def _count(self, quantities: Json) -> int:
        return sum(whole(quantities[name]) for name in self.resources if name in quantities)


NOTHING_FURTHER: Final = FurtherAccelerators()
"""Only the resources and labels that planning knows."""


def resource_problems(resources: Sequence[str]) -> list[str]:
    """Return one problem for each name that is no extended resource, or that would count twice."""
    return [
        f"accelerators.resources[{position}]: {name!r} {why}"
        for position, name in enumerate(resources)
        if (why := _wrong(name, resources[:position]))
    ]


def _wrong(name: str, earlier: Sequence[str]) -> str:
    if name in RESOURCE_NAMES:
        return "always counts as an accelerator"
    if name in earlier:
        return "is there twice"
    return "" if all(name.partition("/")) else "must be DOMAIN/NAME"
