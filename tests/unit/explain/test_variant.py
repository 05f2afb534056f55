"""The explanation of a variant in `stowplan explain`: facts, advice and text."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.cells import cell_len
from support.manifests import autoscaler, deployment, variant

from apiserver.cluster.heartbeat import Heartbeat
from controller.commands.explain.evidence import VariantEvidence
from controller.commands.explain.variant import duration, explain_variant, variant_parts
from controller.commands.plan.terminal import print_lines, terminal
from controller.observe.declarations import claimant_of

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DECISION = {
    "reason": "Shortage",
    "message": "chat needs 3 replicas for 41 requests/s (85 % of 3 x 16); granted 2: no L4 is free",
    "demand": {
        "requestsPerSecond": "34.06",
        "upperRequestsPerSecond": "41",
        "startSeconds": 140,
        "backlogRequests": 0,
        "avgInputTokens": "1155.4",
        "avgOutputTokens": "211",
    },
    "requiredRequestsPerSecond": "48.24",
    "capacityPerReplica": "16.1",
    "capacityLimit": "ITL 80 ms",
    "capacitySource": "Learned",
    "unconstrainedReplicas": 3,
    "grantedReplicas": 2,
    "unmetPerMille": 336,
    "boundBy": "Accelerators",
    "signal": "Fresh",
    "priority": 5,
    "costPerReplica": "2.50",
    "costSource": "UnitCost",
    "solverStatus": "Feasible",
    "gap": "0.0125",
}


def moment(ago_seconds: float) -> str:
    """Return a time that is the given number of seconds ago."""
    return (NOW - timedelta(seconds=ago_seconds)).isoformat()


def decided(ago_seconds: float = 12.0, **members: Any) -> dict[str, Any]:
    """Return a variant with a decision."""
    status = {
        "decision": DECISION | members,
        "desiredOptimizedAlloc": {"numReplicas": 2, "lastRunTime": moment(ago_seconds)},
        "conditions": [
            {"type": "MetricsAvailable", "status": "True", "reason": "MetricsAvailable", "message": "all",
             "observedGeneration": 4},
        ],
    }  # fmt: skip
    return placed(variant("chat", modelID="m") | {"status": status})


def placed(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest as stored by a server."""
    return manifest | {"metadata": manifest["metadata"] | {"namespace": "llm", "generation": 4}}


def told(evidence: VariantEvidence, columns: int = 100) -> str:
    """Return the explanation as text for a terminal of some width."""
    return print_lines(variant_parts(explain_variant(evidence, now=NOW)), terminal(columns))


def complete(autoscaling: dict[str, Any]) -> VariantEvidence:
    """Return evidence without gaps."""
    target = deployment("chat", product="NVIDIA-L4", accelerators=1, replicas=1)
    return VariantEvidence(
        claimant=claimant_of(autoscaling),
        target=target | {"status": {"readyReplicas": 1}},
        autoscalers=[placed(autoscaler("chat")) | {"status": {"currentReplicas": 1, "desiredReplicas": 2}}],
    )


def test_the_text_has_the_message_before_the_figures() -> None:
    """The figures have a fixed order."""
    lines = told(complete(decided())).splitlines()

    assert lines[:2] == [
        "llm/chat  m",
        "  chat needs 3 replicas for 41 requests/s (85 % of 3 x 16); granted 2: no L4 is free",
    ]
    assert lines[3:13] == [
        "  replicas    1 now (1 ready), 2 granted, 3 needed with unlimited nodes",
        "  decided     Shortage, 12 s ago",
        "  bound by    Accelerators",
        "  demand      34.1 requests/s for the model, up to 41 within 140 s, with 1155 prompt and 211 answer",
        "              tokens each (signal Fresh); 48.2 to provide, 33.6 % of that unmet",
        "  capacity    16.1 requests/s per replica within ITL 80 ms (Learned)",
        "  priority    5 (1 is served first)",
        "  cost        2.5 per replica (UnitCost: the price of its accelerators), 5 per hour as granted",
        "  solver      Feasible, gap 1.25 %",
        "  autoscaler  HorizontalPodAutoscaler chat, from 1 to 10: 1 now, 2 desired",
    ]
    assert "check:" not in "\n".join(lines)


@pytest.mark.parametrize(
    ("counted", "title"), [({"accelerator": "A100"}, "llm/chat  m on A100"), ({}, "llm/chat  m on H100")]
)
def test_the_title_has_the_accelerator_that_is_counted(counted: dict[str, str], title: str) -> None:
    """That of the nodes counts, whatever the spec declares."""
    value = decided()
    status, spec = value["status"] | {"currentAlloc": counted}, value["spec"] | {"accelerator": "H100"}

    assert told(complete(value | {"status": status, "spec": spec})).splitlines()[0] == title


def test_only_conditions_that_keep_an_autoscaler_from_scaling_are_shown() -> None:
    """Limits and scaling to zero are ordinary states."""
    conditions = [
        {"type": "AbleToScale", "status": "True", "message": "ready"},
        {"type": "ScalingActive", "status": "False", "message": "no metric"},
        {"type": "ScalingLimited", "status": "False", "message": "within the range"},
        {"type": "ScaledToZero", "status": "False", "message": "not at zero"},
    ]
    evidence = complete(decided())
    evidence.autoscalers[0]["status"]["conditions"] = conditions

    (line,) = [line for line in told(evidence, 200).splitlines() if "autoscaler" in line]
    assert line.endswith("from 1 to 10: 1 now, 2 desired; ScalingActive False: no metric")


FIGURES = {
    "no load": (
        {"demand": None, "requiredRequestsPerSecond": "0", "signal": "Unknown", "unmetPerMille": 0},
        "  demand      unknown (signal Unknown); 0 to provide",
    ),
    "no lengths": (
        {"demand": {"requestsPerSecond": "0.4", "upperRequestsPerSecond": "1.26", "startSeconds": 60}},
        "  demand      0.4 requests/s for the model, up to 1.26 within 60 s (signal Fresh); "
        "48.2 to provide, 33.6 % of that unmet",
    ),
    "no capacity": (
        {"capacityPerReplica": None, "capacityLimit": None, "capacitySource": "Unknown"},
        "  capacity    unknown (Unknown)",
    ),
    "an attained share": (
        {
            "serviceLevel": {
                "promised": "0.95",
                "attained": "0.9321",
                "ttftMissed": "0.068",
                "itlMissed": "0",
                "requests": 8120,
            }
        },
        "  attained    93.21 % of the model's 8120 requests within the last hour, 95 % promised"
        " (6.8 % missed the TTFT, 0 % the ITL)",
    ),
    "no limit": ({"capacityLimit": None}, "  capacity    16.1 requests/s per replica (Learned)"),
}


@pytest.mark.parametrize(("members", "line"), FIGURES.values(), ids=FIGURES.keys())
def test_figures_are_shown_if_they_are_known(members: dict[str, Any], line: str) -> None:
    """A status does not contain unknown ones."""
    value = decided(**members)
    status = value["status"]
    known = {name: item for name, item in status["decision"].items() if item is not None}

    lines = told(complete(value | {"status": status | {"decision": known}}), columns=140).splitlines()

    assert line in lines


def test_the_latest_events_come_first() -> None:
    """Each has its count and age; a series counts by its last occurrence."""
    events: list[dict[str, Any]] = [
        {"reason": "ScaleUp", "note": "older", "eventTime": moment(7200), "type": "Normal"},
        {
            "reason": "Shortage",
            "note": "newer",
            "eventTime": moment(9000),
            "series": {"count": 4, "lastObservedTime": moment(150)},
            "type": "Warning",
        },
    ]

    text = told(VariantEvidence(claimant=claimant_of(decided()), events=events))

    assert text.index("2 min ago    Shortage x4: newer") < text.index("2 h ago      ScaleUp: older")


SELECTING_MODEL = placed(autoscaler("chat"))
SELECTING_MODEL["spec"]["metrics"][0]["external"]["metric"]["selector"] = {"matchLabels": {"model_id": "m"}}
SCALED_OBJECT = {
    "metadata": {"name": "chat", "namespace": "llm"},
    "spec": {
        "scaleTargetRef": {"name": "chat"},
        "triggers": [{"type": "prometheus", "metadata": {"query": "sum(vllm:num_requests_waiting)"}}],
    },
}

ADVICE = {
    "no decision yet": (
        VariantEvidence(claimant=claimant_of(placed(variant("chat")))),
        "there is no decision yet: check whether the controller runs",
    ),
    "a stopped controller": (
        replace(complete(decided()), heartbeat=Heartbeat(time=NOW - timedelta(hours=1))),
        "the controller finished its last cycle 60 min ago: check whether the controller runs",
    ),
    "a status that could not be written": (
        replace(complete(decided()), heartbeat=Heartbeat(time=NOW, unconfirmed=frozenset({("llm", "chat")}))),
        "the controller could not write the status in its last cycle: check its log (kubectl -n"
        " stowplan-system logs deploy/stowplan-controller)",
    ),
    "a spec that has changed since the decision": (
        complete(decided() | {"metadata": {"name": "chat", "namespace": "llm", "generation": 5}}),
        "the spec has changed since",
    ),
    "no autoscaler": (
        VariantEvidence(claimant=claimant_of(decided())),
        "no HorizontalPodAutoscaler targets Deployment 'chat'",
    ),
    "a selector that also matches another variant": (
        replace(
            complete(decided()),
            autoscalers=[SELECTING_MODEL],
            neighbours=[decided(), placed(variant("chat-l4", modelID="m"))],
        ),
        "also matches 'chat-l4', and their numbers are added up",
    ),
    "a ScaledObject that reads another metric": (
        VariantEvidence(claimant=claimant_of(decided()), scaled_objects=[SCALED_OBJECT]),
        "ScaledObject 'chat' scales it by trigger of type 'prometheus', and not by wva_desired_replicas",
    ),
    "no scale target": (
        VariantEvidence(claimant=claimant_of(decided())),
        "the scale target Deployment 'chat' does not exist",
    ),
    "objects that may not be read": (
        VariantEvidence(
            claimant=claimant_of(decided()), unread=['events.events.k8s.io is forbidden: User "x"']
        ),
        "some objects could not be read: events.events.k8s.io is forbidden",
    ),
}


@pytest.mark.parametrize(("evidence", "expected"), ADVICE.values(), ids=ADVICE.keys())
def test_a_problem_is_named_with_advice_on_what_to_check(evidence: VariantEvidence, expected: str) -> None:
    """Users look here for the reason why a variant does not scale."""
    assert any(expected in text for text in explain_variant(evidence, now=NOW)["advice"])


def test_objects_that_may_not_be_read_are_not_reported_as_missing() -> None:
    """A missing permission to read autoscalers does not mean that there are none."""
    unread = ("horizontalpodautoscalers.autoscaling is forbidden", "deployments.apps is forbidden")

    advice = explain_variant(VariantEvidence(claimant=claimant_of(decided()), unread=unread), now=NOW)[
        "advice"
    ]

    assert [text.partition(":")[0] for text in advice] == ["some objects could not be read"] * 2


def test_objects_that_were_not_looked_up_are_not_reported_as_missing() -> None:
    """Only kinds of targets that can be planned are looked up."""
    target = {"apiVersion": "workload.serving.volcano.sh/v1alpha1", "kind": "ModelServing", "name": "chat"}
    autoscaling = placed(variant("chat", scaleTargetRef=target))

    advice = explain_variant(VariantEvidence(claimant=claimant_of(autoscaling)), now=NOW)["advice"]

    assert not any("does not exist" in text for text in advice)


def test_an_old_decision_that_a_recent_cycle_confirmed_needs_no_advice() -> None:
    """Nothing has changed for an hour, and the heartbeat is recent."""
    evidence = replace(
        complete(decided(ago_seconds=3600)), heartbeat=Heartbeat(time=NOW - timedelta(seconds=9))
    )

    assert explain_variant(evidence, now=NOW)["advice"] == []
    assert "  decided     Shortage, 60 min ago, confirmed 9 s ago" in told(evidence)


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_text_fits_the_terminal(columns: int) -> None:
    """Long sentences are wrapped and indented."""
    text = told(complete(decided(message="because " * 40)), columns)

    assert max(map(cell_len, text.splitlines())) <= columns


def test_control_characters_of_an_object_are_not_printed() -> None:
    """Anyone who may write a status can set its message."""
    assert "\x1b" not in told(complete(decided(message="\x1b[2Jgone")))


def test_json_has_the_values_of_the_status() -> None:
    """Programs get values that are not rounded."""
    document = explain_variant(complete(decided()), now=NOW)

    assert document["decision"] == DECISION
    assert (document["current_replicas"], document["granted_replicas"], document["age_seconds"]) == (
        1,
        2,
        12.0,
    )


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (200_000, "2 d")]
)
def test_ages_have_one_unit(seconds: float, text: str) -> None:
    """It is the largest unit of which there are at least two."""
    assert duration(seconds) == text
