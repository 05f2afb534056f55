"""ResourceQuotas: accelerators left to variants, and quotas that a plan cannot express."""

from __future__ import annotations

import pytest

from apiserver.schema.json import Json
from controller.observe.quotas import QuotaLimits, Tenant, limits
from controller.observe.targets import TargetKey, TargetKind


def spec(number: int = 1, *, resource: str = "nvidia.com/gpu", cpu: str = "", **members: object) -> Json:
    """Return the spec of a pod that requests accelerators."""
    asked = {resource: str(number)} | ({"cpu": cpu} if cpu else {})
    return {"containers": [{"resources": {"requests": asked}}], **members}


def pod(name: str, pod_spec: Json, *, owner: str = "", namespace: str = "ns", phase: str = "Running") -> Json:
    """Return a pod, of a Deployment if an owner is given."""
    reference = {"kind": "ReplicaSet", "name": f"{owner}-abc", "controller": True}
    metadata = {
        "namespace": namespace,
        "name": name,
        "labels": {"pod-template-hash": "abc"},
        "ownerReferences": [reference] if owner else [],
    }
    return {"metadata": metadata, "spec": pod_spec, "status": {"phase": phase}}


def quota(hard: Json, *, namespace: str = "ns", **members: object) -> Json:
    """Return a ResourceQuota."""
    return {"metadata": {"namespace": namespace, "name": "q"}, "spec": {"hard": hard, **members}}


def tenant(pod_spec: Json | None = None, *, accelerator: str = "A100") -> Tenant:
    """Return a variant in namespace `ns`."""
    return Tenant(namespace="ns", accelerator=accelerator, pod_spec=pod_spec or spec())


def found(item: Json, *tenants: Tenant, pods: tuple[Json, ...] = ()) -> QuotaLimits:
    """Return the limits by one quota; Deployment `chat` is planned."""
    return limits(
        [item], tenants or [tenant()], pods, frozenset({TargetKey(TargetKind.DEPLOYMENT, "ns", "chat")})
    )


@pytest.mark.parametrize("name", ["requests.nvidia.com/gpu", "nvidia.com/gpu"])
def test_the_use_of_other_pods_is_subtracted_from_a_quota(name: str) -> None:
    """Pods of planned targets, finished pods and those of other namespaces are not subtracted."""
    pods = (
        pod("ours", spec(2), owner="chat"),
        pod("theirs", spec(3)),
        pod("done", spec(4), phase="Succeeded"),
        pod("elsewhere", spec(5), namespace="other"),
    )

    (limit,) = found(quota({name: "8", "cpu": "1"}), pods=pods).quotas

    assert (limit.namespace, limit.accelerators, limit.accelerator) == ("ns", 5, "")
    assert limit.name == f"q ({name})"


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(quota({"pods": "5", "requests.cpu": "9"}), id="no accelerator resource"),
        pytest.param(quota({"requests.amd.com/gpu": "5"}), id="another vendor's resource"),
        pytest.param(quota({"requests.nvidia.com/gpu": "5"}, namespace="other"), id="another namespace"),
        pytest.param(quota({"requests.nvidia.com/gpu": "5"}, scopes=["Terminating"]), id="scope Terminating"),
    ],
)
def test_a_quota_that_applies_to_no_variant_is_ignored_without_a_report(item: Json) -> None:
    """It gives neither a limit nor a problem."""
    assert found(item) == QuotaLimits()


def selector(operator: str, *values: str) -> Json:
    """Return a scope selector on the priority class."""
    expression = {"scopeName": "PriorityClass", "operator": operator, "values": list(values)}
    return {"matchExpressions": [expression]}


HIGH = spec(priorityClassName="high")
SCOPED = {
    "In, with the pod's class": (selector("In", "high"), HIGH, 1),
    "In, with another class": (selector("In", "low"), HIGH, 0),
    "In, pod without a class": (selector("In", "high"), spec(), 0),
    "NotIn, with another class": (selector("NotIn", "low"), HIGH, 1),
    "NotIn, pod without a class": (selector("NotIn", "low"), spec(), 1),
    "Exists, pod with a class": (selector("Exists"), HIGH, 1),
    "Exists, pod without a class": (selector("Exists"), spec(), 0),
    "DoesNotExist, pod without a class": (selector("DoesNotExist"), spec(), 1),
}


@pytest.mark.parametrize(("scope", "pod_spec", "want"), SCOPED.values(), ids=SCOPED.keys())
def test_a_scope_selector_determines_the_pods_that_a_quota_counts(
    scope: Json, pod_spec: Json, want: int
) -> None:
    """The result is that of Kubernetes' quota controller."""
    item = quota({"requests.nvidia.com/gpu": "5"}, scopeSelector=scope)

    result = found(item, tenant(pod_spec))

    assert (len(result.quotas), result.problems) == (want, ())


def test_scopes_also_apply_to_pods_of_others() -> None:
    """A pod that the quota does not count is not subtracted from it."""
    item = quota({"requests.nvidia.com/gpu": "8"}, scopes=["NotBestEffort"])
    pods = (pod("counted", spec(3, cpu="1")), pod("not", spec(2)))

    (limit,) = found(item, tenant(spec(cpu="1")), pods=pods).quotas

    assert limit.accelerators == 5


@pytest.mark.parametrize(
    ("item", "tenants"),
    [
        pytest.param(
            quota({"requests.nvidia.com/gpu": "5"}, scopeSelector=selector("In", "high")),
            (tenant(HIGH), tenant()),
            id="a scope that applies to one of two variants",
        ),
        pytest.param(
            quota({"requests.nvidia.com/gpu": "5"}, scopes=["CrossNamespacePodAffinity"]),
            (tenant(),),
            id="an unsupported scope",
        ),
        pytest.param(
            quota({"requests.nvidia.com/gpu": "5"}),
            (
                tenant(),
                tenant(accelerator="H100"),
                tenant(spec(resource="amd.com/gpu"), accelerator="MI300X"),
            ),
            id="a resource that covers two of three types",
        ),
    ],
)
def test_a_quota_that_a_plan_cannot_express_is_reported(item: Json, tenants: tuple[Tenant, ...]) -> None:
    """It is not applied to variants that it does not count, and not dropped silently."""
    result = found(item, *tenants)

    assert result.quotas == ()
    assert result.problems[0].startswith("ResourceQuota ns/q, requests.nvidia.com/gpu: ")
    assert result.problems[0].endswith("it is not considered")


def test_a_quota_of_one_vendor_applies_to_its_accelerator_type_only() -> None:
    """A variant with another vendor's accelerators is not limited by it."""
    others = tenant(spec(resource="amd.com/gpu"), accelerator="MI300X")

    (limit,) = found(quota({"requests.nvidia.com/gpu": "5"}), tenant(), others).quotas

    assert limit.accelerator == "A100"
