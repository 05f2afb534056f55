"""`stowplan explain`: annotated autoscalers and their records, and the arguments of the command."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.annotated import Objects, hpa, made_by_keda, scaled_object
from support.manifests import variant

from apiserver import cli
from apiserver.cluster.namespaces import current_namespace
from apiserver.kinds.decision_record import record_text
from apiserver.schema.json import Json
from controller.commands.explain.evidence import NoSuchObjectError, collect
from controller.commands.explain.variant import explain_variant, variant_parts
from controller.commands.plan.terminal import print_lines, terminal
from controller.observe.claim import OwnerKind

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
STATUS: Json = {
    "desiredOptimizedAlloc": {"numReplicas": 2, "lastRunTime": "2026-01-01T11:59:48Z"},
    "currentAlloc": {"accelerator": "A100", "numReplicas": 1, "variantCost": "5"},
    "decision": {
        "reason": "ScaleUp",
        "message": "chat goes from 1 to 2 replicas",
        "costPerReplica": "5",
        "costSource": "VariantCost",
        "grantedReplicas": 2,
    },
}


def records(value: Json) -> Json:
    """Return the ConfigMap with the record of one autoscaler."""
    data = {value["metadata"]["uid"]: record_text(value, {"model_id": "m"}, STATUS)}
    metadata = {"namespace": "ns", "name": "stowplan-decisions"}
    return {"kind": "ConfigMap", "metadata": metadata, "data": data}


async def told(kind: OwnerKind, *objects: Json, name: str = "chat") -> str:
    """Return the explanation of an autoscaler, in one line."""
    evidence = await collect(
        Objects(*objects).cluster, kind, namespace="ns", name=name, system="stowplan-system"
    )
    text = print_lines(variant_parts(explain_variant(evidence, now=NOW)), terminal(100))
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (OwnerKind.HORIZONTAL_POD_AUTOSCALER, hpa("chat")),
        (OwnerKind.SCALED_OBJECT, scaled_object("chat", "chat")),
    ],
    ids=["hpa", "so"],
)
async def test_the_record_is_explained_like_a_status(kind: OwnerKind, value: Json) -> None:
    """The cost is that of its annotation."""
    text = await told(kind, value, records(value))

    assert text.startswith("ns/chat meta/llama-3.1-8b on A100 chat goes from 1 to 2 replicas")
    assert "1 now, 2 granted" in text
    assert "decided ScaleUp, 12 s ago" in text
    assert "5 per replica (VariantCost: llm-d.ai/variant-cost)" in text
    assert "the scale target Deployment 'chat' does not exist" in text


async def test_without_a_record_the_component_may_be_missing() -> None:
    """The controller may not run, either."""
    text = await told(OwnerKind.HORIZONTAL_POD_AUTOSCALER, hpa("chat"))

    assert "no decision yet: install the component 'annotated' (docs/annotated.md), or check whether" in text


async def test_an_autoscaler_that_is_not_managed_is_not_explained() -> None:
    """The message says which annotation is missing."""
    with pytest.raises(NoSuchObjectError, match=r'no annotation llm-d\.ai/managed: "true"'):
        await told(OwnerKind.HORIZONTAL_POD_AUTOSCALER, hpa("chat", terms={"llm-d.ai/managed": "no"}))


async def test_the_copy_of_keda_leads_to_the_scaled_object() -> None:
    """It has the annotations, and no decision of its own."""
    with pytest.raises(NoSuchObjectError, match="is KEDA's, for ScaledObject 'chat': use so/chat"):
        await told(OwnerKind.HORIZONTAL_POD_AUTOSCALER, made_by_keda("chat", "chat"), name="keda-hpa-chat")


async def test_a_missing_autoscaler_is_told_with_the_others() -> None:
    """As for VariantAutoscalings."""
    with pytest.raises(NoSuchObjectError, match=r"no HorizontalPodAutoscaler 'chat' .* namespace: code"):
        await told(OwnerKind.HORIZONTAL_POD_AUTOSCALER, hpa("code"), variant("chat"))


KUBECONFIG = """\
current-context: here
contexts:
- name: here
  context: {cluster: c, user: u, namespace: chat}
- name: bare
  context: {cluster: c, user: u}
"""


@pytest.mark.parametrize(
    ("context", "namespace"), [(None, "chat"), ("here", "chat"), ("bare", "default"), ("unknown", "default")]
)
def test_the_default_namespace_is_that_of_the_kubeconfig_context(
    tmp_path: Path, context: str | None, namespace: str
) -> None:
    """This is the behaviour of kubectl."""
    path = tmp_path / "config"
    path.write_text(KUBECONFIG, encoding="utf-8")

    assert current_namespace(path, context, {}) == namespace
    assert current_namespace(None, context, {"KUBECONFIG": f"{tmp_path / 'none'}:{path}"}) == namespace


@pytest.mark.parametrize("text", ["", "7", ": : :", "contexts: 7", "contexts: [7]\ncurrent-context: x"])
def test_the_namespace_is_default_if_the_kubeconfig_is_invalid(tmp_path: Path, text: str) -> None:
    """The error is reported when connecting."""
    path = tmp_path / "config"
    path.write_text(text, encoding="utf-8")

    assert current_namespace(path, None, {}) == "default"


@pytest.mark.parametrize("words", [["deploy/x"], ["va"], ["va/"], ["va/x/y"], ["x", "y"], ["x", "-A"]])
def test_an_argument_that_is_not_a_variant_is_rejected(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The message shows the expected form."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["explain", *words])

    assert ended.value.code == 2
    assert "va/NAME" in capsys.readouterr().err


def test_without_a_name_the_cluster_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It lists what is not well."""
    assert cli.main(["explain", "--kubeconfig", str(tmp_path / "none")]) == 2
    assert "there is no kubeconfig at" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        *(["va/x"], ["va", "x"], ["VariantAutoscaling/x"], ["x"]),
        *(["aspb/x"], ["AutoscalingPolicyBinding", "x"]),
        *(["hpa/x"], ["so/x"], ["horizontalpodautoscalers.autoscaling", "x"], ["ScaledObject/x"]),
    ],
)
def test_variants_and_bindings_can_be_named_in_any_form_that_kubectl_accepts(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a kubeconfig, the message names the path that was searched."""
    missing = tmp_path / "none"

    assert cli.main(["explain", *words, "--kubeconfig", str(missing)]) == 2
    assert f"there is no kubeconfig at {missing}" in capsys.readouterr().err
