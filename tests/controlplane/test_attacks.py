"""What somebody would want who holds the token of one of our accounts, and does not get."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
import yaml
from support.manifests import listed
from support.rights import may, shipped_accounts

from hack.controlplane.client import Client
from hack.installation.manifests import ROOT

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
    "read another Secret beside its own": (("get", "update"), "secrets=other@stowplan-system"),
    "run a pod": (("create", "update"), "pods"),
    "run pods by other workloads": (("create", "update", "patch"), "statefulsets.apps"),
    "run a pod on each node": (("create", "update", "patch"), "daemonsets.apps"),
    "run jobs": (("create", "update", "patch"), "jobs.batch"),
    "run jobs again and again": (("create", "update", "patch"), "cronjobs.batch"),
    "put a container into a pod": (("update", "patch"), "pods/ephemeralcontainers"),
    "run a command in a pod": (("get", "create"), "pods/exec"),
    "attach to a pod": (("get", "create"), "pods/attach"),
    "reach the ports of a pod": (("get", "create"), "pods/portforward"),
    "read the log of a pod": (("get",), "pods/log"),
    "resize a pod": (("update", "patch"), "pods/resize"),
    "act as an account": (("create",), "serviceaccounts/token"),
    "make an account": (("create", "update", "patch"), "serviceaccounts"),
    "act as a user": (("impersonate",), "users"),
    "act as a group": (("impersonate",), "groups"),
    "act as another account": (("impersonate",), "serviceaccounts"),
    "give rights that it does not have": (("escalate", "bind"), "clusterroles.rbac.authorization.k8s.io"),
    "change a role of the cluster": (("create", "update", "patch"), "clusterroles.rbac.authorization.k8s.io"),
    "change a role": (("create", "update", "patch", "escalate", "bind"), "roles.rbac.authorization.k8s.io"),
    "bind a role in the cluster": (
        ("create", "update", "patch"),
        "clusterrolebindings.rbac.authorization.k8s.io",
    ),
    "bind a role": (("create", "update", "patch"), "rolebindings.rbac.authorization.k8s.io"),
    "mutate what others write": (
        ("create", "update", "patch", "delete"),
        f"mutatingwebhookconfigurations.{ADMISSION}",
    ),
    "see what others write": (
        ("create", "update", "patch", "delete"),
        f"validatingwebhookconfigurations.{ADMISSION}",
    ),
    "replace its own webhook configuration": (
        ("update", "delete"),
        f"validatingwebhookconfigurations.{ADMISSION}=stowplan",
    ),
    "take a fence away": (
        ("create", "update", "patch", "delete"),
        f"validatingadmissionpolicies.{ADMISSION}",
    ),
    "unbind a fence": (
        ("create", "update", "patch", "delete"),
        f"validatingadmissionpolicybindings.{ADMISSION}",
    ),
    "change another definition": (
        ("create", "update", "patch", "delete"),
        "customresourcedefinitions.apiextensions.k8s.io",
    ),
    "take another API": (("create", "update", "patch", "delete"), "apiservices.apiregistration.k8s.io"),
    "add or take a node": (("create", "update", "delete"), "nodes"),
    "change what a node has": (("update", "patch"), "nodes/status"),
    "reach a kubelet": (("get", "create"), "nodes/proxy"),
    "ask for a certificate": (("create",), "certificatesigningrequests.certificates.k8s.io"),
    "approve a certificate": (("update", "patch"), "certificatesigningrequests/approval.certificates.k8s.io"),
    "sign a certificate": (("approve", "sign"), "signers.certificates.k8s.io"),
    "change prices and classes": (("create", "update", "patch", "delete"), "configmaps@stowplan-system"),
    "change who is trusted as front proxy": (("update", "patch"), "configmaps@kube-system"),
    "take over another leader": (("update", "patch"), "leases.coordination.k8s.io=other@stowplan-system"),
    "change the level of pod security": (("create", "update", "patch", "delete"), "namespaces"),
    "mount a disk of a node": (("create",), "persistentvolumes"),
    "change priorities": (("create", "update", "patch"), "priorityclasses.scheduling.k8s.io"),
    "change what is asked for": (("create", "update", "patch", "delete"), "variantautoscalings.llmd.ai"),
    "scale in another namespace": (("get", "update", "patch"), "deployments/scale.apps"),
    "scale by another way": (("update", "patch"), "replicasets/scale.apps"),
    "run other images": (("create", "update", "patch", "delete"), "deployments.apps"),
    "change autoscalers": (("create", "update", "patch", "delete"), "horizontalpodautoscalers.autoscaling"),
    "delete pods": (("delete", "deletecollection"), "pods"),
    "bind pods to nodes": (("create",), "pods/binding"),
    "lead requests elsewhere": (
        ("create", "update", "patch", "delete"),
        "httproutes.gateway.networking.k8s.io",
    ),
    "evict pods": (("create",), "pods/eviction"),
}
"""The verbs, and the resource as `may` takes it."""

GRANTED: dict[str, set[str]] = {
    "stowplan-controller": {"create pods/eviction"},
    "stowplan-models": {
        *(f"{verb} deployments.apps" for verb in ("create", "patch", "delete")),
        *(f"{verb} horizontalpodautoscalers.autoscaling" for verb in ("create", "patch", "delete")),
        "update deployments/scale.apps",
        # Of all these only what a Model owns, and elsewhere: manifests/models/fence.yaml refuses the rest.
        *(f"{verb} configmaps@stowplan-system" for verb in ("create", "patch", "delete")),
        "patch configmaps@kube-system",
    },
    "stowplan-scheduler": {"delete pods", "create pods/binding"},
}
"""What is the work of an account all the same: with manifests/evictions, of Models, and as kube-scheduler."""


@pytest.fixture(scope="module")
def reviewer(control_plane: ControlPlane, installation: Installation) -> Iterator[Client]:
    """Give the accounts of every part their rights, and return who asks about them."""
    kustomize = (control_plane.kubectl("kustomize", str(ROOT / "manifests" / part)).stdout for part in PARTS)
    rendered = [item for text in kustomize for item in yaml.safe_load_all(text) if item["kind"] in RIGHTS]
    control_plane.kubectl("apply", "--server-side", "--filename=-", input=listed(*rendered))
    with closing(Client(control_plane.server, control_plane.directory / "pki")) as client:
        yield client
    control_plane.kubectl("delete", "--filename=-", input=listed(*rendered))


@pytest.mark.parametrize("account", shipped_accounts())
def test_it_may_nothing_that_an_attacker_would_want(reviewer: Client, account: str) -> None:
    """Asked of the API server, for the account with all rights that any part gives."""
    asked = [(verb, what) for verbs, what in ATTACKS.values() for verb in verbs]

    allowed = {f"{verb} {what}" for verb, what in asked if may(reviewer, ACCOUNT + account, verb, what)}

    assert allowed == GRANTED.get(account, set())


def test_the_question_can_be_answered_with_yes(reviewer: Client) -> None:
    """Else the table would prove nothing."""
    assert may(
        reviewer, f"{ACCOUNT}stowplan-controller", "update", "secrets=stowplan-authority@stowplan-system"
    )
    assert may(reviewer, f"{ACCOUNT}stowplan-controller", "patch", "pods@default")
