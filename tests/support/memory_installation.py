"""A cluster in memory with an installation of every part, for tests of `stowplan uninstall`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from apiserver.cluster.resource import (
    API_SERVICES,
    AUTOSCALING_POLICY_BINDINGS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    SERVICES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    VARIANT_AUTOSCALINGS,
    Resource,
)
from apiserver.kinds.kthena.autoscaling import AUTOSCALING_POLICY_BINDING
from apiserver.kinds.kthena.models import MODEL
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from apiserver.schema.structural import crd_manifest
from controller.certificates.certificates import FORMER_CLAIM
from controller.commands.uninstall.installed import REMOVED, ROLE_BINDINGS, SERVICE_ACCOUNTS
from controller.commands.upgrade.calls import Pace
from controller.commands.upgrade.definitions import PART_OF
from controller.observe.decision_following import API_SERVICE, TARGET
from support.manifests import variant
from support.memory_store import MemoryStore

PACE = Pace(per_second=1e9, tell=lambda *_: None)
PLACE = "inference"
Stored = tuple[Resource, Json]
"""An object and its kind."""

OURS = {PART_OF: "stowplan"}
FORMER: dict[str, Json] = {
    "labels": {PART_OF: "keda"},
    "spec": {"service": {"namespace": "keda", "name": "adapter"}},
}


def named(name: str, namespace: str = "", **fields: Any) -> Json:
    """Return an object with a name, and a namespace if there is one."""
    place = {"namespace": namespace} if namespace else {}
    return {"metadata": {"name": name} | place | fields.pop("metadata", {}), **fields}


def ours(name: str, namespace: str = PLACE, **fields: Any) -> Json:
    """Return an object with our label."""
    return named(name, namespace, metadata={"labels": OURS}, **fields)


def defined(kind: Kind) -> Stored:
    """Return the definition of one of our kinds."""
    conditions = [{"type": "Established", "status": "True"}]
    stored = {"storedVersions": [kind.storage_version.name], "conditions": conditions}
    return CUSTOM_RESOURCE_DEFINITIONS, crd_manifest(kind) | {"status": stored}


def acting(component: str, place: str = PLACE) -> list[Stored]:
    """Return the Deployment of an active process, and the Lease that it holds."""
    labels = OURS | {"app.kubernetes.io/component": component}
    renewed = {"renewTime": datetime.now(UTC).isoformat(), "leaseDurationSeconds": 10**6}
    lease = {"holderIdentity": "pod"} | renewed
    noted = {"annotations": {FORMER_CLAIM: json.dumps(FORMER)}}
    name = f"stowplan-{component}"
    return [
        (DEPLOYMENTS, named(name, place, metadata={"labels": labels}, spec={"template": {}})),
        (LEASES, named(name, place, metadata=noted, spec=lease)),
    ]


def elsewhere() -> list[Stored]:
    """Return the remains of an installation whose `namespace:` was changed, in its old namespace."""
    place = "stowplan-system"
    account = {"kind": "ServiceAccount", "name": "stowplan-models", "namespace": place}
    return [
        (NAMESPACES, ours(place, "")),
        (SERVICE_ACCOUNTS, ours("stowplan-models", place)),
        (SERVICES, ours("stowplan-webhooks", place)),
        (ROLE_BINDINGS, named("once", "tenant", subjects=[account])),
        *acting("controller", place),
    ]


def cluster(*more: Stored, is_ours: bool = True) -> MemoryStore:
    """Return a cluster with a complete installation, whose controller ended in the middle of its work."""
    costs = {"stowplan.dev/pod-deletion-cost": "-1", "controller.kubernetes.io/pod-deletion-cost": "-1"}
    gates = [{"name": "stowplan.dev/placement"}, {"name": "theirs"}]
    taints = [
        {"key": "stowplan.dev/moving", "effect": "NoSchedule"},
        {"key": "theirs", "effect": "NoSchedule"},
    ]
    account = {"kind": "ServiceAccount", "name": "stowplan-controller", "namespace": PLACE}
    client = {"service": {"namespace": PLACE}}
    usual = [resource for resource in REMOVED if resource not in {DEPLOYMENTS, LEASES, ROLE_BINDINGS}]
    objects: list[Stored] = [
        (NAMESPACES, ours(PLACE, "") if is_ours else named(PLACE)),
        *((resource, ours("stowplan", PLACE if resource.namespaced else "")) for resource in usual),
        (SERVICE_ACCOUNTS, ours("stowplan-controller")),
        (DEPLOYMENTS, ours("stowplan-webhooks", spec={"template": {}})),
        *acting("controller"),
        *acting("models"),
        (ROLE_BINDINGS, named("scaling", "tenant", subjects=[account])),
        (ROLE_BINDINGS, named("theirs", "tenant", subjects=[account | {"namespace": "tenant"}])),
        (VALIDATING_WEBHOOK_CONFIGURATIONS, ours("stowplan", "", webhooks=[{"clientConfig": client}])),
        (PODS, named("waits", "tenant", spec={"schedulingGates": gates}, status={})),
        (PODS, named("goes", "tenant", metadata={"annotations": costs}, spec={}, status={})),
        (NODES, named("n1", spec={"taints": taints})),
        (SERVICES, named("adapter", "keda")),
        (API_SERVICES, ours(API_SERVICE, "", spec={"service": {"namespace": PLACE, "name": TARGET}})),
        defined(VARIANT_AUTOSCALING),
        defined(MODEL),
        defined(AUTOSCALING_POLICY_BINDING),
        (VARIANT_AUTOSCALINGS, variant("a") | named("a", "tenant")),
        (
            AUTOSCALING_POLICY_BINDINGS,
            named("b", "tenant", metadata={"annotations": {"stowplan.dev/written-by": "{}", "their": "1"}}),
        ),
    ]
    return MemoryStore([*objects, *more])
