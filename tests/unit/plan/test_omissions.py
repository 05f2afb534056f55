"""Variants omitted from a plan, and broken objects: they are reported, and never counted as served."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.manifests import autoscaler, deployment, l4_node, listed, variant
from support.plan_verb import Parts, Plan

_UNREAD = {"apiVersion": "workload.serving.volcano.sh/v1alpha1", "kind": "ModelServing", "name": "set"}


def _omitted(count: int) -> list[dict[str, Any]]:
    return [variant(f"set-{number:02}", scaleTargetRef=_UNREAD) for number in range(count)]


def _target(name: str) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}


def _created(item: dict[str, Any], year: int) -> dict[str, Any]:
    return item | {"metadata": item["metadata"] | {"creationTimestamp": f"{year}-01-01T00:00:00Z"}}


def test_engines_of_a_pair_have_the_demand_of_their_model(plan: Plan) -> None:
    """Requests need a pod of each role; one role can be named, too."""
    targets = [deployment(role, product="NVIDIA-L4", accelerators=1) for role in ("prefill", "decode")]
    for item in targets:
        item["spec"]["template"]["metadata"]["labels"]["llm-d.ai/role"] = item["metadata"]["name"]
    variants = [variant(item["metadata"]["name"], modelID="m") for item in targets]
    capacities = ("--capacity", "prefill=10", "--capacity", "decode=5")
    given = listed(l4_node("n", accelerators=8), *targets, *variants)

    both = plan("-f", "-", *capacities, "--demand", "m=15", "-o", "json", given=given)[1]
    one = plan("-f", "-", *capacities, "--demand", "m (decode)=15", "-o", "json", given=given)[1]

    assert replicas_in(both) == {"prefill": 2, "decode": 3}
    assert replicas_in(one)["decode"] == 3


def replicas_in(document: str) -> dict[str, int]:
    """Return the planned replicas by variant."""
    return {item["name"]: item["replicas"] for item in json.loads(document)["plan"]["decisions"]}


CONCLUSIONS = {
    "one": (1, 8, "1 variant omitted: default/set-00"),
    "many, of which only some are named": (
        14,
        8,
        f"14 variants omitted: {', '.join(f'default/set-{n:02}' for n in range(12))} and 2 more",
    ),
    "in addition to short models": (
        1,
        9000,
        "2 models short: default/chat, default/code; 1 variant omitted: default/set-00",
    ),
}


@pytest.mark.parametrize(("count", "demand", "told"), CONCLUSIONS.values(), ids=CONCLUSIONS.keys())
def test_the_conclusion_names_omitted_variants_last(
    plan: Plan, parts: Parts, count: int, demand: float, told: str
) -> None:
    """The exit code is 1, because their demand is not known to be met."""
    files = {"a.yaml": listed(*parts(demand=demand), *_omitted(count))}

    code, out, _ = plan("-f", "a.yaml", "-o", "json", files=files)

    said = json.loads(out)
    assert (code, said["is_enough"], said["conclusion"]) == (1, False, told)
    assert sum("is omitted: " in warning for warning in said["warnings"]) == count


def test_a_variant_whose_cost_is_absurd_is_omitted_by_itself(plan: Plan, parts: Parts) -> None:
    """The others are planned; its own row says what to change."""
    made = parts()
    made[-1]["spec"]["variantCost"] = "1000000"
    hpa = autoscaler("code", least=10_000, most=20_000)

    code, out, _ = plan("-f", "a.yaml", "-o", "json", files={"a.yaml": listed(*made, hpa)})

    said = json.loads(out)
    chat, other = said["plan"]["decisions"]
    assert (code, said["conclusion"]) == (1, "1 variant omitted: default/code")
    assert (chat["replicas"], chat["reason"]) == (1, "Steady")
    assert other["message"].endswith(
        "its cost (spec.variantCost, or the price of its accelerator) or its minReplicas of 10000"
    )
    assert said["warnings"][-1].startswith("variant default/code is left out: 10000 replicas at 1000000 per")


def test_a_missing_service_class_causes_a_warning(plan: Plan, parts: Parts) -> None:
    """As in the condition ServiceClassResolved, the variant has the lowest priority."""
    made = parts()
    made[-1]["spec"]["sloClassRef"] = {"name": "service-classes-config", "key": "gold.yaml"}

    _, out, _ = plan("-f", "a.yaml", "-o", "json", files={"a.yaml": listed(*made)})

    assert json.loads(out)["warnings"] == [
        "VariantAutoscaling default/code: spec.sloClassRef: ConfigMap 'service-classes-config' of Stowplan's"
        " namespace contains no service class under 'gold.yaml': priority 100, the lowest"
    ]


CAUSES = {
    "contradictory bounds of an autoscaler": (
        autoscaler("code", least=5, most=2),
        "VariantAutoscaling default/code is omitted: HorizontalPodAutoscaler 'code': spec.maxReplicas must be"
        " at least spec.minReplicas (5), was 2",
    ),
    "a target of another variant": (
        variant("other", scaleTargetRef=_target("code")),
        "VariantAutoscaling default/other is omitted: VariantAutoscaling 'code', whose name is first and"
        " whose age is the same, already decides on Deployment 'code'; delete one of the two",
    ),
    "a target of an older variant": (
        _created(variant("zoo", scaleTargetRef=_target("set")), 2025),
        "VariantAutoscaling default/set is omitted: VariantAutoscaling 'zoo' is older and already decides on"
        " Deployment 'set'; delete one of the two",
    ),
}


@pytest.mark.parametrize(("cause", "told"), CAUSES.values(), ids=CAUSES.keys())
def test_the_warning_names_the_object_that_causes_the_omission(
    plan: Plan, parts: Parts, cause: dict[str, Any], told: str
) -> None:
    """It has the object's kind and name, and fields as they are written in manifests."""
    others = [_created(variant("set"), 2026), deployment("set", product="NVIDIA-L4", accelerators=1)]

    _, out, _ = plan("-f", "a.yaml", "-o", "json", files={"a.yaml": listed(*parts(), *others, cause)})

    assert [text for text in json.loads(out)["warnings"] if "is omitted" in text] == [told]


@pytest.mark.parametrize(
    ("count", "told"),
    [(1, "1 node is unknown"), (7, "7 nodes is unknown")],
    ids=["one", "many, of which only some are named"],
)
def test_nodes_without_an_accelerator_type_cause_a_warning(
    plan: Plan, parts: Parts, count: int, told: str
) -> None:
    """The warning has the labels that would state a type."""
    made = parts(nodes=8)
    for item in made[:count]:
        del item["metadata"]["labels"]["nvidia.com/gpu.product"]

    _, out, _ = plan("-f", "a.yaml", "-o", "json", files={"a.yaml": listed(*made)})

    (warning,) = json.loads(out)["warnings"]
    assert warning.startswith(f"the type of the accelerators of {told}, so no variant for a type is placed")
    assert ": node-1" in warning
    assert ("node-5 and 2 more; " in warning) == (count > 5)
    assert "labels nvidia.com/gpu.product, amd.com/gpu.product-name, " in warning


def test_pods_without_accelerators_cause_a_warning_if_their_variant_has_a_type(
    plan: Plan, parts: Parts
) -> None:
    """A variant without a type may run on any node."""
    made = parts()
    for item in (item for item in made if item["kind"] == "Deployment"):
        (container,) = item["spec"]["template"]["spec"]["containers"]
        del container["resources"]
        if item["metadata"]["name"] == "chat":
            del item["spec"]["template"]["spec"]["nodeSelector"]
    for item in (item for item in made if item["metadata"]["name"] == "chat"):
        item["spec"].pop("accelerator", None)

    _, out, _ = plan("-f", "a.yaml", "-o", "json", files={"a.yaml": listed(*made)})

    assert json.loads(out)["warnings"] == [
        "the pods of 1 variant request no accelerators, so they take up none of their type and are on no node"
        " of the plan: default/code; a container requests them with limits such as nvidia.com/gpu"
    ]


HALF = {"containers": [{"name": "vllm", "resources": {"limits": {"nvidia.com/gpu": "500m"}}}]}


def half_an_accelerator() -> dict[str, Any]:
    """Return a Deployment that no API server would store."""
    made = deployment("x", product="NVIDIA-L4", accelerators=1)
    made["spec"]["template"]["spec"] = HALF
    return made


def without_a_target_in_the_hub() -> dict[str, Any]:
    """Return a VariantAutoscaling whose annotation removes the implied target at conversion."""
    kept = {"fields": [{"path": ["spec", "scaleTargetRef"], "derived": _target("x")}]}
    made = variant("x", version="v1alpha1", scaleTargetRef=None, variantCost=None)
    made["metadata"]["annotations"] = {"llmd.ai/kept-by-conversion": json.dumps(kept)}
    return made


BROKEN: dict[str, tuple[list[dict[str, Any]], str, str]] = {
    "a target that does not exist": (
        [variant("x")],
        "1 variant omitted: default/x",
        "VariantAutoscaling default/x is omitted: spec.scaleTargetRef: Deployment 'x' of namespace 'default'"
        " is missing: add its manifest with -f, or export it with kubectl get deployment -n default x -o"
        " yaml",
    ),
    "a value that admission would reject": (
        [variant("x", modelID=""), deployment("x", product="NVIDIA-L4", accelerators=1)],
        "1 invalid object left out: VariantAutoscaling default/x",
        'VariantAutoscaling default/x: spec.modelID: Invalid value: "": must be at least 1 character long: it'
        " is left out",
    ),
    "an annotation that makes it invalid in another version": (
        [without_a_target_in_the_hub(), deployment("x", product="NVIDIA-L4", accelerators=1)],
        "1 invalid object left out: VariantAutoscaling default/x",
        "VariantAutoscaling default/x: metadata.annotations[llmd.ai/kept-by-conversion]: Forbidden: its"
        " content is invalid in v1alpha2: spec.scaleTargetRef: Required value",
    ),
    "a version of a later release": (
        [variant("x", version="v3"), deployment("x", product="NVIDIA-L4", accelerators=1)],
        "1 invalid object left out: VariantAutoscaling default/x",
        "VariantAutoscaling default/x: apiVersion: no version llmd.ai/v3",
    ),
    "a target that cannot be read": (
        [variant("x"), half_an_accelerator()],
        "1 variant omitted: default/x; 1 invalid object left out: Deployment default/x",
        "VariantAutoscaling default/x is omitted: its Deployment 'x' is left out",
    ),
    "a node of a wrong type": (
        [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"taints": [{"key": 7}]}}],
        "1 invalid object left out: Node n",
        "Node n: spec.taints[0].key: Invalid value: 7: must be a string: it is left out",
    ),
}


def exported(item: dict[str, Any]) -> dict[str, Any]:
    """Return an object as kubectl exports it."""
    return item | {"metadata": item["metadata"] | {"resourceVersion": "7"}}


@pytest.mark.parametrize(("broken", "conclusion", "warning"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_object_of_an_export_is_left_out_with_a_warning(
    plan: Plan, parts: Parts, broken: list[dict[str, Any]], conclusion: str, warning: str
) -> None:
    """The others are planned, and the exit code is 1."""
    code, out, _ = plan("-f", "-", "-o", "json", given=listed(*parts(), *map(exported, broken)))

    said = json.loads(out)
    assert (code, said["is_enough"], said["conclusion"]) == (1, False, conclusion)
    assert {item["name"] for item in said["plan"]["decisions"]} == {"chat", "code"}
    assert any(warning in text for text in said["warnings"])


def test_a_broken_variant_that_somebody_wrote_is_left_out_too(plan: Plan, parts: Parts) -> None:
    """Each variant stands for itself."""
    code, out, _ = plan("-f", "a.json", files={"a.json": listed(*parts(), variant("x"))})

    assert code == 1
    assert "1 variant omitted: default/x" in out


def test_nothing_is_planned_without_a_node_that_somebody_wrote(plan: Plan, parts: Parts) -> None:
    """The plan would be one for another cluster; the author can correct the file."""
    broken = BROKEN["a node of a wrong type"][0]

    code, out, _ = plan("-f", "a.json", files={"a.json": listed(*parts(), *broken)})

    assert (code, out) == (2, "")


@pytest.mark.parametrize(
    "broken", [variant("x", modelID=""), variant("x")], ids=["invalid", "without a target"]
)
def test_an_export_in_which_every_variant_is_broken_is_an_error(plan: Plan, broken: dict[str, Any]) -> None:
    """There is nothing to plan; the reason is printed."""
    code, out, err = plan("-f", "-", given=listed(exported(broken)))

    assert (code, out, len(err)) == (2, "", 1)
    assert "spec." in err[0]
