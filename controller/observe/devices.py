"""Accelerators by other names: devices of Dynamic Resource Allocation, and further extended resources.

Of the devices in ResourceSlices (`resource.k8s.io/v1`), only whole ones of a single node count: a partition
is not an accelerator, and a device that several nodes can reach has no location that a plan could rely on.
The rest of planning knows neither claims nor further resources: nodes, pods and workloads are passed on as if
these were extended resources, by the pseudo-fields in `controller.observe.accelerators`. Pure functions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.kinds.identity import Key, key_of
from apiserver.schema.json import Json
from controller.observe.accelerators import (
    CLAIMED,
    DEVICES,
    PRODUCT,
    RESOURCE_NAMES,
    UNKNOWN_CLAIM,
    accelerators_in,
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
    # Of equally frequent types the first by name, so that a node keeps its type from cycle to cycle.
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


_ALL: Final = "All"


class UnknownClaimError(Exception):
    """The number of accelerators of a claim cannot be known beforehand; the message says why."""


class DeviceTranslator:
    """Expresses devices and claims of nodes, pods and templates as extended resources."""

    def __init__(
        self,
        *,
        slices: Sequence[Json] = (),
        claims: Sequence[Json] = (),
        templates: Sequence[Json] = (),
        classes: Sequence[Json] = (),
        further: FurtherAccelerators = NOTHING_FURTHER,
    ) -> None:
        """Create it from the objects of Dynamic Resource Allocation; none where it is not used."""
        self._further = further
        self._devices = devices_in(slices)
        self._claims = {key_of(item): item for item in claims}
        self._templates = {key_of(item): item for item in templates}
        self._classes = {item["metadata"]["name"]: _is_ours(item) for item in classes}
        # Claims already counted for a pod: a claim shared by several pods counts once.
        self._given: set[Key] = set()

    def node(self, node: Json) -> Json:
        """Return a node with its devices. Devices that a device plugin also reports count once."""
        node = self._further.node(node)
        devices = self._devices.by_node.get(node["metadata"]["name"])
        if devices is None:
            return node
        metadata, status = node["metadata"], node.get("status") or {}
        allocatable = status.get("allocatable") or {}
        more = max(0, devices.count - accelerators_in(allocatable))
        labels, count = metadata.get("labels") or {}, more + whole(allocatable.get(DEVICES, 0))
        return node | {
            "metadata": metadata | {"labels": {PRODUCT: devices.product} | labels},
            "status": status | {"allocatable": allocatable | {DEVICES: str(count)}},
        }

    def pod(self, pod: Json) -> Json:
        """Return a pod with the number of accelerators that it holds, or will hold, through claims."""
        spec = self._further.spec(pod["spec"])
        if not spec.get("resourceClaims"):
            return pod if spec is pod["spec"] else pod | {"spec": spec}
        accelerators = int(spec.get(CLAIMED) or 0)
        for key, claim in self._claims_of(pod):
            if key not in self._given:
                self._given.add(key)
                accelerators += self._accelerators(claim)
        return pod | {"spec": spec | {CLAIMED: accelerators}} if accelerators else pod

    def workload(self, value: Json) -> Json:
        """Return a workload with the claims of its templates as if they were extended resources."""
        spec, namespace = value.get("spec") or {}, value["metadata"]["namespace"]
        group = spec.get("leaderWorkerTemplate") or {}
        changed = {name: self._template(spec[name], namespace) for name in ("template",) if name in spec}
        parts = {
            name: self._template(group[name], namespace)
            for name in ("leaderTemplate", "workerTemplate")
            if group.get(name)
        }
        if all(new is spec[name] for name, new in changed.items()) and all(
            new is group[name] for name, new in parts.items()
        ):
            return value
        groups = {"leaderWorkerTemplate": group | parts} if parts else {}
        return value | {"spec": spec | changed | groups}

    def _template(self, template: Json, namespace: str) -> Json:
        pod_spec = template.get("spec") or {}
        spec = self._further.spec(pod_spec)
        entries = spec.get("resourceClaims") or []
        if not entries:
            return template if spec is pod_spec else template | {"spec": spec}
        try:
            requested = int(spec.get(CLAIMED) or 0) + sum(
                self._asked_by_entry(entry, namespace) for entry in entries
            )
        except UnknownClaimError as error:
            return template | {"spec": spec | {UNKNOWN_CLAIM: str(error)}}
        return template | {"spec": spec | {CLAIMED: requested}} if requested else template

    def _asked_by_entry(self, entry: Json, namespace: str) -> int:
        name = entry.get("resourceClaimTemplateName")
        if not name:
            shared = entry.get("resourceClaimName")
            claim = self._claims.get((namespace, shared or ""))
            if claim is not None and not self._accelerators(claim):
                return 0
            raise UnknownClaimError(
                f"its pods share ResourceClaim {shared!r}: a replica has accelerators of its own only by"
                " resourceClaimTemplateName"
            )
        template = self._templates.get((namespace, name))
        if template is None:
            raise UnknownClaimError(f"ResourceClaimTemplate {name!r} does not exist")
        return self._requests(template["spec"].get("spec") or {})

    def _claims_of(self, pod: Json) -> Iterator[tuple[Key, Json]]:
        namespace = pod["metadata"]["namespace"]
        names = {
            item["name"]: item.get("resourceClaimName")
            for item in (pod.get("status") or {}).get("resourceClaimStatuses") or []
        }
        for entry in pod["spec"]["resourceClaims"]:
            key = namespace, entry.get("resourceClaimName") or names.get(entry["name"]) or ""
            if key in self._claims:
                yield key, self._claims[key]
            elif template := self._templates.get((namespace, entry.get("resourceClaimTemplateName") or "")):
                # Not created yet, or not in the cache yet: what it will request counts all the same.
                yield (namespace, f"{pod['metadata']['name']}/{entry['name']}"), template["spec"]

    def _accelerators(self, claim: Json) -> int:
        """Return the accelerators that a claim holds, or requests while it is not allocated."""
        allocation = (claim.get("status") or {}).get("allocation")
        if allocation is None:
            try:
                return self._requests(claim.get("spec") or {})
            except UnknownClaimError:
                return 0  # it still waits for a node, and takes nothing from any
        results = (allocation.get("devices") or {}).get("results") or []
        device_ids = {
            (item["driver"], item["pool"], item["device"]) for item in results if not item.get("adminAccess")
        }
        return len(device_ids & self._devices.known)

    def _requests(self, spec: Json) -> int:
        return sum(self._count(item) for item in (spec.get("devices") or {}).get("requests") or [])

    def _count(self, request: Json) -> int:
        """Return the accelerators of one request; v1beta1 has its fields without `exactly`."""
        ways = request.get("firstAvailable") or [request.get("exactly") or request]
        counts = {self._count_exactly(way, request["name"]) for way in ways}
        if len(counts) > 1:
            raise UnknownClaimError(f"request {request['name']!r} may be for {sorted(counts)} accelerators")
        return counts.pop()

    def _count_exactly(self, way: Json, name: str) -> int:
        if way.get("adminAccess") or not self._is_of_accelerators(way.get("deviceClassName") or ""):
            return 0
        if way.get("allocationMode") == _ALL:
            raise UnknownClaimError(f"request {name!r} is for all devices of a node, however many these are")
        return int(way.get("count") or 1)

    def _is_of_accelerators(self, name: str) -> bool:
        """Return whether a device class selects whole accelerators; unknown classes are judged by name."""
        return self._classes.get(name, name in DRIVERS)


def _is_ours(device_class: Json) -> bool:
    """Return whether a class selects whole devices of a known driver, as far as its CEL can be interpreted.

    An expression that names another device type than the whole one selects parts.
    """
    selectors = (device_class.get("spec") or {}).get("selectors") or []
    text = " ".join(str((item.get("cel") or {}).get("expression") or "") for item in selectors)
    quoted = text.replace("'", '"')
    for name, driver in DRIVERS.items():
        if f'"{name}"' in quoted:
            is_typed = ".type" in quoted and bool(driver.whole)
            return not is_typed or any(f'"{kind}"' in quoted for kind in driver.whole)
    return False
