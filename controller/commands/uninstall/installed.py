"""The kinds of objects that our manifests and processes create, in the order of deletion."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from apiserver.cluster.heartbeat import LEASE_NAME
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
from apiserver.schema.json import Json
from controller.commands.upgrade.ownership import OURS, PART_OF

SELECTOR: Final = f"{PART_OF}={OURS}"
"""Selects the objects that our manifests and processes create."""
NAME_PREFIX: Final = "stowplan-"
"""Prefix of the names of our objects; a few are named `stowplan`."""
ACCOUNT_NAMES: Final = frozenset(
    f"{NAME_PREFIX}{process}" for process in ("webhooks", "apiserver", "controller", "models", "scheduler")
)
"""Our service accounts, by which our namespaces are recognized."""
_SETTINGS: Final = frozenset({"accelerator-unit-costs", "service-classes-config"})
"""Our ConfigMaps with the names of earlier releases' settings."""

_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
_CERT_MANAGER: Final = "cert-manager.io"

SERVICE_ACCOUNTS: Final = Resource(group="", version="v1", plural="serviceaccounts", kind="ServiceAccount")
ROLE_BINDINGS: Final = Resource(group=_RBAC, version="v1", plural="rolebindings", kind="RoleBinding")
CLUSTER_ROLE_BINDINGS: Final = Resource(
    group=_RBAC, version="v1", plural="clusterrolebindings", kind="ClusterRoleBinding", namespaced=False
)

WEBHOOK_CONFIGURATIONS: Final = (MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS)
"""Deleted before the pods that serve them."""

LEASE_NAMES: Final = (LEASE_NAME, "stowplan-models", "stowplan-scheduler")
"""Leases of our leader elections, which have no labels."""

REMOVED: Final = (
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    SERVICES,
    Resource(group="networking.k8s.io", version="v1", plural="networkpolicies", kind="NetworkPolicy"),
    Resource(group="monitoring.coreos.com", version="v1", plural="podmonitors", kind="PodMonitor"),
    Resource(group="monitoring.coreos.com", version="v1", plural="prometheusrules", kind="PrometheusRule"),
    # Before the Secrets, which cert-manager would recreate.
    Resource(group=_CERT_MANAGER, version="v1", plural="certificates", kind="Certificate"),
    Resource(group=_CERT_MANAGER, version="v1", plural="issuers", kind="Issuer"),
    SECRETS,
    CONFIG_MAPS,
    Resource(group="", version="v1", plural="resourcequotas", kind="ResourceQuota"),
    LEASES,
    ROLE_BINDINGS,
    Resource(group=_RBAC, version="v1", plural="roles", kind="Role"),
    CLUSTER_ROLE_BINDINGS,
    Resource(group=_RBAC, version="v1", plural="clusterroles", kind="ClusterRole", namespaced=False),
    Resource(
        group="flowcontrol.apiserver.k8s.io",
        version="v1",
        plural="flowschemas",
        kind="FlowSchema",
        namespaced=False,
    ),
    Resource(
        group="scheduling.k8s.io",
        version="v1",
        plural="priorityclasses",
        kind="PriorityClass",
        namespaced=False,
    ),
    # The service accounts identify our namespaces, so they are the last objects in it.
    SERVICE_ACCOUNTS,
    # Admission policies last, when no account that they restrict is left.
    Resource(
        group=_ADMISSION,
        version="v1",
        plural="validatingadmissionpolicybindings",
        kind="ValidatingAdmissionPolicyBinding",
        namespaced=False,
    ),
    Resource(
        group=_ADMISSION,
        version="v1",
        plural="validatingadmissionpolicies",
        kind="ValidatingAdmissionPolicy",
        namespaced=False,
    ),
)
"""All kinds but definitions, webhook configurations, the APIService of external metrics and the namespace."""

_ACTING: Final = ("controller", "models", "scheduler")
ACTING_PODS: Final = f"app.kubernetes.io/name={OURS},app.kubernetes.io/component in ({','.join(_ACTING)})"
"""Selects the pods of processes that write objects of others, or schedule."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """One of our objects."""

    resource: Resource
    metadata: Json

    def __str__(self) -> str:
        within = f"{self.namespace}/" if self.namespace else ""
        return f"{self.resource.kind} {within}{self.name}"

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.metadata["name"])

    @property
    def namespace(self) -> str:
        """Its namespace; empty for cluster-scoped objects."""
        return str(self.metadata.get("namespace") or "")

    @property
    def is_acting(self) -> bool:
        """Whether it is the Deployment of pods selected by ACTING_PODS."""
        component = (self.metadata.get("labels") or {}).get("app.kubernetes.io/component")
        return self.resource is DEPLOYMENTS and component in _ACTING


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
