"""`stowplan status` and `stowplan explain` without a name on a live cluster, also with few rights."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.command_line import stowplan
from support.manifests import Manifest, autoscaler, deployment, l4_node, listed, variant

from hack.controlplane import ControlPlane

if TYPE_CHECKING:
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane


def test_the_state_of_a_namespace_names_what_is_wrong(
    control_plane: ControlPlane,
    installation: Installation,
    namespace: str,
) -> None:
    """The engines of the variant do not run, so it is not ready; `kubectl wait` sees the same."""
    control_plane.kubectl("apply", "--filename=-", input=listed(l4_node(f"l4-{namespace}")))
    manifests = listed(
        deployment("chat", product="NVIDIA-L4", accelerators=1), variant("chat"), autoscaler("chat")
    )
    control_plane.kubectl("apply", f"--namespace={namespace}", "--filename=-", input=manifests)
    place = ("--kubeconfig", str(control_plane.kubeconfig), "-n", namespace)
    control_plane.kubectl(
        "wait", "va/chat", f"--namespace={namespace}", "--for=condition=Ready=false", "--timeout=60s"
    )

    shown = stowplan("status", *place, "-o", "json")
    document: Manifest = json.loads(shown.out)
    assert shown.code == 1
    (model,) = document["models"]
    (item,) = model["variants"]
    assert (model["model_id"], item["granted"]) == ("meta/llama-3.1-8b", 1)
    assert "L4" in [use["accelerator"] for use in document["accelerators"]]
    assert [problem["reason"] for problem in document["problems"]] == ["MetricsUnavailable"]

    problems = stowplan("explain", *place)
    assert problems.code == 1
    assert "error: VariantAutoscaling" in problems.out
    assert f"stowplan explain va/chat -n {namespace}" in problems.out
    control_plane.kubectl("delete", "node", f"l4-{namespace}")


def test_a_user_with_few_rights_sees_what_these_show(
    control_plane: ControlPlane,
    installation: Installation,
    namespace: str,
) -> None:
    """What may not be read is named; nothing fails."""
    control_plane.kubectl("apply", f"--namespace={namespace}", "--filename=-", input=listed(variant("chat")))
    role = {"kind": "Role", "metadata": {"name": "viewer"}} | {"apiVersion": "rbac.authorization.k8s.io/v1"}
    rules = [{"apiGroups": ["llmd.ai"], "resources": ["variantautoscalings"], "verbs": ["list"]}]
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "viewer"}}
    control_plane.kubectl(
        "apply", f"--namespace={namespace}", "--filename=-", input=listed(role | {"rules": rules}, account)
    )
    bind = ("create", "rolebinding", "viewer", "--role=viewer", f"--serviceaccount={namespace}:viewer")
    control_plane.kubectl(*bind, f"--namespace={namespace}")
    user = control_plane.service_account_kubeconfig(namespace, "viewer")

    text = stowplan("status", "--kubeconfig", str(user), "-n", namespace).words
    assert "1 model, 1 not known" in text
    assert "not shown: you may not list nodes" in text
    assert "ACCELERATOR" not in text


def test_the_doctor_finds_a_working_installation(
    control_plane: ControlPlane,
    installation: Installation,
) -> None:
    """The dry run passes admission, the permissions are those of the manifests, and no object is left."""
    place = ("--kubeconfig", str(control_plane.kubeconfig))
    document: Manifest = json.loads(stowplan("doctor", *place, "-o", "json").out)

    seen = {(item["check"], item["verdict"]) for item in document["findings"]}
    assert document["is_installed"]
    assert {("webhooks", "ok"), ("permissions", "ok"), ("external metrics", "ok"), ("rivals", "ok")} <= seen
    assert "stowplan-doctor-dry-run" not in control_plane.kubectl("get", "va", "-A", "--output=name").stdout


def test_a_user_without_rights_is_told_which_ones_the_doctor_lacks(
    control_plane: ControlPlane,
    installation: Installation,
    namespace: str,
) -> None:
    """It checks what it can."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody"}}
    control_plane.kubectl("apply", f"--namespace={namespace}", "--filename=-", input=listed(account))
    user = control_plane.service_account_kubeconfig(namespace, "nobody")

    text = stowplan("doctor", "--kubeconfig", str(user)).words
    assert "whether Stowplan is installed is not known" in text
    assert "note rivals: not checked: you may not list deployments.apps" in text
    assert "ok rivals" not in text
    assert "ok permissions" not in text
