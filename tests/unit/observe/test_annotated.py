"""Annotated autoscalers: their claims, whom they yield to, and how they are planned."""

from __future__ import annotations

from decimal import Decimal

import pytest
from support.annotated import TERMS, hpa, made_by_keda, scaled_object
from support.gathering import A100, CHAT, gathered, placed, pod
from support.manifests import autoscaler, deployment, variant

from apiserver.kinds.annotated import term_problems
from apiserver.kinds.decision_record import record_text
from apiserver.schema.json import Json
from controller.observe.claim import Claim, Claims, Orders, Owner, OwnerKind
from controller.observe.conditions import ConditionReason
from controller.observe.declarations import Records, annotated_references, claims_of_annotated
from controller.observe.targets import TargetKey, TargetKind

TARGET = TargetKey(TargetKind.DEPLOYMENT, "ns", "chat")
STATUS: Json = {
    "desiredOptimizedAlloc": {"numReplicas": 4, "lastRunTime": "2026-01-01T00:00:00Z"},
    "decision": {
        "reason": "Steady",
        "message": "",
        "performance": {
            "decodeParms": {"alpha": "13.2", "beta": "0.1"},
            "prefillParms": {"delta": "0.06"},
            "samples": 100,
            "startSeconds": 140,
        },
    },
}
OLDER = "2025-01-01T00:00:00Z"


def claims(*autoscalers: Json, scaled: tuple[Json, ...] = (), records: Records | None = None) -> Claims:
    """Return the claims of autoscalers where there is nothing else."""
    return claims_of_annotated(autoscalers, scaled, records or {}, claimed=())


def only(found: Claims) -> Claim:
    """Return the one claim."""
    (claim,) = found.readable
    assert not found.unplanned
    return claim


def test_the_claim_of_an_autoscaler_has_all_that_it_says() -> None:
    """The record has what was published and learned before."""
    value = hpa(
        "scaler",
        "chat",
        terms={"llm-d.ai/variant-cost": "5", "stowplan.dev/replicas": "3"},
        labels={"inference.optimization/acceleratorName": A100},
    )
    claim = only(claims(value, records={"ns": {"scaler": record_text(value, {}, STATUS)}}))

    assert claim.owner == Owner(OwnerKind.HORIZONTAL_POD_AUTOSCALER, "ns", "scaler")
    assert (claim.key, claim.model_id) == (("ns", "scaler"), TERMS["llm-d.ai/model-id"])
    assert (claim.target, claim.accelerator, claim.cost) == (TARGET, "A100", Decimal(5))
    assert claim.orders == Orders(pinned_replicas=3, followed=("stowplan.dev/replicas=3",))
    assert (claim.published_replicas, claim.known_start_seconds) == (4, 140.0)
    assert claim.learned is not None
    assert (claim.bounds, claim.may_scale_to_zero, claim.writer) == ((0, None), False, None)


def test_a_scaled_object_counts_once_and_scales_a_deployment_by_default() -> None:
    """The copy of KEDA has the annotations as well."""
    claim = only(
        claims(made_by_keda("chat", "chat"), scaled=(scaled_object("chat", "chat", minReplicaCount=0),))
    )

    assert claim.owner == Owner(OwnerKind.SCALED_OBJECT, "ns", "chat")
    assert (claim.target, claim.may_scale_to_zero) == (TARGET, True)


def test_an_unknown_accelerator_is_not_declared() -> None:
    """KServe says so if it does not know one: the pods of the target show it."""
    value = hpa("chat", labels={"inference.optimization/acceleratorName": "unknown"})

    assert only(claims(value)).accelerator == ""
    (planned,) = gathered(autoscalers=(value,), records={}).snapshot.variants
    assert planned.accelerator == "A100"


@pytest.mark.parametrize("text", ["", "{", '{"kind":"K","name":"n","labels":{},"status":{"decision":1}}'])
def test_a_record_that_was_edited_counts_as_absent(text: str) -> None:
    """Users of a namespace may write its ConfigMaps."""
    claim = only(claims(hpa("chat"), records={"ns": {"chat": text}}))

    assert (claim.published_replicas, claim.learned) == (None, None)


def test_the_record_of_another_namespace_is_not_read() -> None:
    """Its users must not decide here."""
    value = hpa("chat")
    records = {"other": {"chat": record_text(value, {}, STATUS)}}

    assert only(claims(value, records=records)).published_replicas is None


def test_an_autoscaler_without_a_model_is_not_planned() -> None:
    """The others are."""
    found = claims(hpa("chat"), hpa("code", terms={"llm-d.ai/model-id": ""}))

    assert [claim.name for claim in found.readable] == ["chat"]
    assert found.unplanned["ns", "code"].reason is ConditionReason.INVALID_CONFIGURATION
    assert "metadata.annotations[llm-d.ai/model-id]" in found.unplanned["ns", "code"].message
    assert [item.key for item in found.claimants] == [("ns", "chat"), ("ns", "code")]


def test_a_negative_cost_is_told_and_ignored() -> None:
    """The variant is planned with the listed price."""
    claim = only(claims(hpa("chat", terms={"llm-d.ai/variant-cost": "-1"})))

    assert claim.cost is None
    assert "must be a non-negative decimal number" in claim.orders.problems[0]


def test_a_cost_that_is_not_planned_is_named() -> None:
    """`kubectl apply` warns, too."""
    (text,) = term_problems(hpa("chat", terms={"llm-d.ai/variant-cost": "1000000001"}))

    assert text.endswith("variant-cost]: above 1000000000, so the variant is not planned")


def test_of_two_objects_with_one_name_the_older_one_has_it() -> None:
    """By the name, autoscalers select the metric, and all matching numbers are added up."""
    found = claims(hpa("chat"), scaled=(scaled_object("chat", "code") | {"metadata": OLD_METADATA},))

    assert [claim.owner.kind for claim in found.readable] == [OwnerKind.SCALED_OBJECT]
    assert "ScaledObject 'chat' has the same name" in found.unplanned["ns", "hpa/chat"].message
    assert {item.key: bool(item.labels) for item in found.claimants} == {
        ("ns", "chat"): True,
        ("ns", "hpa/chat"): False,
    }


OLD_METADATA = scaled_object("chat", "code")["metadata"] | {"creationTimestamp": OLDER}


def test_a_variant_autoscaling_of_the_same_name_has_it() -> None:
    """Even if it is younger."""
    found = claims_of_annotated([hpa("chat", creationTimestamp=OLDER)], (), {}, claimed=[("ns", "chat")])

    assert not found.readable
    assert "VariantAutoscaling 'chat' has the same name" in found.unplanned["ns", "hpa/chat"].message


def test_a_variant_autoscaling_on_the_same_target_takes_precedence() -> None:
    """Even if it is younger; the autoscaler is told to drop its annotation."""
    found = gathered(
        placed(variant("chat")), autoscalers=(hpa("scaler", "chat", creationTimestamp=OLDER),), records={}
    )

    assert [item.name for item in found.snapshot.variants] == ["chat"]
    why = found.unplanned["ns", "scaler"]
    assert why.reason is ConditionReason.TARGET_CLAIMED
    assert why.message == (
        "VariantAutoscaling 'chat' already decides on Deployment 'chat'; remove the annotation"
        " llm-d.ai/managed here"
    )


def test_a_binding_on_the_same_target_takes_precedence() -> None:
    """Even if it is younger."""
    bound = {TARGET: ("2027-01-01T00:00:00Z", ("ns", "policy"))}
    found = gathered(autoscalers=(hpa("scaler", "chat"),), records={}, bound=bound)

    assert not found.snapshot.variants
    assert found.unplanned["ns", "scaler"].message == (
        "AutoscalingPolicyBinding 'policy' already decides on Deployment 'chat'; remove the annotation"
        " llm-d.ai/managed here"
    )


def test_of_two_annotated_autoscalers_on_one_target_the_older_one_decides() -> None:
    """Kubernetes lets neither of two HorizontalPodAutoscalers act, which its condition says."""
    found = gathered(
        autoscalers=(hpa("young", "chat"), hpa("old", "chat", creationTimestamp=OLDER)), records={}
    )

    assert [item.name for item in found.snapshot.variants] == ["old"]
    assert "'old' is older and already decides" in found.unplanned["ns", "young"].message
    assert "TargetScaledTwice" in {problem.reason for problem in found.observed["ns", "old"].misread}


def test_an_annotated_autoscaler_is_planned_within_its_own_bounds() -> None:
    """Without the setting, it is an autoscaler like any other."""
    value = hpa("scaler", "chat", terms={"llm-d.ai/variant-cost": "7"})
    value["spec"] |= {"minReplicas": 2, "maxReplicas": 5}

    (planned,) = gathered(pods=(pod("chat-1"),), autoscalers=(value,), records={}).snapshot.variants
    assert (planned.key, planned.min_replicas, planned.max_replicas) == (("ns", "scaler"), 2, 5)
    assert planned.cost_per_replica == 7
    assert not gathered(autoscalers=(value,)).snapshot.variants


def test_prefill_and_decode_of_one_model_are_two_roles() -> None:
    """They do not replace each other, like those of VariantAutoscalings."""
    workloads = []
    for role in ("prefill", "decode"):
        workload = deployment(role, product=A100, accelerators=1)
        workload["spec"]["template"]["metadata"]["labels"]["llm-d.ai/role"] = role
        workloads.append(placed(workload))
    found = gathered(autoscalers=(hpa("prefill"), hpa("decode")), records={}, deployments=(CHAT, *workloads))

    models = {item.name: item.model_id for item in found.snapshot.variants}
    assert models == {role: f"{TERMS['llm-d.ai/model-id']} ({role})" for role in ("prefill", "decode")}


def test_its_own_selector_is_checked() -> None:
    """The metric has the name of the autoscaler."""
    own, other = hpa("scaler", "chat"), hpa("other", "chat", creationTimestamp=OLDER)
    own["spec"]["metrics"] = autoscaler("scaler")["spec"]["metrics"]
    other["spec"]["metrics"] = autoscaler("typo")["spec"]["metrics"]

    assert not gathered(autoscalers=(own,), records={}).observed["ns", "scaler"].misread
    (problem,) = gathered(autoscalers=(other,), records={}).observed["ns", "other"].misread
    assert "select variant_name: other" in problem.message


def test_references_to_targets_have_the_defaults_of_keda() -> None:
    """A reference without a name is omitted."""
    broken = scaled_object("broken", "x") | {"spec": {}}
    found = annotated_references([hpa("a", "chat")], [scaled_object("b", "code"), broken])

    assert [(namespace, item["kind"], item["name"]) for namespace, item in found] == [
        ("ns", "Deployment", "chat"),
        ("ns", "Deployment", "code"),
    ]
    assert "spec.scaleTargetRef" in claims(scaled=(broken,)).unplanned["ns", "broken"].message
