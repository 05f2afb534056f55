"""The priority of an InferenceObjective, read with the controller's permissions and shown by `explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from support.command_line import stowplan
from support.manifests import deployment, listed, variant
from support.traffic import objective, pool

from hack.controlplane.foreign import Definition
from hack.installation.manifests import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

FOLDER = ROOT / "manifests" / "objectives"


@pytest.fixture
def _counting(control_plane: ControlPlane, installation: Installation, namespace: str) -> Iterator[None]:
    """Enable the objectives of the namespace while the test runs."""
    kubectl = control_plane.kubectl
    control_plane.define(Definition.INFERENCE_POOLS)
    kubectl("apply", "--server-side", f"--kustomize={FOLDER}")
    path = control_plane.directory / "controller.yaml"
    before = path.read_text(encoding="utf-8")
    document = yaml.safe_load(before)
    document["planning"] = document.get("planning", {}) | {"objectivesNamespaces": [namespace]}
    _restart(installation, path, yaml.safe_dump(document))
    yield
    _restart(installation, path, before)
    kubectl("delete", f"--kustomize={FOLDER}")


def _restart(installation: Installation, path: Path, document: str) -> None:
    installation.processes["controller"].stop(patience_seconds=20.0)
    path.write_text(document, encoding="utf-8")
    installation.start_component("controller")


@pytest.mark.usefixtures("_counting")
def test_an_objective_sets_the_priority_where_objectives_are_enabled(
    control_plane: ControlPlane, namespace: str
) -> None:
    """The labels of the pod template are sufficient: the Deployment has no replicas."""
    place = f"--namespace={namespace}"
    manifests = listed(
        deployment("chat", product="NVIDIA-L4", accelerators=1, replicas=0),
        variant("chat", modelID="chat"),
        objective("urgent", namespace=namespace),
        pool("llama", {"app": "chat"}, namespace=namespace),
    )
    control_plane.kubectl("apply", place, "--filename=-", input=manifests)

    said = 'jsonpath={.status.conditions[?(@.type=="ServiceClassResolved")].reason}=ObjectiveFound'
    control_plane.kubectl("wait", place, "va/chat", f"--for={said}", "--timeout=60s")
    where = ("--kubeconfig", str(control_plane.kubeconfig), "-n", namespace)
    told = stowplan("explain", "va/chat", *where).words
    assert "priority 90 (1 is served first)" in told
    assert "priority 90 by InferenceObjective 'urgent' (10) of InferencePool 'llama'" in told
