"""Uninstallations that are interrupted after any write, and end like an uninterrupted one."""

from __future__ import annotations

import asyncio

import pytest
from support.memory_cluster import CutOffError
from support.memory_installation import FORMER, PACE, PLACE, cluster, elsewhere, named, ours
from support.memory_store import MemoryStore

from apiserver.cluster.errors import ClusterError, Forbidden, Invalid
from apiserver.cluster.resource import (
    AUTOSCALING_POLICY_BINDINGS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    Resource,
)
from apiserver.kinds.kthena.autoscaling import AUTOSCALING_POLICY_BINDING
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from apiserver.schema.json import Json
from controller.commands.uninstall.installed import (
    CLUSTER_ROLE_BINDINGS,
    REMOVED,
    SERVICE_ACCOUNTS,
    installations,
)
from controller.commands.uninstall.uninstall import plan_removal
from controller.observe.decision_following import API_SERVICE

KEPT = {"customresourcedefinitions", "variantautoscalings", "autoscalingpolicybindings"}


async def remove(store: MemoryStore, *, with_objects: bool) -> list[str]:
    """Run the command once; return the results of its steps."""
    report = await plan_removal(store, PACE, with_objects=with_objects)
    assert not report.problems
    return [await step.act() for step in report.steps]


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
    report = asyncio.run(plan_removal(store, PACE))

    (found,) = report.problems
    assert found.message.startswith(f"you are not allowed to list {plural}")
    assert report.steps == ()


def test_the_remains_of_an_earlier_installation_are_removed_as_well() -> None:
    """Its processes stop with the others, wherever the run is interrupted."""
    store, alone = cluster(*elsewhere()), cluster()
    checks = asyncio.run(plan_removal(store, PACE)).checks
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
    theirs, shared = cluster(is_ours=False), cluster((CONFIG_MAPS, named("theirs", PLACE)))
    for store in (theirs, shared):
        asyncio.run(remove(store, with_objects=True))

    assert ("namespaces", "", PLACE) in theirs.objects
    assert {key for key in shared.objects if PLACE in key} == {
        ("namespaces", "", PLACE),
        (CONFIG_MAPS.plural, PLACE, "theirs"),
    }
