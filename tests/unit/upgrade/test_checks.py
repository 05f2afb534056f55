"""Checks before an upgrade or a downgrade: what counts as a problem, and what does not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from controller.commands.upgrade.checks import (
    check_certificates,
    check_definition,
    check_earlier_controllers,
    check_our_controller,
    check_owners,
    check_webhook,
)
from controller.commands.upgrade.gather import UpgradeState, needed_permissions, ready_pods
from controller.commands.upgrade.report import Finding, Verdict, check_permissions

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CRD = VARIANT_AUTOSCALING.crd_name
EMPTY = UpgradeState(now=NOW, namespace="stowplan-system")


def problems(findings: Iterable[Finding]) -> list[str]:
    """Return the messages of findings that are problems."""
    return [item.message for item in findings if item.verdict is Verdict.PROBLEM]


def definition(*, stored: tuple[str, ...] = ("v1alpha1",), **metadata: Any) -> dict[str, Any]:
    """Return the definition of an earlier release."""
    version = {"name": "v1alpha1", "served": True, "storage": True}
    return {
        "metadata": {"name": CRD} | metadata,
        "spec": {"versions": [version]},
        "status": {"storedVersions": list(stored)},
    }


def managed(*managers: str) -> list[dict[str, Any]]:
    """Return managed fields of these field managers."""
    return [{"manager": manager, "operation": "Apply"} for manager in managers]


OWNERS = {
    "nobody": ({}, ""),
    "users with kubectl": ({"managedFields": managed("kubectl", "kubectl-client-side-apply")}, ""),
    "ourselves": ({"managedFields": managed("stowplan", "kube-apiserver")}, ""),
    "an unknown field manager, which is only a note": ({"managedFields": managed("terraform")}, ""),
    "a Helm release": (
        {"annotations": {"meta.helm.sh/release-name": "wva"}},
        "belongs to the Helm release wva",
    ),
    "a delivery tool, by its annotation": (
        {
            "annotations": {"argocd.argoproj.io/tracking-id": "x"},
            "managedFields": managed("argocd-controller"),
        },
        "is managed by a delivery tool (argocd.argoproj.io/tracking-id)",
    ),
    "a delivery tool, by its field manager": (
        {"managedFields": managed("kustomize-controller")},
        "was written by kustomize-controller, which may write it again",
    ),
    "an owner reference": (
        {"ownerReferences": [{"kind": "Operator", "name": "wva"}]},
        "are deleted when Operator wva is deleted",
    ),
}


@pytest.mark.parametrize(("metadata", "want"), OWNERS.values(), ids=OWNERS.keys())
def test_other_owners_of_the_definition_are_problems(metadata: dict[str, Any], want: str) -> None:
    """Each owner that would revert or delete the definition is reported once."""
    found = problems(check_owners(replace(EMPTY, definitions={CRD: definition(**metadata)})))

    assert [want in message for message in found] == ([True] if want else [])


def test_the_remedy_for_a_helm_release_is_an_annotation_in_its_chart() -> None:
    """Helm reads the manifest of the release, so annotating the live object would not help."""
    live = definition(annotations={"meta.helm.sh/release-name": "wva"})
    (found,) = check_owners(replace(EMPTY, definitions={CRD: live}))

    assert "add the annotation helm.sh/resource-policy: keep to the chart's own template" in found.remedy
    assert "kubectl annotate" not in found.remedy
    assert found.remedy.endswith("or use --accept owners")


def of_our_label(manager: str) -> dict[str, Any]:
    """Return metadata with our label, as this manager wrote it into a definition of a Helm release."""
    label = "app.kubernetes.io/part-of"
    annotated: dict[str, Any] = {"f:helm.sh/resource-policy": {}}
    fields: dict[str, Any] = {"f:metadata": {"f:labels": {f"f:{label}": {}}, "f:annotations": annotated}}
    return {
        "annotations": {"meta.helm.sh/release-name": "stowplan", "helm.sh/resource-policy": "keep"},
        "labels": {label: "stowplan"},
        "managedFields": [{"manager": manager, "operation": "Apply", "fieldsV1": fields}],
    }


def without_policy(metadata: dict[str, Any], *, by_hand: bool) -> dict[str, Any]:
    """Return metadata whose field manager sets no resource policy; `by_hand`: a user has set it."""
    annotations = {"meta.helm.sh/release-name": "platform"}
    if by_hand:
        annotations["helm.sh/resource-policy"] = "keep"
    (entry,) = metadata["managedFields"]
    fields = {"f:metadata": {"f:labels": entry["fieldsV1"]["f:metadata"]["f:labels"]}}
    return metadata | {"annotations": annotations, "managedFields": [entry | {"fieldsV1": fields}]}


CHARTS = {
    "our chart, by helm": (of_our_label("helm"), 0),
    "our chart, by Flux": (of_our_label("helm-controller"), 0),
    "a chart of others, upgraded by Stowplan": (
        of_our_label("stowplan")
        | {"managedFields": [*of_our_label("stowplan")["managedFields"], *managed("helm")]},
        2,
    ),
    "a chart of others, with our manifest applied over it": (of_our_label("kubectl"), 1),
    "a chart of others, made of our manifests": (without_policy(of_our_label("helm"), by_hand=False), 2),
    "a chart of others, made of our manifests, and annotated by hand": (
        without_policy(of_our_label("helm"), by_hand=True),
        2,
    ),
}


@pytest.mark.parametrize(("metadata", "count"), CHARTS.values(), ids=CHARTS.keys())
def test_our_own_chart_is_a_note_and_not_a_problem(metadata: dict[str, Any], count: int) -> None:
    """It writes the same definition as the upgrade, and deletes nothing."""
    snapshot = replace(EMPTY, definitions={CRD: definition(**metadata)})
    found = [*check_owners(snapshot)]

    assert len(problems(found)) == count
    assert [item.verdict for item in found if "own chart" in item.message] == [Verdict.NOTE] * (not count)


DEFINITIONS = {
    "none": (None, ""),
    "a definition of an earlier release": (definition(), ""),
    "a definition that is being deleted": (
        definition(deletionTimestamp="2026-01-01T00:00:00Z"),
        "is being deleted",
    ),
    "a definition with a version of a later release": (
        definition(stored=("v1alpha1", "v1beta1")),
        "has versions that this release does not support: v1beta1",
    ),
}


@pytest.mark.parametrize(("live", "want"), DEFINITIONS.values(), ids=DEFINITIONS.keys())
def test_definitions_that_cannot_be_upgraded_are_problems(live: dict[str, Any] | None, want: str) -> None:
    """A version that this release does not support prevents the upgrade."""
    snapshot = replace(EMPTY, definitions={CRD: live} if live else {})
    found = problems(check_definition(snapshot))

    assert [want in message for message in found] == ([True] if want else [])


def deployment(*, replicas: int = 1, image: str = "vllm") -> dict[str, Any]:
    """Return a Deployment."""
    pod = {"metadata": {}, "spec": {"containers": [{"image": image}]}}
    return {
        "metadata": {"namespace": "wva", "name": "manager"},
        "spec": {"replicas": replicas, "template": pod},
    }


def lease(name: str, *, age_seconds: int = 1, holder: str = "pod-1") -> dict[str, Any]:
    """Return a lease with the time since its last renewal."""
    renewed = (NOW - timedelta(seconds=age_seconds)).isoformat()
    return {
        "metadata": {"namespace": "wva", "name": name},
        "spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15},
    }


def written(manager: str, *, age_seconds: int = 1) -> dict[str, Any]:
    """Return an object with a status that a field manager wrote some time ago."""
    moment = (NOW - timedelta(seconds=age_seconds)).isoformat()
    return {"metadata": {"managedFields": [{"manager": manager, "subresource": "status", "time": moment}]}}


UPSTREAM = {
    "nobody": ({}, 0),
    "a Deployment of the upstream image": (
        {"deployments": (deployment(image="ghcr.io/llm-d/workload-variant-autoscaler:v0.4.2"),)},
        1,
    ),
    "the upstream Deployment, without replicas": (
        {"deployments": (deployment(image="ghcr.io/llm-d/workload-variant-autoscaler:v0.4.2", replicas=0),)},
        0,
    ),
    "any other Deployment": ({"deployments": (deployment(),)}, 0),
    "the upstream lease, held": ({"leases": (lease("72dd1cf1.llm-d.ai"),)}, 1),
    "the upstream lease, expired": ({"leases": (lease("72dd1cf1.llm-d.ai", age_seconds=60),)}, 0),
    "the upstream lease, released": ({"leases": (lease("72dd1cf1.llm-d.ai", holder=""),)}, 0),
    "a status written a minute ago": ({"objects": (written("manager", age_seconds=60),)}, 1),
    "a status written an hour ago": ({"objects": (written("manager", age_seconds=3600),)}, 0),
    "our own status": ({"objects": (written("stowplan-controller"),)}, 0),
}


@pytest.mark.parametrize(("found", "count"), UPSTREAM.values(), ids=UPSTREAM.keys())
def test_an_active_upstream_controller_is_a_problem(found: dict[str, Any], count: int) -> None:
    """It writes the same objects, and is detected by any of several signs."""
    assert len(problems(check_earlier_controllers(replace(EMPTY, **found)))) == count


ELSEWHERE = {
    "another namespace": ("wva", 1, True, True),
    "another namespace, expired": ("wva", 60, True, False),
    "the namespace of the webhooks": ("stowplan-system", 1, True, False),
    "another namespace, before webhooks are installed": ("wva", 1, False, False),
}


@pytest.mark.parametrize(
    ("namespace", "age_seconds", "is_configured", "is_second"), ELSEWHERE.values(), ids=ELSEWHERE.keys()
)
def test_our_own_active_controller_elsewhere_is_a_second_installation(
    namespace: str, age_seconds: int, is_configured: bool, is_second: bool
) -> None:
    """The one that was applied last has taken webhooks and permissions from the other."""
    held = lease("stowplan-controller", age_seconds=age_seconds)
    held["metadata"]["namespace"] = namespace
    configuration: dict[str, Any] | None = {"webhooks": []} if is_configured else None

    found = problems(check_earlier_controllers(replace(EMPTY, leases=(held,), configuration=configuration)))

    assert found == (
        [
            "there is a second installation in the namespace wva; webhooks and permissions belong to that"
            " in stowplan-system"
        ]
        if is_second
        else []
    )


def test_our_own_active_controller_is_a_problem_for_a_downgrade() -> None:
    """It would continue to write what an earlier release cannot store."""
    assert problems(check_our_controller(EMPTY)) == []
    (message,) = problems(check_our_controller(replace(EMPTY, leases=(lease("stowplan-controller"),))))
    assert message == "pod-1 holds the lease wva/stowplan-controller"


CONFIGURATIONS: dict[str, tuple[dict[str, Any] | None, str, str]] = {
    "with a caBundle": ({"webhooks": [{"clientConfig": {}}, {"clientConfig": {"caBundle": "Y2E="}}]}, "", ""),
    "without a caBundle yet": (
        {"webhooks": [{"clientConfig": {}}]},
        "the webhook configuration 'stowplan' has no caBundle",
        "the controller issues certificates",
    ),
    "missing": (None, "there is no webhook configuration 'stowplan'", "install Stowplan first: "),
}


@pytest.mark.parametrize(
    ("configuration", "want", "remedy"), CONFIGURATIONS.values(), ids=CONFIGURATIONS.keys()
)
def test_the_api_server_needs_a_ca_bundle_for_conversion(
    configuration: dict[str, Any] | None, want: str, remedy: str
) -> None:
    """It is copied from the webhook configuration; without an installation there is no log to refer to."""
    (found,) = check_certificates(replace(EMPTY, configuration=configuration))

    assert problems([found]) == ([want] if want else [])
    assert found.remedy.startswith(remedy)


WEBHOOKS = {
    "a Service with ready pods": ({"service": {"spec": {}}, "ready_pods": 2}, ""),
    "an external address": ({"service": {"spec": {"type": "ExternalName", "externalName": "x"}}}, ""),
    "no Service": ({}, "there is no Service"),
    "a Service without ready pods": ({"service": {"spec": {}}}, "has no ready pod"),
    "a Service that cannot be reached": (
        {"service": {"spec": {}}, "ready_pods": 1, "refusal": "no route to host"},
        "no route to host",
    ),
}


@pytest.mark.parametrize(("webhook", "want"), WEBHOOKS.values(), ids=WEBHOOKS.keys())
def test_the_conversion_webhook_must_be_reachable(webhook: dict[str, Any], want: str) -> None:
    """Its Service needs a ready pod that responds."""
    found = problems(check_webhook(replace(EMPTY, **webhook)))

    assert [want in message for message in found] == ([True] if want else [])


def endpoint(name: str, address: str, **conditions: bool) -> dict[str, Any]:
    """Return an endpoint of a pod."""
    return {"addresses": [address], "conditions": conditions, "targetRef": {"kind": "Pod", "name": name}}


ENDPOINTS = {
    "two ready pods": ([endpoint("a", "10.0.0.1", serving=True), endpoint("b", "10.0.0.2", serving=True)], 2),
    "without conditions": ([{"addresses": ["10.0.0.1"]}, {"addresses": ["10.0.0.2"]}], 2),
    "published, but not ready": ([endpoint("a", "10.0.0.1", ready=True, serving=False)], 0),
    "ready, but terminating": ([endpoint("a", "10.0.0.1", serving=True, terminating=True)], 0),
    "one pod with two addresses": ([endpoint("a", "10.0.0.1"), endpoint("a", "fd00::1")], 1),
}


@pytest.mark.parametrize(("endpoints", "count"), ENDPOINTS.values(), ids=ENDPOINTS.keys())
def test_pods_that_respond_to_conversion_count_as_ready(endpoints: list[dict[str, Any]], count: int) -> None:
    """Each of them is counted once."""
    assert ready_pods([{"endpoints": [item]} for item in endpoints] + [{"endpoints": None}]) == count


def test_pods_that_may_not_be_listed_are_not_a_problem() -> None:
    """This permission is not needed for anything else."""
    service = {"spec": {"type": "ClusterIP"}}
    (found,) = check_webhook(replace(EMPTY, service=service, ready_pods=None))

    assert found.verdict is Verdict.NOTE
    assert found.message.startswith("you are not allowed to list EndpointSlices in stowplan-system")


def test_each_missing_permission_is_named() -> None:
    """The message uses the verb and resource of a role."""
    (message,) = problems([check_permissions(("update variantautoscalings.llmd.ai",))])

    assert message == "you are not allowed to update variantautoscalings.llmd.ai"
    assert {
        "patch variantautoscalings/status.llmd.ai",
        "get services in stowplan-system",
        "get validatingwebhookconfigurations.admissionregistration.k8s.io",
    } <= set(needed_permissions("stowplan-system"))
