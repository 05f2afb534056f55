"""Who scales what already, as the webhooks know it."""

from __future__ import annotations

import pytest
from support.manifests import Manifest, autoscaler

from apiserver.cluster.cache import Change
from apiserver.schema.json import Json
from apiserver.schema.kind import Reference
from apiserver.schema.paths import FieldPath
from webhooks.claims import Claims, own_way_only, targets_only

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


AUTOSCALERS: dict[str, tuple[Manifest, list[tuple[str, str, str]]]] = {
    "one that follows a VariantAutoscaling": (autoscaler("llama"), []),
    "one that KEDA made": (
        {
            "metadata": {"labels": {"scaledobject.keda.sh/name": "x"}},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama"}},
        },
        [],
    ),
    "one of CPU": (
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
def test_an_autoscaler_claims_what_it_scales_its_own_way(
    value: Manifest, claimed: list[tuple[str, str, str]]
) -> None:
    """One that follows our decision is no rival of it."""
    assert own_way_only(value) == {"targets": claimed}
