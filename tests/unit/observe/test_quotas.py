"""ResourceQuotas: what they leave to variants, and which cannot be planned with."""

from __future__ import annotations

import pytest

from apiserver.schema.json import Json
from controller.observe.quotas import Limits, Tenant, limits
from controller.observe.targets import TargetKey, TargetKind


def spec(number: int = 1, *, resource: str = "nvidia.com/gpu", cpu: str = "", **members: object) -> Json:
    """Return a pod's spec that asks for accelerators."""
    asked = {resource: str(number)} | ({"cpu": cpu} if cpu else {})
    return {"containers": [{"resources": {"requests": asked}}], **members}


def pod(name: str, pod_spec: Json, *, owner: str = "", namespace: str = "ns", phase: str = "Running") -> Json:
    """Return a pod of a Deployment, or of nobody."""
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


def found(item: Json, *tenants: Tenant, pods: tuple[Json, ...] = ()) -> Limits:
    """Return the limits from one quota; the Deployment `chat` is planned."""
    return limits(
        [item], tenants or [tenant()], pods, frozenset({TargetKey(TargetKind.DEPLOYMENT, "ns", "chat")})
    )


@pytest.mark.parametrize("name", ["requests.nvidia.com/gpu", "nvidia.com/gpu"])
def test_a_quota_leaves_what_others_do_not_use(name: str) -> None:
    """Our own pods, finished ones and those of other namespaces take nothing away."""
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
        pytest.param(quota({"pods": "5", "requests.cpu": "9"}), id="no accelerators in it"),
        pytest.param(quota({"requests.amd.com/gpu": "5"}), id="another vendor's"),
        pytest.param(quota({"requests.nvidia.com/gpu": "5"}, namespace="other"), id="another namespace"),
        pytest.param(quota({"requests.nvidia.com/gpu": "5"}, scopes=["Terminating"]), id="pods with an end"),
    ],
)
def test_a_quota_that_counts_no_pod_of_ours_is_left_out_silently(item: Json) -> None:
    """It is no limit, and nothing to tell."""
    assert found(item) == Limits()


def selector(operator: str, *values: str) -> Json:
    """Return a scope on the priority class."""
    expression = {"scopeName": "PriorityClass", "operator": operator, "values": list(values)}
    return {"matchExpressions": [expression]}


HIGH = spec(priorityClassName="high")
SCOPED = {
    "the class that is meant": (selector("In", "high"), HIGH, 1),
    "another class": (selector("In", "low"), HIGH, 0),
    "no class": (selector("In", "high"), spec(), 0),
    "none of these": (selector("NotIn", "low"), HIGH, 1),
    "none of these, without a class": (selector("NotIn", "low"), spec(), 1),
    "any class": (selector("Exists"), HIGH, 1),
    "any class, without one": (selector("Exists"), spec(), 0),
    "no class at all": (selector("DoesNotExist"), spec(), 1),
}


@pytest.mark.parametrize(("scope", "pod_spec", "want"), SCOPED.values(), ids=SCOPED.keys())
def test_a_scope_decides_whom_a_quota_counts(scope: Json, pod_spec: Json, want: int) -> None:
    """As the quota controller does."""
    item = quota({"requests.nvidia.com/gpu": "5"}, scopeSelector=scope)

    result = found(item, tenant(pod_spec))

    assert (len(result.quotas), result.problems) == (want, ())


def test_scopes_hold_for_other_pods_too() -> None:
    """What the quota does not count takes nothing from it."""
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
            id="a scope that holds for one of two",
        ),
        pytest.param(
            quota({"requests.nvidia.com/gpu": "5"}, scopes=["CrossNamespacePodAffinity"]),
            (tenant(),),
            id="a scope that is not judged here",
        ),
        pytest.param(
            quota({"requests.nvidia.com/gpu": "5"}),
            (
                tenant(),
                tenant(accelerator="H100"),
                tenant(spec(resource="amd.com/gpu"), accelerator="MI300X"),
            ),
            id="two of three types",
        ),
    ],
)
def test_a_quota_that_no_record_can_hold_is_named(item: Json, tenants: tuple[Tenant, ...]) -> None:
    """Neither too strict for some nor forgotten without a word."""
    result = found(item, *tenants)

    assert result.quotas == ()
    assert result.problems[0].startswith("ResourceQuota ns/q, requests.nvidia.com/gpu: ")
    assert result.problems[0].endswith("it is not considered")


def test_a_quota_of_one_vendor_holds_for_its_type_only() -> None:
    """A neighbour on other hardware is not held to it."""
    others = tenant(spec(resource="amd.com/gpu"), accelerator="MI300X")

    (limit,) = found(quota({"requests.nvidia.com/gpu": "5"}), tenant(), others).quotas

    assert limit.accelerator == "A100"
