"""The scheduler's manifests, held against the code and against each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from controller.observe.accelerators import RESOURCE_NAMES

FOLDER = Path(__file__).resolve().parents[3] / "manifests" / "scheduler"


def documents(name: str) -> list[dict[str, Any]]:
    """Read one file."""
    return list(yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8")))


def test_the_profile_packs_by_every_accelerator_that_planning_counts() -> None:
    """One that is left out would be spread; cpu and memory only decide between equals."""
    (profile,) = documents("packed.yaml")[0]["profiles"]
    (fit,) = (item["args"] for item in profile["pluginConfig"] if item["name"] == "NodeResourcesFit")
    weights = {item["name"]: item["weight"] for item in fit["scoringStrategy"]["resources"]}

    assert fit["scoringStrategy"]["type"] == "MostAllocated"
    assert weights == dict.fromkeys(RESOURCE_NAMES, 100) | {"cpu": 1, "memory": 1}


def test_one_accelerator_of_sixteen_weighs_more_than_all_habits_together() -> None:
    """Preferred nodes and soft taints go before it: somebody wrote them."""
    (profile,) = documents("packed.yaml")[0]["profiles"]
    weights = {item["name"]: item["weight"] for item in profile["plugins"]["score"]["enabled"]}
    preferences = {name: weights.pop(name) for name in ("NodeAffinity", "TaintToleration")}
    packing = weights.pop("NodeResourcesFit")

    assert packing * (100 // 16) > sum(weights.values()) * 100
    assert min(preferences.values()) >= packing


def test_larger_pods_go_first_and_evict_nobody() -> None:
    """The value is the number of accelerators in the name."""
    for item in documents("priority-classes.yaml"):
        assert item["metadata"]["name"] == f"stowplan-accelerators-{item['value']}"
        assert item["preemptionPolicy"] == "Never"


def test_what_is_named_is_there() -> None:
    """The Role gives the lease that the configuration names, and the mounted file is generated."""
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
    # The suffix of a generated name is put wherever the name stands, a Role's resourceNames included.
    assert generated["name"] != election["resourceName"]
