"""Evictions in plans from files, with disruption budgets and pods of other workloads in the files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from support.manifests import deployment, listed, variant
from support.plan_verb import Parts, Plan

EVICTING = yaml.safe_dump({"planning": {"evictions": {"enabled": True}}})


def _pod(owner: str, node: str, *, accelerators: int = 1, **annotations: str) -> dict[str, Any]:
    reference = {"kind": "ReplicaSet", "name": f"{owner}-abc", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{owner}-{node}",
            "labels": {"app": owner, "pod-template-hash": "abc"},
            "annotations": annotations,
            "ownerReferences": [reference],
        },
        "spec": {
            "nodeName": node,
            "containers": [{"resources": {"limits": {"nvidia.com/gpu": str(accelerators)}}}],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


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
    pods = [_pod("chat", "node-1"), _pod("code", "node-2"), _pod("batch", "node-3", accelerators=2)]
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
    job = _pod("job", "node-4", accelerators=1, **{"stowplan.dev/movable": "true"})
    fourth = parts(nodes=4, size=2)[3]
    assert fourth["metadata"]["name"] == "node-4"
    files["b.yaml"] = listed(fourth, job)

    _, out, _ = plan("-f", "a.yaml", "-f", "b.yaml", "--config", "c.yaml", "--html", "p.html", files=files)

    move = "1 x pod default/job-node-4 from node-4, to make room for default/large"
    assert f"evict {move}" in out
    assert f"<li>{move}</li>" in Path("p.html").read_text(encoding="utf-8")
