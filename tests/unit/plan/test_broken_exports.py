"""An export with objects that are broken: they are left out, as by the controller, and the others planned."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.manifests import deployment, listed, variant
from support.plan_verb import Parts, Plan

HALF = {"containers": [{"name": "vllm", "resources": {"limits": {"nvidia.com/gpu": "500m"}}}]}


def half_an_accelerator() -> dict[str, Any]:
    """Return a Deployment that no API server would store."""
    made = deployment("x", product="NVIDIA-L4", accelerators=1)
    made["spec"]["template"]["spec"] = HALF
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
