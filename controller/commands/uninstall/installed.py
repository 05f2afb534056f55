"""What an installation consists of: its kinds, in the order of deletion, its names, and its objects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import NotFound, Unavailable
from apiserver.cluster.namespaces import installed_namespace
from apiserver.cluster.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    LEASES,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    SECRETS,
    SERVICES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from apiserver.kinds.decision_record import CONFIG_MAP as DECISIONS
from apiserver.schema.json import Json
from controller.commands.upgrade.calls import Pace, delete_all, list_metadata, list_where
from controller.commands.upgrade.definitions import OURS, PART_OF, is_ours
from controller.commands.upgrade.report import Finding, Step

SELECTOR: Final = f"{PART_OF}={OURS}"
"""Selects the objects that our manifests and processes create."""
NAME_PREFIX: Final = "stowplan-"
"""Prefix of the names of our objects; a few are named `stowplan`."""
ACCOUNT_NAMES: Final = frozenset(
    f"{NAME_PREFIX}{process}"
    for process in ("webhooks", "apiserver", "controller", "models", "dashboard", "scheduler")
)
"""Our service accounts, by which our namespaces are recognized."""
_SETTINGS: Final = frozenset({"accelerator-unit-costs", "service-classes-config"})
"""Our ConfigMaps with the names of earlier releases' settings."""

_DERIVED: Final = frozenset({"events", "endpoints", "endpointslices"})
"""Collections that the cluster derives from other objects."""
_MEASURED: Final = "metrics.k8s.io"
"""Suffix of the API groups that contain measurements."""
_OF_EVERY_NAMESPACE: Final = frozenset({("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")})

_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
_CERT_MANAGER: Final = "cert-manager.io"


def _resource(group: str, plural: str, kind: str, *, namespaced: bool = True) -> Resource:
    return Resource(group=group, version="v1", plural=plural, kind=kind, namespaced=namespaced)


SERVICE_ACCOUNTS: Final = _resource("", "serviceaccounts", "ServiceAccount")
ROLE_BINDINGS: Final = _resource(_RBAC, "rolebindings", "RoleBinding")
CLUSTER_ROLE_BINDINGS: Final = _resource(_RBAC, "clusterrolebindings", "ClusterRoleBinding", namespaced=False)

WEBHOOK_CONFIGURATIONS: Final = (MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS)
"""Deleted before the pods that serve them."""

REMOVED: Final = (
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    SERVICES,
    _resource("networking.k8s.io", "networkpolicies", "NetworkPolicy"),
    _resource("monitoring.coreos.com", "podmonitors", "PodMonitor"),
    _resource("monitoring.coreos.com", "prometheusrules", "PrometheusRule"),
    # Before the Secrets, which cert-manager would recreate.
    _resource(_CERT_MANAGER, "certificates", "Certificate"),
    _resource(_CERT_MANAGER, "issuers", "Issuer"),
    SECRETS,
    CONFIG_MAPS,
    _resource("", "resourcequotas", "ResourceQuota"),
    LEASES,
    ROLE_BINDINGS,
    _resource(_RBAC, "roles", "Role"),
    CLUSTER_ROLE_BINDINGS,
    _resource(_RBAC, "clusterroles", "ClusterRole", namespaced=False),
    _resource("flowcontrol.apiserver.k8s.io", "flowschemas", "FlowSchema", namespaced=False),
    _resource("scheduling.k8s.io", "priorityclasses", "PriorityClass", namespaced=False),
    # The service accounts identify our namespaces, so they are the last objects in it.
    SERVICE_ACCOUNTS,
    # Admission policies last, when no account that they restrict is left.
    _resource(
        _ADMISSION, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", namespaced=False
    ),
    _resource(_ADMISSION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False),
)
"""All kinds but definitions, webhook configurations, the APIService of external metrics and the namespace."""

_ACTING: Final = ("controller", "models", "scheduler")
ACTING_PODS: Final = f"app.kubernetes.io/name={OURS},app.kubernetes.io/component in ({','.join(_ACTING)})"
"""Selects the pods of processes that write objects of others, or schedule."""


def name_of(item: Json) -> str:
    """Return the name of an object."""
    return str(item["metadata"]["name"])


def place_of(item: Json) -> str:
    """Return the namespace and name of an object, or its name if it is cluster-scoped."""
    namespace = item["metadata"].get("namespace")
    return f"{namespace}/{name_of(item)}" if namespace else name_of(item)


def annotations_patch(annotations: Mapping[str, str | None]) -> Json:
    """Return the patch that sets annotations, and removes those that are None."""
    return {"metadata": {"annotations": annotations}}


def is_acting(deployment: Json) -> bool:
    """Tell whether a Deployment of ours has the pods that ACTING_PODS selects."""
    labels = deployment["metadata"].get("labels") or {}
    return labels.get("app.kubernetes.io/component") in _ACTING


def has_our_name(resource: Resource, name: str) -> bool:
    """Tell whether an object has a name that our manifests and processes use.

    The label does not suffice: a kustomization or chart that contains ours may set it on everything else.
    """
    is_setting = resource.plural == CONFIG_MAPS.plural and name in _SETTINGS
    return name == OURS or name.startswith(NAME_PREFIX) or is_setting


def is_for_us(binding: Json, namespaces: Collection[str]) -> bool:
    """Tell whether a binding grants permissions only to our service accounts in our namespaces."""
    subjects = binding.get("subjects") or []
    return bool(subjects) and all(
        subject["kind"] == "ServiceAccount"
        and subject.get("namespace") in namespaces
        and subject["name"].startswith(NAME_PREFIX)
        for subject in subjects
    )


async def installations(cluster: Cluster) -> tuple[str, ...]:
    """Return all our namespaces: those with accounts of ours.

    There are several if `namespace:` was changed, because applying does not prune. If most is removed, the
    namespace to which webhooks point, or the default, is the only one. Other namespaces may have our label,
    and service accounts with it, from a kustomization or chart that contains ours.
    """
    accounts = await list_metadata(cluster, SERVICE_ACCOUNTS, labels=SELECTOR)
    names = {str(item["metadata"]["namespace"]) for item in accounts if name_of(item) in ACCOUNT_NAMES}
    return tuple(sorted(names)) or (await installed_namespace(cluster),)


Parts: TypeAlias = AsyncIterator[Finding | Step]
"""What to know about a part of an installation, and the steps that remove it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Removal:
    """An installation to remove, as it was read once."""

    cluster: Cluster
    pace: Pace
    with_objects: bool
    """Whether objects of our kinds are deleted, too."""
    namespaces: tuple[str, ...]
    objects: Mapping[Resource, Sequence[Json]]
    """Our objects of each kind, without definitions, the APIService and namespaces."""

    async def patch(self, resource: Resource, patch_for: Callable[[Json], Json], item: Json) -> None:
        """Apply the merge patch for an object, unless it has changed since it was read."""
        name, namespace, version = (
            item["metadata"].get(it) for it in ("name", "namespace", "resourceVersion")
        )
        patch = patch_for(item)
        patch |= {"metadata": patch.get("metadata", {}) | {"resourceVersion": version}}
        await self.cluster.patch_merge(resource, name, patch, namespace=namespace)

    async def delete(self, resource: Resource, is_due: Callable[[Json], bool] = bool) -> int:
        """Delete our objects of one kind, as they are now; return their number."""
        items = [item for item in await read_ours(self.cluster, resource, self.namespaces) if is_due(item)]
        await delete_all(self.cluster, resource, items, self.pace)
        return len(items)


async def read_ours(cluster: Cluster, resource: Resource, namespaces: Sequence[str]) -> list[Json]:
    """Return our objects of one kind in our namespaces.

    In all namespaces, these are bindings for our accounts, and decisions on annotated autoscalers.
    """
    items: list[Json] = []
    if resource is CONFIG_MAPS:
        items += await list_metadata(cluster, resource, fields=f"metadata.name={DECISIONS}")
    if resource in (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS):
        items += await list_where(cluster, resource, lambda item: is_for_us(item, namespaces))
    for namespace in namespaces if resource.namespaced else (None,):
        labels = None if resource is LEASES else SELECTOR  # leader elections set no labels
        listed = await list_metadata(cluster, resource, namespace, labels=labels)
        items += [item for item in listed if has_our_name(resource, name_of(item))]
    return list({item["metadata"]["uid"]: item for item in items}.values())


async def foreign_content(cluster: Cluster, namespace: str, ours: Collection[str]) -> list[str]:
    """Return the objects of others in a namespace, as `Kind name`, without those that have an owner.

    `ours` are UIDs of objects of ours, which may lack our label. Groups that cannot be listed are content.
    """

    async def read(group: str, version: str) -> list[str]:
        try:
            document = await cluster.get_path(f"/apis/{group}/{version}" if group else f"/api/{version}")
        except NotFound:
            return []
        except Unavailable:
            return [f"objects of {group}/{version}, which does not respond"]
        resources = [
            Resource(group=group, version=version, plural=item["name"], kind=item["kind"])
            for item in document.get("resources") or []
            if item["namespaced"] and "list" in item["verbs"] and item["name"] not in _DERIVED
        ]
        return [text for texts in await asyncio.gather(*map(list_foreign, resources)) for text in texts]

    async def list_foreign(resource: Resource) -> list[str]:
        try:
            items = await list_metadata(cluster, resource, namespace)
        except NotFound:
            return []
        except Unavailable:
            return [f"{resource.plural} of {resource.group}, which cannot be listed"]
        return [f"{resource.kind} {name_of(item)}" for item in items if is_foreign(resource, item)]

    def is_foreign(resource: Resource, item: Json) -> bool:
        metadata, name = item["metadata"], name_of(item)
        # Objects that an aggregated API server makes up on the way may have no UID.
        is_removed = metadata.get("uid") in ours or (is_ours(item) and has_our_name(resource, name))
        goes = metadata.get("deletionTimestamp") or metadata.get("ownerReferences")
        return not (is_removed or goes or (resource.kind, name) in _OF_EVERY_NAMESPACE)

    groups = (await cluster.get_path("/apis")).get("groups") or []
    versions = [("", "v1"), *((group["name"], group["preferredVersion"]["version"]) for group in groups)]
    content = await asyncio.gather(*(read(*it) for it in versions if not it[0].endswith(_MEASURED)))
    return sorted({text for texts in content for text in texts})
