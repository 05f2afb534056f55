"""Checks of the control plane for tests: scheduling, pod addresses, deletion and RBAC."""

from __future__ import annotations

import json
import socket
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from hack.controlplane.nodes import KwokNode, create_nodes

if TYPE_CHECKING:
    from hack.controlplane import ControlPlane

pytestmark = pytest.mark.controlplane


def deployment(namespace: str, *, replicas: int, accelerators: int) -> dict[str, Any]:
    """Return a Deployment `engine` whose pods run on the node with the name of its namespace."""
    container = {
        "name": "engine",
        "image": "engine",
        "resources": {"limits": {"nvidia.com/gpu": str(accelerators)}},
    }
    labels = {"app": "engine"}
    pod = {"nodeSelector": {"kubernetes.io/hostname": namespace}, "containers": [container]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "engine", "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


@pytest.fixture
def node(control_plane: ControlPlane, namespace: str) -> str:
    """Create a node of eight accelerators that only this test uses, and return its name."""
    create_nodes(control_plane, [KwokNode(name=namespace, accelerator="NVIDIA-A100", accelerator_count=8)])
    return namespace


def test_every_component_runs_and_is_ready(control_plane: ControlPlane) -> None:
    """The processes are the real components and kwok, and the API server is ready."""
    followers = ["kube-controller-manager", "kube-scheduler", "kwok"]

    assert list(control_plane.processes) == ["etcd", "kube-apiserver", *followers]
    assert control_plane.kubectl("get", "--raw", "/readyz").stdout == "ok"


def test_a_fifth_pod_of_two_accelerators_does_not_fit_a_node_of_eight(
    control_plane: ControlPlane, namespace: str, node: str
) -> None:
    """Four pods run; the fifth stays Pending, and the scheduler's message names the accelerators."""
    control_plane.apply(deployment(node, replicas=5, accelerators=2))
    four_ready = "--for=jsonpath={.status.readyReplicas}=4"
    control_plane.kubectl("wait", four_ready, "deployment/engine", f"--namespace={namespace}")
    reason = "--for=jsonpath={.status.conditions[0].reason}=Unschedulable"
    waiting = "--field-selector=status.phase=Pending"
    control_plane.kubectl("wait", reason, "pods", waiting, f"--namespace={namespace}")
    pending = json.loads(
        control_plane.kubectl("get", "pods", waiting, f"--namespace={namespace}", "--output=json").stdout
    )["items"]

    assert len(pending) == 1
    assert "Insufficient nvidia.com/gpu" in pending[0]["status"]["conditions"][0]["message"]


def test_a_program_can_listen_on_the_address_of_a_pod(
    control_plane: ControlPlane, namespace: str, node: str
) -> None:
    """Each pod has its own address on the loopback interface, so all can use the same port."""
    control_plane.apply(deployment(node, replicas=2, accelerators=1))
    control_plane.kubectl(
        "wait", "--for=condition=Available", "deployment/engine", f"--namespace={namespace}"
    )
    addresses = control_plane.kubectl(
        "get", "pods", f"--namespace={namespace}", "--output=jsonpath={.items[*].status.podIP}"
    ).stdout.split()
    listeners = {address: socket.create_server((address, 18000)) for address in addresses}

    assert len(listeners) == 2
    for address, listener in listeners.items():
        with listener, socket.create_connection((address, 18000)), listener.accept()[0] as accepted:
            assert accepted.getsockname() == (address, 18000)


def test_a_deleted_pod_is_gone_without_the_grace_period(
    control_plane: ControlPlane, namespace: str, node: str
) -> None:
    """Scaling to zero deletes all pods earlier than the usual grace period of 30 s."""
    control_plane.apply(deployment(node, replicas=2, accelerators=1))
    here = f"--namespace={namespace}"
    control_plane.kubectl("wait", "--for=condition=Available", "deployment/engine", here)
    control_plane.kubectl("scale", "deployment/engine", "--replicas=0", here)

    control_plane.kubectl("wait", "--for=delete", "pods", "--selector=app=engine", "--timeout=25s", here)


def test_an_hpa_may_have_zero_replicas_and_a_tolerance_of_zero(
    control_plane: ControlPlane, namespace: str
) -> None:
    """`minReplicas: 0` and a tolerance of zero are accepted and stored."""
    external = {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1"}}
    behavior = {"scaleUp": {"tolerance": "0"}, "scaleDown": {"tolerance": "0"}}
    stored = control_plane.apply(
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "engine", "namespace": namespace},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "engine"},
                "minReplicas": 0,
                "maxReplicas": 9,
                "behavior": behavior,
                "metrics": [{"type": "External", "external": external}],
            },
        }
    )[0]["spec"]
    kept = {direction: rules["tolerance"] for direction, rules in stored["behavior"].items()}

    assert stored["minReplicas"] == 0
    assert kept == {"scaleUp": "0", "scaleDown": "0"}


def test_a_service_account_has_only_its_own_permissions(control_plane: ControlPlane, namespace: str) -> None:
    """Its kubeconfig authenticates as that account, and RBAC restricts it."""
    kubeconfig = control_plane.service_account_kubeconfig(namespace, "default")
    name = "--output=jsonpath={.status.userInfo.username}"
    who = control_plane.kubectl("auth", "whoami", f"--kubeconfig={kubeconfig}", name)
    refused = control_plane.kubectl("get", "pods", f"--kubeconfig={kubeconfig}", check=False)

    assert who.stdout == f"system:serviceaccount:{namespace}:default"
    assert refused.returncode == 1
    assert "Forbidden" in refused.stderr


def test_a_pod_with_a_start_up_delay_is_running_at_once_and_ready_later(
    control_plane: ControlPlane, namespace: str, node: str
) -> None:
    """It has an address from the beginning, and its status has both times."""
    slow = deployment(node, replicas=1, accelerators=1)
    annotations = {"simulation.stowplan.dev/start-up": "4s"}
    slow["spec"]["template"]["metadata"]["annotations"] = annotations
    control_plane.apply(slow)
    pods = ("pods", "--selector=app=engine", f"--namespace={namespace}")
    control_plane.kubectl("wait", "--for=create", *pods)
    control_plane.kubectl("wait", "--for=jsonpath={.status.phase}=Running", *pods)
    control_plane.kubectl("wait", "--for=condition=Ready", "--timeout=60s", *pods)
    (pod,) = json.loads(control_plane.kubectl("get", *pods, "--output=json").stdout)["items"]
    ready = next(c for c in pod["status"]["conditions"] if c["type"] == "Ready")
    began, ended = (
        datetime.fromisoformat(moment) for moment in (pod["status"]["startTime"], ready["lastTransitionTime"])
    )

    assert (ended - began).total_seconds() >= 4
    assert pod["status"]["podIP"]
    assert pod["status"]["containerStatuses"][0]["ready"] is True
