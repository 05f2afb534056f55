"""The scheduler's manifests, compared with the code and with each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from controller.observe.accelerators import RESOURCE_NAMES

FOLDER = Path(__file__).resolve().parents[3] / "manifests" / "scheduler"


def documents(name: str) -> list[dict[str, Any]]:
    """Return the objects of one file."""
    return list(yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8")))


def test_the_profile_packs_by_every_accelerator_resource_that_planning_counts() -> None:
    """Pods for a missing resource would be spread; cpu and memory have a low weight and only break ties."""
    (profile,) = documents("packed.yaml")[0]["profiles"]
    (fit,) = (item["args"] for item in profile["pluginConfig"] if item["name"] == "NodeResourcesFit")
    weights = {item["name"]: item["weight"] for item in fit["scoringStrategy"]["resources"]}

    assert fit["scoringStrategy"]["type"] == "MostAllocated"
    assert weights == dict.fromkeys(RESOURCE_NAMES, 100) | {"cpu": 1, "memory": 1}


def test_one_accelerator_of_sixteen_outweighs_all_other_score_plugins_together() -> None:
    """Exceptions are node affinity and taints, which users configured: they weigh at least as much."""
    (profile,) = documents("packed.yaml")[0]["profiles"]
    weights = {item["name"]: item["weight"] for item in profile["plugins"]["score"]["enabled"]}
    preferences = {name: weights.pop(name) for name in ("NodeAffinity", "TaintToleration")}
    packing = weights.pop("NodeResourcesFit")

    assert packing * (100 // 16) > sum(weights.values()) * 100
    assert min(preferences.values()) >= packing


def test_larger_pods_have_a_higher_priority_and_do_not_preempt() -> None:
    """The priority is the number of accelerators in the name."""
    for item in documents("priority-classes.yaml"):
        assert item["metadata"]["name"] == f"stowplan-accelerators-{item['value']}"
        assert item["preemptionPolicy"] == "Never"


def test_the_configuration_refers_to_existing_objects() -> None:
    """The Role allows the lease of the configuration, and the mounted ConfigMap is generated."""
    election = documents("packed.yaml")[0]["leaderElection"]
    (role,) = (item for item in documents("rbac.yaml") if item["kind"] == "Role")
    (kustomization,) = documents("kustomization.yaml")
    (generated,) = kustomization["configMapGenerator"]
    pod = documents("deployment.yaml")[0]["spec"]["template"]["spec"]
    mounted = {volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume}

    assert [rule["resourceNames"] for rule in role["rules"] if "resourceNames" in rule] == [
        [election["resourceName"]]
    ]
    assert mounted == {generated["name"]}
    # Kustomize also adds the suffix of a generated name to equal names in a Role's resourceNames.
    assert generated["name"] != election["resourceName"]
