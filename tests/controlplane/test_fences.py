"""Admission policies that limit the controller's patch permissions to the fields that it needs."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from support.policies import refused_with

from hack.controlplane.nodes import KwokNode, create_nodes
from hack.installation.manifests import ROOT

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

CONTROLLER = "--as=system:serviceaccount:stowplan-system:stowplan-controller"
NODE = "fenced"
GATES = [{"name": "stowplan.dev/placement"}, {"name": "example.com/license"}]
PREFERRED = {
    "weight": 1,
    "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE]}]},
}
REQUIRED = {
    "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE]}]}]
}
DEDICATED = {"key": "dedicated", "effect": "NoSchedule"}
CONVERSION = "/spec/conversion/webhook/clientConfig"
VARIANTS = "crd/variantautoscalings.llmd.ai"
METRICS = "apiservice/v1beta1.external.metrics.k8s.io"
MUTATING, VALIDATING = "mutatingwebhookconfiguration/stowplan", "validatingwebhookconfiguration/stowplan"


def _metadata(**fields: object) -> dict[str, Any]:
    return {"metadata": fields}


def _replaced(path: str, value: object) -> list[dict[str, Any]]:
    return [{"op": "add", "path": path, "value": value}]


REFUSED_OF_A_POD: dict[str, tuple[object, str]] = {
    "the image of a container": (_replaced("/spec/containers/0/image", "evil"), "images"),
    "the image of an init container": (_replaced("/spec/initContainers/0/image", "evil"), "images"),
    "another label": (_metadata(labels={"app": "other"}), "labels, finalizers or owners"),
    "an owner reference": (
        _metadata(ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u"}]),
        "labels, finalizers or owners",
    ),
    "a finalizer": (_metadata(finalizers=["example.com/kept"]), "labels, finalizers or owners"),
    "the value of a foreign annotation": (_metadata(annotations={"team": "other"}), "annotations"),
    "a new annotation": (_metadata(annotations={"example.com/new": "1"}), "annotations"),
    "removal of an annotation": (_metadata(annotations={"team": None}), "annotations"),
    "a toleration": (_replaced("/spec/tolerations/-", {"operator": "Exists"}), "toleration"),
    "a deadline": ({"spec": {"activeDeadlineSeconds": 1}}, "deadline"),
    "a node selector": ({"spec": {"nodeSelector": {"disk": "fast"}}}, "node selector"),
    "a required node": (
        {
            "spec": {
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": REQUIRED}}
            }
        },
        "the affinity",
    ),
    # The controller may have removed its own gate before.
    "a foreign scheduling gate": ({"spec": {"schedulingGates": []}}, "a scheduling gate"),
}

REFUSED_OF_OTHERS: dict[str, tuple[str, list[dict[str, Any]], str]] = {
    "a rule of a mutating webhook": (
        MUTATING,
        _replaced("/webhooks/0/rules/0/resources", ["pods", "secrets"]),
        "its caBundle",
    ),
    "the Service of a validating webhook": (
        VALIDATING,
        _replaced("/webhooks/0/clientConfig/service/namespace", "default"),
        "its caBundle",
    ),
    "the namespace selector of a validating webhook": (
        VALIDATING,
        _replaced("/webhooks/0/namespaceSelector", {"matchLabels": {"a": "b"}}),
        "its caBundle",
    ),
    "removal of a webhook": (MUTATING, [{"op": "remove", "path": "/webhooks/0"}], "its caBundle"),
    "a label of a webhook configuration": (MUTATING, _replaced("/metadata/labels/a", "b"), "metadata of"),
    "a version of a definition": (VARIANTS, _replaced("/spec/versions/0/served", False), "caBundle"),
    "the Service of conversion": (
        VARIANTS,
        _replaced(f"{CONVERSION}/service/namespace", "default"),
        "caBundle",
    ),
    "a label of a definition": (VARIANTS, _replaced("/metadata/labels/a", "b"), "metadata of"),
    "the Service of the metrics API": (
        METRICS,
        _replaced("/spec/service/namespace", "default"),
        "the caBundle of its own",
    ),
    "the metrics API without verification": (
        METRICS,
        [{"op": "remove", "path": "/spec/caBundle"}, *_replaced("/spec/insecureSkipTLSVerify", True)],
        "the caBundle of its own",
    ),
}

REFUSED_OF_A_NODE: dict[str, tuple[dict[str, Any], str]] = {
    "a label": (_metadata(labels={"pool": "other"}), "anything else of a node"),
    "an annotation": (_metadata(annotations={"a": "b"}), "anything else of a node"),
    "the cordon of a node": ({"spec": {"unschedulable": True}}, "anything else of a node"),
    "removal of a foreign taint": ({"spec": {"taints": []}}, "taints of a node"),
    "another taint": (
        {
            "spec": {
                "taints": [{"key": "dedicated", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}]
            }
        },
        "taints of a node",
    ),
    "the controller's own taint with the effect NoExecute": (
        {"spec": {"taints": [DEDICATED, {"key": "stowplan.dev/moving", "effect": "NoExecute"}]}},
        "the effect NoSchedule",
    ),
}


def _patch(
    control_plane: ControlPlane, what: str, patch: object, *options: str
) -> subprocess.CompletedProcess[str]:
    """Patch as the controller's account: the output of kubectl ends in `patched` if that is allowed."""
    kind = "json" if isinstance(patch, list) else "merge"
    text = json.dumps(patch)
    arguments = ("patch", what, f"--type={kind}", f"--patch={text}", CONTROLLER, *options)
    return control_plane.kubectl(*arguments, check=False)


def _refused(control_plane: ControlPlane, what: str, patch: object, why: str, *options: str) -> None:
    """Check that the controller's account may not patch, and that the message says why."""
    attempt = partial(_patch, control_plane, what, patch, "--dry-run=server", *options)
    refused_with(attempt, "denied request: the ", why)


@pytest.fixture(scope="module", autouse=True)
def _reading(control_plane: ControlPlane, installation: Installation) -> Iterator[None]:
    """Allow the account to get what kubectl reads before a patch; it has list and watch only."""
    role = ("clusterrole", "fences", "--verb=get", "--resource=pods,nodes")
    account = "--serviceaccount=stowplan-system:stowplan-controller"
    control_plane.kubectl("create", *role)
    control_plane.kubectl("create", "clusterrolebinding", "fences", "--clusterrole=fences", account)
    yield
    control_plane.kubectl("delete", "clusterrole/fences", "clusterrolebinding/fences")


@pytest.fixture(scope="module")
def pod(control_plane: ControlPlane, installation: Installation) -> Iterator[tuple[str, str]]:
    """Create a foreign gated pod; yield its name and namespace as arguments of kubectl."""
    containers = [{"name": "engine", "image": "example.com/engine"}]
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "engine", "labels": {"app": "engine"}, "annotations": {"team": "chat"}},
        "spec": {
            "schedulingGates": GATES,
            "containers": containers,
            "initContainers": [{"name": "fetch", "image": "example.com/fetch"}],
        },
    }
    control_plane.apply(manifest)
    yield "pod/engine", "--namespace=default"
    control_plane.kubectl("delete", "pod/engine")


@pytest.fixture(scope="module")
def _evicting(control_plane: ControlPlane, installation: Installation) -> Iterator[None]:
    """Grant the permission to patch nodes, and create a node."""
    control_plane.kubectl("apply", "--server-side", f"--kustomize={ROOT / 'manifests' / 'evictions'}")
    create_nodes(control_plane, [KwokNode(name=NODE, accelerator="NVIDIA-L4", accelerator_count=1)])
    control_plane.kubectl("taint", "node", NODE, "dedicated:NoSchedule")
    yield
    control_plane.kubectl("delete", "node", NODE)


@pytest.mark.parametrize(("patch", "why"), REFUSED_OF_A_POD.values(), ids=REFUSED_OF_A_POD)
def test_other_fields_of_a_pod_cannot_be_patched(
    control_plane: ControlPlane, pod: tuple[str, str], patch: object, why: str
) -> None:
    """The permission to patch pods is for their deletion cost and their scheduling gate."""
    what, where = pod

    _refused(control_plane, what, patch, why, where)


def test_the_fields_of_a_pod_that_features_need_can_be_patched(
    control_plane: ControlPlane, pod: tuple[str, str]
) -> None:
    """These are the deletion cost, and the own scheduling gate together with a preferred node."""
    what, where = pod
    cost = {"controller.kubernetes.io/pod-deletion-cost": "-1", "stowplan.dev/pod-deletion-cost": "-1"}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [PREFERRED]}}

    marked = _patch(control_plane, what, _metadata(annotations=cost), where)
    unmarked = _patch(control_plane, what, _metadata(annotations=dict.fromkeys(cost)), where)
    let_in = _patch(
        control_plane, what, {"spec": {"schedulingGates": GATES[1:], "affinity": affinity}}, where
    )

    assert [ended.stdout.split()[-1] for ended in (marked, unmarked, let_in)] == ["patched"] * 3


@pytest.mark.parametrize(("what", "patch", "why"), REFUSED_OF_OTHERS.values(), ids=REFUSED_OF_OTHERS)
def test_other_fields_of_webhook_configurations_crds_and_apiservices_cannot_be_patched(
    control_plane: ControlPlane, installation: Installation, what: str, patch: list[dict[str, Any]], why: str
) -> None:
    """These permissions are for the CA bundle only."""
    _refused(control_plane, what, patch, why)


@pytest.mark.usefixtures("_evicting")
@pytest.mark.parametrize(("patch", "why"), REFUSED_OF_A_NODE.values(), ids=REFUSED_OF_A_NODE)
def test_other_fields_of_a_node_cannot_be_patched(
    control_plane: ControlPlane, patch: dict[str, Any], why: str
) -> None:
    """The permission to patch nodes, which an optional component grants, is for one taint."""
    _refused(control_plane, f"node/{NODE}", patch, why)


@pytest.mark.usefixtures("_evicting")
def test_the_controllers_own_taint_of_a_node_can_be_patched(control_plane: ControlPlane) -> None:
    """The taint keeps new pods off a node while its pods are evicted."""
    ours = [
        {"key": "dedicated", "effect": "NoSchedule"},
        {"key": "stowplan.dev/moving", "effect": "NoSchedule"},
    ]

    ended = _patch(control_plane, f"node/{NODE}", {"spec": {"taints": ours}}, "--dry-run=server")

    assert "patched" in ended.stdout


@pytest.mark.usefixtures("_evicting")
@pytest.mark.parametrize("where", ["stowplan-system", "kube-system"])
def test_pods_on_which_the_cluster_depends_cannot_be_evicted(control_plane: ControlPlane, where: str) -> None:
    """The permission to evict pods covers all namespaces; elsewhere, disruption budgets limit it."""
    attempt = partial(_evict, control_plane, where)

    refused_with(attempt, "may not evict pods in its own namespace or in kube-system")


@pytest.mark.usefixtures("_evicting", "pod")
def test_pods_of_other_namespaces_can_be_evicted(control_plane: ControlPlane) -> None:
    """Replicas are moved in this way."""
    assert '"status":"Success"' in _evict(control_plane, "default").stdout


def _evict(control_plane: ControlPlane, namespace: str) -> subprocess.CompletedProcess[str]:
    """Evict a pod as the controller's account, without effect; return the API server's response."""
    path = f"/api/v1/namespaces/{namespace}/pods/engine/eviction?dryRun=All"
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "engine", "namespace": namespace},
        "deleteOptions": {"dryRun": ["All"]},
    }
    create = ("create", f"--raw={path}", CONTROLLER, "--filename=-")
    return control_plane.kubectl(*create, check=False, input=json.dumps(eviction))
