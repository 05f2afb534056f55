"""Uninstallations during which others change the cluster: between the plan and a step, or during a step."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final, NamedTuple

import pytest
from support.memory_installation import (
    FORMER,
    OURS,
    PACE,
    PLACE,
    Stored,
    acting,
    cluster,
    defined,
    named,
    ours,
)
from support.memory_store import Key, MemoryStore

from apiserver.cluster.errors import NotFound, Unavailable
from apiserver.cluster.heartbeat import LEASE_NAME
from apiserver.cluster.resource import (
    API_SERVICES,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    LEASES,
    MODELS,
    NAMESPACES,
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
from controller.certificates.certificates import FORMER_CLAIM
from controller.commands.uninstall.installed import SERVICE_ACCOUNTS
from controller.commands.uninstall.uninstall import plan_removal
from controller.commands.upgrade.calls import StoppedError
from controller.commands.upgrade.definitions import ENDPOINT_SLICES, PART_OF
from controller.commands.upgrade.report import Run, Step
from controller.observe.decision_following import API_SERVICE, TARGET

VARIANTS: Final = VARIANT_AUTOSCALING.crd_name
POLICIES: Final = AUTOSCALING_POLICY_BINDING.crd_name
CLAIM: Final[Key] = API_SERVICES.plural, "", API_SERVICE
NAMESPACE: Final[Key] = NAMESPACES.plural, "", PLACE
DEFINITION: Final[Key] = CUSTOM_RESOURCE_DEFINITIONS.plural, "", MODEL.crd_name
ADAPTER: Final[Key] = SERVICES.plural, "keda", "adapter"

WIDGETS: Final = Resource(group="example.com", version="v1", plural="widgets", kind="Widget")
THEIRS: Final = named(API_SERVICE, spec=FORMER["spec"])
NOTED: Final = {FORMER_CLAIM: json.dumps(FORMER)}
REMAINS: Final[list[Stored]] = [
    (NAMESPACES, ours(PLACE, "")),
    (SERVICE_ACCOUNTS, ours("stowplan-controller")),
    (LEASES, named(LEASE_NAME, PLACE, metadata={"labels": OURS, "annotations": NOTED})),
    (API_SERVICES, named(API_SERVICE, spec={"service": {"namespace": PLACE, "name": TARGET}})),
    (SERVICES, named("adapter", "keda")),
    defined(MODEL),
]
"""An installation whose namespace contains nothing that is not deleted with it."""


def scene(action: str) -> MemoryStore:
    """Return a cluster whose plan has a step with this action."""
    return MemoryStore(REMAINS) if action in {"return", "delete", "leave"} else cluster()


def step_of(run: Run, action: str) -> Step:
    """Return the only step of a plan with this action."""
    (step,) = (step for step in run.steps if step.action == action)
    return step


async def outcome_of(step: Step) -> str:
    """Execute a step; return its result, or why it stopped."""
    try:
        return await step.act()
    except StoppedError as error:
        return str(error)


def put(resource: Resource, item: Json) -> Callable[[MemoryStore], None]:
    """Return the change that creates an object in place of one with the same name."""
    return lambda store: store.put(resource, item)


def drop(resource: Resource, name: str, namespace: str = "") -> Callable[[MemoryStore], object]:
    """Return the change that deletes an object."""
    return lambda store: store.objects.pop((resource.plural, namespace, name))


def take_over_metrics(store: MemoryStore) -> None:
    """Give external metrics to others, after their former owner has been deleted."""
    del store.objects[ADAPTER]
    store.put(API_SERVICES, THEIRS)


def take_over_definition(kind: Kind) -> Callable[[MemoryStore], None]:
    """Return the change by which a definition belongs to another application."""
    key = CUSTOM_RESOURCE_DEFINITIONS.plural, "", kind.crd_name
    return lambda store: store.edit(key, {"metadata": {"labels": {PART_OF: "theirs"}}})


class Race(NamedTuple):
    """What others do after the plan, in which step it counts, and what must come of it."""

    action: str
    change: Callable[[MemoryStore], object]
    outcome: str
    kept: Key | None = None
    at: tuple[str, str, str] | None = None
    """The call before which they do it; None: before the step."""


RACES: dict[str, Race] = {
    "an object of a definition that has none is created": Race(
        "delete",
        put(MODELS, named("m", "tenant")),
        f"objects of {MODEL.crd_name} were created in the meantime; run this command again",
        kept=(MODELS.plural, "tenant", "m"),
    ),
    "a definition is created anew": Race(
        "delete", put(*defined(MODEL)), f"{MODEL.crd_name} deleted", kept=DEFINITION
    ),
    "others take over a definition without objects": Race(
        "delete", take_over_definition(MODEL), f"{MODEL.crd_name} is not ours any more", kept=DEFINITION
    ),
    "a definition without objects is deleted": Race(
        "delete", drop(CUSTOM_RESOURCE_DEFINITIONS, MODEL.crd_name), f"{MODEL.crd_name} is gone"
    ),
    "an object is created in our namespace": Race(
        "leave",
        put(CONFIG_MAPS, named("theirs", PLACE)),
        f"{PLACE} is not deleted: it also contains ConfigMap theirs",
        kept=NAMESPACE,
    ),
    "our namespace is created anew": Race(
        "leave", put(NAMESPACES, named(PLACE)), f"{PLACE} deleted", kept=NAMESPACE
    ),
    "others take over external metrics before the step": Race(
        "return", put(API_SERVICES, THEIRS), f"{API_SERVICE} is not ours any more", kept=CLAIM
    ),
    "others take over external metrics during the step": Race(
        "return",
        take_over_metrics,
        f"{API_SERVICE} is not ours any more",
        kept=CLAIM,
        at=("get", LEASES.plural, LEASE_NAME),
    ),
    "the former owner of external metrics is deleted": Race(
        "return", drop(SERVICES, "adapter", "keda"), f"{API_SERVICE} deleted"
    ),
    "others take over a definition that would stay": Race(
        "withdraw", take_over_definition(VARIANT_AUTOSCALING), f"{VARIANTS} is not ours any more"
    ),
    "a definition that would stay is deleted": Race(
        "withdraw", drop(CUSTOM_RESOURCE_DEFINITIONS, VARIANTS), f"{VARIANTS} is gone"
    ),
    "a definition whose objects would stay is deleted": Race(
        "forget", drop(CUSTOM_RESOURCE_DEFINITIONS, POLICIES), f"{POLICIES} is gone"
    ),
}


@pytest.mark.parametrize("race", RACES.values(), ids=RACES.keys())
async def test_a_step_acts_on_what_is_there_now(race: Race) -> None:
    """It deletes nothing that the plan did not see, not even under the same name."""
    store = scene(race.action)
    step = step_of(await plan_removal(store, PACE), race.action)
    changes = [race.change]

    def meanwhile(*call: str) -> None:
        if changes and race.at in {None, call}:
            changes.pop()(store)

    store.meanwhile = meanwhile
    outcome = await outcome_of(step)

    assert not changes
    assert outcome == race.outcome
    assert race.kept is None or race.kept in store.objects


async def test_what_others_write_while_our_marks_are_removed_stays() -> None:
    """Objects that changed after they were read are read again."""
    store = scene("clean")
    step = step_of(await plan_removal(store, PACE), "clean")
    cost = {"controller.kubernetes.io/pod-deletion-cost": "7"}
    taints = [*store.objects["nodes", "", "n1"]["spec"]["taints"], {"key": "new", "effect": "NoSchedule"}]
    edits: dict[str, tuple[Key, Json]] = {
        "goes": (("pods", "tenant", "goes"), {"metadata": {"annotations": cost}}),
        "n1": (("nodes", "", "n1"), {"spec": {"taints": taints}}),
    }

    def meanwhile(verb: str, _: str, name: str) -> None:
        if verb == "patch" and name in edits:
            store.edit(*edits.pop(name))

    store.meanwhile = meanwhile
    await step.act()

    assert not edits
    assert store.objects["pods", "tenant", "goes"]["metadata"]["annotations"] == cost
    left = store.objects["nodes", "", "n1"]["spec"]["taints"]
    assert [taint["key"] for taint in left] == ["theirs", "new"]


POD: Final = named(
    "stowplan-controller-x",
    PLACE,
    metadata={"labels": {"app.kubernetes.io/name": "stowplan", "app.kubernetes.io/component": "controller"}},
    spec={},
)
SLOW: dict[str, tuple[str, Stored]] = {
    "a pod of a process that acts": ("stop", (PODS, POD)),
    "the Lease of a process without a Deployment": ("stop", acting("other")[1]),
    "a definition": ("delete", defined(MODEL)),
    "a namespace": ("leave", (NAMESPACES, ours(PLACE, ""))),
}


@pytest.mark.parametrize(("action", "slow"), SLOW.values(), ids=SLOW.keys())
async def test_a_step_ends_when_what_it_deletes_is_gone(action: str, slow: Stored) -> None:
    """Even if a finalizer or a process takes its time."""
    (resource, item), store, lists = slow, scene(action), 0
    key = resource.plural, item["metadata"].get("namespace", ""), item["metadata"]["name"]
    store.put(resource, item | {"metadata": item["metadata"] | {"finalizers": ["theirs"]}})
    step = step_of(await plan_removal(store, PACE), action)

    def meanwhile(verb: str, plural: str, _: str) -> None:
        nonlocal lists
        lists += (verb, plural) == ("list", resource.plural)
        if lists == 2:
            store.objects.pop(key, None)

    store.meanwhile = meanwhile
    await step.act()

    assert key not in store.objects


async def test_deleted_webhooks_are_given_time_on_all_api_servers() -> None:
    """Their number, which decides how long, is read after the deletion."""
    store, calls = scene("unhook"), list[tuple[str, ...]]()
    step = step_of(await plan_removal(store, PACE), "unhook")
    store.meanwhile = lambda *call: calls.append(call)
    await step.act()

    assert calls[-2:] == [
        ("delete", VALIDATING_WEBHOOK_CONFIGURATIONS.plural, "stowplan"),
        ("list", ENDPOINT_SLICES.plural, ""),
    ]


async def test_a_version_ends_after_its_entries_in_managed_fields_and_before_the_step() -> None:
    """The API server erases all entries of an object with one that it cannot read."""
    store, key = scene("withdraw"), (VARIANT_AUTOSCALINGS.plural, "tenant", "a")
    versions = [f"{VARIANT_AUTOSCALINGS.group}/{version}" for version in ("v1alpha1", "v1alpha2")]
    store.objects[key]["metadata"]["managedFields"] = [{"apiVersion": version} for version in versions]
    step = step_of(await plan_removal(store, PACE), "withdraw")
    left, late = list[Json](), [NotFound("not served yet")]

    def meanwhile(verb: str, what: str, _: str) -> None:
        if (verb, what) == ("replace", CUSTOM_RESOURCE_DEFINITIONS.plural):
            left.extend(store.objects[key]["metadata"]["managedFields"])
        if late and what == f"/apis/{versions[1]}":
            raise late.pop()

    store.meanwhile = meanwhile
    await step.act()

    assert left
    assert {item["apiVersion"] for item in left} == {versions[1]}
    assert not late


APIS: dict[str, tuple[tuple[str, str, str] | None, str]] = {
    "objects without a UID": (None, "Widget w"),
    "no response to a list": (
        ("list", WIDGETS.plural, ""),
        "widgets of example.com, which cannot be listed",
    ),
    "no response at all": (
        ("get", "/apis/example.com/v1", ""),
        "objects of example.com/v1, which does not respond",
    ),
}


@pytest.mark.parametrize(("broken", "text"), APIS.values(), ids=APIS.keys())
async def test_a_namespace_with_objects_of_an_incomplete_api_is_kept(
    broken: tuple[str, str, str] | None, text: str
) -> None:
    """An aggregated API server may answer neither by all rules, nor at all."""
    store = MemoryStore([*REMAINS, (WIDGETS, named("w", PLACE))])
    del store.objects[WIDGETS.plural, PLACE, "w"]["metadata"]["uid"]

    def meanwhile(*call: str) -> None:
        if call == broken:
            raise Unavailable("the server is currently unable to handle the request")

    store.meanwhile = meanwhile
    report = await plan_removal(store, PACE)

    assert "leave" not in [step.action for step in report.steps]
    assert [item.message for item in report.checks if "the namespace" in item.message] == [
        f"the namespace {PLACE} stays, because it also contains {text}"
    ]
