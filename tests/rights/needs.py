"""The purpose of each permission of a process, and where its loss is reported: one row per rule."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from support.logs import capture_logs
from support.manifests import Manifest

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Forbidden
from apiserver.cluster.events import SERIES_INTERVAL, EventRecorder
from controller.evictions.evicting import ask, spent_budget
from controller.evictions.rounds import PodToEvict
from controller.planning.decision import Move
from rights.stage import RightsStage


@dataclass(frozen=True, slots=True)
class Need:
    """The feature that needs a permission."""

    feature: str
    told: str
    """Text in the line with the API server's message: an event of the log, or a condition."""

    use: Callable[[RightsStage], None] = RightsStage.renew
    """Makes the process use the permission, if that is not list or watch."""

    unread: str = ""
    """Text in the line if the kind cannot be listed, if it differs."""

    instead: str = ""
    """The message, if it is not about the permission itself."""


_WATCH: Final = "watch interrupted"
_CERTIFICATES: Final = "certificates not renewed"
_UNWRITTEN: Final = "statuses not written"
_LEASE: Final = "lease not reached"
_EVENT: Final = "event not written"
_ADVICE: Final = "no warnings about other objects of a kind"
_DYNAMIC: Final = "continuing without devices of Dynamic Resource Allocation"
_MODEL: Final = "Model Failed"
_ROUTE: Final = "ModelRoute Translated"
_UNREAD: Final = "continuing without"
_OWNER: Final = "cannot set blockOwnerDeletion"
_NOT_WRITTEN: Final = "not finished"
_SCALING: Final = "AutoscalingPolicyBinding ScalingActive"
_WEBHOOK_CONFIGURATIONS: Final = (
    "mutatingwebhookconfigurations validatingwebhookconfigurations"
    " (stowplan, stowplan-kthena, stowplan-kthena-serving, stowplan-inference-extension)"
)

_GATEWAYS: Final = (
    "httproutes.gateway.networking.k8s.io, inferencepools.inference.networking.k8s.io,"
    " inferenceobjectives.inference.networking.x-k8s.io, inferencemodelrewrites.inference.networking.x-k8s.io"
)

NEEDS: Final[dict[str, Need]] = {
    "stowplan-apiserver: variantautoscalings": Need("metrics out of decisions", _WATCH),
    "stowplan-apiserver: configmaps (extension-apiserver-authentication)": Need(
        "knowing the front proxy, without which every request is refused", _WATCH
    ),
    "stowplan-apiserver: tokenreviews": Need(
        "requests with a token", "token not reviewed", RightsStage.read_metric
    ),
    "stowplan-apiserver: subjectaccessreviews": Need(
        "what the user of a token may read", "token not reviewed", RightsStage.read_metric
    ),
    "stowplan-apiserver: leases (stowplan-controller)": Need(
        "decisions that are confirmed stay valid", _WATCH
    ),
    "stowplan-apiserver-kthena: autoscalingpolicybindings": Need(
        "metrics out of bindings", "continuing without AutoscalingPolicyBindings"
    ),
    "stowplan-apiserver-annotated: configmaps (stowplan-decisions)": Need(
        "metrics of annotated autoscalers", "continuing without decisions on annotated autoscalers"
    ),
    "stowplan-controller-annotated: configmaps (stowplan-decisions)": Need(
        "decisions on annotated autoscalers",
        "stowplan-decisions",
        RightsStage.renew_decisions,
        unread="continuing without annotated autoscalers",
    ),
    "stowplan-controller-annotated: horizontalpodautoscalers": Need(
        "saying on an autoscaler what was decided", "decision not annotated"
    ),
    "stowplan-controller-annotated: scaledobjects": Need(
        "saying on a ScaledObject what was decided", "decision not annotated"
    ),
    "stowplan-controller: variantautoscalings": Need("deciding at all", _WATCH),
    "stowplan-controller: variantautoscalings/status": Need("publishing decisions", _UNWRITTEN),
    "stowplan-controller: deployments statefulsets": Need("targets", _WATCH),
    "stowplan-controller: horizontalpodautoscalers": Need("who else scales a target", _WATCH),
    "stowplan-controller: nodes pods": Need("what runs, and where there is room", _WATCH),
    "stowplan-controller: pods": Need(
        "the order in which pods go, and the scheduling gate", "scheduling gates not removed"
    ),
    "stowplan-controller: resourcequotas": Need("planning within quotas", "continuing without quotas"),
    "stowplan-controller: leaderworkersets": Need(
        "targets that are LeaderWorkerSets", "continuing without LeaderWorkerSets"
    ),
    "stowplan-controller: resourceslices resourceclaims resourceclaimtemplates deviceclasses": Need(
        "accelerators by Dynamic Resource Allocation", _DYNAMIC
    ),
    "stowplan-controller: scaledobjects": Need(
        "a minimum of 0 replicas with KEDA", "continuing without ScaledObjects"
    ),
    "stowplan-controller: nodepools": Need(
        "nodes that Karpenter could add", "continuing without the node pools of Karpenter"
    ),
    "stowplan-controller: inferencepools": Need(
        "the queues of pools, from which models start from zero", "continuing without inferencepools"
    ),
    "stowplan-controller: poddisruptionbudgets": Need(
        "knowing which evictions are allowed", "continuing without disruption budgets"
    ),
    "stowplan-controller: events": Need("events", _EVENT),
    f"stowplan-controller: {_WEBHOOK_CONFIGURATIONS}": Need(
        "trust in the webhooks", _CERTIFICATES, RightsStage.forget
    ),
    "stowplan-controller: customresourcedefinitions (variantautoscalings.llmd.ai)": Need(
        "trust in conversion", _CERTIFICATES, RightsStage.forget
    ),
    "stowplan-controller: apiservices (v1beta1.external.metrics.k8s.io)": Need(
        "trust in the metrics API", _CERTIFICATES, RightsStage.forget
    ),
    "stowplan-controller: configmaps": Need("prices and service classes", _WATCH),
    "stowplan-controller: configmaps (stowplan-last-valid-settings)": Need(
        "settings for the next leader", "ignored in planning", RightsStage.price
    ),
    "stowplan-controller: secrets (stowplan-authority, stowplan-webhooks-certificate,"
    " stowplan-apiserver-certificate)": Need("issuing certificates", _CERTIFICATES, RightsStage.forget),
    "stowplan-controller: leases": Need("the first leader", _LEASE, RightsStage.vacate),
    "stowplan-controller: leases (stowplan-controller)": Need("one leader at a time", _LEASE),
    "stowplan-controller-kthena: autoscalingpolicies autoscalingpolicybindings": Need(
        "deciding on bindings", "continuing without AutoscalingPolic"
    ),
    "stowplan-controller-kthena: autoscalingpolicybindings/status": Need(
        "publishing decisions on bindings", _UNWRITTEN
    ),
    "stowplan-controller-evictions: pods/eviction": Need("moving replicas", ""),
    "stowplan-controller-evictions: poddisruptionbudgets": Need("evicting several pods of one budget", ""),
    "stowplan-controller-evictions: nodes": Need(
        "keeping new pods off a node meanwhile", "taint not removed from node", RightsStage.taint
    ),
    "stowplan-controller-scaling-reviews: subjectaccessreviews": Need(
        "scaling by the author's rights", _SCALING
    ),
    "stowplan-controller-scaling-reviews: autoscalingpolicybindings": Need(
        "scaling what the binding says now", _SCALING
    ),
    "stowplan-controller-scaling: deployments/scale statefulsets/scale": Need("scaling", _SCALING),
    "stowplan-controller-scaling: leaderworkersets/scale": Need("scaling LeaderWorkerSets", _SCALING),
    "stowplan-controller-tenants: subjectaccessreviews": Need(
        "service classes and costs by right", "cycle not finished"
    ),
    "stowplan-controller-objectives: inferenceobjectives inferencepools": Need(
        "priorities of objectives", _UNREAD
    ),
    "stowplan-controller-objectives: inferencepools": Need("whose pods an objective is about", _UNREAD),
    "stowplan-webhooks: subjectaccessreviews": Need("who may scale a target may name it", "refused"),
    "stowplan-webhooks: deployments statefulsets": Need("warning of targets that are not there", _ADVICE),
    "stowplan-webhooks: horizontalpodautoscalers": Need("warning of targets that others scale", _ADVICE),
    "stowplan-webhooks: variantautoscalings": Need("warning of targets that others name", _ADVICE),
    "stowplan-webhooks: configmaps": Need("warning of service classes that are not there", _WATCH),
    "stowplan-webhooks-inference-extension: inferencepools": Need(
        "warning of pools that are not there", _ADVICE
    ),
    "stowplan-webhooks-kthena: autoscalingpolicies autoscalingpolicybindings": Need(
        "warning of policies that are not there", _ADVICE
    ),
    "stowplan-webhooks-kthena: modelservers": Need("warning of servers that are not there", _ADVICE),
    "stowplan-webhooks-kthena-serving: modelservers": Need("warning of servers that are not there", _ADVICE),
    "stowplan-models-kthena-serving: modelroutes modelservers": Need(
        "routing by the releases of Kthena", _MODEL, unread=_UNREAD
    ),
    "stowplan-models-kthena-serving: modelroutes/finalizers": Need(
        "deleting a ModelRoute of a release after what it became", _ROUTE, instead=_OWNER
    ),
    "stowplan-models: models": Need("expanding Models", _WATCH),
    "stowplan-models: models/status": Need("saying how a Model stands", _NOT_WRITTEN),
    "stowplan-models: models/finalizers": Need(
        "deleting a Model after what it became", _MODEL, instead=_OWNER
    ),
    "stowplan-models: autoscalingpolicies autoscalingpolicybindings": Need(
        "autoscaling of backends", _MODEL, unread=_WATCH
    ),
    "stowplan-models: modelroutes modelservers": Need("routing to backends", _MODEL, unread=_UNREAD),
    "stowplan-models: deployments": Need("running backends", _MODEL, unread=_WATCH),
    "stowplan-models: leaderworkersets": Need(
        "running backends over several nodes", _MODEL, unread="continuing without LeaderWorkerSets"
    ),
    "stowplan-models: deployments/scale": Need(
        "bindings of Deployments by this account",
        _MODEL,
        RightsStage.renew_unremembered,
        instead='cannot update "deployments/scale.apps"',
    ),
    "stowplan-models: leaderworkersets/scale": Need(
        "bindings of LeaderWorkerSets by this account",
        _MODEL,
        RightsStage.renew_unremembered,
        instead='cannot update "leaderworkersets/scale.leaderworkerset.x-k8s.io"',
    ),
    "stowplan-models: horizontalpodautoscalers": Need("scaling backends", _MODEL, unread=_WATCH),
    "stowplan-models: services": Need("reaching backends", _MODEL, unread=_WATCH),
    "stowplan-models: configmaps": Need("adapters that engines load while they run", _MODEL, unread=_WATCH),
    "stowplan-models: modelroutes/status modelservers/status": Need("how requests find pods", _NOT_WRITTEN),
    "stowplan-models: inferenceobjectives/status": Need("whose pods an objective is about", _NOT_WRITTEN),
    "stowplan-models: inferenceobjectives inferencepools": Need("reporting on objectives", _UNREAD),
    "stowplan-models: inferencepools": Need("pods of the pools of objectives", _UNREAD),
    "stowplan-models: variantautoscalings": Need("which models the pods of a pool serve", _UNREAD),
    "stowplan-models-gateways-reading: namespaces": Need("namespaces that opt in as a whole", _UNREAD),
    f"stowplan-models-gateways-reading: customresourcedefinitions ({_GATEWAYS})": Need(
        "making only what is served", _UNREAD
    ),
    "stowplan-models-gateways-reading: httproutes": Need("mending routes for Gateways", _UNREAD),
    "stowplan-models-gateways-reading: inferencemodelrewrites": Need("mending names of models", _UNREAD),
    "stowplan-models-gateways: httproutes": Need("routes for Gateways", _ROUTE),
    "stowplan-models-gateways: inferencepools": Need("engines behind Gateways", _ROUTE),
    "stowplan-models-gateways: inferenceobjectives inferencemodelrewrites": Need(
        "priorities and names of models behind Gateways", _ROUTE
    ),
    "stowplan-models-gateways: modelroutes/finalizers": Need(
        "deleting a ModelRoute after what it became", _ROUTE, instead=_OWNER
    ),
    "stowplan-models: pods": Need("why replicas are not ready", _WATCH),
    "stowplan-models: customresourcedefinitions (modelinfers.workload.volcano.sh)": Need(
        "leaving Models to the upstream controller", _WATCH
    ),
    "stowplan-models: events": Need("events about Models", _EVENT),
    "stowplan-models: leases": Need("the first leader", _LEASE, RightsStage.vacate),
    "stowplan-models: leases (stowplan-models)": Need("one leader at a time", _LEASE),
    "stowplan-scheduler: leases (stowplan-scheduler)": Need("one leader at a time", "stowplan-scheduler"),
}
"""By rule, with the names of `rights.rules`."""

READERS: Final = {
    f"stowplan-{role}{family}": role
    for role in ("edit", "view")
    for family in ("", "-inference-extension", "-kthena", "-kthena-serving")
}
"""Roles that are aggregated to the built-in roles `edit` and `view`."""

USES: Final[dict[str, Manifest]] = {
    "stowplan-service-classes": {
        "sloClassRef": {"name": "service-classes-config", "key": "rights.yaml"},
        "variantCost": None,
    },
    "stowplan-variant-costs": {"variantCost": "1"},
}
"""Roles of users among tenants, and fields of a VariantAutoscaling that need them."""

_MOVE: Final = Move(namespace="default", name="chat", node="rights", replicas=1, benefits=())


async def _evict(cluster: Cluster, pod: Manifest) -> None:
    await ask(cluster, PodToEvict(pod=pod, move=_MOVE), dry_run=True)


async def _spend(cluster: Cluster, pod: Manifest) -> None:
    spec = {"selector": {"matchLabels": {"app": "chat"}}}
    budget = {"metadata": {"namespace": "default", "name": "chat"}, "spec": spec}
    await spent_budget(cluster, [budget], [PodToEvict(pod=pod, move=_MOVE)] * 2)


async def _repeat(cluster: Cluster, pod: Manifest) -> None:
    """Record the same event again at the time when a series is written."""
    start = datetime.now(UTC)
    times = (start + number * (SERIES_INTERVAL + timedelta(seconds=1)) for number in itertools.count())
    recorder = EventRecorder(cluster, controller="test", instance="test", now=lambda: next(times))
    writing = asyncio.create_task(recorder.run())
    with capture_logs() as lines:
        for _ in range(2):
            recorder.record(pod, type="Normal", reason="Tried", action="Try", note="a right")
            await recorder.flush()
    writing.cancel()
    for line in lines:
        raise Forbidden(line["error"])


_RARE: Final[Mapping[tuple[str, str], Callable[[Cluster, Manifest], Awaitable[None]]]] = {
    ("stowplan-controller-evictions: pods/eviction", "create"): _evict,
    ("stowplan-controller-evictions: poddisruptionbudgets", "get"): _spend,
    ("stowplan-controller: events", "patch"): _repeat,
    ("stowplan-models: events", "patch"): _repeat,
}
RARE: Final = tuple(_RARE)
"""Rules and verbs that a process rarely needs, so that `denial_of` makes the request with its own code."""


def denial_of(name: str, verb: str, *, kubeconfig: Path, pod: Manifest) -> str:
    """Make a rare request about a pod, and return why the API server denies it; empty if it does not."""

    async def request() -> None:
        async with await Cluster.connect(kubeconfig) as cluster:
            await _RARE[name, verb](cluster, pod)

    try:
        asyncio.run(request())
    except Forbidden as error:
        return error.message
    return ""


_OF_RELEASES: Final = {
    "stowplan-webhooks-kthena-serving: modelservers": "list watch",
    "stowplan-models-kthena-serving: modelroutes modelservers": "get list watch create patch delete",
    "stowplan-models-kthena-serving: modelroutes/finalizers": "update",
}
"""Permissions that are used next to a release of Kthena, where the same permissions for our group are not."""

ELSEWHERE: Final = {*RARE, *((rule, verb) for rule, verbs in _OF_RELEASES.items() for verb in verbs.split())}
"""Permissions that a process does not use because of a single object."""
