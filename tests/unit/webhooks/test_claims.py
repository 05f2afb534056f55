"""The index of scale targets and the objects that scale them."""

from __future__ import annotations

import pytest
from support.manifests import Manifest, autoscaler

from apiserver.cluster.cache import Change
from apiserver.schema.json import Json
from apiserver.schema.kind import Reference
from apiserver.schema.paths import FieldPath
from webhooks.claims import Claims, own_way_only, targets_only

TARGET = Reference(path=FieldPath(), group="apps", kind="Deployment", name="llama", is_scaled=True)
OTHER_TARGET = Reference(path=FieldPath(), group="apps", kind="Deployment", name="qwen", is_scaled=True)


def binding(*names: str) -> Json:
    """Return a binding of some Deployments, as reduced for the cache."""
    reference = {"apiVersion": "apps/v1", "kind": "Deployment"}
    params = [{"target": {"targetRef": reference | {"name": name}}} for name in names]
    value = {"spec": {"policyRef": {"name": "p"}, "optimizerConfiguration": {"params": params}}}
    return targets_only("registry.volcano.sh", "AutoscalingPolicyBinding")(value)


def others(claims: Claims, own: str = "other") -> list[tuple[str, str]]:
    """Return the other objects that scale the Deployment."""
    return list(claims.others(TARGET, "ns", ("AutoscalingPolicyBinding", own)))


def test_the_index_follows_added_changed_and_deleted_objects() -> None:
    """It excludes the object under review."""
    claims, kind, key = Claims(), "AutoscalingPolicyBinding", ("ns", "b")
    claims.take(kind, Change(key=key, old=None, new=binding("llama", "qwen")))
    assert others(claims) == [(kind, "b")]
    assert others(claims, own="b") == []
    assert list(claims.others(TARGET, "elsewhere", (kind, "x"))) == []

    claims.take(kind, Change(key=key, old=binding("llama", "qwen"), new=binding("qwen")))
    assert others(claims) == []
    assert list(claims.others(OTHER_TARGET, "ns", (kind, "x"))) == [(kind, "b")]
    claims.take(kind, Change(key=key, old=binding("qwen"), new=None))
    assert list(claims.others(OTHER_TARGET, "ns", (kind, "x"))) == []


def test_objects_with_unreadable_targets_claim_none() -> None:
    """They were stored without admission, and must not end the watch."""
    reduce = targets_only("llmd.ai", "VariantAutoscaling")

    assert reduce({"spec": {"scaleTargetRef": "llama"}}) == {"targets": []}
    assert reduce({}) == {"targets": []}


AUTOSCALERS: dict[str, tuple[Manifest, list[tuple[str, str, str]]]] = {
    "one that scales by the metric of a VariantAutoscaling": (autoscaler("llama"), []),
    "one that KEDA created": (
        {
            "metadata": {"labels": {"scaledobject.keda.sh/name": "x"}},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama"}},
        },
        [],
    ),
    "one that scales by CPU": (
        {
            "metadata": {},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama"},
                "metrics": [{"type": "Resource", "resource": {"name": "cpu"}}],
            },
        },
        [("apps", "Deployment", "llama")],
    ),
}


@pytest.mark.parametrize(("value", "claimed"), AUTOSCALERS.values(), ids=AUTOSCALERS)
def test_an_autoscaler_claims_its_target_unless_it_may_scale_by_stowplan_metrics(
    value: Manifest, claimed: list[tuple[str, str, str]]
) -> None:
    """An autoscaler that applies Stowplan's decision does not compete with it."""
    assert own_way_only(value) == {"targets": claimed}
