"""Checks for other controllers of the same objects, which would write what the other side cannot read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from apiserver.cluster.heartbeat import LEASE_NAME
from apiserver.schema.json import Json
from controller.commands.upgrade.findings import Finding, ok, problem
from controller.commands.upgrade.snapshot import Snapshot

UPSTREAM_LEASE: Final = "72dd1cf1.llm-d.ai"
"""The leader election Lease of every release of the earlier controller."""
OUR_MANAGER: Final = "stowplan"
RECENT: Final = timedelta(minutes=10)
"""The age of a status write beyond which its controller counts as stopped: earlier controllers write every
minute."""

_CHECK: Final = "controllers"
_NAMES: Final = ("workload-variant-autoscaler", "llm-d-autoscaling", "inferno-autoscaler")
"""Names in the images and labels of earlier controllers."""


def check_upstream(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield a finding for every sign of a running earlier controller, or of a second installation."""
    found = [
        *_deployments(snapshot),
        *_held_lease(snapshot, UPSTREAM_LEASE),
        *_writers(snapshot),
        *_second_installation(snapshot),
    ]
    yield from found or [ok(_CHECK, "no other controller is active on the objects")]


def check_our_own(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield whether our own controller is running, which writes what an earlier release cannot hold."""
    found = [*_held_lease(snapshot, LEASE_NAME)]
    yield from found or [ok(_CHECK, "our own controller is not active")]


def is_upstream(deployment: Json) -> bool:
    """Tell whether a Deployment is an earlier controller, by its labels and images."""
    pod = deployment["spec"]["template"]
    labels = {**(deployment["metadata"].get("labels") or {}), **(pod["metadata"].get("labels") or {})}
    words = [str(labels.get(name, "")) for name in ("app.kubernetes.io/name", "app.kubernetes.io/part-of")]
    words += [str(container.get("image", "")) for container in pod["spec"].get("containers") or []]
    return any(name in word for name in _NAMES for word in words)


def _deployments(snapshot: Snapshot) -> Iterator[Finding]:
    for deployment in snapshot.deployments:
        if deployment["spec"].get("replicas", 1) and is_upstream(deployment):
            metadata = deployment["metadata"]
            place = f"{metadata['namespace']}/{metadata['name']}"
            yield problem(
                _CHECK,
                f"Deployment {place} looks like an earlier controller of these objects",
                f"kubectl --namespace {metadata['namespace']} scale deployment {metadata['name']}"
                f" --replicas=0, or use --accept {_CHECK}",
            )


def _held_lease(snapshot: Snapshot, name: str) -> Iterator[Finding]:
    for namespace, holder in _holders(snapshot, name):
        is_upstream_lease = name == UPSTREAM_LEASE
        stop = "scale its Deployment to 0" if is_upstream_lease else _STOP_OURS.format(namespace=namespace)
        yield problem(
            _CHECK,
            f"{holder} holds the lease {namespace}/{name}",
            f"{stop} and wait for half a minute, or use --accept {_CHECK}",
        )


def _second_installation(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield our controllers outside of the namespace to which the webhooks refer.

    All cluster-scoped objects have fixed names, and belong to the installation that was applied last.
    """
    webhook = snapshot.webhook
    for namespace, _ in _holders(snapshot, LEASE_NAME) if webhook.is_configured else ():
        if namespace != webhook.namespace:
            yield problem(
                _CHECK,
                f"there is a second installation in the namespace {namespace}; webhooks and permissions"
                f" belong to that in {webhook.namespace}",
                f"remove the Deployments and Services of one of them, and apply the manifests of the other"
                f" again, or use --accept {_CHECK}",
            )


def _holders(snapshot: Snapshot, name: str) -> Iterator[tuple[str, str]]:
    """Yield the namespace and the holder of each held Lease of a name."""
    for lease in snapshot.leases:
        if lease["metadata"]["name"] == name and is_held(lease.get("spec") or {}, snapshot.now):
            yield lease["metadata"]["namespace"], lease["spec"]["holderIdentity"]


_STOP_OURS: Final = "kubectl --namespace {namespace} scale deployment stowplan-controller --replicas=0"


def is_held(spec: Json, now: datetime) -> bool:
    """Tell whether the spec of a Lease has a holder whose lease has not expired."""
    if not spec.get("holderIdentity") or not spec.get("renewTime"):
        return False
    lifetime = timedelta(seconds=int(spec.get("leaseDurationSeconds") or 0))
    return bool(datetime.fromisoformat(spec["renewTime"]) + lifetime > now)


def _writers(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield recent writers of a status other than our controller and kubectl."""
    for manager, moment in sorted(_latest_writes(snapshot.objects).items()):
        if not manager.startswith((OUR_MANAGER, "kubectl")) and snapshot.now - moment < RECENT:
            ago = int((snapshot.now - moment).total_seconds())
            yield problem(
                _CHECK,
                f"{manager} wrote a status {ago} s ago",
                f"stop it and wait for {RECENT.seconds // 60} minutes, or use --accept {_CHECK}",
            )


def _latest_writes(objects: tuple[Json, ...]) -> dict[str, datetime]:
    latest: dict[str, datetime] = {}
    for item in objects:
        for entry in item["metadata"].get("managedFields") or []:
            if entry.get("subresource") == "status" and entry.get("time"):
                manager, moment = str(entry.get("manager")), datetime.fromisoformat(entry["time"])
                latest[manager] = max(moment, latest.get(manager, moment))
    return latest
