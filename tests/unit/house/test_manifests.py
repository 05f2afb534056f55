"""Shipped manifests, compared with the code: memory limits, accounts, namespaces and RBAC rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from support.kustomizing import CLUSTER_SCOPED, NO_OBJECTS, documents

from controller.variants.solver import MEMORY_BYTES

BASE = Path(__file__).resolve().parents[3] / "manifests" / "base"
COMPONENTS = BASE.parent / "components"
NAMESPACE = "stowplan-system"
MIB = 1 << 20
CONTROLLER_ITSELF_BYTES = 256 * MIB


def manifests(name: str) -> list[dict[str, Any]]:
    """Return the objects of one file of the base."""
    return list(yaml.safe_load_all((BASE / name).read_text(encoding="utf-8")))


def test_the_solver_reaches_its_own_memory_limit_before_that_of_the_container() -> None:
    """The kernel kills the whole container at its limit; at the solver's limit, only one cycle fails."""
    (controller,) = (
        item for item in manifests("deployments.yaml") if item["metadata"]["name"].endswith("controller")
    )
    limit = controller["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"]

    assert int(limit.removesuffix("Mi")) * MIB >= MEMORY_BYTES + CONTROLLER_ITSELF_BYTES


def test_every_deployment_has_its_service_account_and_configuration() -> None:
    """The account that a Deployment runs as and the ConfigMap that it mounts exist."""
    accounts = {item["metadata"]["name"] for item in manifests("service-accounts.yaml")}
    generated = manifests("kustomization.yaml")[0]["configMapGenerator"]
    settings = {item["name"]: item["literals"] for item in generated}
    for deployment in manifests("deployments.yaml"):
        pod = deployment["spec"]["template"]["spec"]
        (config,) = (volume for volume in pod["volumes"] if volume["name"] == "config")
        assert pod["serviceAccountName"] in accounts
        assert settings[config["configMap"]["name"]] == ["config.yaml={}"]


def test_no_budget_protects_a_replica_that_is_not_ready() -> None:
    """If all replicas fail, a budget would keep every node with one of them from being drained."""
    budgets = [item["spec"] for _, item in documents() if item["kind"] == "PodDisruptionBudget"]

    assert budgets
    assert {spec.get("unhealthyPodEvictionPolicy") for spec in budgets} == {"AlwaysAllow"}


def test_every_namespaced_object_states_its_namespace() -> None:
    """No kustomization sets it: kustomize changes a subject only with an account of the same namespace."""
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


def test_no_role_grants_more_than_needed() -> None:
    """There are no wildcards, no right to scale, and no rule for Secrets in a ClusterRole."""
    ours = ("rbac-webhooks.yaml", "rbac-apiserver.yaml", "rbac-controller.yaml")
    of_families = [f"../{path.relative_to(BASE.parent)}" for path in COMPONENTS.glob("*/rbac.yaml")]
    assert of_families
    for name in (*ours, *of_families):
        for item in manifests(name):
            for rule in item.get("rules", []):
                assert "*" not in [*rule["verbs"], *rule["resources"], *rule["apiGroups"]]
                assert not any(resource.endswith("/scale") for resource in rule["resources"])
                assert item["kind"] == "Role" or "secrets" not in rule["resources"]


def test_the_right_to_evict_is_in_a_separate_manifest() -> None:
    """Without this manifest, evictions cannot be enabled by a mistake in the configuration."""
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


def test_the_right_to_scale_is_in_a_separate_manifest_and_not_bound() -> None:
    """The bound ClusterRole only allows reading bindings and creating SubjectAccessReviews."""
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


def test_the_right_to_write_gateway_objects_is_in_a_separate_manifest_and_not_bound() -> None:
    """The bound ClusterRole allows the Model controller only to list and watch."""
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
