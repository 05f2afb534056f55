"""Admission policies that limit the account of the controller of Models beyond RBAC."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from support.manifests import listed
from support.models import loading_backend, model
from support.models_process import models_process

from hack.controlplane import ControlPlane
from hack.controlplane.foreign import Definition
from hack.controlplane.process import Process
from hack.installation import Installation

pytestmark = pytest.mark.controlplane

ACCOUNT: Final = "--as=system:serviceaccount:stowplan-system:stowplan-models"
OWNER: Final = {
    "apiVersion": "registry.volcano.sh/v1alpha1",
    "kind": "Model",
    "name": "forged",
    "uid": "0a9f1c1e-3c54-4b5a-9a7e-2f5f9a6f9f11",
    "controller": True,
}

Json = dict[str, Any]


def workload(owners: list[Json], **pod: Any) -> Json:
    """Return a Deployment."""
    containers = pod.pop("containers", [{"name": "engine", "image": "example.com/engine"}])
    labels = {"app": "new"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "new", "ownerReferences": owners},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers} | pod},
        },
    }


PRIVILEGED: Final = [
    {"name": "engine", "image": "example.com/engine", "securityContext": {"privileged": True}}
]
CAPABLE: Final = [
    {
        "name": "engine",
        "image": "example.com/engine",
        "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}},
    }
]
GROUP: Final = {
    "apiVersion": "leaderworkerset.x-k8s.io/v1",
    "kind": "LeaderWorkerSet",
    "metadata": {"name": "new", "ownerReferences": [OWNER]},
    "spec": {
        "leaderWorkerTemplate": {
            "size": 2,
            "workerTemplate": {
                # An older name of serviceAccountName, which is not converted in custom resources.
                "spec": {
                    "serviceAccount": "admin",
                    "containers": [{"name": "engine", "image": "example.com/engine"}],
                }
            },
        }
    },
}
REFUSED: Final[dict[str, tuple[Json, str]]] = {
    "without an owner": (workload([]), "may not write objects that do not belong to a Model"),
    "with an owner of another kind": (
        workload([OWNER | {"kind": "Node"}]),
        "may not write objects that do not belong to a Model",
    ),
    "with a service account": (
        workload([OWNER], serviceAccountName="admin"),
        "may only run pods with the service account default",
    ),
    "in the host network": (workload([OWNER], hostNetwork=True), "may not run pods in the host's namespaces"),
    "in the host PID namespace": (
        workload([OWNER], hostPID=True),
        "may not run pods in the host's namespaces",
    ),
    "privileged": (workload([OWNER], containers=PRIVILEGED), "with privileges or added capabilities"),
    "with an added capability": (
        workload([OWNER], containers=CAPABLE),
        "with privileges or added capabilities",
    ),
    "a group of pods with a service account": (GROUP, "may only run pods with the service account default"),
}


@pytest.fixture(scope="module", autouse=True)
def process(control_plane: ControlPlane, installation: Installation) -> Iterator[Process]:
    """Run the controller of Models with the permissions in its manifests."""
    control_plane.define(Definition.LEADER_WORKER_SETS)
    with models_process(control_plane) as started:
        yield started


@pytest.mark.parametrize(("value", "why"), REFUSED.values(), ids=REFUSED)
def test_the_account_cannot_create_workloads_beyond_models(
    control_plane: ControlPlane, namespace: str, value: Json, why: str
) -> None:
    """A holder of its token can run nothing that a Model could not specify."""
    arguments = ("create", ACCOUNT, f"--namespace={namespace}", "--filename=-")
    assert why in control_plane.kubectl(*arguments, input=json.dumps(value), check=False).stderr


@pytest.mark.parametrize("where", ["stowplan-system", "kube-system"])
def test_the_account_cannot_create_objects_in_namespaces_with_foreign_secrets(
    control_plane: ControlPlane, where: str
) -> None:
    """This includes objects with a forged owner reference to a Model."""
    arguments = ("create", ACCOUNT, f"--namespace={where}", "--filename=-")
    said = control_plane.kubectl(*arguments, input=json.dumps(workload([OWNER])), check=False).stderr
    assert "in its own namespace or in kube-system" in said


def test_the_account_cannot_change_objects_of_others(control_plane: ControlPlane, namespace: str) -> None:
    """It cannot take them over, delete them, or scale them."""
    place = f"--namespace={namespace}"
    other = workload([])
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "new"},
        "spec": {"ports": [{"port": 80}]},
    }
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}}
    control_plane.kubectl("apply", place, "--filename=-", input=listed(other, service, config))
    taken = json.dumps({"metadata": {"ownerReferences": [OWNER]}})
    for kind in ("deployment", "service", "configmap"):
        for what in (("patch", f"{kind}/new", f"--patch={taken}"), ("delete", f"{kind}/new")):
            said = control_plane.kubectl(*what, ACCOUNT, place, check=False).stderr
            assert "may not write objects that do not belong to a Model" in said
    scale = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "new", "namespace": namespace},
        "spec": {"replicas": 3},
    }
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/new/scale"
    replace = ("replace", f"--raw={path}", ACCOUNT, "--filename=-")
    said = control_plane.kubectl(*replace, input=json.dumps(scale), check=False).stderr
    assert "may not scale anything itself" in said


def test_the_account_can_create_the_objects_of_a_model(control_plane: ControlPlane, namespace: str) -> None:
    """All kinds that a Model needs are created."""
    place = f"--namespace={namespace}"
    control_plane.kubectl("apply", place, "--filename=-", input=listed(model(loading_backend("law"))))
    for what in ("deployment", "service", "configmap", "modelserver"):
        control_plane.kubectl("wait", place, f"{what}/qwen-l4", "--for=create", "--timeout=60s")
