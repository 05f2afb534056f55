"""The state of the cluster, read once: all checks and plans of both subcommands depend on it alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Forbidden, NotFound, Unavailable
from apiserver.cluster.heartbeat import LEASE_NAME
from apiserver.cluster.namespaces import installed_namespace
from apiserver.cluster.resource import (
    DEPLOYMENTS,
    LEASES,
    SERVICES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from apiserver.kinds.authorship import WRITTEN_BY
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from apiserver.kinds.registry import DEFINED
from apiserver.schema.json import Json
from apiserver.schema.metadata import with_annotation
from apiserver.schema.structural import CONVERSION_SERVICE
from controller.commands.upgrade.calls import get_if_present, missing_permissions, patiently, resource_of
from controller.commands.upgrade.definitions import ENDPOINT_SLICES, read_definition, served_versions

CONFIGURATION: Final = "stowplan"
"""The name of our webhook configurations."""
UPSTREAM_LEASE: Final = "72dd1cf1.llm-d.ai"
"""The leader election Lease of every release of the earlier controller."""

_NEEDED: Final = (
    *(f"{verb} customresourcedefinitions.apiextensions.k8s.io" for verb in ("get", "create", "update")),
    "update customresourcedefinitions/status.apiextensions.k8s.io",
    *(f"{verb} variantautoscalings.llmd.ai" for verb in ("list", "get", "create", "update")),
    *(f"{verb} variantautoscalings/status.llmd.ai" for verb in ("update", "patch")),
    "get validatingwebhookconfigurations.admissionregistration.k8s.io",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class UpgradeState:
    """The state of the cluster at one time."""

    now: datetime
    namespace: str
    """The namespace of Stowplan, to whose Service the API server sends conversions."""
    definitions: Mapping[str, Json] = field(default_factory=dict)
    """The CustomResourceDefinitions of our kinds by name; those that are not installed are absent."""
    objects: tuple[Json, ...] = ()
    """All VariantAutoscalings, in the oldest version."""
    refusal: str = ""
    """Why a dry run of a write did not pass through our admission webhooks; empty if it did."""
    configuration: Json | None = None
    """The configuration of our validating webhooks."""
    service: Json | None = None
    """The Service of conversion."""
    ready_pods: int | None = 0
    """The number of ready pods behind the Service; None if the user may not read it."""
    deployments: tuple[Json, ...] = ()
    leases: tuple[Json, ...] = ()
    missing_permissions: tuple[str, ...] = ()
    """Needed permissions that the user lacks, such as `update variantautoscalings.llmd.ai`."""

    @property
    def live(self) -> Json | None:
        """The definition of VariantAutoscalings."""
        return self.definitions.get(VARIANT_AUTOSCALING.crd_name)

    @property
    def ca_bundle(self) -> str:
        """The caBundle of our admission webhooks, base64. All other trust is copied from it."""
        return _ca_bundle(self.configuration)


def needed_permissions(namespace: str) -> tuple[str, ...]:
    """Return the permissions that both subcommands need, given the namespace of Stowplan."""
    return (*_NEEDED, f"get services in {namespace}")


async def gather(cluster: Cluster, *, now: datetime) -> UpgradeState:
    """Return the snapshot; only the missing permissions if there are any. Raises ClusterError."""
    namespace = await installed_namespace(cluster)
    if missing := await missing_permissions(cluster, needed_permissions(namespace)):
        return UpgradeState(now=now, namespace=namespace, missing_permissions=missing)
    live = {kind.crd_name: await read_definition(cluster, kind) for kind in DEFINED}
    definitions = {name: item for name, item in live.items() if item is not None}
    objects, refusal = await _objects(cluster, definitions.get(VARIANT_AUTOSCALING.crd_name))
    leases = [
        await _list_if_allowed(cluster, LEASES, field_selector=f"metadata.name={name}")
        for name in (UPSTREAM_LEASE, LEASE_NAME)
    ]
    service = str(CONVERSION_SERVICE["name"])
    return UpgradeState(
        now=now,
        namespace=namespace,
        definitions=definitions,
        objects=objects,
        refusal=refusal,
        configuration=await _configuration(cluster),
        service=await get_if_present(cluster, SERVICES, service, namespace),
        ready_pods=await _ready_pods(cluster, namespace, service),
        deployments=tuple(await _list_if_allowed(cluster, DEPLOYMENTS)),
        leases=tuple(item for items in leases for item in items),
    )


async def read_ca_bundle(cluster: Cluster) -> str:
    """Return the caBundle of our admission webhooks; empty if there is none."""
    return _ca_bundle(await _configuration(cluster))


async def _configuration(cluster: Cluster) -> Json | None:
    return await get_if_present(cluster, VALIDATING_WEBHOOK_CONFIGURATIONS, CONFIGURATION)


def _ca_bundle(configuration: Json | None) -> str:
    bundles = [item["clientConfig"].get("caBundle") for item in (configuration or {}).get("webhooks") or []]
    return str(next(filter(None, bundles), ""))


async def _objects(cluster: Cluster, live: Json | None) -> tuple[tuple[Json, ...], str]:
    """Return all objects in the oldest version, and why a write would not get through, if so."""
    oldest = VARIANT_AUTOSCALING.versions[0].name
    if oldest not in served_versions(live):
        return (), ""
    resource = resource_of(VARIANT_AUTOSCALING, oldest)
    try:
        objects = tuple((await patiently(partial(cluster.list, resource)))["items"])
    except Unavailable as error:
        return (), error.message
    return objects, await _refusal(cluster, resource, objects[:1])


async def _refusal(cluster: Cluster, resource: Resource, objects: Iterable[Json]) -> str:
    try:
        for item in objects:
            changed = with_annotation(item, WRITTEN_BY, "me")  # an update without changes reaches no webhook
            await patiently(partial(cluster.replace, resource, changed, dry_run=True))
    except Unavailable as error:
        return error.message
    except ClusterError:
        return ""  # the rejection shows that webhooks are reached; writing every object is proven later
    return ""


async def _ready_pods(cluster: Cluster, namespace: str, service: str) -> int | None:
    selector = f"kubernetes.io/service-name={service}"
    try:
        listed = await cluster.list(ENDPOINT_SLICES, namespace=namespace, label_selector=selector)
    except Forbidden:
        return None
    return ready_pods(listed["items"])


def ready_pods(slices: Iterable[Json]) -> int:
    """Return the number of ready pods in the EndpointSlices of the conversion Service.

    The Service publishes all pods, so their condition `ready` says nothing. An absent condition counts as
    true, and a pod with two addresses once. Source: `EndpointConditions` of discovery.k8s.io/v1.
    """
    endpoints = [endpoint for item in slices for endpoint in item.get("endpoints") or []]
    ready = [endpoint for endpoint in endpoints if _is_serving(endpoint.get("conditions") or {})]
    names = ((endpoint.get("targetRef") or {}).get("name") or endpoint["addresses"][0] for endpoint in ready)
    return len(set(names))


def _is_serving(conditions: Json) -> bool:
    return conditions.get("serving") is not False and not conditions.get("terminating")


async def _list_if_allowed(
    cluster: Cluster, resource: Resource, *, field_selector: str | None = None
) -> list[Json]:
    """Return objects that are only needed for warnings; empty if the user may not read them."""
    try:
        return list((await cluster.list(resource, field_selector=field_selector))["items"])
    except (Forbidden, NotFound):
        return []
