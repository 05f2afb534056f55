"""Scaling of a custom resource by a binding: admission, and permissions to read and write its scale."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml
from support.binding_bench import Bench, bound, policy
from support.manifests import Manifest, deployment

from hack.controlplane.nodes import KwokNode, create_nodes
from hack.installation.manifests import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

PRODUCT = "NVIDIA-B300"
GROUP = "serving.example.com"
FOLDER = ROOT / "manifests" / "scaling"
ACCOUNT = {"kind": "ServiceAccount", "name": "stowplan-controller", "namespace": "stowplan-system"}
DEFINITION: Manifest = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"inferenceservices.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": "InferenceService", "plural": "inferenceservices"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
                "subresources": {
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    }
                },
            }
        ],
    },
}


def role(kind: str, name: str, *verbs: str) -> Manifest:
    """Return a role for the scale subresource of the kind."""
    rules = [{"apiGroups": [GROUP], "resources": ["inferenceservices/scale"], "verbs": list(verbs)}]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "rules": rules,
    }


READING = role("ClusterRole", "stowplan-targets-inferenceservices", "get")
READING["metadata"]["labels"] = {"stowplan.dev/aggregate-to-targets": "true"}
WRITING = role("Role", "stowplan-scaling-inferenceservices", "get", "update")
BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "RoleBinding",
    "metadata": {"name": "stowplan-scaling-inferenceservices"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "Role",
        "name": "stowplan-scaling-inferenceservices",
    },
    "subjects": [ACCOUNT],
}
SETTINGS = {
    "controller": {"scaling": {"mode": "direct"}},
    "webhooks": {
        "scaling": {
            "resources": [{"group": GROUP, "kind": "InferenceService", "resource": "inferenceservices"}]
        }
    },
}


@pytest.fixture(scope="module")
def _configured(control_plane: ControlPlane, installation: Installation) -> Iterator[None]:
    """Allow the kind at admission, and scaling in the controller, while this test runs."""
    create_nodes(control_plane, [KwokNode(name="custom", accelerator=PRODUCT, accelerator_count=8)])
    control_plane.kubectl("apply", "--filename=-", input=json.dumps(DEFINITION))
    control_plane.wait_until_established(DEFINITION["metadata"]["name"])
    control_plane.kubectl("apply", "--server-side", f"--kustomize={FOLDER}")
    before = {}
    for name, more in SETTINGS.items():
        path = control_plane.directory / f"{name}.yaml"
        before[name] = path.read_text(encoding="utf-8")
        _restart(installation, control_plane, name, yaml.safe_dump(yaml.safe_load(before[name]) | more))
    yield
    for name, document in before.items():
        _restart(installation, control_plane, name, document)
    control_plane.kubectl("delete", f"--kustomize={FOLDER}")
    control_plane.kubectl("delete", "crd", DEFINITION["metadata"]["name"])
    control_plane.kubectl("delete", "node", "custom")


def _restart(installation: Installation, control_plane: ControlPlane, name: str, document: str) -> None:
    installation.processes[name].stop(patience_seconds=20.0)
    (control_plane.directory / f"{name}.yaml").write_text(document, encoding="utf-8")
    installation.start_component(name)


@pytest.mark.usefixtures("_configured")
def test_a_custom_resource_is_scaled_once_the_permissions_are_granted(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Before that, a condition names the missing permission."""
    bench = Bench(control_plane, namespace)
    # A single pod stands for those that an operator would create.
    pod = deployment("chat", product=PRODUCT, accelerators=1)["spec"]["template"]
    pod |= {"apiVersion": "v1", "kind": "Pod"}
    pod["metadata"] |= {"name": "chat-0"}
    service = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "InferenceService",
        "metadata": {"name": "chat"},
        "spec": {"replicas": 1},
        "status": {"replicas": 1, "selector": "app=chat"},
    }
    binding = bound("chat")
    reference = {"apiVersion": f"{GROUP}/v1", "kind": "InferenceService", "name": "chat"}
    binding["spec"]["scalingConfiguration"]["target"]["targetRef"] = reference
    bench.apply(pod, service, policy("waiting"), binding)
    bench.kubectl("wait", "pod/chat-0", "--for=condition=Ready", "--timeout=60s")
    bench.until("chat", TargetsResolved="TargetNotFound")

    control_plane.kubectl("apply", "--filename=-", input=json.dumps(READING))
    try:
        bench.until("chat", ScalingActive="ControllerMayNotScale", currentReplicas=1)
        bench.apply(WRITING, BINDING)
        bench.until("chat", ScalingActive="ScalesWritten")
        with bench.engines(chat=35):
            wanted = "--for=jsonpath={.spec.replicas}=4"
            bench.kubectl("wait", "inferenceservice/chat", wanted, "--timeout=60s")
    finally:
        control_plane.kubectl("delete", "clusterrole", READING["metadata"]["name"])

    assert "InferenceService 'chat' scaled from 1 to 4 replicas" in bench.kubectl("events", "--for=aspb/chat")


AGGREGATED = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {
        "name": "stowplan-targets-test",
        "labels": {"stowplan.dev/aggregate-to-targets": "true"},
    },
    "rules": [{"apiGroups": ["apps"], "resources": ["replicasets/scale"], "verbs": ["get"]}],
}


def test_a_labelled_cluster_role_grants_the_permission_to_get_a_scale(
    control_plane: ControlPlane, installation: Installation
) -> None:
    """Without it the controller does not have the permission."""
    who = "--as=system:serviceaccount:stowplan-system:stowplan-controller"

    def may() -> str:
        found = control_plane.kubectl(
            "auth", "can-i", "get", "replicasets.apps", "--subresource=scale", who, "-A", check=False
        )
        return found.stdout.strip()

    before = may()
    control_plane.kubectl("apply", "--filename=-", input=json.dumps(AGGREGATED))
    try:
        control_plane.kubectl(
            "wait", "clusterrole/stowplan-controller-targets", "--for=jsonpath={.rules[0].verbs[0]}=get"
        )
        after = may()
    finally:
        control_plane.kubectl("delete", "clusterrole", "stowplan-targets-test")

    assert (before, after) == ("no", "yes")
