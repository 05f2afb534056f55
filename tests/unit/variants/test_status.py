"""The status that follows from a decision, and which changes of it are written."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from support.decisions import LOAD, SOLVED
from support.manifests import legacy_variant, variant
from support.observations import claim
from support.status_inputs import DECISION, INPUTS, NOW, finding, stored

from apiserver.kinds.llmd import v1alpha1, v1alpha2
from apiserver.kinds.llmd.conversion import SPOKE, convert
from apiserver.schema.validation import validate
from controller.evictions.rounds import BEING_MOVED
from controller.observe.claim import Exclusion, Orders
from controller.observe.conditions import ConditionReason
from controller.planning.decision import BoundBy, SolverStatus
from controller.planning.load import Signal
from controller.planning.snapshot import Replica
from controller.sizing.records import LearnedProfile, StepParameters
from controller.sizing.sizing import SizedVariant
from controller.variants.advisory import Advice
from controller.variants.publishing import news
from controller.variants.status import planned_status, unplanned_status

ADVICE = Advice(
    reason=ConditionReason.OBJECT_ADVISORY,
    because="stowplan.dev/advisory is true",
    saved_per_hour=Decimal("-40.00"),
)


def test_the_status_is_valid_in_both_api_versions() -> None:
    """The schema accepts what the controller writes, also after conversion."""
    for manifest in (variant("chat"), legacy_variant("chat")):
        value = stored(convert(manifest, "llmd.ai/v1alpha2"))
        value["status"] = planned_status(value, INPUTS, now=NOW)

        assert validate(v1alpha2.VariantAutoscaling, value) == []
        assert validate(v1alpha1.VariantAutoscaling, convert(value, SPOKE)) == []


def test_the_status_has_the_numbers_and_the_message_of_the_decision() -> None:
    """The message is the same in the decision and in the condition."""
    status = planned_status(stored(variant("chat")), INPUTS, now=NOW)

    assert status["desiredOptimizedAlloc"]["numReplicas"] == 3
    assert status["currentAlloc"] == {"numReplicas": 2, "variantCost": "80.00", "accelerator": "A100"}
    assert status["decision"]["message"] == "chat goes short"
    conditions = {item["type"]: item for item in status["conditions"]}
    assert conditions["OptimizationReady"]["message"] == "chat goes short"
    assert conditions["MetricsAvailable"]["message"] == "0 of 1 ready replicas report; p: no answer"
    assert {item["observedGeneration"] for item in status["conditions"]} == {4}


def test_a_cost_that_is_not_allowed_sets_a_condition() -> None:
    """The condition exists only while the cost is ignored."""
    refused = finding(INPUTS, unpriced="the listed price counts")
    for inputs, want in ((refused, ["CostNotAllowed"]), (INPUTS, [])):
        conditions = planned_status(stored(variant("chat")), inputs, now=NOW)["conditions"]
        assert [item["reason"] for item in conditions if item["type"] == "CostResolved"] == want


def test_a_variant_that_a_plan_leaves_out_is_not_ready() -> None:
    """Its numbers are invalid; the decision says which."""
    inputs = replace(INPUTS, decision=replace(DECISION, bound_by=BoundBy.SOLVER))
    found = planned_status(stored(variant("chat")), inputs, now=NOW)["conditions"]
    assert ("OptimizationReady", "InvalidConfiguration") in [(item["type"], item["reason"]) for item in found]


def test_a_limit_that_running_replicas_exceed_sets_a_condition() -> None:
    """The condition has the decision's text, and exists only while the limit is exceeded."""
    exceeded = replace(INPUTS, decision=replace(DECISION, excess=("quota a by 4", "budget b by 2")))
    told = {"status": "False", "reason": "LimitExceeded", "message": "quota a by 4; budget b by 2"}
    for inputs, want in ((exceeded, [told]), (INPUTS, [])):
        conditions = planned_status(stored(variant("chat")), inputs, now=NOW)["conditions"]
        found = [item for item in conditions if item["type"] == "LimitsKept"]
        assert [{key: item[key] for key in told} for item in found] == want


def test_the_status_has_the_figures_of_the_decision() -> None:
    """Rates are decimal text with four digits; times and counts are integers."""
    status = planned_status(stored(variant("chat")), INPUTS, now=NOW)

    assert status["decision"] == {
        "reason": "Shortage",
        "message": "chat goes short",
        "demand": {
            "requestsPerSecond": "41",
            "upperRequestsPerSecond": "52.25",
            "startSeconds": 140,
            "backlogRequests": 7,
            "avgInputTokens": "1155",
            "avgOutputTokens": "211",
        },
        "requiredRequestsPerSecond": "61.47",
        "capacityPerReplica": "9.4",
        "capacityLimit": "TTFT 2 s",
        "capacitySource": "Learned",
        "unconstrainedReplicas": 7,
        "grantedReplicas": 3,
        "readyReplicas": 1,
        "unmetPerMille": 250,
        "boundBy": "Accelerators",
        "signal": "Fresh",
        "priority": 1,
        "costPerReplica": "40.00",
        "costSource": "UnitCost",
        "solverStatus": "Optimal",
        "gap": "0",
    }


def test_unknown_figures_are_omitted() -> None:
    """An unknown load, length or capacity is not 0."""
    unknown = replace(
        LOAD, signal=Signal.UNKNOWN, requests_per_second=None, prompt_tokens=None, output_tokens=None
    )
    value = stored(variant("chat"))

    value["status"] = planned_status(
        value, replace(INPUTS, decision=replace(DECISION, load=unknown, capacity=None)), now=NOW
    )

    said = value["status"]["decision"]
    assert not {"demand", "capacityPerReplica", "capacityLimit", "performance"} & set(said)
    assert (said["capacitySource"], said["signal"]) == ("Unknown", "Unknown")
    assert validate(v1alpha2.VariantAutoscaling, value) == []


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (0.0, "0"),
        (0.00001234567, "0.00001235"),
        (9.40004, "9.4"),
        (1234.56, "1235"),
        (123_456.0, "123500"),
        (1e9, "1000000000"),
    ],
)
def test_rates_are_written_without_exponents(rate: float, text: str) -> None:
    """They have four significant digits, and the schema accepts the text."""
    load = replace(LOAD, requests_per_second=rate, upper_requests_per_second=rate)
    value = stored(variant("chat"))

    value["status"] = planned_status(value, replace(INPUTS, decision=replace(DECISION, load=load)), now=NOW)

    assert value["status"]["decision"]["demand"]["requestsPerSecond"] == text
    assert validate(v1alpha2.VariantAutoscaling, value) == []


def test_learned_step_times_are_stored_in_the_status() -> None:
    """Learning continues from them after a restart."""
    learned = LearnedProfile(
        parameters=StepParameters(alpha_ms=13.2, beta_ms=0.10512, delta_ms=0.0),
        samples=211.6,
        kv_tokens=160_000,
        utilization=0.61234,
    )
    value = stored(variant("chat"))

    value["status"] = planned_status(value, replace(INPUTS, sized=SizedVariant(learned=learned)), now=NOW)

    assert value["status"]["decision"]["performance"] == {
        "decodeParms": {"alpha": "13.2", "beta": "0.1051"},
        "prefillParms": {"delta": "0"},
        "samples": 212,
        "startSeconds": 140,
        "kvCacheTokens": 160_000,
        "utilization": "0.6123",
    }
    assert validate(v1alpha2.VariantAutoscaling, value) == []


def test_engines_that_differ_from_their_declared_profile_set_a_condition() -> None:
    """Otherwise there is no such condition."""
    wrong = ("variantProfile predicts 41 ms ITL at batch 24, engines show 63 ms",)
    hard = ("ITL 10 ms cannot be met: a step of an idle engine takes 16.5 ms",)
    value = stored(variant("chat"))

    both, one = SizedVariant(problems=wrong, hard_targets=hard), SizedVariant(hard_targets=hard)
    status = planned_status(value, replace(INPUTS, sized=both), now=NOW)
    only_hard = planned_status(value, replace(INPUTS, sized=one), now=NOW)

    kinds = {item["type"]: item for item in planned_status(value, INPUTS, now=NOW)["conditions"]}
    told = next(item for item in status["conditions"] if item["type"] == "PerformanceAsDeclared")
    assert "PerformanceAsDeclared" not in kinds
    assert (told["status"], told["reason"]) == ("False", "PerformanceDiffers")
    assert told["message"] == "; ".join(wrong + hard)
    told = next(item for item in only_hard["conditions"] if item["type"] == "PerformanceAsDeclared")
    assert (told["status"], told["reason"], told["message"]) == ("False", "TargetsUnrealistic", hard[0])
    assert news(planned_status(value, INPUTS, now=NOW), status)


SIGNALS = {
    Signal.FRESH: ("True", "MetricsAvailable", ""),
    Signal.QUORUM: ("True", "MetricsByQuorum", "; decided without 1 silent replica of the model"),
    Signal.HELD: ("True", "MetricsHeld", ""),
    Signal.UNKNOWN: ("False", "MetricsUnavailable", ""),
}


@pytest.mark.parametrize(("signal", "want"), SIGNALS.items(), ids=SIGNALS.keys())
def test_the_condition_metricsavailable_describes_the_signal_of_the_load(
    signal: Signal, want: tuple[str, str, str]
) -> None:
    """It counts reporting replicas, and names the age of the oldest report and ignored silent replicas."""
    told = replace(
        INPUTS,
        variant=replace(
            INPUTS.variant,
            replicas=(
                Replica(name="p", node="n", ready=True),
                Replica(name="q", node="n", ready=True, report_age_seconds=4.6),
                Replica(name="r", node="n", ready=True, report_age_seconds=31.2),
                Replica(name="s", node="n", ready=False, report_age_seconds=99.0),
            ),
        ),
        decision=replace(DECISION, load=replace(LOAD, signal=signal, silent_replicas=1)),
    )

    status = planned_status(stored(variant("chat")), told, now=NOW)

    found = next(item for item in status["conditions"] if item["type"] == "MetricsAvailable")
    text = "2 of 3 ready replicas report, the oldest report is 31 s old; p: no answer"
    assert (found["status"], found["reason"], found["message"]) == (want[0], want[1], text + want[2])


def test_the_condition_distinguishes_an_unknown_load_from_silent_engines() -> None:
    """A rate needs two answers, so a new controller knows no load although every engine reports."""
    replicas = (Replica(name="q", node="n", ready=True, report_age_seconds=0.2),)
    told = replace(
        INPUTS,
        variant=replace(INPUTS.variant, replicas=replicas),
        decision=replace(DECISION, load=replace(LOAD, signal=Signal.UNKNOWN)),
        silence="",
    )

    status = planned_status(stored(variant("chat")), told, now=NOW)

    found = next(item for item in status["conditions"] if item["type"] == "MetricsAvailable")
    assert found["message"] == (
        "1 of 1 ready replicas report, the oldest report is 0 s old;"
        " the load is not known before they have answered twice"
    )


def test_engines_of_another_model_have_a_reason_of_their_own() -> None:
    """What to do is different from engines that do not respond."""
    unknown = replace(DECISION, load=replace(LOAD, signal=Signal.UNKNOWN))
    inputs = replace(INPUTS, decision=unknown, is_misserved=True)

    status = planned_status(stored(variant("chat")), inputs, now=NOW)

    condition = next(item for item in status["conditions"] if item["type"] == "MetricsAvailable")
    assert (condition["status"], condition["reason"]) == ("False", "ModelNotServed")


def test_a_legacy_status_has_the_variant_id() -> None:
    """Readers of the old version need this identifier."""
    status = planned_status(stored(convert(legacy_variant("chat"), "llmd.ai/v1alpha2")), INPUTS, now=NOW)

    assert status["currentAlloc"]["variantID"] == "meta/llama-3.1-8b-A100-1"
    assert status["currentAlloc"]["maxBatch"] == 4


def test_the_transition_time_of_a_condition_changes_only_with_its_status() -> None:
    """It does not change when the condition is evaluated again."""
    first = planned_status(stored(variant("chat")), INPUTS, now=NOW)
    later = NOW + timedelta(minutes=5)
    blind = replace(INPUTS, decision=replace(DECISION, load=replace(LOAD, signal=Signal.UNKNOWN)))

    second = planned_status(stored(variant("chat"), first), blind, now=later)

    times = {item["type"]: item["lastTransitionTime"] for item in second["conditions"]}
    assert times["OptimizationReady"] == "2026-01-01T12:00:00Z"
    assert times["MetricsAvailable"] == "2026-01-01T12:05:00Z"


def test_changed_figures_cause_no_write_and_changed_decisions_do() -> None:
    """The message changes every few seconds, which must not cause watch events."""
    value = stored(variant("chat"))
    status = planned_status(value, INPUTS, now=NOW)
    moved = replace(DECISION, load=replace(LOAD, requests_per_second=41.1), message="chat goes short, still")
    decided = replace(DECISION, replicas=4)

    assert not news(status, planned_status(value, replace(INPUTS, decision=moved), now=NOW))
    assert news(status, planned_status(value, replace(INPUTS, decision=decided), now=NOW))
    assert not news(status, planned_status(value, INPUTS, now=NOW + timedelta(hours=30)))


def test_advice_is_published_in_full_but_without_a_number_to_scale_to() -> None:
    """The granted replicas are in the decision; an allocation without a number has no metric."""
    for manifest in (variant("chat"), legacy_variant("chat")):
        value = stored(convert(manifest, "llmd.ai/v1alpha2"))
        value["status"] = status = planned_status(value, replace(INPUTS, advice=ADVICE), now=NOW)

        conditions = {item["type"]: item for item in status["conditions"]}
        assert "numReplicas" not in status["desiredOptimizedAlloc"]
        assert status["actuation"] == {"applied": False}
        assert (status["decision"]["grantedReplicas"], status["decision"]["reason"]) == (3, "Shortage")
        assert (conditions["Advisory"]["status"], conditions["Advisory"]["reason"]) == (
            "True",
            "ObjectAdvisory",
        )
        assert "would cost 40.00 per hour" in conditions["Advisory"]["message"]
        assert validate(v1alpha2.VariantAutoscaling, value) == []
        assert validate(v1alpha1.VariantAutoscaling, convert(value, SPOKE)) == []
        assert status["desiredOptimizedAlloc"]["lastRunTime"] == "2026-01-01T12:00:00Z"


def test_a_message_about_replicas_being_moved_is_written() -> None:
    """The status is written when the move begins."""
    value = variant("chat")
    value["metadata"] |= {"namespace": "ns", "generation": 1}
    status = planned_status(value, INPUTS, now=NOW)
    moving = replace(DECISION, message=f"{DECISION.message}; 1 replica of others {BEING_MOVED}")

    later = planned_status(value, replace(INPUTS, decision=moving), now=NOW)

    assert news(status, later)
    assert not news(later, later)


def test_a_changed_grant_is_written_even_if_it_is_advice() -> None:
    """Advice has no published number that would change with it."""
    value, advised = stored(variant("chat")), replace(INPUTS, advice=ADVICE)
    status = planned_status(value, advised, now=NOW)
    decided = replace(advised, decision=replace(DECISION, replicas=4))

    assert not news(status, planned_status(value, advised, now=NOW))
    assert news(status, planned_status(value, decided, now=NOW))
    assert news(status, planned_status(value, INPUTS, now=NOW))


def test_an_invalid_annotation_sets_a_condition() -> None:
    """The plan ignores the annotation."""
    wrong = (
        False,
        ConditionReason.ANNOTATION_NOT_UNDERSTOOD,
        "metadata.annotations[stowplan.dev/paused]: must be",
    )

    ignored = finding(INPUTS, claim=claim("chat", orders=Orders(problems=wrong[2:])))

    status = planned_status(stored(variant("chat")), ignored, now=NOW)

    condition = next(item for item in status["conditions"] if item["type"] == "AnnotationsResolved")
    assert (condition["status"], condition["reason"], condition["message"]) == ("False", *wrong[1:])
    assert status["desiredOptimizedAlloc"]["numReplicas"] == 3


def test_a_message_that_is_too_long_for_the_schema_is_truncated() -> None:
    """If the server rejected the status, the old decision would remain."""
    long = replace(INPUTS, decision=replace(DECISION, message="chat " * 300))
    value = stored(variant("chat"))

    value["status"] = planned_status(value, long, now=NOW)

    assert validate(v1alpha2.VariantAutoscaling, value) == []
    assert value["status"]["decision"]["message"].endswith("…")


def test_without_a_plan_there_is_no_number() -> None:
    """An HPA would apply an old number."""
    why = Exclusion(ConditionReason.TARGET_NOT_FOUND, "Deployment 'chat' does not exist")

    status = unplanned_status(stored(variant("chat")), why, now=NOW)

    assert "desiredOptimizedAlloc" not in status
    assert validate(v1alpha2.VariantAutoscaling, stored(variant("chat"), status)) == []
    assert {item["status"] for item in status["conditions"]} == {"False"}


def test_a_failed_solver_sets_a_condition() -> None:
    """The condition reports that the replicas are not from a new decision."""
    failed = replace(INPUTS, solver=replace(SOLVED, status=SolverStatus.FAILED, message="x"))

    status = planned_status(stored(variant("chat")), failed, now=NOW)

    condition = next(item for item in status["conditions"] if item["type"] == "OptimizationReady")
    assert (condition["status"], condition["reason"]) == ("False", "OptimizationFailed")
