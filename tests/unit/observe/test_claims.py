"""What objects ask of planning: claims, orders by annotations, and bounds."""

from __future__ import annotations

from decimal import Decimal

import pytest
from support.gathering import A100, gathered, placed, pod
from support.manifests import PERF_PARMS, autoscaler, variant

from apiserver.kinds.authorship import WRITTEN_BY, record_of
from apiserver.schema.json import Json
from controller.observe.binding_claims import BindingDemand, claims_of_demands
from controller.observe.claim import Claim, Claims, Orders, Owner, OwnerKind, orders_finding, orders_of
from controller.observe.conditions import ConditionReason
from controller.observe.declarations import claim_of, claims_of
from controller.observe.targets import TargetKey, TargetKind
from controller.policies.policy import read_binding
from controller.sizing.records import LearnedProfile, Profile, StepParameters

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
        learned=LearnedProfile(
            parameters=StepParameters(alpha_ms=13.2, beta_ms=0.1, delta_ms=0.06), samples=100.0
        ),
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


def binding(service_class: str = "", **costs: int) -> BindingDemand:
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
    return BindingDemand(value=value, required=2.0, binding=read_binding(value))


def test_a_binding_has_a_claim_for_each_target() -> None:
    """A target without a cost costs almost nothing beside one that has a cost."""
    found = claims_of_demands([binding("classes/premium", chat=7, code=0)])

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
    assert [item.cost for item in claims_of_demands([binding(chat=0, code=0)]).readable] == [None, None]


def test_a_binding_with_an_invalid_service_class_has_no_claims() -> None:
    """Its targets are not planned, as a VariantAutoscaling with such a reference is not."""
    found = claims_of_demands([binding("Not A Name/key", chat=1)])

    assert found.readable == ()
    assert [*found.unplanned] == [("ns", "b/chat")]


def test_joined_claims_are_in_order_of_age() -> None:
    """With the same age, the first name comes first."""
    own, others = claims_of([placed(variant("a")), placed(variant("c"))]), claims_of_demands([binding(x=0)])

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


def annotated(**annotations: str) -> Json:
    """Return an object with Stowplan's annotations, given by their names after the prefix."""
    return {"metadata": {"annotations": {f"stowplan.dev/{name}": text for name, text in annotations.items()}}}


UNDERSTOOD = {
    "a pause": (annotated(paused="true"), {"is_paused": True}),
    "no pause": (annotated(paused="false"), {"is_paused": False}),
    "pinned replicas": (annotated(replicas="3"), {"pinned_replicas": 3}),
    "pinned to zero replicas": (annotated(replicas="0"), {"pinned_replicas": 0}),
    "the maximum of pinned replicas": (annotated(replicas="1000000"), {"pinned_replicas": 1_000_000}),
    "protection": (annotated(preemption="Never"), {"may_be_preempted": False}),
    "a number of prefill per decode": (
        annotated(**{"prefill-per-decode": "0.5"}),
        {"prefill_per_decode": (0.5, 0.5)},
    ),
    "a range of prefill per decode": (
        annotated(**{"prefill-per-decode": "0.25-1"}),
        {"prefill_per_decode": (0.25, 1.0)},
    ),
    "advice": (annotated(advisory="true"), {"is_advisory": True}),
}


@pytest.mark.parametrize(("value", "want"), UNDERSTOOD.values(), ids=UNDERSTOOD.keys())
def test_a_valid_annotation_sets_its_field_and_no_other(value: Json, want: dict[str, object]) -> None:
    """The condition has reason AnnotationsFollowed."""
    found = orders_of(value)

    plain = Orders(followed=found.followed)
    orders = ("is_paused", "pinned_replicas", "may_be_preempted", "is_advisory", "prefill_per_decode")
    changed = {name for name in orders if getattr(found, name) != getattr(plain, name)}
    assert {name: getattr(found, name) for name in want} == want
    assert changed <= want.keys()
    assert orders_finding(found)[:2] == (True, "AnnotationsFollowed")


def test_the_annotation_that_records_the_writer_is_ignored() -> None:
    """The admission webhook writes it."""
    found = orders_of(annotated(**{"written-by": "{}"}))

    assert found == Orders()
    assert orders_finding(found)[1] == "NoAnnotations"


RATIO = "a number above 0 and below 10000, such as 0.5, or a range of them, such as 0.25-1"

NOT_UNDERSTOOD = {
    "another spelling of true": ("paused", "True", "'true' or 'false'"),
    "an empty value": ("advisory", "", "'true' or 'false'"),
    "a trailing line break": ("paused", "true\n", "'true' or 'false'"),
    "a fraction": ("replicas", "2.5", "a whole number from 0 to 1000000"),
    "a sign": ("replicas", "-1", "a whole number from 0 to 1000000"),
    "more than the maximum": ("replicas", "1000001", "a whole number from 0 to 1000000"),
    "non-ASCII digits": ("replicas", "٣", "a whole number from 0 to 1000000"),
    "no prefill at all": ("prefill-per-decode", "0", RATIO),
    "a range without an end": ("prefill-per-decode", "0.5-", RATIO),
    "another policy": ("preemption", "PreemptLowerPriority", "'Never'"),
}


@pytest.mark.parametrize(("name", "text", "allowed"), NOT_UNDERSTOOD.values(), ids=NOT_UNDERSTOOD.keys())
def test_an_invalid_annotation_value_is_ignored_and_reported(name: str, text: str, allowed: str) -> None:
    """The message gives the annotation, its value and what is allowed."""
    found = orders_of(annotated(**{name: text}))
    is_good, reason, message = orders_finding(found)

    assert found == Orders(problems=found.problems)
    assert (is_good, reason) == (False, "AnnotationNotUnderstood")
    assert message.startswith(f"metadata.annotations[stowplan.dev/{name}]: must be {allowed}, was {text!r}")


def test_an_unknown_annotation_is_reported_and_the_others_are_applied() -> None:
    """Otherwise its author would believe that the variant is paused."""
    found = orders_of(annotated(pause="true", replicas="2"))

    assert (found.is_paused, found.pinned_replicas) == (False, 2)
    assert found.problems[0].endswith(
        "stowplan.dev/pause]: has no effect on a VariantAutoscaling: is stowplan.dev/paused meant?"
    )


def test_an_order_that_a_kind_does_not_have_is_not_followed() -> None:
    """Admission says the same: targets of a binding cannot be pinned together."""
    orders = orders_of(annotated(replicas="2", paused="true"), "AutoscalingPolicyBinding")

    assert (orders.is_paused, orders.pinned_replicas) == (True, None)
    assert orders.problems[0].startswith(
        "metadata.annotations[stowplan.dev/replicas]: has no effect on an AutoscalingPolicyBinding"
    )


def test_annotations_with_other_prefixes_are_ignored() -> None:
    """A prefix that only ends like Stowplan's is another one."""
    value = {"metadata": {"annotations": {"kubectl.kubernetes.io/x": "y", "notstowplan.dev/paused": "true"}}}

    assert orders_finding(orders_of(value))[:2] == (True, "NoAnnotations")
    assert orders_of({"metadata": {}}) == Orders()


@pytest.mark.parametrize(
    ("own", "scaler", "want", "told"),
    [
        pytest.param({}, (1, 7), (1, 7), "", id="none of its own"),
        pytest.param({"minReplicas": 1, "maxReplicas": 7}, (1, 7), (1, 7), "", id="the same"),
        pytest.param({"maxReplicas": 4}, (1, 7), (1, 4), "maximum 4", id="a lower maximum"),
        pytest.param({"maxReplicas": 9}, (1, 7), (1, 7), "maximum 7", id="a higher maximum"),
        pytest.param({"minReplicas": 2}, (1, 7), (2, 7), "minimum 2", id="a higher minimum"),
        pytest.param(
            {"minReplicas": 2, "maxReplicas": 4}, (3, 9), (3, 4), "minimum 3 and maximum 4", id="both"
        ),
        pytest.param({"minReplicas": 8}, (1, 7), (7, 7), "minimum 7", id="a minimum above the maximum"),
        pytest.param({"maxReplicas": 2}, (4, 7), (2, 2), "maximum 2", id="a maximum below the minimum"),
        pytest.param({"minReplicas": 2, "maxReplicas": 4}, None, (2, 4), "", id="without an autoscaler"),
    ],
)
def test_of_the_bounds_of_object_and_autoscaler_the_narrower_apply(
    own: Json, scaler: tuple[int, int] | None, want: tuple[int, int], told: str
) -> None:
    """The condition of the target says so once."""
    scalers = (placed(autoscaler("chat", least=scaler[0], most=scaler[1])),) if scaler else ()
    found = gathered(placed(variant("chat", **own)), autoscalers=scalers)

    (planned,) = found.snapshot.variants
    assert (planned.min_replicas, planned.max_replicas) == want
    assert found.observed["ns", "chat"].narrowing.endswith(told)
    assert bool(found.observed["ns", "chat"].narrowing) is bool(told)


@pytest.mark.parametrize(("least", "may"), [(None, False), (0, True), (1, False)])
def test_a_minimum_of_zero_allows_scale_to_zero(least: int | None, *, may: bool) -> None:
    """It does so for one variant, while the setting for all forbids it; the grace period applies."""
    found = gathered(placed(variant("chat", minReplicas=least)))

    assert found.snapshot.variants[0].may_scale_to_zero is may
    assert bool(found.snapshot.models) is may
