"""Who scales what already, as the webhooks know it."""

from __future__ import annotations

from apiserver.cluster.cache import Change
from apiserver.schema.json import Json
from apiserver.schema.kind import Reference
from apiserver.schema.paths import FieldPath
from webhooks.claims import Claims, targets_only

TARGET = Reference(path=FieldPath(), group="apps", kind="Deployment", name="llama", is_scaled=True)


def binding(*names: str) -> Json:
    """Return a binding of some Deployments, as the cache keeps it."""
    reference = {"apiVersion": "apps/v1", "kind": "Deployment"}
    params = [{"target": {"targetRef": reference | {"name": name}}} for name in names]
    value = {"spec": {"policyRef": {"name": "p"}, "optimizerConfiguration": {"params": params}}}
    return targets_only("registry.volcano.sh", "AutoscalingPolicyBinding")(value)


def others(claims: Claims, own: str = "other") -> list[tuple[str, str]]:
    """Return who else scales the Deployment."""
    return list(claims.others(TARGET, "ns", ("AutoscalingPolicyBinding", own)))


def test_claims_come_change_and_go() -> None:
    """Nobody is warned of himself, nor of what is gone."""
    claims, kind, key = Claims(), "AutoscalingPolicyBinding", ("ns", "b")
    claims.take(kind, Change(key=key, old=None, new=binding("llama", "qwen")))
    assert others(claims) == [(kind, "b")]
    assert others(claims, own="b") == []
    assert list(claims.others(TARGET, "elsewhere", (kind, "x"))) == []

    claims.take(kind, Change(key=key, old=binding("llama", "qwen"), new=binding("qwen")))
    assert others(claims) == []
    claims.take(kind, Change(key=key, old=binding("qwen"), new=None))
    assert claims._claimants == {}


def test_what_was_stored_around_admission_claims_nothing() -> None:
    """It must not end the watch either."""
    reduce = targets_only("llmd.ai", "VariantAutoscaling")

    assert reduce({"spec": {"scaleTargetRef": "llama"}}) == {"targets": []}
    assert reduce({}) == {"targets": []}
