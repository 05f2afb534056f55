"""The status that follows from a decision, and when it is worth writing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from support.decisions import LOAD, decision
from support.manifests import legacy_variant, variant

from apiserver.kinds.llmd import v1alpha1, v1alpha2
from apiserver.kinds.llmd.conversion import SPOKE, convert
from apiserver.schema.json import Json
from apiserver.schema.validation import validate
from controller.observe.conditions import ConditionReason
from controller.observe.gather import Unplanned
from controller.planning.decision import SolverReport, SolverStatus
from controller.planning.load import Signal
from controller.planning.snapshot import Replica, Variant
from controller.reconcilers.advisory import Advice
from controller.reconcilers.news import news
from controller.reconcilers.rounds import BEING_MOVED
from controller.reconcilers.status import (
    Shown,
    Verdict,
    planned_status,
    unplanned_status,
)
from controller.sizing.records import Learned, StepParameters

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
DECISION = decision("chat")
VERDICT = Verdict(
    kind="Deployment",
    variant=Variant(
        namespace="ns",
        name="chat",
        model_id="m",
        accelerator="A100",
        accelerators_per_replica=1,
        cost_per_replica=Decimal("40.00"),
        current_replicas=2,
        replicas=(Replica(name="p", node="n", ready=True),),
        start_seconds=140.2,
    ),
    decision=DECISION,
    solver=SolverReport(status=SolverStatus.OPTIMAL, unproven="", gap=0.0, message=""),
    cost_source="UnitCost",
    silence="p: no answer",
    service_class=(True, ConditionReason.CLASS_FOUND, "service class 'Premium', priority 1"),
    orders=(True, ConditionReason.NO_ANNOTATIONS, "no annotation stowplan.dev/... has an effect"),
    unheeded="",
    advice=None,
)
ADVICE = Advice(
    reason=ConditionReason.OBJECT_ADVISORY,
    because="stowplan.dev/advisory is true",
    saved_per_hour=Decimal("-40.00"),
)


def stored(manifest: Json, status: Json | None = None) -> Json:
    """Return a manifest as the API server would hand it out."""
    metadata = {"namespace": "ns", "uid": "u", "generation": 4} | manifest["metadata"]
    return manifest | {"metadata": metadata, "status": status or {}}


def test_the_status_is_valid_in_both_versions() -> None:
    """What the controller writes, the schema takes, also after conversion."""
    for manifest in (variant("chat"), legacy_variant("chat")):
        value = stored(convert(manifest, "llmd.ai/v1alpha2"))
        value["status"] = planned_status(value, VERDICT, now=NOW)

        assert validate(v1alpha2.VariantAutoscaling, value) == []
        assert validate(v1alpha1.VariantAutoscaling, convert(value, SPOKE)) == []


def test_numbers_and_sentence_are_the_decision_s() -> None:
    """One sentence, the same everywhere."""
    status = planned_status(stored(variant("chat")), VERDICT, now=NOW)

    assert status["desiredOptimizedAlloc"]["numReplicas"] == 3
    assert status["currentAlloc"] == {"numReplicas": 2, "variantCost": "80.00", "accelerator": "A100"}
    assert status["decision"]["message"] == "chat goes short"
    conditions = {item["type"]: item for item in status["conditions"]}
    assert conditions["OptimizationReady"]["message"] == "chat goes short"
    assert conditions["MetricsAvailable"]["message"] == "0 of 1 ready replicas report; p: no answer"
    assert {item["observedGeneration"] for item in status["conditions"]} == {4}


def test_a_cost_that_does_not_count_is_told_while_it_does_not() -> None:
    """With the reason, and what to do, in its sentence."""
    refused = replace(VERDICT, unpriced="the listed price counts")
    for verdict, want in ((refused, ["CostNotAllowed"]), (VERDICT, [])):
        conditions = planned_status(stored(variant("chat")), verdict, now=NOW)["conditions"]
        assert [item["reason"] for item in conditions if item["type"] == "CostResolved"] == want


def test_a_limit_that_what_runs_exceeds_is_told_while_it_is() -> None:
    """With the sentence of the decision."""
    exceeded = replace(VERDICT, decision=replace(DECISION, excess=("quota a by 4", "budget b by 2")))
    told = {"status": "False", "reason": "LimitExceeded", "message": "quota a by 4; budget b by 2"}
    for verdict, want in ((exceeded, [told]), (VERDICT, [])):
        conditions = planned_status(stored(variant("chat")), verdict, now=NOW)["conditions"]
        found = [item for item in conditions if item["type"] == "LimitsKept"]
        assert [{key: item[key] for key in told} for item in found] == want


def test_the_reasons_have_numbers() -> None:
    """Rates as decimal text with four digits; times and counts as whole numbers."""
    status = planned_status(stored(variant("chat")), VERDICT, now=NOW)

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
        "unmetPerMille": 250,
        "boundBy": "Accelerators",
        "signal": "Fresh",
        "priority": 1,
        "costPerReplica": "40.00",
        "costSource": "UnitCost",
        "solverStatus": "Optimal",
        "gap": "0",
    }


def test_what_is_not_known_has_no_number() -> None:
    """No load, no lengths, no capacity: none of them is 0."""
    unknown = replace(
        LOAD, signal=Signal.UNKNOWN, requests_per_second=None, prompt_tokens=None, output_tokens=None
    )
    value = stored(variant("chat"))

    value["status"] = planned_status(
        value, replace(VERDICT, decision=replace(DECISION, load=unknown, capacity=None)), now=NOW
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
    """As far as four digits go; both versions take the text."""
    load = replace(LOAD, requests_per_second=rate, upper_requests_per_second=rate)
    value = stored(variant("chat"))

    value["status"] = planned_status(value, replace(VERDICT, decision=replace(DECISION, load=load)), now=NOW)

    assert value["status"]["decision"]["demand"]["requestsPerSecond"] == text
    assert validate(v1alpha2.VariantAutoscaling, value) == []


def test_what_was_learned_is_kept_in_the_status() -> None:
    """After a restart learning goes on from there."""
    learned = Learned(
        parameters=StepParameters(alpha_ms=13.2, beta_ms=0.10512, delta_ms=0.0),
        samples=211.6,
        kv_tokens=160_000,
    )
    value = stored(variant("chat"))

    value["status"] = planned_status(value, replace(VERDICT, performance=Shown(learned=learned)), now=NOW)

    assert value["status"]["decision"]["performance"] == {
        "decodeParms": {"alpha": "13.2", "beta": "0.1051"},
        "prefillParms": {"delta": "0"},
        "samples": 212,
        "startSeconds": 140,
        "kvCacheTokens": 160_000,
    }
    assert validate(v1alpha2.VariantAutoscaling, value) == []


def test_engines_that_are_not_as_declared_are_a_condition() -> None:
    """And there is none where nothing is wrong."""
    wrong = Shown(
        problems=(
            "variantProfile predicts 41 ms ITL at batch 24, engines show 63 ms",
            "ITL 10 ms cannot be met: the best that an idle replica reaches is 16.5 ms",
        )
    )
    value = stored(variant("chat"))

    status = planned_status(value, replace(VERDICT, performance=wrong), now=NOW)

    kinds = {item["type"]: item for item in planned_status(value, VERDICT, now=NOW)["conditions"]}
    told = next(item for item in status["conditions"] if item["type"] == "PerformanceAsDeclared")
    assert "PerformanceAsDeclared" not in kinds
    assert (told["status"], told["reason"]) == ("False", "PerformanceDiffers")
    assert told["message"] == "; ".join(wrong.problems)
    assert news(planned_status(value, VERDICT, now=NOW), status)


SIGNALS = {
    Signal.FRESH: ("True", "MetricsAvailable", ""),
    Signal.QUORUM: ("True", "MetricsByQuorum", "; decided without 1 silent replica of the model"),
    Signal.HELD: ("True", "MetricsHeld", ""),
    Signal.UNKNOWN: ("False", "MetricsUnavailable", ""),
}


@pytest.mark.parametrize(("signal", "want"), SIGNALS.items(), ids=SIGNALS.keys())
def test_the_condition_tells_how_well_the_load_is_known(signal: Signal, want: tuple[str, str, str]) -> None:
    """How many of its own replicas report, how old the oldest report is, and whose silence is passed over."""
    told = replace(
        VERDICT,
        variant=replace(
            VERDICT.variant,
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


def test_a_load_that_is_not_known_yet_is_no_silence() -> None:
    """Rates need two answers, so a new controller knows none while every engine reports."""
    replicas = (Replica(name="q", node="n", ready=True, report_age_seconds=0.2),)
    told = replace(
        VERDICT,
        variant=replace(VERDICT.variant, replicas=replicas),
        decision=replace(DECISION, load=replace(LOAD, signal=Signal.UNKNOWN)),
        silence="",
    )

    status = planned_status(stored(variant("chat")), told, now=NOW)

    found = next(item for item in status["conditions"] if item["type"] == "MetricsAvailable")
    assert found["message"] == (
        "1 of 1 ready replicas report, the oldest report is 0 s old;"
        " the load is not known before they have answered twice"
    )


def test_a_legacy_status_names_its_variant() -> None:
    """Readers of the old version find their identifier."""
    status = planned_status(stored(convert(legacy_variant("chat"), "llmd.ai/v1alpha2")), VERDICT, now=NOW)

    assert status["currentAlloc"]["variantID"] == "meta/llama-3.1-8b-A100-1"
    assert status["currentAlloc"]["maxBatch"] == 4


def test_a_transition_keeps_its_time_until_the_value_turns() -> None:
    """The time says since when, not when it was last looked at."""
    first = planned_status(stored(variant("chat")), VERDICT, now=NOW)
    later = NOW + timedelta(minutes=5)
    blind = replace(VERDICT, decision=replace(DECISION, load=replace(LOAD, signal=Signal.UNKNOWN)))

    second = planned_status(stored(variant("chat"), first), blind, now=later)

    times = {item["type"]: item["lastTransitionTime"] for item in second["conditions"]}
    assert times["OptimizationReady"] == "2026-01-01T12:00:00Z"
    assert times["MetricsAvailable"] == "2026-01-01T12:05:00Z"


def test_moving_numbers_are_no_news_but_decisions_are() -> None:
    """The sentence changes every few seconds; the watch must not."""
    value = stored(variant("chat"))
    status = planned_status(value, VERDICT, now=NOW)
    moved = replace(DECISION, load=replace(LOAD, requests_per_second=41.1), message="chat goes short, still")
    decided = replace(DECISION, replicas=4)

    assert not news(status, planned_status(value, replace(VERDICT, decision=moved), now=NOW))
    assert news(status, planned_status(value, replace(VERDICT, decision=decided), now=NOW))
    assert not news(status, planned_status(value, VERDICT, now=NOW + timedelta(hours=30)))


def test_advice_is_told_in_full_and_gives_nobody_a_number_to_act_on() -> None:
    """The grant stands beside its reasons; an allocation without a number has no metric."""
    for manifest in (variant("chat"), legacy_variant("chat")):
        value = stored(convert(manifest, "llmd.ai/v1alpha2"))
        value["status"] = status = planned_status(value, replace(VERDICT, advice=ADVICE), now=NOW)

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


def test_that_others_are_being_moved_is_news() -> None:
    """So the status says so at once, and no longer when it is over."""
    value = variant("chat")
    value["metadata"] |= {"namespace": "ns", "generation": 1}
    status = planned_status(value, VERDICT, now=NOW)
    moving = replace(DECISION, message=f"{DECISION.message}; 1 replica of others {BEING_MOVED}")

    later = planned_status(value, replace(VERDICT, decision=moving), now=NOW)

    assert news(status, later)
    assert not news(later, later)


def test_another_grant_is_news_even_where_it_is_advice() -> None:
    """There is no published number that would change with it."""
    value, advised = stored(variant("chat")), replace(VERDICT, advice=ADVICE)
    status = planned_status(value, advised, now=NOW)
    decided = replace(advised, decision=replace(DECISION, replicas=4))

    assert not news(status, planned_status(value, advised, now=NOW))
    assert news(status, planned_status(value, decided, now=NOW))
    assert news(status, planned_status(value, VERDICT, now=NOW))


def test_an_order_that_is_not_understood_is_a_condition() -> None:
    """Planning went on without it."""
    wrong = (
        False,
        ConditionReason.ANNOTATION_NOT_UNDERSTOOD,
        "metadata.annotations[stowplan.dev/paused]: must be",
    )

    status = planned_status(stored(variant("chat")), replace(VERDICT, orders=wrong), now=NOW)

    condition = next(item for item in status["conditions"] if item["type"] == "AnnotationsResolved")
    assert (condition["status"], condition["reason"], condition["message"]) == ("False", *wrong[1:])
    assert status["desiredOptimizedAlloc"]["numReplicas"] == 3


def test_a_sentence_beyond_the_schema_is_cut_and_not_refused() -> None:
    """A status that the server refuses would leave the old decision standing."""
    long = replace(VERDICT, decision=replace(DECISION, message="chat " * 300))
    value = stored(variant("chat"))

    value["status"] = planned_status(value, long, now=NOW)

    assert validate(v1alpha2.VariantAutoscaling, value) == []
    assert value["status"]["decision"]["message"].endswith("…")


def test_without_a_plan_there_is_no_number() -> None:
    """An old number would be acted on."""
    why = Unplanned(reason=ConditionReason.TARGET_NOT_FOUND, message="Deployment 'chat' does not exist")

    status = unplanned_status(stored(variant("chat")), why, now=NOW)

    assert "desiredOptimizedAlloc" not in status
    assert validate(v1alpha2.VariantAutoscaling, stored(variant("chat"), status)) == []
    assert {item["status"] for item in status["conditions"]} == {"False"}


def test_a_failed_solver_is_told_in_the_condition() -> None:
    """The replicas stand, and the condition says that nothing was decided anew."""
    failed = replace(
        VERDICT, solver=SolverReport(status=SolverStatus.FAILED, unproven="", gap=0, message="x")
    )

    status = planned_status(stored(variant("chat")), failed, now=NOW)

    condition = next(item for item in status["conditions"] if item["type"] == "OptimizationReady")
    assert (condition["status"], condition["reason"]) == ("False", "OptimizationFailed")
