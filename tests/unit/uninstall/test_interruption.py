"""Uninstallations that are interrupted after any write, and end like an uninterrupted one."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from support.manifests import variant
from support.memory_cluster import CutOffError
from support.memory_store import MemoryStore

from apiserver.cluster.errors import ClusterError, Forbidden, Invalid
from apiserver.cluster.resource import (
    API_SERVICES,
    AUTOSCALING_POLICY_BINDINGS,
    CONFIG_MAPS,
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
from controller.commands.uninstall.gather import gather
from controller.commands.uninstall.installed import (
    CLUSTER_ROLE_BINDINGS,
    REMOVED,
    ROLE_BINDINGS,
    SERVICE_ACCOUNTS,
    installations,
)
from controller.commands.uninstall.plan import plan_removal
from controller.commands.uninstall.uninstall import Removal
from controller.commands.upgrade.calls import Pace
from controller.commands.upgrade.definitions import PART_OF
from controller.observe.decision_following import API_SERVICE, TARGET

PACE = Pace(per_second=1e9, tell=lambda *_: None)
PLACE = "inference"
OURS = {PART_OF: "stowplan"}
KEPT = {"customresourcedefinitions", "variantautoscalings", "autoscalingpolicybindings"}
FORMER = {"labels": {PART_OF: "keda"}, "spec": {"service": {"namespace": "keda", "name": "adapter"}}}


def named(name: str, namespace: str = "", **fields: Any) -> Json:
    """Return an object with a name, and a namespace if there is one."""
    place = {"namespace": namespace} if namespace else {}
    return {"metadata": {"name": name} | place | fields.pop("metadata", {}), **fields}


def ours(name: str, namespace: str = PLACE, **fields: Any) -> Json:
    """Return an object with our label."""
    return named(name, namespace, metadata={"labels": OURS}, **fields)


def defined(kind: Kind) -> tuple[Resource, Json]:
    """Return the definition of one of our kinds."""
    conditions = [{"type": "Established", "status": "True"}]
    stored = {"storedVersions": [kind.storage_version.name], "conditions": conditions}
    return CUSTOM_RESOURCE_DEFINITIONS, crd_manifest(kind) | {"status": stored}


def acting(component: str, place: str = PLACE) -> list[tuple[Resource, Json]]:
    """Return the Deployment of an active process, and the Lease that it holds."""
    labels = OURS | {"app.kubernetes.io/component": component}
    lease = {"holderIdentity": "pod", "renewTime": datetime.now(UTC).isoformat(), "leaseDurationSeconds": 600}
    noted = {"annotations": {FORMER_CLAIM: json.dumps(FORMER)}}
    name = f"stowplan-{component}"
    return [
        (DEPLOYMENTS, named(name, place, metadata={"labels": labels}, spec={"template": {}})),
        (LEASES, named(name, place, metadata=noted, spec=lease)),
    ]


def elsewhere() -> list[tuple[Resource, Json]]:
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


def cluster(*more: tuple[Resource, Json], is_ours: bool = True) -> MemoryStore:
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
    objects: list[tuple[Resource, Json]] = [
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


async def remove(store: MemoryStore, *, with_objects: bool) -> list[str]:
    """Run the command once; return the results of its steps."""
    report = plan_removal(await gather(store), "memory", with_objects=with_objects)
    assert not report.problems
    removal = Removal(store, PACE, namespaces=await installations(store), with_objects=with_objects)
    return [await removal.do(step) for step in report.steps]


async def removed_one_by_one(store: MemoryStore, *, with_objects: bool) -> int:
    """Run the command again and again, interrupted after each write; return how often."""
    deaths = 0
    while True:
        store.writes_left = 1
        try:
            await remove(store, with_objects=with_objects)
        except CutOffError:
            deaths += 1
        else:
            return deaths


def said(store: MemoryStore) -> dict[tuple[str, str, str], Json]:
    """Return the objects in the store, without resource versions."""
    return {
        key: item | {"metadata": item["metadata"] | {"resourceVersion": ""}}
        for key, item in store.objects.items()
    }


@pytest.mark.parametrize("with_objects", [False, True], ids=["objects are kept", "objects are deleted"])
def test_an_interrupted_uninstallation_ends_like_an_uninterrupted_one(*, with_objects: bool) -> None:
    """The remaining objects belong to others, and have none of our marks."""
    left_alone, interrupted = cluster(), cluster()
    asyncio.run(remove(left_alone, with_objects=with_objects))
    deaths = asyncio.run(removed_one_by_one(interrupted, with_objects=with_objects))

    assert deaths > len(REMOVED)
    assert said(interrupted) == said(left_alone)
    assert not asyncio.run(remove(left_alone, with_objects=with_objects))
    left = {key: item for key, item in said(left_alone).items() if key[0] not in KEPT}
    assert sorted(left) == [
        ("apiservices", "", API_SERVICE),
        ("nodes", "", "n1"),
        ("pods", "tenant", "goes"),
        ("pods", "tenant", "waits"),
        ("rolebindings", "tenant", "theirs"),
        ("services", "keda", "adapter"),
    ]
    assert left["nodes", "", "n1"]["spec"]["taints"] == [{"key": "theirs", "effect": "NoSchedule"}]
    assert left["pods", "tenant", "waits"]["spec"]["schedulingGates"] == [{"name": "theirs"}]
    assert not left["pods", "tenant", "goes"]["metadata"]["annotations"]
    claim = left["apiservices", "", API_SERVICE]
    assert (claim["metadata"]["labels"], claim["spec"]) == (FORMER["labels"], FORMER["spec"])
    kept = {key[2]: item for key, item in left_alone.objects.items() if key[0] in KEPT}
    if with_objects:
        assert kept == {}
    else:
        assert sorted(kept) == ["a", AUTOSCALING_POLICY_BINDING.crd_name, "b", VARIANT_AUTOSCALING.crd_name]
        assert kept["b"]["metadata"]["annotations"] == {"their": "1"}


@pytest.mark.parametrize("with_objects", [False, True], ids=["objects are kept", "objects are deleted"])
def test_a_definition_of_another_owner_loses_our_label_and_field_ownership(*, with_objects: bool) -> None:
    """Otherwise cleaning up by our label would delete objects of an earlier release."""
    store = cluster()
    definition = store.objects["customresourcedefinitions", "", VARIANT_AUTOSCALING.crd_name]
    release = definition["spec"] | {"versions": [{"name": "v1alpha1", "served": True, "storage": True}]}
    entries = [{"manager": name, "operation": "Update"} for name in ("theirs", "stowplan")]
    definition |= {"spec": release, "metadata": definition["metadata"] | {"managedFields": entries}}
    variant = store.objects["variantautoscalings", "tenant", "a"]
    variant["metadata"]["annotations"] = {"stowplan.dev/written-by": "{}", "their": "1"}
    asyncio.run(remove(store, with_objects=with_objects))

    left = store.objects["customresourcedefinitions", "", VARIANT_AUTOSCALING.crd_name]
    assert left["metadata"]["labels"] == {}
    assert left["metadata"]["managedFields"] == entries[:1]
    assert left["spec"] == release
    assert store.objects["variantautoscalings", "tenant", "a"]["metadata"]["annotations"] == {"their": "1"}
    assert not asyncio.run(remove(store, with_objects=with_objects))


@pytest.mark.parametrize("error", [Invalid("spec: Required value"), Forbidden("denied by policy")])
def test_an_object_that_cannot_be_written_is_reported_and_skipped(error: ClusterError) -> None:
    """The annotation that remains on it has no effect without Stowplan."""
    binding = (AUTOSCALING_POLICY_BINDINGS.plural, "tenant", "b")
    other = named("c", "tenant", metadata={"annotations": {"stowplan.dev/written-by": "{}"}})
    store = cluster((AUTOSCALING_POLICY_BINDINGS, other))
    store.refused[binding] = error
    results = asyncio.run(remove(store, with_objects=False))

    assert f"objects changed: 1; not changed, because refused: 1: tenant/b ({error.message})" in results
    assert "stowplan.dev/written-by" in store.objects[binding]["metadata"]["annotations"]
    assert ("namespaces", "", PLACE) not in store.objects


@pytest.mark.parametrize("plural", ["namespaces", "serviceaccounts", "statefulsets"])
def test_a_missing_permission_is_named(plural: str) -> None:
    """It is checked before anything is read that requires it."""
    store = cluster()
    store.denied.add(("list", plural))
    report = plan_removal(asyncio.run(gather(store)), "memory")

    (found,) = report.problems
    assert found.message.startswith(f"you are not allowed to list {plural}")
    assert report.steps == ()


def test_the_remains_of_an_earlier_installation_are_removed_as_well() -> None:
    """Its processes stop with the others, wherever the run is interrupted."""
    store, alone = cluster(*elsewhere()), cluster()
    checks = plan_removal(asyncio.run(gather(store)), "memory").checks
    asyncio.run(removed_one_by_one(store, with_objects=False))
    asyncio.run(remove(alone, with_objects=False))

    (both,) = (item.message for item in checks if item.check == "installations")
    assert both.endswith("removed from all of them: inference, stowplan-system")
    assert said(store) == said(alone)


UMBRELLA: dict[str, list[tuple[Resource, Json]]] = {
    "objects in a namespace of others": [
        (NAMESPACES, ours("chat", "")),
        (SERVICE_ACCOUNTS, ours("engine", "chat")),
        (DEPLOYMENTS, ours("llama", "chat", spec={"template": {}})),
        (CONFIG_MAPS, ours("prompts", "chat")),
    ],
    "objects in our namespace": [(CONFIG_MAPS, ours("prompts"))],
    "cluster-wide objects": [(CLUSTER_ROLE_BINDINGS, ours("engines", ""))],
}


@pytest.mark.parametrize("theirs", UMBRELLA.values(), ids=UMBRELLA.keys())
def test_objects_of_others_with_our_label_are_not_deleted(theirs: list[tuple[Resource, Json]]) -> None:
    """A kustomization that contains Stowplan's may set the label on everything that it deploys."""
    store = cluster(*theirs)
    places = asyncio.run(installations(store))
    asyncio.run(remove(store, with_objects=True))

    assert places == (PLACE,)
    for resource, item in theirs:
        metadata = item["metadata"]
        assert (resource.plural, metadata.get("namespace", ""), metadata["name"]) in store.objects
    assert ("serviceaccounts", PLACE, "stowplan-controller") not in store.objects
    assert not asyncio.run(remove(store, with_objects=True))


def test_a_namespace_that_others_created_or_use_is_kept() -> None:
    """Their objects in it are kept, too."""
    theirs, shared = cluster(is_ours=False), cluster()
    shared.objects["configmaps", PLACE, "theirs"] = {"metadata": {"name": "theirs", "namespace": PLACE}}
    for store in (theirs, shared):
        asyncio.run(remove(store, with_objects=True))

    assert ("namespaces", "", PLACE) in theirs.objects
    assert {key for key in shared.objects if PLACE in key} == {
        ("namespaces", "", PLACE),
        (CONFIG_MAPS.plural, PLACE, "theirs"),
    }
