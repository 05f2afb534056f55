"""Failures on a node: a killed process, exhausted memory, and an unreachable API server."""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from support.installed import COMPONENTS, HERE, Installed
from support.polling import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.e2e

HOG = """
import os, signal
for _ in range(8):
    if os.fork() == 0:
        kept = b"x" * (40 << 20)
        break
signal.alarm(60)  # where the kernel does nothing
signal.pause()
"""
"""Processes that together exceed the limit, so that the kernel kills the largest: the container's own."""


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_killed_process_is_restarted(installed: Installed, component: str) -> None:
    """The kubelet restarts it in the same pod, and it becomes Ready without state from before."""
    (pod, _) = installed.names(component)
    before = restarts(installed, pod)

    installed.kill(pod)

    wait_for(lambda: restarts(installed, pod) > before, "a restart")
    installed.wait_until_rolled_out()
    assert last_end(installed, pod)["exitCode"] == 137


def test_a_process_that_reaches_its_memory_limit_is_restarted(installed: Installed) -> None:
    """The kernel kills it, the pod's status has the reason, and the metrics API answers."""
    (pod, _) = installed.names("apiserver")
    before = restarts(installed, pod)

    installed.inside(pod, "python", "-c", HOG, check=False)

    ask = ("get", "--raw", "/apis/external.metrics.k8s.io/v1beta1")
    wait_for(lambda: "externalmetrics" in installed.kubectl(*ask, check=False).stdout, "an answer")
    wait_for(lambda: restarts(installed, pod) > before, "a restart")
    assert last_end(installed, pod)["reason"] == "OOMKilled"
    installed.wait_until_rolled_out()


def test_a_leader_without_connection_to_the_api_server_yields_and_logs_why(installed: Installed) -> None:
    """The leader stops, another one leads, and the first is not Ready until the connection is restored."""
    leader = wait_for(lambda: living_leader(installed), "a leader")
    before = restarts(installed, leader)

    with cut_off(installed, leader):
        wait_for(lambda: installed.leader() != leader, "another leader")
        wait_for(lambda: restarts(installed, leader) > before, "the end of the one that is cut off")
        said = logged(installed, leader, "--previous")
        wait_for(
            lambda: "no connection to the API server" in str(logged(installed, leader)), "a reason in its log"
        )
        assert not installed.read("pod", leader)["status"]["containerStatuses"][0]["ready"]

    assert ("lease lost", "no renewal succeeded for 10 s") in {
        (line["event"], line.get("why")) for line in said
    }
    installed.kubectl("wait", "--for=condition=Ready", HERE, f"pod/{leader}", "--timeout=60s")
    assert installed.leader() != leader


@contextmanager
def cut_off(installed: Installed, pod: str) -> Iterator[None]:
    """Drop the packets of a pod to the API server."""
    address = installed.read("pod", pod)["status"]["podIP"]
    port = installed.node.control_plane.server.rpartition(":")[2]
    nft("add table ip cut; add chain ip cut input { type filter hook input priority 0; }")
    nft(f"add rule ip cut input ip saddr {address} tcp dport {port} drop")
    try:
        yield
    finally:
        nft("delete table ip cut")


def living_leader(installed: Installed) -> str:
    """Return the leader's pod, or "" while the Lease names a restarted controller that does not lead."""
    named = installed.leader()
    return named if named and "leading" in [line["event"] for line in logged(installed, named)] else ""


def nft(command: str) -> None:
    """Run an nft command, which changes the rules of this run's own network namespace."""
    subprocess.run(["/usr/sbin/nft", command], check=True)


def restarts(installed: Installed, pod: str) -> int:
    """Return the number of restarts of a pod's container."""
    count: int = installed.read("pod", pod)["status"]["containerStatuses"][0]["restartCount"]
    return count


def last_end(installed: Installed, pod: str) -> dict[str, Any]:
    """Return the last termination state of a pod's container."""
    ended: dict[str, Any] = installed.read("pod", pod)["status"]["containerStatuses"][0]["lastState"][
        "terminated"
    ]
    return ended


def logged(installed: Installed, pod: str, *arguments: str) -> list[dict[str, Any]]:
    """Return the lines of a pod's log."""
    lines = installed.kubectl("logs", HERE, pod, *arguments).stdout.splitlines()
    return [json.loads(line) for line in lines]
