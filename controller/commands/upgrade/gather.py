"""Reading of the snapshot on which all decisions are based."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from datetime import datetime
from functools import partial

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Forbidden, NotFound, Unavailable
from apiserver.cluster.heartbeat import LEASE_NAME
from apiserver.cluster.installed import installed_namespace
from apiserver.cluster.resource import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    LEASES,
    SECRETS,
    SERVICES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from apiserver.kinds.authorship import WRITTEN_BY
from apiserver.schema.annotations import with_annotation
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from apiserver.schema.structural import CONVERSION_SERVICE
from controller.commands.upgrade.controller_checks import UPSTREAM_LEASE, is_upstream
from controller.commands.upgrade.definitions import served_versions
from controller.commands.upgrade.permission_checks import Permission, needed_permissions
from controller.commands.upgrade.resources import ENDPOINT_SLICES, SELF_SUBJECT_ACCESS_REVIEWS, resource_of
from controller.commands.upgrade.retrying import patiently
from controller.commands.upgrade.snapshot import Snapshot, Webhook
from controller.commands.upgrade.webhook_checks import CONFIGURATION, SERVING_SECRET, ready_pods


async def gather(cluster: Cluster, kinds: Iterable[Kind], converting: Kind, *, now: datetime) -> Snapshot:
    """Return the snapshot; only denied permissions if there are any. Raises ClusterError."""
    namespace = await installed_namespace(cluster)
    if denied := await denied_of(cluster, needed_permissions(converting, namespace)):
        return Snapshot(now=now, webhook=Webhook(namespace=namespace), denied=denied)
    found = {kind.crd_name: await read_definition(cluster, kind) for kind in kinds}
    definitions = {name: item for name, item in found.items() if item is not None}
    objects, refusal = await _objects(cluster, converting, definitions.get(converting.crd_name))
    leases = [
        await _list_if_allowed(cluster, LEASES, field_selector=f"metadata.name={name}")
        for name in (UPSTREAM_LEASE, LEASE_NAME)
    ]
    return Snapshot(
        now=now,
        definitions=definitions,
        objects=objects,
        webhook=await _webhook(cluster, namespace, refusal),
        deployments=tuple(item for item in await _list_if_allowed(cluster, DEPLOYMENTS) if is_upstream(item)),
        leases=tuple(item for items in leases for item in items),
    )


async def read_definition(cluster: Cluster, kind: Kind) -> Json | None:
    """Return the current definition of a kind, or None if it is not installed."""
    return await _maybe(cluster, CUSTOM_RESOURCE_DEFINITIONS, kind.crd_name)


async def read_trusted(cluster: Cluster) -> str:
    """Return the caBundle of our admission webhooks; empty if there is none."""
    return _trusted_ca(await _configuration(cluster))


async def _configuration(cluster: Cluster) -> Json | None:
    return await _maybe(cluster, VALIDATING_WEBHOOK_CONFIGURATIONS, CONFIGURATION)


def _trusted_ca(configuration: Json | None) -> str:
    bundles = [item["clientConfig"].get("caBundle") for item in (configuration or {}).get("webhooks") or []]
    return str(next(filter(None, bundles), ""))


async def _objects(cluster: Cluster, kind: Kind, live: Json | None) -> tuple[tuple[Json, ...], str]:
    """Return all objects in the oldest version, and why a write would not get through, if so."""
    oldest = kind.versions[0].name
    if oldest not in served_versions(live):
        return (), ""
    resource = resource_of(kind, oldest)
    try:
        objects = tuple((await patiently(partial(cluster.list, resource)))["items"])
        return objects, await _write_problem(cluster, resource, objects[:1])
    except Unavailable as error:
        return (), error.message


async def _write_problem(cluster: Cluster, resource: Resource, objects: Iterable[Json]) -> str:
    try:
        for item in objects:
            judged = with_annotation(item, WRITTEN_BY, "me")  # an update without changes reaches no webhook
            await patiently(partial(cluster.replace, resource, judged, dry_run=True))
    except Unavailable as error:
        return error.message
    except ClusterError:
        return ""  # the rejection shows that webhooks are reached; writing every object is proven later
    return ""


async def _webhook(cluster: Cluster, namespace: str, refusal: str) -> Webhook:
    name = str(CONVERSION_SERVICE["name"])
    certificate, is_hidden = await _certificate(cluster, namespace)
    configuration = await _configuration(cluster)
    return Webhook(
        namespace=namespace,
        service=await _maybe(cluster, SERVICES, name, namespace=namespace),
        ready_pods=await _ready_pods(cluster, namespace, name),
        is_configured=configuration is not None,
        trusted=_trusted_ca(configuration),
        certificate=certificate,
        is_certificate_hidden=is_hidden,
        refusal=refusal,
    )


async def _ready_pods(cluster: Cluster, namespace: str, service: str) -> int | None:
    """Return the number of ready pods behind a Service, or None if the user may not read it."""
    try:
        found = await cluster.list(
            ENDPOINT_SLICES, namespace=namespace, label_selector=f"kubernetes.io/service-name={service}"
        )
    except Forbidden:
        return None
    return ready_pods(found["items"])


async def _certificate(cluster: Cluster, namespace: str) -> tuple[bytes | None, bool]:
    try:
        secret = await _maybe(cluster, SECRETS, SERVING_SECRET, namespace=namespace)
    except Forbidden:
        return None, True
    text = ((secret or {}).get("data") or {}).get("tls.crt")
    return (base64.b64decode(text) if text else None), False


async def denied_of(cluster: Cluster, permissions: Iterable[Permission]) -> tuple[str, ...]:
    """Return descriptions of the permissions that the user does not have."""
    denied = []
    for permission in permissions:
        answer = await cluster.create(SELF_SUBJECT_ACCESS_REVIEWS, permission.as_review())
        if not answer["status"].get("allowed"):
            denied.append(str(permission))
    return tuple(denied)


async def _maybe(
    cluster: Cluster, resource: Resource, name: str, *, namespace: str | None = None
) -> Json | None:
    try:
        return await cluster.get(resource, name, namespace=namespace)
    except NotFound:
        return None


async def _list_if_allowed(
    cluster: Cluster, resource: Resource, *, field_selector: str | None = None
) -> list[Json]:
    """Return objects that are only needed for warnings; empty if the user may not read them."""
    try:
        found = await cluster.list(resource, field_selector=field_selector)
    except (Forbidden, NotFound):
        return []
    return list(found["items"])
