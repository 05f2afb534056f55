"""Quotas, node pools, pins, budgets and evictions in plans from files: they apply as in the cluster."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.manifests import deployment, listed, pod_of, variant
from support.plan_verb import Parts, Plan

from controller.commands.plan.changes import Changes, UnknownNameError, apply_changes, resolve
from controller.planning.cluster import Budget, Node
from controller.planning.inputs import PlanningInputs
from controller.planning.inventory import NodeAddition
from controller.planning.snapshot import Snapshot

POOL = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "more"},
    "spec": {
        "template": {
            "spec": {
                "requirements": [
                    {"key": "karpenter.k8s.aws/instance-gpu-name", "operator": "In", "values": ["l4"]},
                    {"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "In", "values": ["4"]},
                    {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-L4"]},
                ]
            }
        },
        "limits": {"nvidia.com/gpu": 8},
    },
}


def quota(accelerators: int) -> dict[str, Any]:
    """Return a ResourceQuota on the accelerators of the namespace."""
    hard = {"requests.nvidia.com/gpu": str(accelerators)}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}}


def test_a_quota_in_the_files_is_respected(plan: Plan, parts: Parts) -> None:
    """Free accelerators beyond it are not used."""
    code, out, _ = plan("-f", "-", "--demand", "chat=50", "-o", "json", given=listed(*parts(), quota(3)))

    decisions = json.loads(out)["plan"]["decisions"]
    assert sum(item["replicas"] for item in decisions) == 3
    assert "Quota" in {item["bound_by"] for item in decisions}
    assert code == 1


def test_nodes_of_a_pool_are_requested(plan: Plan, parts: Parts) -> None:
    """The plan counts on them, and states which variants they are for."""
    given = listed(*parts(nodes=1), POOL)

    code, out, err = plan("-f", "-", "--demand", "chat=48", "--html", "p.html", given=given)

    request = "1 node of pool more for 1 x default/chat, 1 x default/code"
    assert f"add {request}\n" in out
    assert f"<li>{request}</li>" in Path("p.html").read_text(encoding="utf-8")
    assert (code, err) == (0, [])


def test_a_configuration_adds_to_the_node_pools_of_a_saved_decision(plan: Plan, parts: Parts) -> None:
    """Pools of Karpenter are in no configuration; a pool of the same name replaces the saved one."""
    none = {"name": "more", "accelerator": "L4", "acceleratorsPerNode": 4, "nodesAddable": 0}
    files = {
        "a.yaml": listed(*parts(nodes=1), POOL),
        "other.yaml": json.dumps({"planning": {"budgets": []}}),
        "same.yaml": json.dumps({"planning": {"nodePools": [none]}}),
    }
    plan("-f", "a.yaml", "--demand", "chat=40", "--save", "s.json", files=files)

    _, beside, _ = plan("-f", "s.json", "-o", "json", "--config", "other.yaml")
    _, instead, _ = plan("-f", "s.json", "-o", "json", "--config", "same.yaml")

    assert [item["pool"] for item in json.loads(beside)["plan"]["requests"]] == ["more"]
    assert json.loads(instead)["plan"]["requests"] == []


def test_an_invalid_pin_causes_a_warning(plan: Plan, parts: Parts) -> None:
    """It is ignored, as in the cluster."""
    made = parts()
    made[-1]["metadata"]["annotations"] = {"stowplan.dev/replicas": "many"}

    _, out, _ = plan("-f", "-", "-o", "json", given=listed(*made))

    (warning,) = json.loads(out)["warnings"]
    assert warning.startswith(
        "VariantAutoscaling default/code: metadata.annotations[stowplan.dev/replicas]: "
    )


def test_a_pin_is_applied(plan: Plan, parts: Parts) -> None:
    """It takes precedence over demand."""
    made = parts()
    made[-1]["metadata"]["annotations"] = {"stowplan.dev/replicas": "3"}

    _, out, _ = plan("-f", "-", "-o", "json", given=listed(*made))

    assert {d["name"]: d["replicas"] for d in json.loads(out)["plan"]["decisions"]} == {"chat": 1, "code": 3}


def test_limits_exceeded_by_running_replicas_cause_warnings(plan: Plan, parts: Parts) -> None:
    """With unknown demand running replicas are kept even beyond the limits."""
    given = listed(*parts(demand=None), quota(1))

    _, out, _ = plan("-f", "-", "-o", "json", "--budget", "15", given=given)

    told = [text for text in json.loads(out)["warnings"] if "exceeds" in text]
    assert [text.partition(":")[0] for text in told] == [
        "what runs exceeds quota default/q (requests.nvidia.com/gpu) of 1 accelerator by 1",
        "what runs exceeds budget (--budget) of 15 per hour by 65",
    ]


def test_limits_that_are_kept_cause_no_warning(plan: Plan, parts: Parts) -> None:
    """The quota and the budget are exactly used up."""
    _, out, _ = plan("-f", "-", "-o", "json", "--budget", "80", given=listed(*parts(), quota(2)))

    assert json.loads(out)["warnings"] == []


def test_an_added_node_without_a_topology_label_causes_a_warning(plan: Plan, parts: Parts) -> None:
    """Existing nodes share no zone, so the added node has none, and pods with rules on zones avoid it."""
    made = parts()
    for number, item in enumerate(made[:2]):
        item["metadata"]["labels"]["zone"] = f"z{number}"
    plan("-f", "-", "--save", "s.json", given=listed(*made))
    saved = json.loads(Path("s.json").read_bytes())
    saved["snapshot"]["variants"][0]["together_in"] = "zone"
    Path("s.json").write_text(json.dumps(saved), encoding="utf-8")

    _, plain, _ = plan("-f", "s.json", "-o", "json")
    _, added, _ = plan("-f", "s.json", "-o", "json", "--add-node", "L4x4")

    assert json.loads(plain)["warnings"] == []
    (warning,) = json.loads(added)["warnings"]
    assert warning.startswith("default/chat spreads its pods or keeps them together by the label zone")
    assert "new-l4-1" in warning


def node(name: str, **labels: str) -> Node:
    """Return a node with its name as a label."""
    said = {"kubernetes.io/hostname": name, **labels}
    return Node(name=name, accelerator="L4", accelerators_allocatable=4, labels=frozenset(said.items()))


def test_added_nodes_have_the_common_labels_of_their_type_but_their_own_names() -> None:
    """A selector of a node's name must not match them, and names that exist already are skipped."""
    inputs = PlanningInputs(snapshot=Snapshot(nodes=(node("new-l4-1", zone="a"),), variants=()))

    after, problems = apply_changes(
        inputs, Changes(additions=[NodeAddition(accelerator="L4", accelerators=8, nodes=2)])
    )

    _, *new = after.snapshot.nodes
    assert [(item.name, item.accelerators_allocatable) for item in new] == [("new-l4-2", 8), ("new-l4-3", 8)]
    assert {item.labels for item in new} == {frozenset({("zone", "a")})}
    assert problems == ()


def test_a_budget_given_again_replaces_the_former_one() -> None:
    """A decision saved with one budget can be planned with another one."""
    inputs = PlanningInputs(
        snapshot=Snapshot(nodes=(), variants=(), budgets=(Budget(name="team", cost_per_hour=Decimal(9)),))
    )

    once, _ = apply_changes(inputs, Changes(budget=Decimal(5)))
    twice, _ = apply_changes(once, Changes(budget=Decimal(7)))

    assert {item.name: item.cost_per_hour for item in twice.snapshot.budgets} == {"team": 9, "(--budget)": 7}


KEYS = [("a", "m"), ("b", "m"), ("b", "only"), ("x", "a/m")]


@pytest.mark.parametrize(
    ("name", "key"),
    [("only", ("b", "only")), ("b/m", ("b", "m")), ("x/a/m", ("x", "a/m")), ("a/m", ("a", "m"))],
    ids=[
        "a unique name",
        "a name with its namespace",
        "a model with a slash",
        "a name that can be read both ways",
    ],
)
def test_names_are_found_with_and_without_namespace(name: str, key: tuple[str, str]) -> None:
    """Names of models may contain slashes; with the namespace in front every name is unique."""
    assert resolve(name, KEYS, what="model") == key


@pytest.mark.parametrize("name", ["m", "a/only", "", "a"])
def test_an_unknown_or_ambiguous_name_is_rejected(name: str) -> None:
    """The intended name is not guessed."""
    with pytest.raises(UnknownNameError):
        resolve(name, KEYS, what="model")


EVICTING = yaml.safe_dump({"planning": {"evictions": {"enabled": True}}})


def _budget(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}},
        "status": {"disruptionsAllowed": 0},
    }


def _apart(parts: Parts, *more: dict[str, Any]) -> dict[str, str]:
    """Return files with three nodes of two accelerators: one used on each of two nodes, two on the third."""
    small = parts(nodes=3, size=2)
    large = variant("large", modelID="large", accelerator="L4") | {"status": small[-1]["status"]}
    workload = deployment("large", product="NVIDIA-L4", accelerators=2, replicas=0)
    pods = [pod_of("chat", "node-1"), pod_of("code", "node-2"), pod_of("batch", "node-3", accelerators=2)]
    return {"a.yaml": listed(*small, workload, large, *pods, *more), "c.yaml": EVICTING}


def _moves(plan: Plan, files: dict[str, str], *options: str) -> list[tuple[str, str]]:
    _, out, _ = plan("-f", "a.yaml", "-o", "json", *options, files=files)
    return [(move["name"], move["node"]) for move in json.loads(out)["plan"]["moves"]]


def test_pods_are_moved_only_if_the_configuration_enables_evictions(plan: Plan, parts: Parts) -> None:
    """Evictions are off by default, as in the controller."""
    assert _moves(plan, _apart(parts)) == []
    assert _moves(plan, _apart(parts), "--config", "c.yaml") in ([("chat", "node-1")], [("code", "node-2")])


def test_disruption_budgets_in_the_files_are_respected(plan: Plan, parts: Parts) -> None:
    """A budget that allows no disruption leaves the other pod to move, and two budgets leave none."""
    one, two = _apart(parts, _budget("chat")), _apart(parts, _budget("chat"), _budget("code"))

    assert _moves(plan, one, "--config", "c.yaml") == [("code", "node-2")]
    assert _moves(plan, two, "--config", "c.yaml") == []


def test_a_pod_of_another_workload_is_moved_if_annotated_as_movable(plan: Plan, parts: Parts) -> None:
    """The text names the pod and the variant that gets room."""
    files = _apart(parts, _budget("chat"), _budget("code"))
    job = pod_of("job", "node-4", accelerators=1, **{"stowplan.dev/movable": "true"})
    fourth = parts(nodes=4, size=2)[3]
    assert fourth["metadata"]["name"] == "node-4"
    files["b.yaml"] = listed(fourth, job)

    _, out, _ = plan("-f", "a.yaml", "-f", "b.yaml", "--config", "c.yaml", "--html", "p.html", files=files)

    move = "1 x pod default/job-node-4 from node-4, to make room for default/large"
    assert f"evict {move}" in out
    assert f"<li>{move}</li>" in Path("p.html").read_text(encoding="utf-8")
