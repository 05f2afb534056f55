"""`stowplan explain` on a live cluster, and `stowplan plan` on objects that kubectl exported."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.manifests import autoscaler, deployment, listed, variant

from apiserver import cli
from apiserver.schema.json import Json
from hack.controlplane import ControlPlane

if TYPE_CHECKING:
    from pathlib import Path

    from hack.installation import Installation

pytestmark = pytest.mark.controlplane


def test_a_decision_is_explained_and_an_unknown_name_gets_suggestions(
    control_plane: ControlPlane,
    installation: Installation,
    namespace: str,
    capsys: pytest.CaptureFixture[str],
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

    def explained() -> Json:
        assert cli.main(["explain", "va/chat", *place, "-o", "json"]) == 0
        document: Json = json.loads(capsys.readouterr().out)
        return document

    # Events are written in the background, after the status.
    document = next(found for _ in range(100) if (found := explained())["events"])
    as_text = cli.main(["explain", "va", "chat", *place])
    text = capsys.readouterr().out
    unknown = cli.main(["explain", "chatt", *place])
    led = capsys.readouterr().err

    assert (as_text, unknown) == (0, 1)
    assert document["decision"]["grantedReplicas"] == document["granted_replicas"] == 1
    assert [item["name"] for item in document["autoscalers"]] == ["chat"]
    assert document["decision"]["message"].split(":")[0] in document["events"][0]["note"]
    assert document["decision"]["message"].split(":")[0] in " ".join(text.split())
    assert f"no VariantAutoscaling 'chatt' in namespace '{namespace}'; objects in this namespace: chat" in led


def test_the_profile_of_a_variant_without_one_says_so(
    control_plane: ControlPlane,
    installation: Installation,
    namespace: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An unknown name is an error."""
    control_plane.kubectl("apply", f"--namespace={namespace}", "--filename=-", input=listed(variant("new")))
    place = ("--kubeconfig", str(control_plane.kubeconfig), "-n", namespace)

    codes = [cli.main(["profile", name, *place]) for name in ("va/new", "va/nobody")]
    captured = capsys.readouterr()

    assert codes == [1, 2]
    assert "new: nothing learned" in captured.out
    assert "nobody" in captured.err


def test_an_export_of_the_cluster_can_be_planned_without_edits(
    control_plane: ControlPlane,
    installation: Installation,
    namespace: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
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
    code = cli.main(["plan", "-f", str(export), *asked, "-o", "json"])

    captured = capsys.readouterr()
    (decision,) = json.loads(captured.out)["plan"]["decisions"]
    assert (code, captured.err) == (0, "")
    assert (decision["name"], decision["replicas"]) == ("chat", 1)


def test_a_missing_target_is_named_in_the_explanation(
    control_plane: ControlPlane,
    installation: Installation,
    namespace: str,
    capsys: pytest.CaptureFixture[str],
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

    code = cli.main(["explain", "orphan", "--kubeconfig", str(control_plane.kubeconfig), "-n", namespace])
    text = " ".join(capsys.readouterr().out.split())

    assert code == 0
    assert "Deployment 'orphan' does not exist" in text
    assert "check: the scale target Deployment 'orphan' does not exist" in text
