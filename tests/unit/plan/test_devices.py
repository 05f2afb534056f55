"""`stowplan plan` with devices of Dynamic Resource Allocation, from files to the drawing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.manifests import Manifest, deployment, listed, variant
from support.plan_verb import Plan

DRIVER = "gpu.nvidia.com"
API = {"apiVersion": "resource.k8s.io/v1"}


def devices(node: str, count: int) -> list[Manifest]:
    """Return a node without extended resources, and the ResourceSlice with its devices."""
    attributes = {"type": {"string": "gpu"}, "productName": {"string": "NVIDIA L4"}}
    cards = [{"name": f"gpu-{number}", "attributes": attributes} for number in range(count)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": cards}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": node},
            "status": {"allocatable": {"cpu": "8"}},
        },
        API | {"kind": "ResourceSlice", "metadata": {"name": node}, "spec": spec},
    ]


def claimed(count: int) -> dict[str, Any]:
    """Return the specification of a claim for whole devices."""
    return {
        "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": DRIVER, "count": count}}]}
    }


def target(replicas: int) -> list[Manifest]:
    """Return a Deployment whose pods claim two devices each, its variant, and the ResourceClaimTemplate."""
    workload = deployment("chat", product="NVIDIA-L4", accelerators=0)
    workload["spec"]["template"]["spec"] = {
        "containers": [{"name": "engine"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "two"}],
    }
    scaled = variant("chat", modelID="chat", accelerator="L4")
    scaled["metadata"]["annotations"] = {"stowplan.dev/replicas": str(replicas)}
    made = API | {"kind": "ResourceClaimTemplate", "metadata": {"name": "two"}, "spec": {"spec": claimed(2)}}
    return [workload, scaled, made]


def holder(node: str, *, held: int) -> list[Manifest]:
    """Return a pod of another workload, and the claim that allocates devices to it."""
    results = [{"driver": DRIVER, "pool": node, "device": f"gpu-{number}"} for number in range(held)]
    pod: Manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "other"},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "training"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "some"}],
        },
        "status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "other-gpu"}]},
    }
    claim = API | {
        "kind": "ResourceClaim",
        "metadata": {"name": "other-gpu"},
        "spec": claimed(held),
        "status": {"allocation": {"devices": {"results": results}}},
    }
    return [pod, claim]


def places(out: str) -> dict[str, int]:
    """Return how many pods of the variant are placed on each node."""
    return {item["node"]: item["pods"] for item in json.loads(out)["plan"]["placements"]}


def test_pods_are_placed_on_devices_that_claims_leave_free(plan: Plan) -> None:
    """Of eight devices on n1 three are allocated, so two replicas of two fit there, and one on n2."""
    given = listed(*devices("n1", 8), *devices("n2", 2), *target(3), *holder("n1", held=3))

    code, out, _ = plan("-f", "-", "-o", "json", given=given)

    assert (code, places(out)) == (0, {"n1": 2, "n2": 1})
    assert "the input contains no ResourceClaim" not in out


def test_missing_claims_of_a_pod_cause_a_warning(plan: Plan) -> None:
    """Otherwise the devices that they allocate would seem to be free."""
    pod, _ = holder("n1", held=3)

    _, out, _ = plan("-f", "-", given=listed(*devices("n1", 8), *target(1), pod))

    assert ("the input contains no ResourceClaim, but Pod default/other holds devices by one") in " ".join(
        out.split()
    )


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        pytest.param(("spec", "pool"), {}, "spec.pool.name: Required value", id="a pool without a name"),
        pytest.param(
            ("spec", "driver"),
            7,
            "spec.driver: Invalid value: 7: must be a string",
            id="a driver that is not a string",
        ),
    ],
)
def test_an_invalid_resource_slice_is_reported_with_its_field(
    plan: Plan, path: tuple[str, str], value: object, expected: str
) -> None:
    """Nothing is planned."""
    node, found = devices("n1", 8)
    found[path[0]][path[1]] = value

    code, _, told = plan("-f", "-", given=listed(node, found, *target(1)))

    assert code == 2
    assert any(expected in line for line in told), told
