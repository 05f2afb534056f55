"""Reads the snapshot that checks and steps are based on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import product
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import NotFound
from apiserver.cluster.heartbeat import LEASE_NAME
from apiserver.cluster.installed import installed_namespace
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
from apiserver.cluster.selection import Selection
from apiserver.kinds.authorship import WRITTEN_BY, is_recorded
from apiserver.kinds.registry import KINDS
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from controller.certificates.former_claim import FormerClaim, former_claim
from controller.commands.uninstall.installed import (
    ACCOUNT_NAMES,
    CLUSTER_ROLE_BINDINGS,
    LEASE_NAMES,
    REMOVED,
    ROLE_BINDINGS,
    SELECTOR,
    SERVICE_ACCOUNTS,
    WEBHOOK_CONFIGURATIONS,
    Found,
    has_our_name,
    is_for_us,
)
from controller.commands.uninstall.namespace_content import strangers
from controller.commands.uninstall.snapshot import Marked, Snapshot
from controller.commands.upgrade.controller_checks import is_held
from controller.commands.upgrade.definitions import is_ours_still, storage_version
from controller.commands.upgrade.gather import denied_of, read_definition
from controller.commands.upgrade.permission_checks import Permission
from controller.commands.upgrade.resources import resource_of
from controller.commands.upgrade.retrying import patiently
from controller.evictions.evicting import is_closed
from controller.observe.external_metrics import API_SERVICE, is_ours
from controller.observe.leaving import OURS as OUR_COST
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
_NEEDED: Final = (
    *product(_DELETED, ("list", "delete")),
    *product((PODS, NODES, AUTOSCALING_POLICY_BINDINGS, VARIANT_AUTOSCALINGS), ("list", "patch")),
    *product((CUSTOM_RESOURCE_DEFINITIONS, API_SERVICES), ("get", "update")),
    *product((LEASES, NODES, SERVICES), ("get",)),
    *product((STATEFUL_SETS, LEADER_WORKER_SETS), ("list",)),
)
"""Resources and verbs, besides those on our kinds."""


async def gather(cluster: Cluster) -> Snapshot:
    """Read the whole state, or only the missing permissions. Raises ClusterError if a read fails."""
    if denied := await denied_of(cluster, needed_permissions()):
        return Snapshot(namespaces=(), denied=denied)
    namespaces = await installations(cluster)
    found = [item for resource in REMOVED for item in await find(cluster, resource, namespaces)]
    live = [(kind, await read_definition(cluster, kind)) for kind in KINDS]
    installed = [(kind, definition) for kind, definition in live if definition is not None]
    objects = {kind.crd_name: await count(cluster, kind, definition) for kind, definition in installed}
    claim = await _maybe(cluster, API_SERVICES, API_SERVICE)
    is_claimed = claim is not None and is_ours(claim)
    webhooks = [
        item for resource in WEBHOOK_CONFIGURATIONS for item in await find(cluster, resource, namespaces)
    ]
    return Snapshot(
        namespaces=namespaces,
        found=tuple(found),
        webhooks=tuple(webhooks),
        leaders=await leaders(cluster, namespaces),
        marked=await read_marked(cluster),
        dependents=tuple(await _dependents(cluster)),
        definitions={kind.crd_name: item for kind, item in installed if is_ours_still(kind, item)},
        others={kind.crd_name: item for kind, item in installed if not is_ours_still(kind, item)},
        objects=objects,
        annotated=await _count_annotated(cluster, installed),
        api_service=claim if is_claimed else None,
        former=await read_former(cluster, namespaces) if is_claimed else None,
        strangers=await _own_namespaces(cluster, namespaces, found),
    )


def needed_permissions() -> Iterator[Permission]:
    """Yield the permissions that the command needs, in all namespaces."""
    for resource, verb in _NEEDED:
        yield Permission(group=resource.group, resource=resource.plural, verb=verb)
    for kind in KINDS:
        for verb in ("list", "update") if kind.has_conversion else ("list",):
            yield Permission(group=kind.group, resource=kind.plural, verb=verb)


async def find(cluster: Cluster, resource: Resource, namespaces: Sequence[str]) -> list[Found]:
    """Return our objects of one kind, in our namespaces; bindings for our accounts in all namespaces."""
    items: list[Json] = []
    if resource in (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS):
        items += await _list_where(cluster, resource, lambda item: is_for_us(item, namespaces))
    for namespace in namespaces if resource.namespaced else ("",):
        if resource is LEASES:
            leases = await _list_metadata(cluster, resource, namespace)
            items += [item for item in leases if item["metadata"]["name"] in LEASE_NAMES]
        else:
            labelled = await _list_metadata(cluster, resource, namespace, SELECTOR)
            items += [item for item in labelled if has_our_name(resource, item["metadata"]["name"])]
    once = {item["metadata"]["uid"]: item for item in items}
    return [Found(resource=resource, metadata=item["metadata"]) for item in once.values()]


async def leaders(cluster: Cluster, namespaces: Sequence[str]) -> tuple[str, ...]:
    """Return the names of our Leases that are held now."""
    leases = [await _maybe(cluster, LEASES, name, place) for place in namespaces for name in LEASE_NAMES]
    now = datetime.now(UTC)
    return tuple(item["metadata"]["name"] for item in leases if item and is_held(item.get("spec") or {}, now))


async def read_marked(cluster: Cluster) -> Marked:
    """Return the pods and nodes with our gates, deletion costs or taints."""
    pods = await _list_where(cluster, PODS, lambda pod: is_gated(pod) or OUR_COST in _annotations(pod))
    nodes = await _list_where(cluster, NODES, is_closed)
    return Marked(
        gated=tuple(filter(is_gated, pods)),
        costly=tuple(pod for pod in pods if OUR_COST in _annotations(pod)),
        closed=tuple(node["metadata"]["name"] for node in nodes),
    )


async def annotated_objects(cluster: Cluster, resource: Resource) -> list[Json]:
    """Return the objects of a kind with the annotation about the writer."""
    return await _list_where(cluster, resource, lambda item: WRITTEN_BY in _annotations(item))


async def _count_annotated(cluster: Cluster, installed: Sequence[tuple[Kind, Json]]) -> dict[str, int]:
    """Return the number of objects of each kind from which the annotation about the writer must go.

    A later installation needs it on VariantAutoscalings that stay under our definition.
    """
    found = {
        kind.crd_name: len(await annotated_objects(cluster, resource_of(kind, storage_version(definition))))
        for kind, definition in installed
        if is_recorded(kind) and not (kind.has_conversion and is_ours_still(kind, definition))
    }
    return {name: number for name, number in found.items() if number}


async def count(cluster: Cluster, kind: Kind, definition: Json) -> int:
    """Return the number of objects of a kind, read in the stored version, which needs no conversion."""
    resource = resource_of(kind, storage_version(definition))
    listed = await patiently(partial(cluster.list, resource, metadata_only=True))
    return len(listed["items"])


async def installations(cluster: Cluster) -> tuple[str, ...]:
    """Return all our namespaces: those with accounts of ours.

    There are several if `namespace:` was changed, because applying does not prune. If most is removed, the
    namespace to which webhooks point, or the default, is the only one. Other namespaces may have our label,
    and service accounts with it, from a kustomization or chart that contains ours.
    """
    listed = await cluster.list(SERVICE_ACCOUNTS, label_selector=SELECTOR, metadata_only=True)
    accounts = [item["metadata"] for item in listed["items"]]
    places = {str(account["namespace"]) for account in accounts if account["name"] in ACCOUNT_NAMES}
    return tuple(sorted(places)) or (await installed_namespace(cluster),)


async def _own_namespaces(
    cluster: Cluster, namespaces: Sequence[str], found: Sequence[Found]
) -> dict[str, tuple[str, ...]]:
    """Return the namespaces that our manifests created, and the objects of others in them.

    After everything in it is deleted, such a namespace is recognized by its label and by being empty.
    """
    own = {}
    for item in await _list_metadata(cluster, NAMESPACES, "", SELECTOR):
        name = item["metadata"]["name"]
        within = [f"{it.resource.kind} {it.name}" for it in found if it.namespace == name]
        others = await strangers(cluster, name, within)
        if name in namespaces or not others:
            own[name] = others
    return own


async def read_former(cluster: Cluster, namespaces: Sequence[str]) -> FormerClaim | None:
    """Return the previous owner of external metrics, if it is known and its Service still exists."""
    for namespace in namespaces:
        lease = await _maybe(cluster, LEASES, LEASE_NAME, namespace)
        former = former_claim(lease) if lease else None
        if former is not None:
            place, name = former.service
            if await _maybe(cluster, SERVICES, name, place):
                return former
    return None


async def _dependents(cluster: Cluster) -> list[str]:
    """Return the workloads of others whose new pods would not run without Stowplan."""
    found = []
    for resource in (DEPLOYMENTS, STATEFUL_SETS, LEADER_WORKER_SETS):
        for item in await _list_where(cluster, resource, lambda item: any(_wants(item))):
            metadata, wants = item["metadata"], ", ".join(dict.fromkeys(_wants(item)))
            found.append(f"{resource.kind} {metadata['namespace']}/{metadata['name']}: {wants}")
    return found


def _wants(workload: Json) -> Iterator[str]:
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


def _annotations(item: Json) -> Json:
    return item["metadata"].get("annotations") or {}


async def _list_metadata(
    cluster: Cluster, resource: Resource, namespace: str, selector: str | None = None
) -> list[Json]:
    """List metadata, in one namespace if the kind is namespaced; empty if the kind is not installed."""
    place = namespace if resource.namespaced else None
    try:
        found = await cluster.list(resource, namespace=place, label_selector=selector, metadata_only=True)
    except NotFound:
        return []
    return list(found["items"])


async def _list_where(cluster: Cluster, resource: Resource, wanted: Callable[[Json], bool]) -> list[Json]:
    """List full objects in all namespaces, and keep those that are wanted."""
    selection = Selection(resource=resource)
    try:
        items, _ = await patiently(
            lambda: cluster.list_kept(selection, lambda item: item if wanted(item) else None)
        )
    except NotFound:
        return []
    return [item for item in items if item is not None]


async def _maybe(
    cluster: Cluster, resource: Resource, name: str, namespace: str | None = None
) -> Json | None:
    try:
        return await cluster.get(resource, name, namespace=namespace)
    except NotFound:
        return None
