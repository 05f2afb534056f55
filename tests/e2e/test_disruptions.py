"""Rolling updates, drains and deleted leaders: other replicas answer, and no request fails."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from support.installed import COMPONENTS, HERE, Installed
from support.manifests import variant
from support.polling import wait_for

from hack.controlplane.client import RefusedError
from hack.realnode.kubelet import NODE

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.e2e

ADMIT = "/apis/llmd.ai/v1alpha2/namespaces/default/variantautoscalings?dryRun=All"


@contextmanager
def admission_goes_on(installed: Installed) -> Iterator[None]:
    """Send admission requests all the time; at the end fail if one was not allowed."""
    control_plane = installed.node.control_plane
    answers: list[str] = []
    stop = threading.Event()

    def ask() -> None:
        with control_plane.client() as administrator:
            while not stop.wait(0.02):
                try:
                    administrator.call("POST", ADMIT, variant("asked"))
                    answers.append("")
                except RefusedError as error:
                    answers.append(str(error))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield
    finally:
        stop.set()
        asking.join()
    assert len(answers) > 10
    assert not [answer for answer in answers if answer]


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_rolling_update_fails_no_admission_request(installed: Installed, component: str) -> None:
    """New pods are Ready before old ones stop, and old ones answer until they get no more requests."""
    before = installed.names(component)

    with admission_goes_on(installed):
        installed.kubectl("rollout", "restart", HERE, f"deployment/stowplan-{component}")
        installed.wait_until_rolled_out()
        wait_for(lambda: not set(before) & set(all_names(installed, component)), "old pods are gone")


def test_the_metrics_api_answers_during_a_rolling_update(installed: Installed) -> None:
    """Every request during the update succeeds, as a HorizontalPodAutoscaler would send it."""
    answers = []
    installed.kubectl("rollout", "restart", HERE, "deployment/stowplan-apiserver")
    rolled_out = ("rollout", "status", HERE, "deployment/stowplan-apiserver", "--watch=false")
    while "successfully" not in installed.kubectl(*rolled_out).stdout:
        answers.append(
            installed.kubectl("get", "--raw", "/apis/external.metrics.k8s.io/v1beta1", check=False)
        )

    assert answers
    assert not [answer.stderr for answer in answers if answer.returncode]


def test_draining_the_only_node_keeps_one_replica_of_each_component(installed: Installed) -> None:
    """Disruption budgets prevent evictions of pods whose replacements cannot start."""
    with admission_goes_on(installed):
        try:
            drained = installed.kubectl(
                "drain", NODE, "--pod-selector=app.kubernetes.io/name=stowplan", "--timeout=8s", check=False
            )
            ready = [pod for component in COMPONENTS for pod in installed.pods(component) if is_ready(pod)]
        finally:
            installed.kubectl("uncordon", NODE)
        installed.wait_until_rolled_out()

    assert "would violate the pod's disruption budget" in drained.stderr
    assert len(ready) == len(COMPONENTS)


def test_another_controller_leads_at_once_when_the_leader_is_deleted(installed: Installed) -> None:
    """A leader that is stopped releases the Lease."""
    leader = installed.leader()
    began = time.monotonic()

    installed.kubectl("delete", "pod", HERE, leader, "--wait=false")

    wait_for(lambda: installed.leader() not in ("", leader), "another leader")
    assert time.monotonic() - began < 10
    installed.wait_until_rolled_out()


def is_ready(pod: dict[str, object]) -> bool:
    """Return whether a pod has the condition Ready."""
    status = pod["status"]
    assert isinstance(status, dict)
    return any(item["type"] == "Ready" and item["status"] == "True" for item in status["conditions"])


def all_names(installed: Installed, component: str) -> list[str]:
    """Return the names of a component's pods, including those that are terminating."""
    items = installed.read("pods", f"--selector=app.kubernetes.io/component={component}")["items"]
    return [item["metadata"]["name"] for item in items]
