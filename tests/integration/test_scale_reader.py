"""The reader of scales on a real API server."""

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

pytestmark = pytest.mark.controlplane


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
