"""Objects related to one variant; those that may not be read are missing, with a message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Forbidden, NotFound
from apiserver.cluster.heartbeat import Heartbeat
from apiserver.cluster.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    LEADER_WORKER_SETS,
    SCALED_OBJECTS,
    STATEFUL_SETS,
    VARIANT_AUTOSCALINGS,
    Resource,
)
from apiserver.kinds.annotated import MANAGED, is_managed, reference_of
from apiserver.kinds.autoscalers import KEDA_LABEL
from apiserver.kinds.decision_record import CONFIG_MAP as DECISIONS
from apiserver.kinds.llmd.identity import is_planned
from apiserver.kinds.settings_names import INSTALLATION
from apiserver.schema.json import Json, as_object
from controller.commands.status.reading import read_heartbeat
from controller.observe.claim import Claimant, OwnerKind
from controller.observe.declarations import annotated_claimant, claimant_of

_MOST_NAMED: Final = 8
OWNERS: Final = {
    OwnerKind.VARIANT: VARIANT_AUTOSCALINGS,
    OwnerKind.HORIZONTAL_POD_AUTOSCALER: HORIZONTAL_POD_AUTOSCALERS,
    OwnerKind.SCALED_OBJECT: SCALED_OBJECTS,
}
"""The resources of objects that ask for a decision on one variant."""

_RESOURCES: Final = {item.kind: item for item in (DEPLOYMENTS, STATEFUL_SETS, LEADER_WORKER_SETS)}


class NoSuchObjectError(Exception):
    """There is no object of that name; the message lists alternatives."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantEvidence:
    """Raw objects about one variant."""

    claimant: Claimant
    """The object that asks for the decision, with what was published about it."""

    target: Json | None = None
    """The scale target."""

    autoscalers: Sequence[Json] = ()
    """HorizontalPodAutoscalers of the target."""

    scaled_objects: Sequence[Json] = ()
    """ScaledObjects of the namespace; empty without KEDA."""

    neighbours: Sequence[Json] = ()
    """All VariantAutoscalings of the namespace: an autoscaler may also select their metrics."""

    events: Sequence[Json] = ()
    unread: Sequence[str] = ()
    """A message for each collection that could not be read."""

    system: str = INSTALLATION
    """Namespace of Stowplan itself."""

    heartbeat: Heartbeat | None = None
    """The controller's last cycle; None if the user may not read it, as most may not."""


async def collect(
    cluster: Cluster, kind: OwnerKind, *, namespace: str, name: str, system: str
) -> VariantEvidence:
    """Return the evidence about the variant of an object. Raises NoSuchObjectError, and ClusterError."""
    unread: list[str] = []
    claimant = await claimant_named(cluster, OWNERS[kind], name, namespace, unread)
    reference = reference_of(claimant.value)
    target = None
    if is_planned(reference):
        resource = _RESOURCES[reference["kind"]]
        target = await get(cluster, resource, reference["name"], namespace, unread)
    autoscalers = await _list(cluster, HORIZONTAL_POD_AUTOSCALERS, namespace, unread)
    return VariantEvidence(
        claimant=claimant,
        target=target,
        autoscalers=[item for item in autoscalers if _scales(item, reference)],
        scaled_objects=await _list(cluster, SCALED_OBJECTS, namespace, unread),
        neighbours=await _list(cluster, VARIANT_AUTOSCALINGS, namespace, unread),
        events=await events_about(cluster, OWNERS[kind], claimant.value, unread),
        unread=tuple(unread),
        heartbeat=await read_heartbeat(cluster, system),
        system=system,
    )


async def claimant_named(
    cluster: Cluster, resource: Resource, name: str, namespace: str, unread: list[str]
) -> Claimant:
    """Return the object of a variant with what was published about it. Raises NoSuchObjectError."""
    try:
        value = await cluster.get(resource, name, namespace=namespace)
    except NotFound as error:
        raise NoSuchObjectError(await _instead(cluster, resource, namespace, name)) from error
    if resource is VARIANT_AUTOSCALINGS:
        return claimant_of(value)
    if keda := as_object(value["metadata"].get("labels")).get(KEDA_LABEL):
        text = f"is KEDA's, for ScaledObject {keda!r}: use so/{keda} -n {namespace}"
        raise NoSuchObjectError(f"{resource.kind} {name!r} {text}")
    if not is_managed(value):
        text = f'has no annotation {MANAGED}: "true", so it is not planned'
        raise NoSuchObjectError(f"{resource.kind} {name!r} in namespace {namespace!r} {text}")
    records = await get(cluster, CONFIG_MAPS, DECISIONS, namespace, unread) or {}
    return annotated_claimant(value, {namespace: records.get("data") or {}})


async def get(
    cluster: Cluster, resource: Resource, name: str, namespace: str, unread: list[str]
) -> Json | None:
    """Return an object; None if it does not exist, or may not be read, which is added to `unread`."""
    try:
        return await cluster.get(resource, name, namespace=namespace)
    except NotFound:
        return None
    except Forbidden as error:
        unread.append(error.message)
        return None


async def events_about(cluster: Cluster, resource: Resource, item: Json, unread: list[str]) -> Sequence[Json]:
    """Return the events about an object and not an earlier one of the same name."""
    metadata = item["metadata"]
    selector = f"regarding.name={metadata['name']},regarding.kind={resource.kind}"
    listed = await _list(cluster, EVENTS, metadata["namespace"], unread, selector)
    uids = ("", None, metadata.get("uid"))
    return [event for event in listed if (event.get("regarding") or {}).get("uid") in uids]


async def _list(
    cluster: Cluster, resource: Resource, namespace: str, unread: list[str], selector: str | None = None
) -> Sequence[Json]:
    """Return the objects of a namespace; none if the cluster does not serve the resource."""
    try:
        listed = await cluster.list(resource, namespace=namespace, field_selector=selector)
    except NotFound:
        return ()
    except Forbidden as error:
        unread.append(error.message)
        return ()
    return list(listed["items"])


def _scales(autoscaler: Json, target: Json) -> bool:
    reference = autoscaler["spec"]["scaleTargetRef"]
    return (reference["kind"], reference["name"]) == (target["kind"], target["name"])


async def _instead(cluster: Cluster, resource: Resource, namespace: str, name: str) -> str:
    what = f"no {resource.kind} {name!r} in namespace {namespace!r}"
    is_ours = resource is VARIANT_AUTOSCALINGS
    kubectl = f"kubectl get {'va' if is_ours else resource.plural} -A"
    try:
        listed = await cluster.list(resource, metadata_only=True)
    except NotFound:
        return f"{what}: the cluster does not serve this kind; install {'Stowplan' if is_ours else 'KEDA'}"
    except ClusterError:
        return f"{what}; list all with {kubectl}, and use -n for another namespace"
    known = [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in listed["items"]]
    elsewhere = sorted(there for there, other in known if other == name)
    if elsewhere:
        return f"{what}; there is one in {', '.join(elsewhere[:_MOST_NAMED])}: use -n {elsewhere[0]}"
    here = sorted(other for there, other in known if there == namespace)
    if here:
        more = ", ..." if len(here) > _MOST_NAMED else ""
        return f"{what}; objects in this namespace: {', '.join(here[:_MOST_NAMED])}{more}"
    return f"{what}, which contains none; list all with {kubectl}"
