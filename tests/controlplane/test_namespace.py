"""An installation in a namespace of the user's choice: one line of a kustomization moves all of it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support.kustomizing import kustomized
from support.manifests import autoscaler, deployment, listed, variant

from hack.controlplane import ControlPlane
from hack.installation import Installation
from hack.installation.manifests import ROOT
from hack.packaging.chart import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.controlplane

ELSEWHERE = "inference"
METRIC = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/wva_desired_replicas"
WRONG = (ROOT / "manifests/samples/variantautoscaling/refused/several-errors.yaml").read_text(
    encoding="utf-8"
)
ALL = ("overlays/every-kind", *OPTIONS)


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """Run a cluster apart, for an installation of its own."""
    with ControlPlane(scheduler=False, kwok=False) as started:
        yield started


@pytest.fixture(scope="module")
def installed(plane: ControlPlane) -> Iterator[Installation]:
    """Install Stowplan elsewhere; its processes are told of no namespace."""
    settings = {"controller": {"planning": {"intervalSeconds": 1}}}
    with Installation(plane, namespace=ELSEWHERE, settings=settings) as started:
        yield started


def test_nothing_is_left_of_the_usual_name(plane: ControlPlane, tmp_path: Path) -> None:
    """Objects, subjects, Services that webhooks, conversion and the metrics API name: all are moved."""
    rendered = kustomized(plane, tmp_path, resources=ALL, namespace=ELSEWHERE)

    assert "stowplan-system" not in str(rendered)
    assert not [item["metadata"] for item in rendered if item["metadata"].get("namespace") == "kube-system"]
    subjects = {
        (subject["name"], subject["namespace"]) for item in rendered for subject in item.get("subjects", [])
    }
    accounts = {item["metadata"]["name"] for item in rendered if item["kind"] == "ServiceAccount"}
    assert subjects == {(name, ELSEWHERE) for name in accounts}


def test_it_is_decided_and_measured_there(plane: ControlPlane, installed: Installation) -> None:
    """The Lease, certificates, conversion and the metrics API all work from the other namespace."""
    manifests = [
        deployment("chat", product="NVIDIA-L4", accelerators=1, replicas=1),
        variant("chat"),
        autoscaler("chat"),
    ]
    plane.kubectl("apply", "--filename=-", input=listed(*manifests))
    decided = "--for=jsonpath={.status.desiredOptimizedAlloc.numReplicas}"
    plane.kubectl("wait", decided, "variantautoscalings.v1alpha1.llmd.ai/chat", "--timeout=60s")
    active = "--for=condition=ScalingActive=True"
    plane.kubectl("wait", active, "hpa/chat", "--timeout=90s")

    lease = plane.kubectl("get", "lease", "stowplan-controller", f"--namespace={ELSEWHERE}", "--output=name")
    explained = _stowplan(plane, "explain", "va/chat", "-n", "default", "-o", "json")

    assert '"metricName":"wva_desired_replicas"' in plane.kubectl("get", "--raw", METRIC).stdout
    assert lease.stdout.strip().endswith("/stowplan-controller")
    assert '"confirmed_seconds": null' not in explained  # it found the Lease


def test_a_bad_object_is_refused_there(plane: ControlPlane, installed: Installation) -> None:
    """The API server calls the webhooks where they are."""
    refused = plane.kubectl("apply", "--filename=-", input=WRONG, check=False)

    assert "spec.acceleratorCount: Invalid value: 0" in refused.stderr


def test_the_upgrade_looks_there(plane: ControlPlane, installed: Installation) -> None:
    """Nothing is left to do: the definition names the converter of this namespace."""
    told = _stowplan(plane, "upgrade", "--accept", "controllers")

    assert "nothing to do" in told
    assert f"Service {ELSEWHERE}/stowplan-conversion" in told


def _stowplan(plane: ControlPlane, *arguments: str) -> str:
    command = [sys.executable, "-m", "apiserver.cli", *arguments, "--kubeconfig", str(plane.kubeconfig)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
