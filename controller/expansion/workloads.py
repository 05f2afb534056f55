"""The workload of a part, and the Service in front of it.

An engine with one pod is a Deployment replica. An engine that spans nodes is a group of a LeaderWorkerSet,
whose leader answers requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from apiserver.kinds.annotations import MODEL_OWNER
from apiserver.schema.json import Json
from controller.expansion.adapters import list_data, list_volume, loader
from controller.expansion.commands import DRAIN_SECONDS, leader_command, lifecycle, probes, worker_command
from controller.expansion.parts import (
    BACKEND_LABEL,
    MANAGED_BY,
    MODEL_LABEL,
    Part,
    backend_name,
    owned_metadata,
)
from controller.expansion.weights import Weights
from controller.observe.targets import WORKER_INDEX

_PORT_NAME: Final = "http"
_STOP_SECONDS: Final = DRAIN_SECONDS + 30
_SHARED_MEMORY: Final = "shared-memory"


def workload(part: Part, weights: Weights, *, replicas: int) -> Json:
    """Return the Deployment or LeaderWorkerSet of a part."""
    if part.pods > 1:
        spec = _groups(part, weights)
        api_version, kind = "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"
    else:
        template = _template(part, weights, leader_command(part, weights), answers=True)
        spec = {"selector": {"matchLabels": dict(part.labels)}, "template": template}
        api_version, kind = "apps/v1", "Deployment"
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": metadata(part.model, part.name, part.labels),
        "spec": {"replicas": replicas, **spec},
    }


def service(part: Part) -> Json:
    """Return the Service for the pods of a part that answer requests."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(part.model, part.name, part.labels),
        "spec": {
            "selector": dict(answering_labels(part)),
            "ports": [{"name": _PORT_NAME, "port": part.port, "targetPort": _PORT_NAME}],
        },
    }


def adapter_list(part: Part, weights: Weights) -> Json:
    """Return the ConfigMap with the adapters that a backend's engines load at run time."""
    labels = {label: part.labels[label] for label in (MODEL_LABEL, BACKEND_LABEL)}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(part.model, backend_name(part.model, part.backend), labels),
        "data": list_data(weights),
    }


def reference(part: Part) -> Json:
    """Return the reference to the workload of a part, for policies."""
    if part.pods > 1:
        return {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": part.name}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": part.name}


def answering_labels(part: Part) -> Mapping[str, str]:
    """Return labels of the pods of a part that answer requests; for engines that span nodes, the leaders."""
    return {**part.labels, WORKER_INDEX: "0"} if part.pods > 1 else part.labels


def metadata(model: Json, name: str, labels: Mapping[str, str]) -> Json:
    """Return the metadata of an object made for a Model."""
    members = owned_metadata(model, name, labels)
    if owner := model["spec"].get("owner"):
        members["annotations"] = {MODEL_OWNER: owner}
    return members


def _groups(part: Part, weights: Weights) -> Json:
    leader = _template(part, weights, leader_command(part, weights), answers=True)
    worker = _template(part, weights, worker_command(part, weights), answers=False)
    return {
        # By default, the Service by which the pods of a group find their leader has the name of the set,
        # like the Service for requests. With this policy, there is one for each leader, with its name.
        "networkConfig": {"subdomainPolicy": "UniquePerReplica"},
        "leaderWorkerTemplate": {
            "size": part.pods,
            "restartPolicy": "RecreateGroupOnPodRestart",
            "leaderTemplate": leader,
            "workerTemplate": worker,
        },
    }


def _template(part: Part, weights: Weights, command: list[str], *, answers: bool) -> Json:
    spec: Json = {
        "containers": [_engine(part, weights, command, answers=answers)],
        # Engines on several accelerators use it to exchange data, and the default size is 64 MiB.
        "volumes": [*weights.volumes, {"name": _SHARED_MEMORY, "emptyDir": {"medium": "Memory"}}],
    }
    if part.loads_adapters:
        spec["containers"].append(loader(part, weights))
        spec["volumes"].append(list_volume(part))
    if weights.fetchers:
        spec["initContainers"] = list(weights.fetchers)
    if affinity := part.worker.get("affinity"):
        spec["affinity"] = affinity
    if answers:
        spec["terminationGracePeriodSeconds"] = _STOP_SECONDS
    return {"metadata": {"labels": {**MANAGED_BY, **part.labels, **part.engine_labels}}, "spec": spec}


def _engine(part: Part, weights: Weights, command: list[str], *, answers: bool) -> Json:
    container: Json = {
        "name": "engine",
        "image": part.worker["image"],
        "command": command,
        "volumeMounts": [*weights.mounts, {"name": _SHARED_MEMORY, "mountPath": "/dev/shm"}],  # noqa: S108
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **part.environment,
    }
    if resources := part.worker.get("resources"):
        container["resources"] = resources
    if answers:
        port = {"name": _PORT_NAME, "containerPort": part.port}
        container |= {"ports": [port], **probes(part), "lifecycle": lifecycle(part)}
    return container
