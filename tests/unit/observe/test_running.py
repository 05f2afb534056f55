"""Targets as their pods run: what admission added, on which nodes they are, and which role they have."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from support.gathering import A100, NODE, gathered, key_of, placed, pod
from support.manifests import autoscaler, deployment, variant
from support.workloads import group_pod, leader_worker_set

from apiserver.schema.json import Json
from controller.observe.targets import role_of, target_of

TOLERATION = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
WAITING = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
ACCELERATOR = "inference.optimization/acceleratorName"


def running(name: str = "chat-1", *, revision: str = "abc", created: str = "", **spec: Any) -> Json:
    """Return a pod with what admission added."""
    found = copy.deepcopy(pod(name))
    found["spec"] |= spec
    found["metadata"] |= {"creationTimestamp": created or "2026-01-01T00:00:00Z"}
    found["metadata"]["labels"] = {"pod-template-hash": revision, "app": "chat"}
    return found


def of_zone(found: Json, zone: str) -> Json:
    """Return a pod as it is after it was bound to a node of a zone."""
    found["metadata"]["labels"]["topology.kubernetes.io/zone"] = zone
    return found


def chat(**spec: Any) -> Json:
    """Return the Deployment of one accelerator per pod."""
    made = placed(deployment("chat", product=A100, accelerators=1, replicas=2))
    made["spec"]["template"]["spec"] |= spec
    return made


def test_tolerations_that_admission_adds_are_planned_with() -> None:
    """Those that every pod gets concern no placement; the message names the others."""
    pods = (running(tolerations=[TOLERATION, WAITING]), running("chat-2", tolerations=[WAITING, TOLERATION]))

    found = gathered(placed(variant("chat")), deployments=(chat(),), pods=pods)

    assert {item.key for item in found.snapshot.variants[0].tolerations} == {"gpu"}
    assert found.observed["ns", "chat"].target.difference.endswith("planned with it: toleration gpu")


PODS: dict[str, tuple[tuple[Json, ...], str]] = {
    "pods like their template": ((running(),), ""),
    "no pods": ((), ""),
    "a toleration of one pod only": ((running(), running("chat-2", tolerations=[TOLERATION])), ""),
    "what an earlier revision had": (
        (
            running(revision="old", tolerations=[TOLERATION]),
            running("chat-2", revision="new", created="2026-01-02T00:00:00Z"),
        ),
        "",
    ),
    "labels that Kubernetes copies from the node": (
        tuple(of_zone(running(name), zone) for name, zone in (("chat-1", "a"), ("chat-2", "a"))),
        "",
    ),
    "a node selector": ((running(nodeSelector={"pool": "a"}),), "nodeSelector pool=a"),
    "an affinity": ((running(affinity={"podAntiAffinity": {}}),), "affinity"),
    "a priority class": ((running(priorityClassName="high"),), "priorityClassName"),
    "accelerators": (
        (running(containers=[{"resources": {"limits": {"nvidia.com/gpu": 2}}}]),),
        "2 accelerators",
    ),
}


@pytest.mark.parametrize(("pods", "said"), PODS.values(), ids=PODS)
def test_what_all_of_the_newest_pods_have_counts(pods: tuple[Json, ...], said: str) -> None:
    """It is said in the status, and in warnings of `stowplan plan`."""
    found = gathered(placed(variant("chat")), deployments=(chat(),), pods=pods)

    assert found.observed["ns", "chat"].target.difference.rpartition(": ")[2] == said


def test_what_admission_adds_changes_the_plan() -> None:
    """New pods get the same selector, accelerators and labels."""
    containers = [{"resources": {"limits": {"nvidia.com/gpu": 2}}}]
    made = running(nodeSelector={"pool": "a"}, containers=containers)
    made["metadata"]["labels"]["team"] = "x"

    found = gathered(placed(variant("chat")), deployments=(chat(),), pods=(made,))

    (planned,) = found.snapshot.variants
    assert ("pool", "a") in planned.node_selector
    assert ("nvidia.com/gpu.product", A100) in planned.node_selector
    assert planned.accelerators_per_replica == 2
    assert found.observed[planned.key].target.labels == ({"app": "chat", "team": "x"},)


def test_pods_of_groups_keep_the_placement_of_their_template() -> None:
    """Their controller pins each group to a domain, which the others are not in."""
    reference = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "big"}
    target = placed(leader_worker_set("big", product=A100, accelerators=4, size=2))
    pods = [copy.deepcopy(group_pod("big", 0, number)) for number in range(2)]
    for item in pods:
        item["spec"] |= {"nodeSelector": {"rack": "7"}, "tolerations": [TOLERATION]}

    found = gathered(placed(variant("big", scaleTargetRef=reference)), others=(target,), pods=tuple(pods))

    (planned,) = found.snapshot.variants
    assert dict(planned.node_selector) == {"nvidia.com/gpu.product": A100}
    assert {item.key for item in planned.tolerations} == {"gpu"}


H100_NODE = NODE | {"metadata": {"name": "n2", "labels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}}}
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [
                        {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-H100-PCIE"]}
                    ]
                }
            ]
        }
    }
}
TYPES: dict[str, tuple[str, Json, tuple[Json, ...], str, bool]] = {
    "as declared": ("A100", {}, (running(),), "A100", False),
    "pods run elsewhere": ("H100", {}, (running(),), "A100", True),
    "pods run on both": ("H100", {}, (running(), running("chat-2", nodeName="n2")), "H100", False),
    "pods select another type": ("H100", {}, (), "A100", True),
    "an affinity selects another type": (
        "A100",
        {"nodeSelector": {}, "affinity": AFFINITY},
        (),
        "H100",
        True,
    ),
    "pods select nothing": ("H100", {"nodeSelector": {}}, (), "H100", False),
    "pods without a node yet": ("A100", {}, (running(nodeName=""),), "A100", False),
}


@pytest.mark.parametrize(("declared", "spec", "pods", "counted", "differs"), TYPES.values(), ids=TYPES)
@pytest.mark.parametrize("by_label", [False, True])
def test_the_type_of_the_nodes_is_counted(
    declared: str, spec: Json, pods: tuple[Json, ...], *, counted: str, differs: bool, by_label: bool
) -> None:
    """The contradiction to the field, or to the label, is reported."""
    value = (
        variant("chat", labels={ACCELERATOR: declared}) if by_label else variant("chat", accelerator=declared)
    )

    found = gathered(placed(value), deployments=(chat(**spec),), pods=pods, nodes=(NODE, H100_NODE))

    assert found.snapshot.variants[0].accelerator == counted
    assert bool(found.observed["ns", "chat"].mistyped) is differs


def in_role(name: str, role: str) -> Json:
    """Return a Deployment whose pods have a role."""
    made = placed(deployment(name, product=A100, accelerators=1))
    made["spec"]["template"]["metadata"]["labels"] |= {"llm-d.ai/role": role} if role else {}
    return made


ROLES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "a pair": (("prefill", "decode"), ("m (prefill)", "m (decode)")),
    "a pair beside whole engines": (("prefill", "decode", "both"), ("m (prefill)", "m (decode)", "m")),
    "two accelerators for one role": (("decode", "decode"), ("m (decode)", "m (decode)")),
    "whole engines": (("both", "", "prefill-decode"), ("m", "m", "m")),
}


@pytest.mark.parametrize(("roles", "models"), ROLES.values(), ids=ROLES)
def test_engines_of_other_roles_are_never_traded_for_each_other(
    roles: tuple[str, ...], models: tuple[str, ...]
) -> None:
    """Those of each role are planned like a model of their own."""
    names = [f"v{place}" for place in range(len(roles))]

    found = gathered(
        *(placed(variant(name, modelID="m")) for name in names),
        deployments=tuple(in_role(name, role) for name, role in zip(names, roles, strict=True)),
        autoscalers=tuple(placed(autoscaler(name)) for name in names),
    )

    assert {item.name: item.model_id for item in found.snapshot.variants} == dict(
        zip(names, models, strict=True)
    )
    assert not found.unplanned


LABELS = {
    "Kthena's group": ({"modelserving.volcano.sh/role": "prefill"}, (), "prefill"),
    "a Model's worker": ({"stowplan.dev/role": "decode"}, (), "decode"),
    "a Model's whole engine": ({"stowplan.dev/role": "server"}, (), ""),
    "a producer of KV caches": ({}, ('--kv-transfer-config={"kv_role":"kv_producer"}',), "prefill"),
    "a consumer of KV caches": ({}, ("--kv-transfer-config", '{"kv_role": "kv_consumer"}'), "decode"),
    "both at once": ({}, ('--kv-transfer-config={"kv_role":"kv_both"}',), ""),
    "a label beside settings": ({"llm-d.ai/role": "decode"}, ('{"kv_role":"kv_producer"}',), "decode"),
}


@pytest.mark.parametrize(("labels", "args", "role"), LABELS.values(), ids=LABELS)
def test_the_role_of_pods_is_read_where_projects_write_it(
    labels: dict[str, str], args: tuple[str, ...], role: str
) -> None:
    """By labels, or by the settings of vLLM."""
    workload = in_role("chat", "")
    workload["spec"]["template"]["metadata"]["labels"] |= labels
    workload["spec"]["template"]["spec"]["containers"][0]["args"] += args

    assert role_of(target_of(key_of(workload), workload)) == role


def test_the_role_of_one_model_concerns_no_other_model() -> None:
    """Nor another namespace."""
    values = (placed(variant("v0", modelID="m")), placed(variant("v1", modelID="other")))
    targets = (in_role("v0", "prefill"), in_role("v1", "decode"))

    assert len(gathered(*values, deployments=targets, autoscalers=()).snapshot.variants) == 2
