"""An installation in a namespace of the user's choice, set by one line of a kustomization."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support.documents import example
from support.kustomizing import CLUSTER_SCOPED, MANIFESTS, kustomized
from support.manifests import autoscaler, deployment, listed, variant

from hack.controlplane import ControlPlane
from hack.installation import Installation
from hack.installation.manifests import ROOT
from hack.packaging.chart import OPTIONS, parts
from hack.packaging.rendering import OF_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.controlplane

USUAL = "stowplan-system"
ELSEWHERE = "inference"
METRIC = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/wva_desired_replicas"
WRONG = (ROOT / "manifests/samples/variantautoscaling/refused/several-errors.yaml").read_text(
    encoding="utf-8"
)


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """Yield a separate cluster, for its own installation."""
    with ControlPlane(scheduler=False, kwok=False) as started:
        yield started


@pytest.fixture(scope="module")
def installed(plane: ControlPlane) -> Iterator[Installation]:
    """Yield an installation in another namespace; the settings of its processes do not name it."""
    settings = {"controller": {"planning": {"intervalSeconds": 1}}}
    with Installation(plane, namespace=ELSEWHERE, settings=settings) as started:
        yield started


@pytest.mark.parametrize("overlay", ["overlays/every-kind", "overlays/without-crds"])
def test_an_overlay_can_be_moved_to_another_namespace(
    plane: ControlPlane, tmp_path: Path, overlay: str
) -> None:
    """Objects, subjects, and the Services of webhooks, conversion and the metrics API are moved.

    test_chart.py tests each part in the same way.
    """
    rendered = kustomized(
        plane, tmp_path, resources=[overlay], namespace=ELSEWHERE, transformers=[OF_NAMESPACE]
    )

    assert USUAL not in str(rendered)
    _check_namespaces(rendered, ELSEWHERE)


def test_all_parts_move_to_another_namespace_together(plane: ControlPlane, tmp_path: Path) -> None:
    """The subject of every role binding is in the namespace of its process; nothing is in kube-system."""
    everything = [part for part in parts() if not part.endswith("-without-crds")]
    rendered = kustomized(
        plane,
        tmp_path,
        resources=["base", *OPTIONS],
        components=[part for part in everything if part not in OPTIONS],
        namespace=ELSEWHERE,
        transformers=[OF_NAMESPACE],
    )

    assert USUAL not in str(rendered)
    _check_namespaces(rendered, ELSEWHERE)
    subjects = {
        (subject["name"], subject["namespace"]) for item in rendered for subject in item.get("subjects", [])
    }
    accounts = {item["metadata"]["name"] for item in rendered if item["kind"] == "ServiceAccount"}
    assert subjects == {(name, ELSEWHERE) for name in accounts}


@pytest.mark.parametrize("folder", ["base", "overlays/every-kind", "overlays/without-crds", *OPTIONS])
def test_by_default_each_object_has_the_usual_namespace(plane: ControlPlane, folder: str) -> None:
    """This holds for each directory as applied, and as one file of a release."""
    rendered = yaml.load_all(
        plane.kubectl("kustomize", str(MANIFESTS / folder)).stdout, Loader=yaml.CSafeLoader
    )

    _check_namespaces(list(rendered), USUAL)


@pytest.mark.parametrize(
    ("document", "namespace", "processes"), [("README.md", USUAL, 3), ("docs/installing.md", ELSEWHERE, 4)]
)
def test_the_kustomization_in_a_document_is_complete(
    plane: ControlPlane, tmp_path: Path, document: str, namespace: str, processes: int
) -> None:
    """All objects are in one namespace, and all processes have the image that the document names."""
    written = example(document, "Kustomization")
    (tmp_path / "stowplan").symlink_to(ROOT)
    (tmp_path / "controller.yaml").write_text("planning: {intervalSeconds: 5}", encoding="utf-8")
    (tmp_path / "kustomization.yaml").write_text(written, encoding="utf-8")
    rendered = list(yaml.load_all(plane.kubectl("kustomize", str(tmp_path)).stdout, Loader=yaml.CSafeLoader))

    _check_namespaces(rendered, namespace)
    assert (USUAL in str(rendered)) == (namespace == USUAL)
    pods = [item["spec"]["template"]["spec"] for item in rendered if item["kind"] == "Deployment"]
    assert len(pods) == processes
    (image,) = {container["image"] for pod in pods for container in pod["containers"]}
    assert image.startswith(yaml.load(written, Loader=yaml.CSafeLoader)["images"][0]["newName"])


def test_decisions_and_metrics_work_in_the_other_namespace(
    plane: ControlPlane, installed: Installation
) -> None:
    """This needs the Lease, certificates, conversion and the metrics API."""
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


def test_an_invalid_object_is_rejected_in_the_other_namespace(
    plane: ControlPlane, installed: Installation
) -> None:
    """The API server calls the webhooks there."""
    refused = plane.kubectl("apply", "--filename=-", input=WRONG, check=False)

    assert "spec.acceleratorCount: Invalid value: 0" in refused.stderr


def test_the_upgrade_command_finds_the_other_namespace(plane: ControlPlane, installed: Installation) -> None:
    """Nothing is left to do: the CRD names the conversion Service of this namespace."""
    told = _stowplan(plane, "upgrade", "--accept", "controllers")

    assert "nothing to do" in told
    assert f"Service {ELSEWHERE}/stowplan-conversion" in told


def _stowplan(plane: ControlPlane, *arguments: str) -> str:
    command = [sys.executable, "-m", "apiserver.cli", *arguments, "--kubeconfig", str(plane.kubeconfig)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _check_namespaces(rendered: list[dict[str, Any]], namespace: str) -> None:
    """Check that all namespaced objects are in this namespace, and all others in none."""
    wrong = [
        (item["kind"], item["metadata"])
        for item in rendered
        if item["metadata"].get("namespace") != (None if item["kind"] in CLUSTER_SCOPED else namespace)
    ]
    assert wrong == []
