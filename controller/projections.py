"""Reduce cached pods, nodes and workloads to the fields that planning reads, with equal parts shared.

A pod from the API server consists mostly of environment, mounts, probes and container states. Pods of one
template differ in a name, a node and a few times; everything else is the same object in memory. Sharing is
safe because no one may modify what a cache returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from sys import intern
from typing import Final, TypeVar

import msgspec

from apiserver.cluster.cache import without_managed_fields
from apiserver.kinds.annotations import PREFIX
from apiserver.kinds.authorship import WRITTEN_BY
from apiserver.kinds.identity import METADATA
from apiserver.schema.json import Json
from controller.observe.devices import DRIVERS
from controller.observe.movable import SAFE_TO_EVICT
from controller.observe.pods import DELETION_COST

T = TypeVar("T")

_MOST_SHARED: Final = 50_000
_DIGEST_BYTES: Final = 16
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

_OWNER: Final = ("apiVersion", "kind", "name", "uid", "controller")
_POD_SPEC: Final = (
    "hostNetwork",
    "nodeSelector",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "priority",
    "priorityClassName",
    "activeDeadlineSeconds",
    "schedulingGates",
    "resourceClaims",
    "resources",
)
_CONTAINER: Final = ("name", "resources", "ports", "restartPolicy", "command", "args")
_CONDITIONS: Final = frozenset({"Ready", "PodScheduled"})
_CONDITION: Final = ("type", "status", "lastTransitionTime")
_NODE_STATUS: Final = ("allocatable", "capacity", "conditions")


class Projection:
    """Creates projections of objects; use one instance per cache, whose objects then share parts."""

    def __init__(self) -> None:
        self._shared: dict[bytes, object] = {}

    def pod(self, pod: Json) -> Json:
        """Return the projection of a pod."""
        spec = self.pod_spec(pod.get("spec") or {})
        if node := (pod.get("spec") or {}).get("nodeName"):
            spec["nodeName"] = intern(node)
        return {"metadata": self.metadata(pod["metadata"]), "spec": spec, "status": self._pod_status(pod)}

    def with_writer(self, value: Json) -> Json:
        """Return an object with a recorded writer, without its managed fields.

        The record is shared, because one user with many groups may have written thousands of objects.
        """
        annotations = without_managed_fields(value)["metadata"].get("annotations") or {}
        if record := annotations.get(WRITTEN_BY):
            annotations[WRITTEN_BY] = self.share(record)
        return value

    def pod_spec(self, spec: Json) -> Json:
        """Return the projection of a pod spec, or of a template's."""
        projection = {name: self.share(value) for name, value in _of(spec, _POD_SPEC).items()}
        for name in ("containers", "initContainers"):
            if containers := spec.get(name):
                projection[name] = self.share([_of(item, _CONTAINER) for item in containers])
        if volumes := spec.get("volumes"):
            projection["volumes"] = self.share([_volume(volume) for volume in volumes])
        return projection

    def metadata(self, metadata: Json) -> Json:
        """Return the projection of an object's metadata."""
        projection = _of(metadata, METADATA)
        if namespace := projection.get("namespace"):
            projection["namespace"] = intern(namespace)
        if labels := metadata.get("labels"):
            projection["labels"] = self.share(labels)
        if annotations := _annotations(metadata.get("annotations") or {}):
            projection["annotations"] = self.share(annotations)
        if owners := metadata.get("ownerReferences"):
            projection["ownerReferences"] = self.share([_of(owner, _OWNER) for owner in owners])
        return projection

    def node(self, node: Json) -> Json:
        """Return the projection of a node: without images, addresses and node info."""
        status = {
            name: self.share(value) for name, value in _of(node.get("status") or {}, _NODE_STATUS).items()
        }
        if "conditions" in status:
            status["conditions"] = self.share([_of(item, _CONDITION[:2]) for item in status["conditions"]])
        return {
            "metadata": self.metadata(node["metadata"]),
            "spec": _of(node.get("spec") or {}, ("taints", "unschedulable", "providerID")),
            "status": status,
        }

    def workload(self, value: Json) -> Json:
        """Return the projection of a Deployment, a StatefulSet or a LeaderWorkerSet.

        Only the pod templates are reduced, and managed fields removed.
        """
        metadata = {name: item for name, item in value["metadata"].items() if name != "managedFields"}
        if annotations := metadata.get("annotations"):
            metadata["annotations"] = {name: text for name, text in annotations.items() if name != _APPLIED}
        spec = value.get("spec") or {}
        if "template" in spec:
            spec = spec | {"template": self._template(spec["template"])}
        if group := spec.get("leaderWorkerTemplate"):
            templates = {name: self._template(group[name]) for name in _GROUP_TEMPLATES if group.get(name)}
            spec = spec | {"leaderWorkerTemplate": group | templates}
        return value | {"metadata": metadata, "spec": spec}

    def resource_slice(self, value: Json) -> Json:
        """Return the projection of a ResourceSlice: devices with their types, and their node."""
        spec = _of(value["spec"], ("driver", "nodeName", "pool"))
        spec["devices"] = [self._device(device) for device in value["spec"].get("devices") or []]
        return {"metadata": _of(value["metadata"], METADATA), "spec": spec}

    def resource_claim(self, value: Json) -> Json:
        """Return the projection of a ResourceClaim: its requests and its allocation."""
        projection: Json = {"metadata": _of(value["metadata"], METADATA)}
        projection["spec"] = self.share(value.get("spec") or {})
        allocation = (value.get("status") or {}).get("allocation")
        if allocation is not None:
            results = (allocation.get("devices") or {}).get("results") or []
            allocations = [_of(item, ("driver", "pool", "device", "adminAccess")) for item in results]
            projection["status"] = {"allocation": {"devices": {"results": allocations}}}
        return projection

    def share(self, value: T) -> T:
        """Return an equal value that may be shared with others."""
        digest = blake2b(msgspec.json.encode(value), digest_size=_DIGEST_BYTES).digest()
        if len(self._shared) >= _MOST_SHARED:
            self._shared.clear()  # templates come and go: those in use are soon shared again
        return self._shared.setdefault(digest, value)  # type: ignore[return-value] # alike by their encoding

    def _template(self, template: Json) -> Json:
        return template | {"spec": self.pod_spec(template.get("spec") or {})}

    def _device(self, device: Json) -> Json:
        attributes = device.get("attributes") or (device.get("basic") or {}).get("attributes") or {}
        named = {
            name: content for name, content in attributes.items() if name.rpartition("/")[2] in _ATTRIBUTES
        }
        return _of(device, ("name", "taints")) | {"attributes": self.share(named)}

    def _pod_status(self, pod: Json) -> Json:
        status = pod.get("status") or {}
        projection: Json = {}
        if phase := status.get("phase"):
            projection["phase"] = intern(phase)
        projection |= _of(status, ("podIP", "startTime", "resourceClaimStatuses"))
        conditions = [item for item in status.get("conditions") or [] if item.get("type") in _CONDITIONS]
        if conditions:
            projection["conditions"] = [_of(item, _CONDITION) for item in conditions]
        return projection


_ATTRIBUTES: Final = frozenset({"type", *(driver.product for driver in DRIVERS.values())})
_GROUP_TEMPLATES: Final = ("leaderTemplate", "workerTemplate")


def _of(value: Json, names: Iterable[str]) -> Json:
    return {name: value[name] for name in names if value.get(name) is not None}


def _annotations(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """Return the annotations that are read: two of Kubernetes', and Stowplan's, including subdomains."""
    return {
        name: text
        for name, text in annotations.items()
        if name in (DELETION_COST, SAFE_TO_EVICT) or f".{PREFIX}" in f".{name}"
    }


def _volume(volume: Json) -> Json:
    """Return the kinds of a volume, and whether it is in memory."""
    projection: Json = {name: {} for name in volume if name != "name"}
    if medium := (volume.get("emptyDir") or {}).get("medium"):
        projection["emptyDir"] = {"medium": medium}
    return projection
