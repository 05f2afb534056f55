"""What the account of the controller of Models may not do, though RBAC alone would let it."""

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
                # An older name of serviceAccountName, which no API server translates in kinds of others.
                "spec": {
                    "serviceAccount": "admin",
                    "containers": [{"name": "engine", "image": "example.com/engine"}],
                }
            },
        }
    },
}
REFUSED: Final[dict[str, tuple[Json, str]]] = {
    "of nobody": (workload([]), "nothing but what belongs to a Model"),
    "of something else": (workload([OWNER | {"kind": "Node"}]), "nothing but what belongs to a Model"),
    "by an account": (workload([OWNER], serviceAccountName="admin"), "by an account of its own choice"),
    "in the network of the node": (workload([OWNER], hostNetwork=True), "in a namespace of its node"),
    "among processes of the node": (workload([OWNER], hostPID=True), "in a namespace of its node"),
    "privileged": (workload([OWNER], containers=PRIVILEGED), "with privileges or added capabilities"),
    "more capable": (workload([OWNER], containers=CAPABLE), "with privileges or added capabilities"),
    "several pods, by an account": (GROUP, "by an account of its own choice"),
}


@pytest.fixture(scope="module", autouse=True)
def process(control_plane: ControlPlane, installation: Installation) -> Iterator[Process]:
    """Run the controller of Models with the rights that its manifests give."""
    control_plane.define(Definition.LEADER_WORKER_SETS)
    with models_process(control_plane) as started:
        yield started


@pytest.mark.parametrize(("value", "why"), REFUSED.values(), ids=REFUSED)
def test_it_makes_no_workload(control_plane: ControlPlane, namespace: str, value: Json, why: str) -> None:
    """Whoever holds its token can run nothing that a Model could not say."""
    arguments = ("create", ACCOUNT, f"--namespace={namespace}", "--filename=-")
    assert why in control_plane.kubectl(*arguments, input=json.dumps(value), check=False).stderr


@pytest.mark.parametrize("where", ["stowplan-system", "kube-system"])
def test_it_makes_nothing_where_secrets_of_others_are(control_plane: ControlPlane, where: str) -> None:
    """Not even what it says is of a Model."""
    arguments = ("create", ACCOUNT, f"--namespace={where}", "--filename=-")
    said = control_plane.kubectl(*arguments, input=json.dumps(workload([OWNER])), check=False).stderr
    assert "in its own namespace and in kube-system" in said


def test_it_changes_nothing_of_others(control_plane: ControlPlane, namespace: str) -> None:
    """Neither by taking it over nor by deleting or scaling it."""
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
            assert "nothing but what belongs to a Model" in said
    scale = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "new", "namespace": namespace},
        "spec": {"replicas": 3},
    }
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/new/scale"
    replace = ("replace", f"--raw={path}", ACCOUNT, "--filename=-")
    said = control_plane.kubectl(*replace, input=json.dumps(scale), check=False).stderr
    assert "scales nothing itself" in said


def test_what_a_model_says_it_makes(control_plane: ControlPlane, namespace: str) -> None:
    """All kinds of it."""
    place = f"--namespace={namespace}"
    control_plane.kubectl("apply", place, "--filename=-", input=listed(model(loading_backend("law"))))
    for what in ("deployment", "service", "configmap", "modelserver"):
        control_plane.kubectl("wait", place, f"{what}/qwen-l4", "--for=create", "--timeout=60s")
