"""The index of scale targets and the objects that scale them."""

from __future__ import annotations

from support.manifests import autoscaler

from apiserver.cluster.cache import Change
from apiserver.schema.json import Json
from apiserver.schema.kind import Reference
from apiserver.schema.paths import FieldPath
from webhooks.claims import Autoscalers, Claims, autoscaler_only, targets_only

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


def test_the_index_of_autoscalers_follows_changes() -> None:
    """Each keeps its record, by which it is compared with objects that are written later."""
    index, key = Autoscalers(), ("ns", "llama")
    made = autoscaler_only(autoscaler("llama"))
    moved = autoscaler_only(autoscaler("qwen"))

    index.take(Change(key=key, old=None, new=made))
    assert [item.name for item in index.of(TARGET, "ns")] == ["llama"]
    assert index.of(TARGET, "elsewhere") == []

    index.take(Change(key=key, old=made, new=moved))
    assert index.of(TARGET, "ns") == []
    assert [item.name for item in index.of(OTHER_TARGET, "ns")] == ["qwen"]
    index.take(Change(key=key, old=moved, new=None))
    assert index.of(OTHER_TARGET, "ns") == []
