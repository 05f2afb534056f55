"""What the shipped manifests promise, held against the code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from support.kustomizing import CLUSTER_SCOPED, NO_OBJECTS, documents

from controller.solver import MEMORY_BYTES

BASE = Path(__file__).resolve().parents[3] / "manifests" / "base"
COMPONENTS = BASE.parent / "components"
NAMESPACE = "stowplan-system"
MIB = 1 << 20
CONTROLLER_ITSELF_BYTES = 256 * MIB


def manifests(name: str) -> list[dict[str, Any]]:
    """Read one file of the base."""
    return list(yaml.safe_load_all((BASE / name).read_text(encoding="utf-8")))


def test_a_solver_that_eats_memory_meets_its_own_limit_first() -> None:
    """The kernel would kill the whole container; the solver's limit costs one cycle."""
    (controller,) = (
        item for item in manifests("deployments.yaml") if item["metadata"]["name"].endswith("controller")
    )
    limit = controller["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"]

    assert int(limit.removesuffix("Mi")) * MIB >= MEMORY_BYTES + CONTROLLER_ITSELF_BYTES


def test_every_process_has_its_account_and_its_configuration() -> None:
    """What a Deployment mounts and runs as is there."""
    accounts = {item["metadata"]["name"] for item in manifests("service-accounts.yaml")}
    generated = manifests("kustomization.yaml")[0]["configMapGenerator"]
    settings = {item["name"]: item["literals"] for item in generated}
    for deployment in manifests("deployments.yaml"):
        pod = deployment["spec"]["template"]["spec"]
        (config,) = (volume for volume in pod["volumes"] if volume["name"] == "config")
        assert pod["serviceAccountName"] in accounts
        assert settings[config["configMap"]["name"]] == ["config.yaml={}"]


def test_every_object_says_in_which_namespace_it_is() -> None:
    """By itself: kustomize moves the subject of a binding with an account that has the same namespace."""
    kustomizations = [item for path, item in documents() if path.name == "kustomization.yaml"]
    generated = [it for item in kustomizations for it in item.get("configMapGenerator", [])]
    wrong = [
        f"{path}: {item['kind']} {item['metadata']['name']}"
        for path, item in documents()
        if item["kind"] not in NO_OBJECTS
        and item["metadata"].get("namespace") != (None if item["kind"] in CLUSTER_SCOPED else NAMESPACE)
    ]

    assert wrong == []
    assert {it["namespace"] for it in generated} == {NAMESPACE}
    assert [item for item in kustomizations if "namespace" in item] == []


def test_no_role_is_wider_than_its_work() -> None:
    """No wildcards, no Secrets beyond our own, and no right to scale."""
    ours = ("rbac-webhooks.yaml", "rbac-apiserver.yaml", "rbac-controller.yaml")
    of_families = [f"../{path.relative_to(BASE.parent)}" for path in COMPONENTS.glob("*/rbac.yaml")]
    assert of_families
    for name in (*ours, *of_families):
        for item in manifests(name):
            for rule in item.get("rules", []):
                assert "*" not in [*rule["verbs"], *rule["resources"], *rule["apiGroups"]]
                assert not any(resource.endswith("/scale") for resource in rule["resources"])
                assert item["kind"] == "Role" or "secrets" not in rule["resources"]


def test_the_right_to_evict_is_given_apart() -> None:
    """Who does not want evictions cannot have them by a mistake in the configuration."""
    granted = {
        (resource, verb)
        for item in manifests("../evictions/rbac-evictions.yaml")
        for rule in item.get("rules", [])
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    base = {
        (resource, verb)
        for item in manifests("rbac-controller.yaml")
        for rule in item.get("rules", [])
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }

    assert granted == {
        ("pods/eviction", "create"),
        ("poddisruptionbudgets", "get"),
        ("nodes", "get"),
        ("nodes", "patch"),
    }
    assert not granted & base


def test_the_right_to_scale_is_given_apart_and_bound_nowhere() -> None:
    """In all namespaces the controller may only read bindings and ask who may scale."""
    objects = {
        (item["kind"], item["metadata"]["name"]): item for item in manifests("../scaling/rbac-scaling.yaml")
    }
    (bound,) = (item for (kind, _), item in objects.items() if "Binding" in kind)
    (unbound,) = (
        item
        for (kind, name), item in objects.items()
        if kind == "ClusterRole" and name != bound["roleRef"]["name"]
    )

    def rules(role: dict[str, Any]) -> set[tuple[str, str]]:
        return {
            (resource, verb)
            for rule in role["rules"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }

    assert rules(objects["ClusterRole", bound["roleRef"]["name"]]) == {
        ("subjectaccessreviews", "create"),
        ("autoscalingpolicybindings", "get"),
    }
    assert rules(unbound) == {
        (f"{kind}/scale", verb)
        for kind in ("deployments", "statefulsets", "leaderworkersets")
        for verb in ("get", "update")
    }


def test_the_right_to_write_for_gateways_is_given_apart_and_bound_nowhere() -> None:
    """In all namespaces the controller of Models may only read for them."""
    objects = manifests("../models-gateways/rbac-models-gateways.yaml")
    bound = {item["roleRef"]["name"] for item in objects if "Binding" in item["kind"]}
    verbs = {
        (item["metadata"]["name"] in bound, verb)
        for item in objects
        for rule in item.get("rules", [])
        for verb in rule["verbs"]
    }

    assert {verb for is_bound, verb in verbs if is_bound} == {"list", "watch"}
    assert {verb for is_bound, verb in verbs if not is_bound} == {
        "get",
        "create",
        "patch",
        "delete",
        "update",
    }
