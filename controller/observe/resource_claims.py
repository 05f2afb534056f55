"""Translate ResourceClaims of pods and templates (`resource.k8s.io/v1`) into accelerators. Pure functions.

The rest of planning does not know claims: nodes, pods and workloads are passed on as if devices were extended
resources, by the names in `controller.observe.accelerators`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from apiserver.kinds.identity import Key, key_of
from apiserver.schema.json import Json
from controller.observe.accelerators import (
    CLAIMED,
    DEVICES,
    PRODUCT,
    UNKNOWN_CLAIM,
    accelerators_in,
    whole,
)
from controller.observe.devices import DRIVERS, NOTHING_FURTHER, FurtherAccelerators, devices_in

_ALL: Final = "All"


class UnknownClaimError(Exception):
    """The number of accelerators of a claim cannot be known beforehand; the message says why."""


class Translation:
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
        held = int(spec.get(CLAIMED) or 0)
        for key, claim in self._claims_of(pod):
            if key not in self._given:
                self._given.add(key)
                held += self._accelerators(claim)
        return pod | {"spec": spec | {CLAIMED: held}} if held else pod

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
        given = template.get("spec") or {}
        spec = self._further.spec(given)
        entries = spec.get("resourceClaims") or []
        if not entries:
            return template if spec is given else template | {"spec": spec}
        try:
            asked = int(spec.get(CLAIMED) or 0) + sum(
                self._asked_by_entry(entry, namespace) for entry in entries
            )
        except UnknownClaimError as error:
            return template | {"spec": spec | {UNKNOWN_CLAIM: str(error)}}
        return template | {"spec": spec | {CLAIMED: asked}} if asked else template

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
        made = {
            item["name"]: item.get("resourceClaimName")
            for item in (pod.get("status") or {}).get("resourceClaimStatuses") or []
        }
        for entry in pod["spec"]["resourceClaims"]:
            key = namespace, entry.get("resourceClaimName") or made.get(entry["name"]) or ""
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
        held = {
            (item["driver"], item["pool"], item["device"]) for item in results if not item.get("adminAccess")
        }
        return len(held & self._devices.known)

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
    spoken = text.replace("'", '"')
    for name, driver in DRIVERS.items():
        if f'"{name}"' in spoken:
            is_typed = ".type" in spoken and bool(driver.whole)
            return not is_typed or any(f'"{kind}"' in spoken for kind in driver.whole)
    return False
