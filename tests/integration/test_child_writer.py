"""The writer of a Model's objects on a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from apiserver.cluster.client import Cluster
from apiserver.cluster.events import EventRecorder
from apiserver.cluster.status_writer import StatusWriter
from controller.expansion.steps import ChildKey, Steps
from controller.models.caches import RESOURCES
from controller.models.child_writer import ChildWriter
from controller.models.model import FIELD_MANAGER

if TYPE_CHECKING:
    from hack.controlplane import ControlPlane

pytestmark = pytest.mark.controlplane


async def test_only_objects_in_the_observed_state_are_written(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Existing and replaced objects are not taken over; a deleted one is not created without a new read."""
    place = f"--namespace={namespace}"
    labels = {"stowplan.dev/model": "qwen", "stowplan.dev/backend": "l4"}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "qwen-l4", "namespace": namespace, "labels": labels},
        "spec": {"selector": {"app": "ours"}, "ports": [{"port": 80}]},
    }
    key, wanted = ChildKey("Service", "qwen-l4"), Steps(apply=(service,), delete=(), awaited=())
    async with await Cluster.connect(control_plane.kubeconfig) as cluster:
        writer = StatusWriter(
            cluster=cluster,
            events=EventRecorder(cluster, controller="tests", instance="one"),
            field_manager=FIELD_MANAGER,
        )
        children = ChildWriter(writer, RESOURCES)
        made = await children.act(wanted, {}, {})
        again = await children.act(wanted, {}, {})
        control_plane.kubectl("delete", "service/qwen-l4", place)
        gone = await children.act(wanted, made.children, {})
        control_plane.kubectl("create", "service", "clusterip", "qwen-l4", "--tcp=81:81", place)
        before = await children.complete({}, namespace, [key])
        replaced = await children.act(wanted, made.children, {})
        new = await children.act(wanted, {}, {})
        after = await children.complete({}, namespace, [key])

    assert made.is_over
    assert [(item.is_over, item.refused) for item in (again, gone, replaced, new)] == [(False, "")] * 4
    assert before == after
