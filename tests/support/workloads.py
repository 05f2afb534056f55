"""StatefulSets and LeaderWorkerSets for tests, with pods as their controllers would create them."""

from __future__ import annotations

from typing import Any

from support.manifests import Manifest, deployment

SET_NAME = "leaderworkerset.sigs.k8s.io/name"
GROUP_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"


def stateful_set(name: str, *, product: str, accelerators: int, replicas: int = 1) -> Manifest:
    """Return a StatefulSet of engines on one type of accelerator, whose pods start in parallel."""
    made = deployment(name, product=product, accelerators=accelerators, replicas=replicas)
    made["kind"] = "StatefulSet"
    made["spec"] |= {"serviceName": name, "podManagementPolicy": "Parallel"}
    return made


def leader_worker_set(
    name: str,
    *,
    product: str,
    accelerators: int,
    size: int,
    replicas: int = 1,
    leader_accelerators: int | None = None,
    **annotations: str,
) -> Manifest:
    """Return a LeaderWorkerSet; by default the leader has the template of its workers."""
    template = deployment(name, product=product, accelerators=accelerators)["spec"]["template"]
    group: Manifest = {"size": size, "workerTemplate": template}
    if leader_accelerators is not None:
        leader = deployment(name, product=product, accelerators=leader_accelerators)
        group["leaderTemplate"] = leader["spec"]["template"]
    said = {f"leaderworkerset.sigs.k8s.io/{key.replace('_', '-')}": text for key, text in annotations.items()}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name, "annotations": said},
        "spec": {"replicas": replicas, "leaderWorkerTemplate": group},
    }


def stateful_pod(name: str, number: int, *, node: str = "n1", accelerators: int = 1) -> Manifest:
    """Return a ready pod of a StatefulSet; without a node it is pending."""
    return _pod(f"{name}-{number}", name, {}, node=node, accelerators=accelerators)


def group_pod(
    name: str, group: int, worker: int, *, node: str = "n1", accelerators: int = 1, **spec: Any
) -> Manifest:
    """Return a ready pod of a LeaderWorkerSet; worker 0 is the leader."""
    leader = f"{name}-{group}"
    labels = {SET_NAME: name, GROUP_INDEX: str(group), WORKER_INDEX: str(worker)}
    owner, own = (leader, f"{leader}-{worker}") if worker else (name, leader)
    return _pod(own, owner, labels, node=node, accelerators=accelerators, **spec)


def _pod(
    name: str, owner: str, labels: dict[str, str], *, node: str, accelerators: int, **spec: Any
) -> Manifest:
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": owner, "controller": True}
    limits = {"nvidia.com/gpu": accelerators} if accelerators else {}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {
        "metadata": {"namespace": "ns", "name": name, "labels": labels, "ownerReferences": [reference]},
        "spec": {
            **({"nodeName": node} if node else {}),
            "containers": [{"resources": {"limits": limits}}],
            **spec,
        },
        "status": {"phase": "Running", "conditions": [ready] if node else []},
    }
