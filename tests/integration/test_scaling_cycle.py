"""Cycles of direct scaling on a real API server, with all permissions."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest
from support.binding_bench import Bench, bound, policy
from support.manifests import deployment

from apiserver.cluster.client import Cluster
from apiserver.cluster.events import EventRecorder
from apiserver.cluster.timing import utc_now
from controller.bindings.autoscalingpolicybinding import (
    AutoscalingPolicyBindingReconciler,
    BindingSettings,
    BindingTools,
)
from controller.bindings.scale_reader import ScaleReader
from controller.bindings.scaling import DirectScaler, Ending, ScalingTools
from controller.engines.endpoints import EndpointQuery, Exposures
from controller.observe.binding_targets import BoundWorld
from controller.observe.targets import TargetKey, TargetKind
from controller.variants.advisory import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

SCALED_BY_HAND = 3


@pytest.fixture
def bench(control_plane: ControlPlane, installation: Installation, namespace: str) -> Bench:
    """Apply a Deployment and a policy, and bind them with at least two replicas."""
    made = Bench(control_plane, namespace)
    value = bound("chat")
    value["spec"]["scalingConfiguration"]["minReplicas"] = 2
    made.apply(deployment("chat", product="NVIDIA-NONE", accelerators=1), policy("waiting"), value)
    return made


def generation(bench: Bench) -> str:
    """Return the generation of the Deployment, which counts its changes."""
    return str(bench.get("deployment/chat")["metadata"]["generation"])


class NoEngines:
    """A metrics source without any endpoint."""

    async def expose(self, questions: Sequence[EndpointQuery]) -> Exposures:
        """Return no exposures."""
        del questions
        return Exposures()


async def _cycle(bench: Bench, is_leading: Callable[[], bool]) -> Mapping[str, int]:
    """Run one cycle of a controller with all permissions, for a binding that wants two replicas."""
    async with await Cluster.connect(bench.control_plane.kubeconfig) as cluster:
        events = EventRecorder(cluster, controller="stowplan.dev/test", instance="test")
        reader = ScaleReader(cluster, tuple, silent_seconds=60.0)
        scaler = DirectScaler(
            ScalingTools(
                cluster=cluster,
                events=events,
                scalable=reader.resource,
                is_leading=is_leading,
                namespace="stowplan-system",
            )
        )
        world = BoundWorld(
            policies=[bench.get("asp/waiting")],
            bindings=[bench.binding("chat")],
            replicas={TargetKey(TargetKind.DEPLOYMENT, bench.namespace, "chat"): 1},
        )
        tools = BindingTools(
            cluster=cluster,
            events=events,
            source=NoEngines(),
            world=lambda: world,
            now=utc_now,
            steady=time.monotonic,
            scaler=scaler,
        )
        settings = BindingSettings(direct=Scope(everywhere=True))
        return (await AutoscalingPolicyBindingReconciler(tools, settings).cycle()).scaled


def test_a_concurrent_change_of_the_replicas_is_not_overwritten(bench: Bench) -> None:
    """The API server rejects a write with an older resource version."""

    def scale_by_hand() -> bool:
        bench.kubectl("scale", "deploy/chat", f"--replicas={SCALED_BY_HAND}")
        return True

    assert asyncio.run(_cycle(bench, scale_by_hand)) == {Ending.CONFLICT: 1}
    assert bench.get("deployment/chat")["spec"]["replicas"] == SCALED_BY_HAND


def test_a_controller_without_the_lease_does_not_scale(bench: Bench) -> None:
    """With the Lease, it carries out the same decision."""
    before = generation(bench)
    assert asyncio.run(_cycle(bench, lambda: False)) == {Ending.NOT_LEADING: 1}
    assert generation(bench) == before

    assert asyncio.run(_cycle(bench, lambda: True)) == {Ending.WRITTEN: 1}
    assert bench.get("deployment/chat")["spec"]["replicas"] == 2
