"""Claims of VariantAutoscalings and of bindings: what each of these objects asks of planning."""

from __future__ import annotations

from decimal import Decimal

import pytest
from support.gathering import A100, gathered, placed, pod
from support.manifests import PERF_PARMS, autoscaler, variant

from apiserver.kinds.authorship import WRITTEN_BY, record_of
from apiserver.schema.json import Json
from controller.observe.binding_claims import Ask, claims_of_asks
from controller.observe.claim import Claim, Claims, Owner, OwnerKind
from controller.observe.conditions import ConditionReason
from controller.observe.declarations import claim_of, claims_of
from controller.observe.overrides import Orders
from controller.observe.targets import TargetKey, TargetKind
from controller.policies.policy import read_binding
from controller.sizing.records import Learned, Profile, StepParameters

ANN: Json = {"username": "ann"}
TARGET = TargetKey(TargetKind.DEPLOYMENT, "ns", "chat")
PUBLISHED: Json = {
    "desiredOptimizedAlloc": {"numReplicas": 4},
    "decision": {
        "performance": {
            "decodeParms": {"alpha": "13.2", "beta": "0.1"},
            "prefillParms": {"delta": "0.06"},
            "samples": 100,
            "startSeconds": 140,
        }
    },
}
SAYS_ALL: Json = {
    "accelerator": A100,
    "acceleratorCount": 2,
    "variantCost": "5",
    "sloClassRef": {"name": "classes", "key": "premium"},
    "variantProfile": {"perfParms": PERF_PARMS, "maxBatchSize": 48},
}


def test_the_claim_of_a_variant_autoscaling_has_all_that_it_says() -> None:
    """Its status has what was published and learned before."""
    annotations = {"stowplan.dev/replicas": "3", WRITTEN_BY: record_of(ANN)}
    value = placed(variant("chat", **SAYS_ALL), annotations=annotations) | {"status": PUBLISHED}

    assert claim_of(value) == Claim(
        owner=Owner(OwnerKind.VARIANT, "ns", "chat"),
        name="chat",
        created="2026-01-01T00:00:00Z",
        model_id="meta/llama-3.1-8b",
        target=TARGET,
        accelerator="A100",
        accelerator_count=2,
        cost=Decimal(5),
        service_class=("classes", "premium"),
        orders=Orders(pinned_replicas=3, followed=("stowplan.dev/replicas=3",)),
        writer=record_of(ANN),
        published_replicas=4,
        profile=Profile(
            parameters=StepParameters(alpha_ms=20.58, beta_ms=0.41, gamma_ms=5.2, delta_ms=0.1),
            max_batch_size=48,
        ),
        learned=Learned(parameters=StepParameters(alpha_ms=13.2, beta_ms=0.1, delta_ms=0.06), samples=100.0),
        known_start_seconds=140.0,
    )


DECLARED: dict[str, tuple[Json, str]] = {
    "the spec": ({"accelerator": "H100"}, "H100"),
    "the label": ({}, "A100"),
}


@pytest.mark.parametrize(("spec", "want"), DECLARED.values(), ids=DECLARED)
def test_the_spec_takes_precedence_over_the_label(spec: Json, want: str) -> None:
    """Every release names the accelerator by the label."""
    labels = {"inference.optimization/acceleratorName": A100}

    assert claim_of(placed(variant("chat", labels=labels, **spec))).accelerator == want


@pytest.mark.parametrize("status", ["x", {"decision": []}, {"desiredOptimizedAlloc": 5}, None])
def test_a_status_of_another_shape_says_nothing(status: object) -> None:
    """It may have been written before the definition of the kind."""
    found = claim_of(placed(variant("chat")) | {"status": status})

    assert (found.published_replicas, found.learned, found.known_start_seconds) == (None, None, None)


def test_an_object_that_cannot_be_read_sets_only_itself_aside() -> None:
    """The others are listed by age, then by name."""
    old = placed(variant("old"), creationTimestamp="2025-01-01T00:00:00Z")
    found = claims_of([placed(variant("b")), placed(variant("a")), placed({**variant("x"), "spec": {}}), old])

    assert [claim.name for claim in found.by_precedence()] == ["old", "a", "b"]
    assert {key: why.reason for key, why in found.unplanned.items()} == {
        ("ns", "x"): ConditionReason.INVALID_CONFIGURATION
    }


def binding(service_class: str = "", **costs: int) -> Ask:
    """Return the demand of a binding of some Deployments with costs."""
    annotations = {"stowplan.dev/service-class": service_class} if service_class else {}
    params = [
        {
            "target": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}},
            "minReplicas": 0,
            "maxReplicas": 3,
            "cost": cost,
        }
        for name, cost in costs.items()
    ]
    optimizer = {"costExpansionRatePercent": 100, "params": params}
    value = placed(
        {
            "apiVersion": "registry.volcano.sh/v1alpha1",
            "kind": "AutoscalingPolicyBinding",
            "metadata": {"name": "b", "annotations": annotations},
            "spec": {"policyRef": {"name": "p"}, "optimizerConfiguration": optimizer},
        }
    )
    return Ask(value=value, required=2.0, binding=read_binding(value))


def test_a_binding_has_a_claim_for_each_target() -> None:
    """A target without a cost costs almost nothing beside one that has a cost."""
    found = claims_of_asks([binding("classes/premium", chat=7, code=0)])

    assert [(item.name, item.target.name, item.cost) for item in found.readable] == [
        ("b/chat", "chat", Decimal(7)),
        ("b/code", "code", Decimal("0.001")),
    ]
    (owner,) = {item.owner for item in found.readable}
    assert (owner.kind.short_name, owner[1:]) == ("aspb", ("ns", "b"))
    assert {(item.model, item.service_class, item.is_bound) for item in found.readable} == {
        (("ns", "aspb/b"), ("classes", "premium"), True)
    }


def test_without_any_cost_the_prices_of_accelerators_apply() -> None:
    """The claims of the targets have none."""
    assert [item.cost for item in claims_of_asks([binding(chat=0, code=0)]).readable] == [None, None]


def test_a_binding_with_an_invalid_service_class_has_no_claims() -> None:
    """Its targets are not planned, as a VariantAutoscaling with such a reference is not."""
    found = claims_of_asks([binding("Not A Name/key", chat=1)])

    assert found.readable == ()
    assert [*found.unplanned] == [("ns", "b/chat")]


def test_joined_claims_are_in_order_of_age() -> None:
    """With the same age, the first name comes first."""
    own, others = claims_of([placed(variant("a")), placed(variant("c"))]), claims_of_asks([binding(x=0)])

    assert [claim.name for claim in (own | others).by_precedence()] == ["a", "b/x", "c"]
    assert own | Claims() == own


def test_a_variant_of_another_accelerator_than_declared_is_not_taken_for_its_own_neighbour() -> None:
    """Its autoscaler selects the metric by the model, which no other variant has."""
    reading = autoscaler("chat")
    metric = reading["spec"]["metrics"][0]["external"]["metric"]
    metric["selector"] = {"matchLabels": {"model_id": "meta/llama-3.1-8b"}}

    found = gathered(
        placed(variant("chat", accelerator="H100")), pods=(pod("chat-1"),), autoscalers=(placed(reading),)
    ).observed["ns", "chat"]

    assert "declared as H100" in found.mistyped
    assert found.misread == ()
