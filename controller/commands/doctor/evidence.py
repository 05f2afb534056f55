"""Everything that the checks depend on, read once with the permissions of the user.

Nothing is changed: the creation of a VariantAutoscaling is a dry run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from apiserver.cluster.access import is_allowed
from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Forbidden, NotFound
from apiserver.cluster.resource import (
    CUSTOM_RESOURCE_DEFINITIONS,
    LEASES,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    PODS,
    SECRETS,
    SUBJECT_ACCESS_REVIEWS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    VARIANT_AUTOSCALINGS,
    Resource,
    Selection,
)
from apiserver.kinds.registry import DEFINED
from apiserver.schema.json import Json, as_list, as_object
from controller.commands.doctor.rights import RIGHTS, Right, permissions_of, review_of
from controller.commands.plan.configuring import controller_config
from controller.commands.status.reading import LiveObjects, read_cluster
from controller.commands.upgrade.calls import missing_permissions
from controller.commands.upgrade.definitions import ENDPOINT_SLICES
from controller.config import ControllerConfig
from controller.engines.exposition import NAMES

TO_INSTALL: Final = (
    "create customresourcedefinitions.apiextensions.k8s.io",
    "create clusterroles.rbac.authorization.k8s.io",
    "create clusterrolebindings.rbac.authorization.k8s.io",
    "create validatingwebhookconfigurations.admissionregistration.k8s.io",
    "create apiservices.apiregistration.k8s.io",
    "create namespaces",
)
"""Permissions that an installation needs."""

_OURS: Final = "stowplan"
_REVIEWS_AT_ONCE: Final = 8
_SAMPLE: Final[Json] = {
    "metadata": {"name": "stowplan-doctor-dry-run"},
    "spec": {
        "modelID": "doctor",
        "scaleTargetRef": {"kind": "Deployment", "name": "stowplan-doctor-dry-run"},
    },
}
"""An object without a cost, which admission adds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PrometheusState:
    """What the configured Prometheus answered, asked through the API server."""

    url: str
    engines: Mapping[str, int] = field(default_factory=dict)
    """Number of series by name, of the names that are read."""

    problem: str = ""
    """Why it did not answer; empty if it did."""

    is_asked: bool = True
    """Whether it could be asked: it is a Service of the cluster."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """The state of a cluster at one moment."""

    now: datetime
    live: LiveObjects
    config: ControllerConfig | None = None
    """The controller's configuration; None if it cannot be read."""

    config_problems: Sequence[str] = ()
    version: Json = field(default_factory=dict)
    """The version of the API server: `gitVersion` and other members."""

    groups: frozenset[str] = frozenset()
    """The API groups of the cluster."""

    definitions: Mapping[str, Json] | None = field(default_factory=dict)
    """Our CustomResourceDefinitions by name, as far as they are installed. None, here and below, if they may
    not be read."""

    configurations: Sequence[Json] | None = ()
    """All webhook configurations of ours."""

    pods: Sequence[Json] | None = ()
    """Pods in our namespace, complete."""

    secrets: Sequence[Json] | None = ()
    """Secrets in our namespace."""

    leases: Sequence[Json] | None = ()
    slices: Sequence[Json] | None = ()
    """EndpointSlices in our namespace."""

    admission: tuple[str, str] = ("", "")
    """Result of a dry run through admission: `reached`, `unreached`, `forbidden` or empty, and a message."""

    lacking: Mapping[Right, Sequence[str]] | None = field(default_factory=dict)
    """Permissions that our accounts lack; None if they may not be reviewed."""

    missing: Sequence[str] = ()
    """Permissions to install that the user lacks."""

    prometheus: PrometheusState | None = None
    """None if none is configured."""

    @property
    def is_installed(self) -> bool:
        """Whether the webhooks of Stowplan are registered; also if that may not be read."""
        return self.configurations is None or bool(self.configurations)

    @property
    def system(self) -> str:
        """The namespace of Stowplan."""
        return self.live.system


async def collect(cluster: Cluster, *, system: str) -> Evidence:
    """Return the evidence. Raises ClusterError if the API server does not respond."""
    live = await read_cluster(cluster, namespace=None, system=system)
    config, problems = controller_config(live.settings)
    configurations = await _configurations(cluster)
    is_installed = configurations is None or bool(configurations)
    groups = as_list((await _get(cluster, "/apis")).get("groups"))
    return Evidence(
        now=datetime.now(UTC),
        live=live,
        config=config,
        config_problems=problems,
        version=await _get(cluster, "/version"),
        groups=frozenset(str(as_object(item).get("name")) for item in groups),
        definitions=await _definitions(cluster),
        configurations=configurations,
        pods=await _list(cluster, PODS, system),
        secrets=await _list(cluster, SECRETS, system) if is_installed else (),
        leases=await _list(cluster, LEASES),
        slices=await _list(cluster, ENDPOINT_SLICES, system),
        admission=await _admission(cluster, system) if is_installed else ("", ""),
        lacking=await _review_rights(cluster, system) if is_installed else {},
        missing=() if is_installed else await missing_permissions(cluster, TO_INSTALL),
        prometheus=await _prometheus(cluster, config.prometheus.url if config else ""),
    )


async def _list(cluster: Cluster, resource: Resource, namespace: str | None = None) -> Sequence[Json] | None:
    """Return the objects of a resource; None if they may not be read."""
    selection = Selection(resource=resource, namespace=namespace)
    try:
        return (await cluster.list_kept(selection, lambda item: item))[0]
    except NotFound:
        return ()
    except Forbidden:
        return None


async def _get(cluster: Cluster, path: str) -> Json:
    """Return the object at a path; an empty one if it may not be read."""
    try:
        return await cluster.get_path(path)
    except (Forbidden, NotFound):
        return {}


async def _configurations(cluster: Cluster) -> Sequence[Json] | None:
    """Return our webhook configurations; None if some may not be read."""
    mutating = await _list(cluster, MUTATING_WEBHOOK_CONFIGURATIONS)
    validating = await _list(cluster, VALIDATING_WEBHOOK_CONFIGURATIONS)
    if mutating is None or validating is None:
        return None
    return [item for item in (*mutating, *validating) if item["metadata"]["name"].startswith(_OURS)]


async def _definitions(cluster: Cluster) -> Mapping[str, Json] | None:
    """Return our definitions; None if they may not be read."""
    items = await _list(cluster, CUSTOM_RESOURCE_DEFINITIONS)
    if items is None:
        return None
    names = {kind.crd_name for kind in DEFINED}
    return {item["metadata"]["name"]: item for item in items if item["metadata"]["name"] in names}


async def _admission(cluster: Cluster, namespace: str) -> tuple[str, str]:
    """Return whether the creation of an object passes our webhooks, as a dry run."""
    try:
        made = await cluster.create(VARIANT_AUTOSCALINGS, _SAMPLE, namespace=namespace, dry_run=True)
    except Forbidden as error:
        return "forbidden", error.message
    except NotFound:
        return "", ""
    except ClusterError as error:
        is_unreached = "failed calling webhook" in error.message or "conversion webhook" in error.message
        return ("unreached" if is_unreached else "reached"), error.message
    is_defaulted = "variantCost" in made["spec"]
    return ("reached", "") if is_defaulted else ("unreached", "the default cost was not added")


async def _review_rights(cluster: Cluster, system: str) -> Mapping[Right, Sequence[str]] | None:
    """Return the permissions that our accounts lack; None if the user may not review those of others."""
    gate = asyncio.Semaphore(_REVIEWS_AT_ONCE)

    async def ask(right: Right, permission: str) -> bool:
        async with gate:
            review = review_of(right, permission, system)
            return is_allowed(await cluster.create(SUBJECT_ACCESS_REVIEWS, review))

    pairs = [(right, text) for right in RIGHTS for text in permissions_of(right, system)]
    try:
        allowed = await asyncio.gather(*(ask(right, text) for right, text in pairs))
    except Forbidden:
        return None
    lacking: dict[Right, list[str]] = {}
    for (right, text), is_granted in zip(pairs, allowed, strict=True):
        if not is_granted:
            lacking.setdefault(right, []).append(text)
    return lacking


async def _prometheus(cluster: Cluster, url: str) -> PrometheusState | None:
    """Ask the configured Prometheus through the API server's proxy of Services."""
    if not url:
        return None
    path = _proxy_path(url)
    if not path:
        return PrometheusState(url=url, is_asked=False)
    query = f'count by (__name__) ({{__name__=~"{"|".join(NAMES)}"}})'
    try:
        answer = await cluster.get_path(f"{path}/api/v1/query", query={"query": query})
    except ClusterError as error:
        is_asked = not isinstance(error, Forbidden)
        return PrometheusState(url=url, problem=error.message, is_asked=is_asked)
    return PrometheusState(url=url, engines=dict(_counts(answer)))


def _proxy_path(url: str) -> str:
    """Return the path of a Service's proxy for its URL, such as `http://NAME.NAMESPACE.svc:9090/PATH`."""
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    name, _, port = host.partition(":")
    labels = name.split(".")
    is_service = len(labels) in (2, 3, 5) and (len(labels) == 2 or labels[2] == "svc")  # noqa: PLR2004
    if not is_service or any(not label for label in labels):
        return ""
    port = port or ("443" if scheme == "https" else "80")
    prefix = "https:" if scheme == "https" else ""
    suffix = f"/{path.rstrip('/')}" if path.rstrip("/") else ""
    return f"/api/v1/namespaces/{labels[1]}/services/{prefix}{labels[0]}:{port}/proxy{suffix}"


def _counts(answer: Json) -> Iterable[tuple[str, int]]:
    for item in map(as_object, as_list(as_object(answer.get("data")).get("result"))):
        value = as_list(item.get("value"))
        if len(value) == 2:  # noqa: PLR2004 (a time and a value)
            yield str(as_object(item.get("metric")).get("__name__")), int(float(str(value[1])))
