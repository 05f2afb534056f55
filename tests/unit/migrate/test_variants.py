"""VariantAutoscalings to annotated autoscalers and back: what moves, what is lost, and what is assumed."""

from __future__ import annotations

import json

import pytest
from support.annotated import scaled_object
from support.manifests import deployment, listed, node, profiled_variant, variant
from support.migrate_verb import hpa, migrated
from support.verbs import Stowplan

from apiserver.kinds.autoscalers import KEDA_LABEL
from apiserver.kinds.llmd.identity import ACCELERATOR_LABEL
from apiserver.schema.json import Json

LABELS = {ACCELERATOR_LABEL: "L40S"}
TERMS = {
    "llm-d.ai/managed": "true",
    "llm-d.ai/model-id": "meta/llama-3.1-8b",
    "llm-d.ai/variant-cost": "40.0",
}
PRODUCT = "NVIDIA-A100-PCIE-80GB"
CLASS = {"name": "service-classes-config", "key": "premium.yaml"}


def with_owner(value: Json) -> Json:
    """Return an object that a Deployment owns, as earlier controllers wrote it."""
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama", "uid": "1"}
    return value | {"metadata": value["metadata"] | {"ownerReferences": [owner]}}


def with_annotations(value: Json, **annotations: str) -> Json:
    """Return an object with annotations of Stowplan, by their names behind the slash."""
    texts = {f"stowplan.dev/{name}": text for name, text in annotations.items()}
    return value | {"metadata": value["metadata"] | {"annotations": texts}}


def test_a_variant_and_its_autoscaler_become_one_annotated_autoscaler_and_back() -> None:
    """Accelerator, cost and orders move with it, and nothing is lost."""
    objects = [with_annotations(variant("llama", labels=LABELS), paused="true"), hpa()]

    there, notes = migrated(*objects)
    assert notes == []
    annotations = TERMS | {"stowplan.dev/paused": "true"}
    metadata = {"name": "llama", "labels": LABELS, "annotations": annotations}
    assert there == [hpa() | {"metadata": metadata}]

    back, notes = migrated(*there, to="stowplan")
    assert notes == []
    assert back == objects[::-1]


NAMED = {
    "its accelerator becomes the label": (
        [variant("llama", accelerator="H100"), hpa()],
        f"spec.accelerator: is the label {ACCELERATOR_LABEL} now",
    ),
    "an accelerator that no label can have": (
        [variant("llama", accelerator="an H100"), hpa()],
        "- spec.accelerator: has no place in annotated autoscalers: no label can have this value",
    ),
    "a number of accelerators": (
        [variant("llama", acceleratorCount=2), hpa()],
        "- spec.acceleratorCount: has no place in annotated autoscalers: the pods of the target say how many"
        " they request",
    ),
    "a service class": (
        [variant("llama", sloClassRef=CLASS), hpa()],
        "- spec.sloClassRef: has no place in annotated autoscalers: list the model in that service class",
    ),
    "a field that is not known": (
        [variant("llama", colour="red"), hpa()],
        "- spec.colour: has no place in annotated autoscalers: nothing reads it any more",
    ),
    "candidates of an old shape": (
        [profiled_variant("llama"), hpa()],
        "- spec.modelProfile: has no place in annotated autoscalers: nothing reads it any more",
    ),
    "another name": (
        [variant("llama"), hpa("llama-hpa")],
        "- metadata.name: has no place in annotated autoscalers: the metrics of the variant have"
        " variant_name=llama-hpa now, after its HorizontalPodAutoscaler",
    ),
    "a label with two values": (
        [variant("llama", labels={"app": "a"}), hpa(labels={"app": "b"})],
        "- metadata.labels[app]: has no place in HorizontalPodAutoscaler 'llama': it has another value there,"
        " 'b'",
    ),
    "labels that move": (
        [variant("llama", labels={"tier": "1", "app": "a"}), hpa()],
        "metadata.labels: app, tier moved to HorizontalPodAutoscaler 'llama'",
    ),
    "a higher minimum": (
        [variant("llama", minReplicas=2), hpa()],
        "spec.minReplicas: HorizontalPodAutoscaler 'llama' has minReplicas 2 now",
    ),
    "a lower maximum": (
        [variant("llama", maxReplicas=3), hpa()],
        "spec.maxReplicas: HorizontalPodAutoscaler 'llama' has maxReplicas 3 now",
    ),
    "a minimum of 0 of the autoscaler alone": (
        [variant("llama"), hpa(least=0)],
        "spec: minReplicas 0 of HorizontalPodAutoscaler 'llama' allows to scale to zero now, whatever"
        " planning.scaleToZero is",
    ),
    "an autoscaler by something else": (
        [variant("llama"), hpa() | {"spec": hpa()["spec"] | {"metrics": []}}],
        "spec.scaleTargetRef: HorizontalPodAutoscaler 'llama' does not read wva_desired_replicas: let it"
        " scale by this metric alone",
    ),
    "an owner": (
        [with_owner(variant("llama")), hpa()],
        "- metadata.ownerReferences: has no place in HorizontalPodAutoscaler 'llama': it has metadata"
        " of its own",
    ),
    "another autoscaler of its name": (
        [variant("llama"), hpa() | {"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "other"}}}],
        "- metadata.name: another object of the result has the same kind and name: rename one of them",
    ),
    "no autoscaler": (
        [variant("llama", minReplicas=0)],
        "spec.scaleTargetRef: nothing in the input scales it: wrote a HorizontalPodAutoscaler for 0 to 10"
        " replicas: add the present one to the input, or check these bounds",
    ),
    "only KEDA's copy of an autoscaler": (
        [variant("llama"), hpa("keda-hpa-llama", labels={KEDA_LABEL: "llama-so"})],
        "- metadata.name: is not migrated: ScaledObject 'llama-so' scales its target: add it to the input",
    ),
    "two variants of one target": (
        [variant("llama"), hpa(), variant("other", scaleTargetRef=hpa()["spec"]["scaleTargetRef"])],
        "- metadata.name: is not migrated: its autoscaler belongs to 'llama': remove one of them",
    ),
    "one that would be refused": (
        [variant("llama", variantCost="cheap"), hpa()],
        '- spec.variantCost: is not migrated: Invalid value: "cheap": must be a non-negative decimal number'
        " such as 10 or 10.5: see stowplan check",
    ),
}


@pytest.mark.parametrize(("objects", "note"), NAMED.values(), ids=NAMED.keys())
def test_what_changes_for_a_variant_is_named(objects: list[Json], note: str) -> None:
    """Each line has the field, what became of it, and what to do."""
    assert note in migrated(*objects)[1]


def test_bounds_and_selectors_are_adapted() -> None:
    """The variant is called like its autoscaler, which has the tighter bounds of both."""
    [result], _ = migrated(variant("llama", minReplicas=2, maxReplicas=3), hpa("llama-hpa"))

    assert (result["spec"]["minReplicas"], result["spec"]["maxReplicas"]) == (2, 3)
    metric = result["spec"]["metrics"][0]["external"]["metric"]
    assert metric["selector"]["matchLabels"] == {"variant_name": "llama-hpa"}


def test_a_minimum_above_the_maximum_of_the_other_is_lowered() -> None:
    """The API server would refuse such bounds; the planner keeps the maximum, too."""
    [result], _ = migrated(variant("llama", minReplicas=5), hpa(most=3))
    assert (result["spec"]["minReplicas"], result["spec"]["maxReplicas"]) == (3, 3)


def test_a_written_autoscaler_names_the_group_of_its_target() -> None:
    """Without one, Kubernetes looks for a Deployment in the core group."""
    [result], _ = migrated(variant("llama", scaleTargetRef={"kind": "Deployment", "name": "a"}))
    assert result["spec"]["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}


def test_the_query_of_a_scaled_object_follows_its_name() -> None:
    """A minimum of 0 that is only KEDA's default becomes explicit where the variant allows it."""
    query = 'max(wva_desired_replicas{variant_name="llama"})'
    triggers = [{"type": "prometheus", "metadata": {"query": query}}]
    scaled = scaled_object("llama-so", "llama", triggers=triggers)
    del scaled["metadata"]["annotations"], scaled["metadata"]["namespace"]

    [result], notes = migrated(variant("llama", minReplicas=0), scaled)
    assert result["spec"]["triggers"][0]["metadata"]["query"] == query.replace('"llama"', '"llama-so"')
    assert result["spec"]["minReplicaCount"] == 0
    assert [note for note in notes if "Replicas" in note] == []


def test_a_scaled_object_is_written_on_request() -> None:
    """It has the recommended trigger, whose Prometheus is assumed."""
    [result], notes = migrated(variant("llama"), created="ScaledObject")

    assert (result["kind"], result["spec"]["minReplicaCount"]) == ("ScaledObject", 1)
    assert any("set serverAddress" in note for note in notes)


def test_what_servers_record_does_not_move() -> None:
    """A live export has status, uid and managed fields."""
    records: Json = {
        "uid": "1",
        "resourceVersion": "2",
        "managedFields": [],
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    live = variant("llama")
    live = live | {"metadata": live["metadata"] | records, "status": {}}
    scaler = hpa(annotations={"kubectl.kubernetes.io/last-applied-configuration": "{}"}, **records)

    [result], notes = migrated(live, scaler | {"status": {}})
    assert notes == []
    assert result == hpa() | {"metadata": {"name": "llama", "annotations": TERMS}}


BACK = {
    "no model": (
        [hpa(annotations={"llm-d.ai/managed": "true"})],
        "- metadata.annotations: is not migrated: metadata.annotations[llm-d.ai/model-id]: Required value",
    ),
    "a cost that means a price here": (
        [hpa(annotations=TERMS | {"llm-d.ai/variant-cost": "10.0"})],
        "metadata.annotations[llm-d.ai/variant-cost]: 10.0 of a VariantAutoscaling means the price of the"
        " accelerator, if there is a list",
    ),
    "a variant on the same target": (
        [hpa(annotations=TERMS), variant("llama")],
        "- metadata.name: is not migrated: a VariantAutoscaling has its target or its name:",
    ),
    "a cost that is no number": (
        [hpa(annotations=TERMS | {"llm-d.ai/variant-cost": "-1"})],
        "- metadata.name: is not migrated: the VariantAutoscaling would be refused: spec.variantCost:",
    ),
}


@pytest.mark.parametrize(("objects", "note"), BACK.values(), ids=BACK.keys())
def test_what_changes_for_an_annotated_autoscaler_is_named(objects: list[Json], note: str) -> None:
    """One without the annotation, and KEDA's copies, are not concerned."""
    assert any(line.startswith(note) for line in migrated(*objects, to="stowplan")[1])


def test_the_result_has_the_same_plan(stowplan: Stowplan) -> None:
    """As users of llm-d 0.9 would do it: an export, a check, and a plan with the same replicas."""
    room = {"apiVersion": "v1", "kind": "Node"} | node("n1", accelerators=8, product=PRODUCT)
    released = variant("llama", version="v1alpha1", minReplicas=1, maxReplicas=6)
    workload = deployment("llama", product=PRODUCT, accelerators=1)
    before = listed(room, workload, released, hpa(most=5))
    demand = ("--demand", "meta/llama-3.1-8b=35", "--capacity", "llama=10")

    code, after, _ = stowplan("migrate", "-f", "-", "--to", "released", given=before)
    assert code == 0
    kinds = [item["kind"] for item in json.loads(after)["items"]]
    assert kinds == ["Node", "Deployment", "HorizontalPodAutoscaler"]
    code, findings, _ = stowplan("check", "-", given=after)
    assert (code, findings.splitlines()) == (
        0,
        ["<stdin>:1: HorizontalPodAutoscaler/llama: annotations checked"],
    )
    plans = [stowplan("plan", "-f", "-", "-o", "json", *demand, given=text)[1] for text in (before, after)]
    decisions = [json.loads(out)["plan"]["decisions"] for out in plans]
    assert [[(it["name"], it["replicas"]) for it in items] for items in decisions] == [[("llama", 4)]] * 2
