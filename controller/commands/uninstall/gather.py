"""The state of the cluster that the plan of an uninstallation is based on, read once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import NotFound
from apiserver.cluster.heartbeat import LEASE_NAME
from apiserver.cluster.resource import (
    API_SERVICES,
    AUTOSCALING_POLICY_BINDINGS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    LEADER_WORKER_SETS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    VARIANT_AUTOSCALINGS,
    Resource,
)
from apiserver.kinds.authorship import writer_record
from apiserver.kinds.registry import DEFINED
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from controller.certificates.certificates import FormerClaim, former_claim
from controller.commands.uninstall.installed import (
    REMOVED,
    SELECTOR,
    WEBHOOK_CONFIGURATIONS,
    find,
    foreign_content,
    has_our_name,
    installations,
    list_metadata,
    place_of,
)
from controller.commands.upgrade.calls import get_if_present, list_where, missing_permissions, resource_of
from controller.commands.upgrade.checks import is_held
from controller.commands.upgrade.definitions import read_definition, storage_version
from controller.evictions.evicting import is_closed
from controller.observe import decision_following
from controller.observe.removal_order import OURS as OUR_COST
from controller.variants.placing import GATE, is_gated

_SCHEDULER: Final = "stowplan-packed"
_PRIORITIES: Final = "stowplan-accelerators-"
_DELETED: Final = (
    *REMOVED,
    *WEBHOOK_CONFIGURATIONS,
    CUSTOM_RESOURCE_DEFINITIONS,
    API_SERVICES,
    NAMESPACES,
)
_CLEANED: Final = (PODS, NODES, AUTOSCALING_POLICY_BINDINGS, VARIANT_AUTOSCALINGS)
_NEEDED: Final = (
    *product(("list", "delete"), _DELETED),
    *product(("get", "list", "patch"), _CLEANED),
    *product(("get", "update"), (CUSTOM_RESOURCE_DEFINITIONS, API_SERVICES)),
    *product(("get",), (LEASES, SERVICES)),
    *product(("list",), (STATEFUL_SETS, LEADER_WORKER_SETS, *(resource_of(kind, "") for kind in DEFINED))),
    *product(("update",), (resource_of(kind, "") for kind in DEFINED if kind.has_conversion)),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class UninstallState:
    """The state of the cluster at one time."""

    namespaces: tuple[str, ...] = ()
    """Those with an installation: several if an earlier one was not removed."""
    installed: Mapping[Resource, Sequence[Json]] = field(default_factory=dict)
    """Our objects of each kind."""
    leaders: tuple[str, ...] = ()
    """Our Leases that a process holds."""
    marks: Mapping[str, int] = field(default_factory=dict)
    """The number of our changes in objects of others, such as `taints of nodes`."""
    dependents: tuple[str, ...] = ()
    """Workloads whose new pods would not run without Stowplan, and why."""
    definitions: Sequence[tuple[Kind, Json, Sequence[Json]]] = ()
    """The installed definitions of our kinds, each with the metadata of its objects."""
    api_service: Json | None = None
    """The APIService of external metrics, if it is ours."""
    former: FormerClaim | None = None
    """The previous owner of external metrics, if it is known and its Service still exists."""
    foreign: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The objects of others in each namespace that our manifests created."""
    missing_permissions: tuple[str, ...] = ()


async def gather(cluster: Cluster) -> UninstallState:
    """Read the whole state, or only the missing permissions. Raises ClusterError if a read fails."""
    needed = (f"{verb} {resource.full_name.removesuffix('.')}" for verb, resource in _NEEDED)
    if missing := await missing_permissions(cluster, needed):
        return UninstallState(missing_permissions=missing)
    namespaces = await installations(cluster)
    resources = (*REMOVED, *WEBHOOK_CONFIGURATIONS)
    installed = {resource: await find(cluster, resource, namespaces) for resource in resources}
    live = [(kind, await read_definition(cluster, kind)) for kind in DEFINED]
    claim = await get_if_present(cluster, API_SERVICES, decision_following.API_SERVICE)
    is_claimed = claim is not None and decision_following.is_ours(claim)
    return UninstallState(
        namespaces=namespaces,
        installed=installed,
        leaders=await leaders(cluster, namespaces),
        marks=await _count_marks(cluster),
        dependents=await _dependents(cluster),
        definitions=[
            (kind, definition, await objects_of(cluster, kind, definition))
            for kind, definition in live
            if definition is not None
        ],
        api_service=claim if is_claimed else None,
        former=await former_owner(cluster, namespaces) if is_claimed else None,
        foreign=await _own_namespaces(cluster, namespaces, installed),
    )


async def leaders(cluster: Cluster, namespaces: Sequence[str]) -> tuple[str, ...]:
    """Return the names of our Leases that are held now."""
    now, leases = datetime.now(UTC), list[Json]()
    for namespace in namespaces:
        leases += (await cluster.list(LEASES, namespace=namespace))["items"]
    names = [item["metadata"]["name"] for item in leases if is_held(item.get("spec") or {}, now)]
    return tuple(name for name in names if has_our_name(LEASES, name))


async def objects_of(cluster: Cluster, kind: Kind, definition: Json) -> list[Json]:
    """Return the metadata of the objects of a kind, in the stored version, which needs no conversion."""
    return await list_metadata(cluster, resource_of(kind, storage_version(definition)))


async def former_owner(cluster: Cluster, namespaces: Sequence[str]) -> FormerClaim | None:
    """Return the previous owner of external metrics, if it is known and its Service still exists."""
    for namespace in namespaces:
        lease = await get_if_present(cluster, LEASES, LEASE_NAME, namespace)
        former = former_claim(lease) if lease else None
        if former is not None:
            place, name = former.service
            if await get_if_present(cluster, SERVICES, name, place):
                return former
    return None


def has_our_cost(pod: Json) -> bool:
    """Tell whether a pod has a deletion cost that we set."""
    return OUR_COST in (pod["metadata"].get("annotations") or {})


def has_writer(item: Json) -> bool:
    """Tell whether an object has the annotation about its writer."""
    return writer_record(item) is not None


async def _count_marks(cluster: Cluster) -> dict[str, int]:
    pods = await list_where(cluster, PODS, lambda pod: is_gated(pod) or has_our_cost(pod))
    counts = {
        "gates of pods": sum(map(is_gated, pods)),
        "deletion costs of pods": sum(map(has_our_cost, pods)),
        "taints of nodes": len(await list_where(cluster, NODES, is_closed)),
    }
    return {what: number for what, number in counts.items() if number}


async def _own_namespaces(
    cluster: Cluster, namespaces: Sequence[str], installed: Mapping[Resource, Sequence[Json]]
) -> dict[str, tuple[str, ...]]:
    """Return the namespaces that our manifests created, and the objects of others in them.

    After everything in it is deleted, such a namespace is recognized by its label and by being empty.
    """
    own = {}
    for item in await list_metadata(cluster, NAMESPACES, selector=SELECTOR):
        name = item["metadata"]["name"]
        within = [
            f"{resource.kind} {it['metadata']['name']}"
            for resource, items in installed.items()
            for it in items
            if it["metadata"].get("namespace") == name
        ]
        content = await foreign_content(cluster, name, within)
        if name in namespaces or not content:
            own[name] = content
    return own


async def _dependents(cluster: Cluster) -> tuple[str, ...]:
    """Return the workloads of others whose new pods would not run without Stowplan."""
    texts = []
    for resource in (DEPLOYMENTS, STATEFUL_SETS, LEADER_WORKER_SETS):
        with suppress(NotFound):  # LeaderWorkerSets may not be installed
            for item in await list_where(cluster, resource, lambda item: any(_needs(item))):
                needs = ", ".join(dict.fromkeys(_needs(item)))
                texts.append(f"{resource.kind} {place_of(item)}: {needs}")
    return tuple(texts)


def _needs(workload: Json) -> Iterator[str]:
    """Yield the features of Stowplan that the pods of a workload need."""
    spec = workload["spec"]
    group = spec.get("leaderWorkerTemplate") or {}
    for template in (spec.get("template"), group.get("leaderTemplate"), group.get("workerTemplate")):
        pod = (template or {}).get("spec") or {}
        if any(gate["name"] == GATE for gate in pod.get("schedulingGates") or []):
            yield f"the scheduling gate {GATE}"
        if pod.get("schedulerName") == _SCHEDULER:
            yield f"the scheduler {_SCHEDULER}"
        if str(pod.get("priorityClassName") or "").startswith(_PRIORITIES):
            yield f"the priority class {pod['priorityClassName']}"
