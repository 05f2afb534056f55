"""Fixtures: one real node for the whole run, with the shipped installation on it."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from support.installed import HERE, Installed

from hack.controlplane.nodes import KwokNode
from hack.realnode import RealNode
from hack.realnode.prepared import is_handed_over

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def installed(pytestconfig: pytest.Config) -> Iterator[Installed]:
    """Apply the shipped manifests with the options of the README, and wait until the pods are Ready."""
    if not is_handed_over():
        pytest.skip("a real node needs namespaces of its own: run `make e2e`")
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with ExitStack() as stack:
        with capture.global_and_fixture_disabled():
            node = stack.enter_context(RealNode())
        yield install(node)


def install(node: RealNode) -> Installed:
    """Apply the manifests next to a simulated node, which must not get pods of the installation."""
    kubectl = node.control_plane.kubectl
    node.control_plane.apply(
        KwokNode(name="simulated", accelerator="NVIDIA-L4", accelerator_count=4).manifest()
    )
    # A simulated kubelet runs nothing; the taint keeps pods away that have to run.
    kubectl("taint", "node", "simulated", "kwok.x-k8s.io/node=fake:NoSchedule")
    began = time.monotonic()
    apply = ("apply", "--server-side", "--field-manager=stowplan", "--kustomize")
    kubectl(*apply, "manifests/base")
    kubectl("rollout", "status", "deployment", "--namespace=stowplan-system", "--timeout=90s")
    ready_seconds = time.monotonic() - began
    first_pods = json.loads(kubectl("get", "pods", HERE, "--output=json").stdout)["items"]
    began = time.monotonic()
    kubectl(*apply, "manifests/external-metrics")
    claim = "apiservice/v1beta1.external.metrics.k8s.io"
    kubectl("wait", "--for=condition=Available", claim, "--timeout=60s")
    return Installed(
        node=node,
        first_pods=first_pods,
        ready_seconds=ready_seconds,
        available_seconds=time.monotonic() - began,
    )
