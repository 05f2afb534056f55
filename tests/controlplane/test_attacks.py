"""Permissions that an attacker with the token of a shipped service account does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from rights.rules import may, shipped_accounts

from hack.controlplane.client import Client
from hack.installation.manifests import ROOT, documents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

ACCOUNT = "system:serviceaccount:stowplan-system:"
PARTS = ("models", "models-gateways", "scheduler", "evictions", "objectives", "scaling")
RIGHTS = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
ADMISSION = "admissionregistration.k8s.io"

ATTACKS: dict[str, tuple[tuple[str, ...], str]] = {
    "read Secrets": (("get", "list", "watch"), "secrets"),
    "write Secrets": (("create", "update", "patch", "delete", "deletecollection"), "secrets"),
    "read another Secret than its own": (("get", "update"), "secrets=other@stowplan-system"),
    "run a pod": (("create", "update"), "pods"),
    "run pods through StatefulSets": (("create", "update", "patch"), "statefulsets.apps"),
    "run a pod on each node": (("create", "update", "patch"), "daemonsets.apps"),
    "run jobs": (("create", "update", "patch"), "jobs.batch"),
    "run scheduled jobs": (("create", "update", "patch"), "cronjobs.batch"),
    "put a container into a pod": (("update", "patch"), "pods/ephemeralcontainers"),
    "run a command in a pod": (("get", "create"), "pods/exec"),
    "attach to a pod": (("get", "create"), "pods/attach"),
    "reach the ports of a pod": (("get", "create"), "pods/portforward"),
    "read the log of a pod": (("get",), "pods/log"),
    "resize a pod": (("update", "patch"), "pods/resize"),
    "create a token of a service account": (("create",), "serviceaccounts/token"),
    "create a service account": (("create", "update", "patch"), "serviceaccounts"),
    "act as a user": (("impersonate",), "users"),
    "act as a group": (("impersonate",), "groups"),
    "act as another service account": (("impersonate",), "serviceaccounts"),
    "grant more than it has": (("escalate", "bind"), "clusterroles.rbac.authorization.k8s.io"),
    "change a ClusterRole": (("create", "update", "patch"), "clusterroles.rbac.authorization.k8s.io"),
    "change a Role": (("create", "update", "patch", "escalate", "bind"), "roles.rbac.authorization.k8s.io"),
    "bind a ClusterRole": (
        ("create", "update", "patch"),
        "clusterrolebindings.rbac.authorization.k8s.io",
    ),
    "bind a Role": (("create", "update", "patch"), "rolebindings.rbac.authorization.k8s.io"),
    "mutate the writes of others": (
        ("create", "update", "patch", "delete"),
        f"mutatingwebhookconfigurations.{ADMISSION}",
    ),
    "see the writes of others": (
        ("create", "update", "patch", "delete"),
        f"validatingwebhookconfigurations.{ADMISSION}",
    ),
    "replace its own webhook configuration": (
        ("update", "delete"),
        f"validatingwebhookconfigurations.{ADMISSION}=stowplan",
    ),
    "change an admission policy": (
        ("create", "update", "patch", "delete"),
        f"validatingadmissionpolicies.{ADMISSION}",
    ),
    "unbind an admission policy": (
        ("create", "update", "patch", "delete"),
        f"validatingadmissionpolicybindings.{ADMISSION}",
    ),
    "change the definition of another kind": (
        ("create", "update", "patch", "delete"),
        "customresourcedefinitions.apiextensions.k8s.io",
    ),
    "take over another API": (("create", "update", "patch", "delete"), "apiservices.apiregistration.k8s.io"),
    "add or remove a node": (("create", "update", "delete"), "nodes"),
    "change the resources of a node": (("update", "patch"), "nodes/status"),
    "reach a kubelet": (("get", "create"), "nodes/proxy"),
    "request a certificate": (("create",), "certificatesigningrequests.certificates.k8s.io"),
    "approve a certificate": (("update", "patch"), "certificatesigningrequests/approval.certificates.k8s.io"),
    "sign a certificate": (("approve", "sign"), "signers.certificates.k8s.io"),
    "change costs and service classes": (
        ("create", "update", "patch", "delete"),
        "configmaps@stowplan-system",
    ),
    "change the trusted front proxy": (("update", "patch"), "configmaps@kube-system"),
    "take over another Lease": (("update", "patch"), "leases.coordination.k8s.io=other@stowplan-system"),
    "change the level of pod security": (("create", "update", "patch", "delete"), "namespaces"),
    "create a volume on the disk of a node": (("create",), "persistentvolumes"),
    "change priorities": (("create", "update", "patch"), "priorityclasses.scheduling.k8s.io"),
    "change VariantAutoscalings": (("create", "update", "patch", "delete"), "variantautoscalings.llmd.ai"),
    "scale in another namespace": (("get", "update", "patch"), "deployments/scale.apps"),
    "scale through ReplicaSets": (("update", "patch"), "replicasets/scale.apps"),
    "run other images": (("create", "update", "patch", "delete"), "deployments.apps"),
    "change autoscalers": (("create", "update", "patch", "delete"), "horizontalpodautoscalers.autoscaling"),
    "delete pods": (("delete", "deletecollection"), "pods"),
    "bind pods to nodes": (("create",), "pods/binding"),
    "route requests elsewhere": (
        ("create", "update", "patch", "delete"),
        "httproutes.gateway.networking.k8s.io",
    ),
    "evict pods": (("create",), "pods/eviction"),
}
"""For each attack the verbs, and the resource in the notation of `may`."""

GRANTED: dict[str, set[str]] = {
    "stowplan-controller": {"create pods/eviction"},
    "stowplan-models": {
        *(f"{verb} deployments.apps" for verb in ("create", "patch", "delete")),
        *(f"{verb} horizontalpodautoscalers.autoscaling" for verb in ("create", "patch", "delete")),
        "update deployments/scale.apps",
        # Only objects that belong to a Model: the policy in manifests/models/fence.yaml rejects all others.
        *(f"{verb} configmaps@stowplan-system" for verb in ("create", "patch", "delete")),
        "patch configmaps@kube-system",
    },
    "stowplan-scheduler": {"delete pods", "create pods/binding"},
}
"""Permissions that an account needs: with manifests/evictions, for Models, and as a kube-scheduler."""


@pytest.fixture(scope="module")
def reviewer(control_plane: ControlPlane, installation: Installation) -> Iterator[Client]:
    """Grant every account the permissions of all parts, and yield a client that can check them."""
    kustomize = (control_plane.kubectl("kustomize", str(ROOT / "manifests" / part)).stdout for part in PARTS)
    rendered = [item for text in kustomize for item in yaml.safe_load_all(text) if item["kind"] in RIGHTS]
    control_plane.kubectl("apply", "--server-side", "--filename=-", input=documents(rendered))
    with control_plane.client() as client:
        yield client
    control_plane.kubectl("delete", "--filename=-", input=documents(rendered))


@pytest.mark.parametrize("account", shipped_accounts())
def test_no_account_has_a_permission_that_an_attacker_would_want(reviewer: Client, account: str) -> None:
    """The API server answers, for each account with the permissions of all optional parts."""
    asked = [(verb, what) for verbs, what in ATTACKS.values() for verb in verbs]

    allowed = {f"{verb} {what}" for verb, what in asked if may(reviewer, ACCOUNT + account, verb, what)}

    assert allowed == GRANTED.get(account, set())


def test_the_permission_check_can_return_true(reviewer: Client) -> None:
    """A check that always denies would make the test above meaningless."""
    assert may(
        reviewer, f"{ACCOUNT}stowplan-controller", "update", "secrets=stowplan-authority@stowplan-system"
    )
    assert may(reviewer, f"{ACCOUNT}stowplan-controller", "patch", "pods@default")
