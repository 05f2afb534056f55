"""The processes of an installation: metrics, a clean exit, and the effects of a crash."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from typing import TYPE_CHECKING

import pytest
from support.manifests import autoscaler, deployment, listed, variant

if TYPE_CHECKING:
    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

COMPONENTS = ("webhooks", "apiserver", "controller")


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_process_exposes_metrics(installation: Installation, component: str) -> None:
    """Prometheus can scrape its build information and its memory."""
    with urllib.request.urlopen(installation.metrics_url(component), timeout=30) as answer:  # noqa: S310 (loopback)
        text = answer.read().decode()

    assert f'stowplan_build_info{{component="{component}"' in text
    assert "process_resident_memory_bytes" in text


@pytest.mark.parametrize("component", COMPONENTS)
def test_killing_a_process_changes_no_replica_count(
    control_plane: ControlPlane, installation: Installation, namespace: str, component: str
) -> None:
    """While a process is down all replicas stay; after its restart decisions continue."""
    labels = {"inference.optimization/acceleratorName": "L4"}
    manifests = [
        deployment("chat", product="NVIDIA-L4", accelerators=1, replicas=2),
        variant("chat", labels=labels),
        autoscaler("chat", least=1),
    ]
    control_plane.kubectl("apply", f"--namespace={namespace}", "--filename=-", input=listed(*manifests))
    desired = "--for=jsonpath={.status.desiredOptimizedAlloc.numReplicas}=2"
    control_plane.kubectl("wait", "va/chat", f"--namespace={namespace}", desired, "--timeout=60s")
    process = installation.processes[component]

    os.kill(process.pid, signal.SIGKILL)
    process.stop()
    # Long enough for several reads by the HPA, which reports that it could not read the metric.
    if component != "webhooks":
        failed = "--for=condition=ScalingActive=False"
        control_plane.kubectl("wait", "hpa/chat", f"--namespace={namespace}", failed, "--timeout=60s")
    replicas = control_plane.kubectl(
        "get", "deploy/chat", f"--namespace={namespace}", "--output=jsonpath={.spec.replicas}"
    ).stdout
    installation.start_component(component)

    assert replicas == "2"
    active = "--for=condition=ScalingActive=True"
    control_plane.kubectl("wait", "hpa/chat", f"--namespace={namespace}", active, "--timeout=90s")


@pytest.mark.parametrize("component", COMPONENTS)
def test_sigterm_stops_a_process_cleanly(installation: Installation, component: str) -> None:
    """The last log line reports the stop, every line is JSON, and none is an error."""
    process = installation.processes[component]

    process.stop(patience_seconds=20)

    lines = [json.loads(line) for line in process.log.read_text(encoding="utf-8").splitlines()]
    installation.start_component(component)
    assert lines[-1]["event"] == "stopped"
    assert not any(line["level"] == "error" for line in lines)
