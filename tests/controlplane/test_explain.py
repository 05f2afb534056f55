"""`stowplan explain` on a live cluster, and `stowplan plan` on objects that kubectl exported."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.command_line import stowplan
from support.manifests import Manifest, autoscaler, deployment, listed, variant

from hack.controlplane import ControlPlane

if TYPE_CHECKING:
    from pathlib import Path

    from hack.installation import Installation

pytestmark = pytest.mark.controlplane


def test_a_decision_is_explained_and_an_unknown_name_gets_suggestions(
    control_plane: ControlPlane,
    installation: Installation,
    namespace: str,
) -> None:
    """The output has numbers, conditions, HPA and events; for an unknown name it lists the existing ones."""
    manifests = listed(
        deployment("chat", product="NVIDIA-L4", accelerators=1), variant("chat"), autoscaler("chat")
    )
    control_plane.kubectl("apply", f"--namespace={namespace}", "--filename=-", input=manifests)
    control_plane.kubectl(
        "wait",
        "va/chat",
        f"--namespace={namespace}",
        "--for=jsonpath={.status.desiredOptimizedAlloc.numReplicas}=1",
        "--timeout=60s",
    )
    place = ("--kubeconfig", str(control_plane.kubeconfig), "-n", namespace)

    def explained() -> Manifest:
        ended = stowplan("explain", "va/chat", *place, "-o", "json")
        assert ended.code == 0
        document: Manifest = json.loads(ended.out)
        return document

    # Events are written in the background, after the status.
    document = next(found for _ in range(100) if (found := explained())["events"])
    known, unknown = stowplan("explain", "va", "chat", *place), stowplan("explain", "chatt", *place)

    assert (known.code, unknown.code) == (0, 1)
    assert document["decision"]["grantedReplicas"] == document["granted_replicas"] == 1
    assert [item["name"] for item in document["autoscalers"]] == ["chat"]
    assert document["decision"]["message"].split(":")[0] in document["events"][0]["note"]
    assert document["decision"]["message"].split(":")[0] in known.words
    suggestion = f"no VariantAutoscaling 'chatt' in namespace '{namespace}'; objects in this namespace: chat"
    assert suggestion in unknown.err


def test_the_profile_of_a_variant_without_one_says_so(
    control_plane: ControlPlane,
    installation: Installation,
    namespace: str,
) -> None:
    """An unknown name is an error."""
    control_plane.kubectl("apply", f"--namespace={namespace}", "--filename=-", input=listed(variant("new")))
    place = ("--kubeconfig", str(control_plane.kubeconfig), "-n", namespace)

    new, nobody = (stowplan("profile", name, *place) for name in ("va/new", "va/nobody"))

    assert (new.code, nobody.code) == (1, 2)
    assert "new: nothing learned" in new.out
    assert "nobody" in nobody.err


def test_an_export_of_the_cluster_can_be_planned_without_edits(
    control_plane: ControlPlane,
    installation: Installation,
    namespace: str,
    tmp_path: Path,
) -> None:
    """`stowplan plan` reads the output of kubectl for every kind that it uses."""
    manifests = listed(
        deployment("chat", product="NVIDIA-L4", accelerators=1), variant("chat"), autoscaler("chat")
    )
    control_plane.kubectl("apply", f"--namespace={namespace}", "--filename=-", input=manifests)
    kinds = "va,deploy,hpa,nodes,pods,cm,quota"
    export = tmp_path / "live.yaml"
    export.write_text(
        control_plane.kubectl("get", kinds, f"--namespace={namespace}", "--output=yaml").stdout,
        encoding="utf-8",
    )

    asked = ["--demand", "meta/llama-3.1-8b=5", "--capacity", "chat=10", "--add-node", "L4x2"]
    ended = stowplan("plan", "-f", str(export), *asked, "-o", "json")

    (decision,) = json.loads(ended.out)["plan"]["decisions"]
    assert (ended.code, ended.err) == (0, "")
    assert (decision["name"], decision["replicas"]) == ("chat", 1)


def test_a_missing_target_is_named_in_the_explanation(
    control_plane: ControlPlane,
    installation: Installation,
    namespace: str,
) -> None:
    """The explanation contains the condition's message, and what to check."""
    control_plane.kubectl(
        "apply", f"--namespace={namespace}", "--filename=-", input=listed(variant("orphan"))
    )
    control_plane.kubectl(
        "wait",
        "va/orphan",
        f"--namespace={namespace}",
        "--for=condition=TargetResolved=False",
        "--timeout=60s",
    )

    place = ("--kubeconfig", str(control_plane.kubeconfig), "-n", namespace)
    explained = stowplan("explain", "orphan", *place)

    assert explained.code == 0
    assert "Deployment 'orphan' does not exist" in explained.words
    assert "check: the scale target Deployment 'orphan' does not exist" in explained.words
