"""Scale targets of all kinds, topology rules, and devices of Dynamic Resource Allocation in plans."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.manifests import Manifest, deployment, l4_node, listed, variant
from support.plan_verb import Plan
from support.workloads import group_pod, leader_worker_set, stateful_set

L4 = "NVIDIA-L4"
ZONE = "topology.kubernetes.io/zone"


def node_in(zone: str, name: str, accelerators: int = 4) -> Manifest:
    """Return a node in a zone."""
    return l4_node(name, accelerators=accelerators, labels={ZONE: zone})


def claimed(target: Manifest, replicas: int) -> list[Manifest]:
    """Return a scale target and its variant, which is pinned to a number of replicas."""
    name = target["metadata"]["name"]
    reference = {key: target[key] for key in ("apiVersion", "kind")} | {"name": name}
    claim = variant(name, modelID=name, accelerator="L4", scaleTargetRef=reference)
    claim["metadata"]["annotations"] = {"stowplan.dev/replicas": str(replicas)}
    return [target, claim]


def places(out: str) -> dict[str, list[str]]:
    """Return the nodes of each variant's new pods, sorted."""
    found: dict[str, list[str]] = {}
    for item in json.loads(out)["plan"]["placements"]:
        found.setdefault(item["name"], []).extend([item["node"]] * item["pods"])
    return {name: sorted(nodes) for name, nodes in found.items()}


NODES = [node_in("a", "a1"), node_in("a", "a2"), node_in("b", "b1")]


def test_a_stateful_set_and_a_group_of_pods_are_placed(plan: Plan) -> None:
    """The group has two pods of four accelerators, which are placed on two nodes in one zone."""
    group = leader_worker_set("group", product=L4, accelerators=4, size=2, exclusive_topology=ZONE)
    alone = stateful_set("alone", product=L4, accelerators=2)

    given = listed(*NODES, *claimed(group, 1), *claimed(alone, 2))
    _, out, _ = plan("-f", "-", "-o", "json", given=given)
    _, text, _ = plan("-f", "-", given=given)

    assert places(out) == {"group": ["a1", "a2"], "alone": ["b1", "b1"]}
    assert "L4 x8" in text
    assert "12 taken, 0 by others, 0 free" in text


def pods_of(group: Manifest, *nodes: str) -> list[dict[str, Any]]:
    """Return the bound pods of the first group, the leader first."""
    name = group["metadata"]["name"]
    pods = [group_pod(name, 0, worker, node=place, accelerators=4) for worker, place in enumerate(nodes)]
    for pod in pods:
        del pod["metadata"]["namespace"]  # for that of the other objects
    return [{"apiVersion": "v1", "kind": "Pod"} | pod for pod in pods]


def test_a_group_that_loses_a_node_is_placed_again_as_a_whole(plan: Plan) -> None:
    """Its pods on other nodes are not kept."""
    group = leader_worker_set("group", product=L4, accelerators=4, size=2, exclusive_topology=ZONE)
    given = listed(*NODES, node_in("b", "b2"), *claimed(group, 1), *pods_of(group, "a1", "a2"))

    _, stays, _ = plan("-f", "-", "-o", "json", given=given)
    _, moves, _ = plan("-f", "-", "-o", "json", "--drain", "a2", given=given)

    assert places(stays) == {}
    assert places(moves) == {"group": ["b1", "b2"]}


def test_spread_constraints_are_respected_and_omitted_ones_cause_a_warning(plan: Plan) -> None:
    """With two zones and a skew of one, the zone with more room does not get all pods."""
    even = deployment("chat", product=L4, accelerators=1)
    even["spec"]["template"]["spec"]["topologySpreadConstraints"] = [
        {
            "topologyKey": key,
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "chat"}},
        }
        for key in (ZONE, "rack")
    ]
    nodes = [node_in("a", "a1", 8), node_in("b", "b1", 1)]

    code, out, _ = plan("-f", "-", "-o", "json", given=listed(*nodes, *claimed(even, 9)))

    assert code == 1
    assert places(out) == {"chat": ["a1", "a1", "b1"]}
    (warning,) = [text for text in json.loads(out)["warnings"] if "rack" in text]
    assert warning == (
        "Deployment default/chat: spread over rack with a skew of at most 1:"
        " a plan applies only one rule over a topology"
    )


def test_a_missing_target_is_reported_with_the_command_that_exports_it(plan: Plan) -> None:
    """The command has the kind of the target."""
    claim = claimed(stateful_set("chat", product=L4, accelerators=1), 1)[1]

    code, _, err = plan("-f", "-", given=listed(*NODES, claim))

    assert code == 2
    assert any("kubectl get statefulset -n default chat -o yaml" in line for line in err)


def test_nodes_to_add_for_a_group_are_counted_by_its_pods(plan: Plan) -> None:
    """Replicas of two pods need two nodes each, so text and JSON count pods, not replicas."""
    group = leader_worker_set("group", product=L4, accelerators=4, size=2)
    pool = {
        "name": "more",
        "accelerator": "L4",
        "acceleratorsPerNode": 4,
        "nodesAddable": 4,
        "labels": {"nvidia.com/gpu.product": L4},
    }
    files = {"c.yaml": json.dumps({"planning": {"nodePools": [pool]}})}
    given = listed(NODES[0], *claimed(group, 2))
    arguments = ("-f", "-", "--config", "c.yaml")

    _, text, _ = plan(*arguments, given=given, files=files)
    _, out, _ = plan(*arguments, "-o", "json", given=given)

    assert "add 3 nodes of pool more for 3 pods of default/group\n" in text
    made = json.loads(out)["plan"]
    assert [request["pods"] for request in made["requests"]] == [[["default", "group", 3]]]
    assert [(place["node"], place["pods"]) for place in made["placements"]] == [("a1", 1)]


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


def claim_of(count: int) -> dict[str, Any]:
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
    made = API | {"kind": "ResourceClaimTemplate", "metadata": {"name": "two"}, "spec": {"spec": claim_of(2)}}
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
        "spec": claim_of(held),
        "status": {"allocation": {"devices": {"results": results}}},
    }
    return [pod, claim]


def placed_pods(out: str) -> dict[str, int]:
    """Return how many pods of the variant are placed on each node."""
    return {item["node"]: item["pods"] for item in json.loads(out)["plan"]["placements"]}


def test_pods_are_placed_on_devices_that_claims_leave_free(plan: Plan) -> None:
    """Of eight devices on n1 three are allocated, so two replicas of two fit there, and one on n2."""
    given = listed(*devices("n1", 8), *devices("n2", 2), *target(3), *holder("n1", held=3))

    code, out, _ = plan("-f", "-", "-o", "json", given=given)

    assert (code, placed_pods(out)) == (0, {"n1": 2, "n2": 1})
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
