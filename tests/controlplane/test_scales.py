"""Targets of any kind on a real API server: discovery, the scale subresource, and permission to get it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from apiserver.cluster.client import Cluster
from controller.bindings.scale_reader import ScaleReader
from controller.observe.scales import Scale
from controller.observe.targets import TargetKey, TargetKind

if TYPE_CHECKING:
    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {
        "name": "stowplan-targets-test",
        "labels": {"stowplan.dev/aggregate-to-targets": "true"},
    },
    "rules": [{"apiGroups": ["apps"], "resources": ["replicasets/scale"], "verbs": ["get"]}],
}


async def test_a_replica_set_is_read_through_its_scale_subresource(
    control_plane: ControlPlane, namespace: str
) -> None:
    """This works for any kind that has a scale subresource according to discovery."""
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "chat"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "chat"}},
            "template": {
                "metadata": {"labels": {"app": "chat"}},
                "spec": {"containers": [{"name": "engine", "image": "engine"}]},
            },
        },
    }
    control_plane.kubectl("apply", "-n", namespace, "--filename=-", input=json.dumps(replica_set))
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "chat"}
    key = TargetKey(TargetKind.SCALED, namespace, "chat", "apps", "ReplicaSet")

    async with await Cluster.connect(control_plane.kubeconfig) as cluster:
        reader = ScaleReader(cluster, lambda: ((namespace, reference),), silent_seconds=600)
        await reader.read(key, "apps/v1")

    assert reader.last_scale(key) == Scale(
        replicas=0,
        selector={"matchExpressions": [{"key": "app", "operator": "In", "values": ["chat"]}]},
    )


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
    control_plane.kubectl("apply", "--filename=-", input=json.dumps(ROLE))
    try:
        control_plane.kubectl(
            "wait", "clusterrole/stowplan-controller-targets", "--for=jsonpath={.rules[0].verbs[0]}=get"
        )
        after = may()
    finally:
        control_plane.kubectl("delete", "clusterrole", "stowplan-targets-test")

    assert (before, after) == ("no", "yes")
