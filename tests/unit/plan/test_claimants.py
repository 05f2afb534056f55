"""Plans for annotated autoscalers, and for engines for which nobody has asked for decisions yet."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.annotated import TERMS, made_by_keda
from support.manifests import Manifest, autoscaler, deployment, l4_node, listed, node, pod_of, variant
from support.plan_verb import Granted, Plan

from apiserver.kinds.decision_record import record_text

PRODUCT = "NVIDIA-A100-PCIE-80GB"
MODEL = TERMS["llm-d.ai/model-id"]
STATUS = {
    "desiredOptimizedAlloc": {"numReplicas": 1, "lastRunTime": "2026-01-01T12:00:00Z"},
    "decision": {
        "reason": "Steady",
        "message": "stays",
        "demand": {
            "requestsPerSecond": "20",
            "upperRequestsPerSecond": "20",
            "startSeconds": 60,
            "backlogRequests": 0,
        },
        "capacityPerReplica": "10",
        "capacitySource": "Learned",
    },
}


def annotated(name: str, **terms: str) -> dict[str, Any]:
    """Return an annotated HPA as in a file, of a model with its name."""
    value = autoscaler(name)
    value["metadata"] = {
        "name": name,
        "uid": name,
        "annotations": TERMS | {"llm-d.ai/model-id": name} | terms,
    }
    return value


def objects(*names: str) -> list[dict[str, Any]]:
    """Return a node, and a Deployment for each name."""
    room = {"apiVersion": "v1", "kind": "Node"} | node("n1", accelerators=8, product=PRODUCT)
    return [room, *(deployment(name, product=PRODUCT, accelerators=1) for name in names)]


def test_an_annotated_autoscaler_is_planned_with_its_published_demand(plan: Plan, granted: Granted) -> None:
    """The record is in the exported ConfigMap of its namespace; without one, demand can be stated."""
    value = annotated("chat")
    data = {"chat": record_text(value, {}, STATUS), "other": "{"}
    records = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "stowplan-decisions"},
        "data": data,
    }

    code, out, _ = plan("-f", "-", "-o", "json", given=listed(*objects("chat"), value, records))
    assert (code, granted(out)) == (0, {"chat": 2})

    stated = ("--demand", "chat=35", "--capacity", "chat=10")
    code, out, _ = plan("-f", "-", "-o", "json", *stated, given=listed(*objects("chat"), value))
    assert (code, granted(out)) == (0, {"chat": 4})


def test_a_scaled_object_is_planned_once(plan: Plan, granted: Granted) -> None:
    """The copy of KEDA is in exports, too."""
    scaled = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "chat", "annotations": TERMS},
        "spec": {"scaleTargetRef": {"name": "chat"}, "triggers": []},
    }
    copy = made_by_keda("chat", "chat")
    copy["metadata"] = {**copy["metadata"], "namespace": "default"}

    _, out, _ = plan("-f", "-", "-o", "json", given=listed(*objects("chat"), scaled, copy))
    assert granted(out) == {"chat": 1}


def test_the_copy_of_keda_alone_is_nothing_to_plan(plan: Plan) -> None:
    """An export without ScaledObjects has only the copies."""
    copy = made_by_keda("chat", "chat")
    copy["metadata"] = {**copy["metadata"], "namespace": "default"}

    code, _, err = plan("-f", "-", given=listed(*objects("chat"), copy))

    assert code == 2
    assert "and with KEDA also scaledobjects" in " ".join(err)


def test_what_is_wrong_is_told_with_the_kind_of_the_object(plan: Plan, granted: Granted) -> None:
    """The others are planned."""
    given = listed(
        *objects("chat", "code", "busy"),
        annotated("chat", **{"llm-d.ai/variant-cost": "-1"}),
        annotated("code", **{"llm-d.ai/model-id": ""}),
        annotated("lost"),
        variant("taken", scaleTargetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": "busy"}),
        annotated("busy"),
    )

    code, out, _ = plan("-f", "-", "-o", "json", given=given)
    said = json.loads(out)
    told = " ".join(said["warnings"])

    assert (code, granted(out)) == (1, {"chat": 1, "taken": 1})
    assert said["conclusion"] == "3 variants omitted: default/busy, default/code, default/lost"
    assert "HorizontalPodAutoscaler default/chat: metadata.annotations[llm-d.ai/variant-cost]" in told
    assert "HorizontalPodAutoscaler default/code is omitted: metadata.annotations[llm-d.ai/model-id]" in told
    assert "HorizontalPodAutoscaler default/lost is omitted: Deployment 'lost' does not exist" in told
    assert "HorizontalPodAutoscaler default/busy is omitted: VariantAutoscaling 'taken' already" in told


_PRICES = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "accelerator-unit-costs", "namespace": "stowplan-system"},
    "data": {"L4": '{"cost": "3"}'},
}


def _engine(name: str, *arguments: str, kind: str = "Deployment", **metadata: Any) -> Manifest:
    value = deployment(name, product="NVIDIA-L4", accelerators=1)
    container = value["spec"]["template"]["spec"]["containers"][0]
    container |= {"image": "vllm/vllm-openai:v0.9", "args": list(arguments)}
    return value | {"kind": kind, "metadata": value["metadata"] | metadata}


def _unselective(value: Manifest) -> Manifest:
    del value["spec"]["template"]["spec"]["nodeSelector"]
    return value


def _planned(plan: Plan, *objects: Manifest, options: tuple[str, ...] = ()) -> dict[str, Any]:
    code, out, problems = plan("-f", "-", "-o", "json", *options, given=listed(*objects))
    assert code in (0, 1), problems
    document: dict[str, Any] = json.loads(out)
    return document


def test_engines_without_variants_are_planned_as_one_variant_each(plan: Plan) -> None:
    """Model, accelerator, price and capacity are those of the workload; one warning says so."""
    document = _planned(
        plan,
        l4_node("n"),
        _PRICES,
        _engine("chat", "--model=meta-llama/Llama-3.2-3B"),
        _engine("code", "--model=acme/code", kind="StatefulSet"),
        options=("--demand", "meta-llama/Llama-3.2-3B=12@500/100"),
    )

    chat, code = document["plan"]["decisions"]
    assert (chat["model_id"], code["model_id"]) == ("meta-llama/Llama-3.2-3B", "acme/code")
    assert (chat["accelerator"], chat["capacity"]["source"]) == ("L4", "Catalog")
    assert chat["replicas"] > 1
    assert float(document["plan"]["cost"]) == 3 * (chat["replicas"] + 1)
    assert document["assumed"] == ["Deployment default/chat", "StatefulSet default/code"]
    (warning,) = (text for text in document["warnings"] if "assumed" in text)
    assert warning.startswith(
        "the input contains no VariantAutoscaling, and no annotated autoscaler: 2 variants"
    )
    assert warning.endswith("Deployment default/chat, StatefulSet default/code")


def test_the_accelerator_is_that_of_the_nodes_of_its_pods(plan: Plan) -> None:
    """If its template selects no type."""
    document = _planned(plan, l4_node("n"), _unselective(_engine("chat", "--model=m")), pod_of("chat", "n"))

    assert document["plan"]["decisions"][0]["accelerator"] == "L4"


def test_both_workloads_of_one_name_are_planned(plan: Plan) -> None:
    """The kind is added to the names of their variants."""
    engines = (_engine("chat", "--model=m"), _engine("chat", "--model=m", kind="StatefulSet"))

    document = _planned(plan, l4_node("n"), *engines)

    names = {item["name"] for item in document["plan"]["decisions"]}
    assert names == {"chat-deployment", "chat-statefulset"}


def test_workloads_without_a_readable_model_are_named(plan: Plan) -> None:
    """Routers and clients, which use no accelerators, are not."""
    router = _engine("router", "--service-discovery=k8s")
    del router["spec"]["template"]["spec"]["containers"][0]["resources"]

    document = _planned(
        plan, l4_node("n"), router, _engine("chat", "--model=m"), _engine("dark", "--model=$(M)")
    )

    assert document["assumed"] == ["Deployment default/chat"]
    (warning,) = (text for text in document["warnings"] if text.startswith("no variant is assumed"))
    assert "for 1 workload with" in warning
    assert "--served-model-name: Deployment default/dark; write VariantAutoscalings" in warning


def test_no_autoscaler_is_expected_to_follow(plan: Plan) -> None:
    """It scales by something else until Stowplan is installed; its bounds count."""
    scaler = autoscaler("chat", most=1)
    resource = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    scaler["spec"]["metrics"] = [{"type": "Resource", "resource": resource}]
    options = ("--demand", "m=12", "--capacity", "chat=1")

    document = _planned(plan, l4_node("n"), _engine("chat", "--model=m"), scaler, options=options)

    assert not any("wva_desired_replicas" in text for text in document["warnings"])
    assert document["plan"]["decisions"][0]["replicas"] == 1


ASKED: dict[str, Manifest] = {
    "a variant": variant("other"),
    "an annotated autoscaler": autoscaler("other")
    | {"metadata": {"name": "other", "annotations": TERMS | {"llm-d.ai/variant-cost": "5"}}},
}


@pytest.mark.parametrize("asking", ASKED.values(), ids=ASKED.keys())
def test_nothing_is_assumed_beside_an_object_that_asks_for_decisions(plan: Plan, asking: Manifest) -> None:
    """Who has one variant has not forgotten the others."""
    other = deployment("other", product="NVIDIA-L4", accelerators=1)

    document = _planned(plan, l4_node("n"), other, asking, _engine("chat", "--model=m"))

    assert document["assumed"] == []
    assert [item["name"] for item in document["plan"]["decisions"]] == ["other"]


def test_nothing_is_assumed_beside_what_keda_copied_from_an_annotated_object(plan: Plan) -> None:
    """The ScaledObject asks for decisions, and was not exported."""
    copy = made_by_keda("chat", "chat")
    copy["metadata"] |= {"namespace": "default"}

    code, _, problems = plan("-f", "-", given=listed(l4_node("n"), _engine("chat", "--model=m"), copy))

    assert code == 2
    assert problems[0].endswith("with KEDA also scaledobjects")


def test_nothing_is_assumed_beside_an_invalid_variant(plan: Plan) -> None:
    """It is reported, and not replaced by an assumption."""
    invalid = variant("other", modelID="")

    code, _, problems = plan("-f", "-", given=listed(l4_node("n"), _engine("chat", "--model=m"), invalid))

    assert code == 2
    assert any("VariantAutoscaling default/other: spec.modelID" in text for text in problems)


def test_without_engines_what_to_export_is_said(plan: Plan) -> None:
    """And which workloads do not name their models."""
    code, _, problems = plan("-f", "-", given=listed(l4_node("n"), _engine("dark", "--port=1")))

    assert code == 2
    assert "nothing to plan: the input contains no VariantAutoscaling" in problems[0]
    assert "Deployment default/dark" in problems[1]
