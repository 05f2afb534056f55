"""The annotation with the decision: its content, and when it is written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from support.annotated import RecordServer, hpa, scaled_object
from support.gathering import placed
from support.logs import capture_logs
from support.manifests import variant

from apiserver.cluster.errors import Forbidden, NotFound
from apiserver.schema.json import Json
from controller.observe.claim import Claimant
from controller.observe.declarations import claimant_of, claims_of_annotated
from controller.variants.annotated import (
    ASK_AGAIN,
    MOST_CHARACTERS,
    DecisionAnnotator,
    annotation_of,
    due_annotations,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
STATUS: Json = {
    "desiredOptimizedAlloc": {"numReplicas": 3},
    "decision": {"reason": "ScaleUp", "boundBy": "Demand", "message": "chat goes from 1 to 3 replicas"},
    "conditions": [
        {"type": "TargetResolved", "status": "True", "reason": "TargetFound"},
        {"type": "DecisionFollowed", "status": "False", "reason": "ReplicasBelowDecision"},
    ],
}
CONTENT: Json = {
    "replicas": 3,
    "reason": "ScaleUp",
    "boundBy": "Demand",
    "problems": ["ReplicasBelowDecision"],
    "message": "chat goes from 1 to 3 replicas",
}
UNPLANNED: Json = {"actuation": {"applied": False}, "decision": {"reason": "Unplanned", "message": "why"}}


def claimants(*values: Json) -> tuple[Claimant, ...]:
    """Return autoscalers as objects that are told of decisions."""
    return claims_of_annotated(
        [item for item in values if item["kind"] != "ScaledObject"],
        [item for item in values if item["kind"] == "ScaledObject"],
        {},
        taken=(),
    ).claimants


def test_the_content_says_what_was_decided_and_what_is_wrong() -> None:
    """An object that cannot be planned has no replicas."""
    assert annotation_of(STATUS) == CONTENT
    assert annotation_of(UNPLANNED) == {"reason": "Unplanned", "message": "why"}


def test_a_long_message_is_cut() -> None:
    """The annotation stays small, whatever the names of others in the message."""
    long = STATUS | {"decision": STATUS["decision"] | {"message": "x" * 1000}}

    assert len(annotation_of(long)["message"]) == MOST_CHARACTERS


def changed(**content: object) -> str:
    """Return an annotation that differs from that of the status."""
    return json.dumps({**CONTENT, **content})


STORED: Mapping[str, tuple[str | None, Json, bool]] = {
    "no annotation": (None, STATUS, True),
    "the same": (json.dumps(CONTENT), STATUS, False),
    "other figures in the message": (changed(message="chat goes from 1 to 3"), STATUS, False),
    "other replicas": (changed(replicas=2), STATUS, True),
    "another reason": (changed(reason="Steady"), STATUS, True),
    "no problem": (changed(problems=[]), STATUS, True),
    "no JSON": ("{", STATUS, True),
    "deep nesting": ("[" * 100_000, STATUS, True),
    "the same cause": ('{"reason": "Unplanned", "message": "why"}', UNPLANNED, False),
    "another cause": ('{"reason": "Unplanned", "message": "other"}', UNPLANNED, True),
}


@pytest.mark.parametrize("name", STORED)
def test_it_is_written_when_its_meaning_changes(name: str) -> None:
    """What users wrote there is replaced."""
    stored, status, want = STORED[name]
    known = claimants(hpa("chat", terms={} if stored is None else {"stowplan.dev/decision": stored}))

    due = due_annotations(known, {("ns", "chat"): status})
    assert bool(due) is want


def test_an_object_of_another_controller_gets_none() -> None:
    """KServe, for one, removes annotations that it did not write."""
    owner = {"apiVersion": "serving.kserve.io/v1alpha2", "kind": "LLMInferenceService", "controller": True}
    known = claimants(hpa("chat", ownerReferences=[owner]))

    assert due_annotations(known, {("ns", "chat"): STATUS}) == []


def test_a_variant_autoscaling_gets_none() -> None:
    """It has a status."""
    known = [claimant_of(placed(variant("chat")))]

    assert due_annotations(known, {("ns", "chat"): STATUS}) == []


async def test_both_kinds_are_annotated() -> None:
    """The text is JSON."""
    server, known = RecordServer(), claimants(hpa("chat"), scaled_object("code", "code"))
    due = due_annotations(known, {("ns", "chat"): STATUS, ("ns", "code"): UNPLANNED})

    await DecisionAnnotator(server.cluster).write(due, now=NOW)

    assert {name: json.loads(text)["reason"] for name, text in server.annotations.items()} == {
        "chat": "ScaleUp",
        "code": "Unplanned",
    }


async def test_a_failure_is_logged_once_and_tried_again_later() -> None:
    """The permission may be granted meanwhile; an object that is gone is no failure."""
    server = RecordServer(refusal=Forbidden("not allowed"))
    annotator = DecisionAnnotator(server.cluster)
    due = due_annotations(claimants(hpa("chat")), {("ns", "chat"): STATUS})

    with capture_logs() as lines:
        for after in (timedelta(), timedelta(seconds=15), ASK_AGAIN):
            await annotator.write(due, now=NOW + after)
        server.refusal = NotFound("gone")
        await annotator.write(due, now=NOW + 2 * ASK_AGAIN)

    assert [(line["event"], line["why"]) for line in lines] == [("decision not annotated", "not allowed")]
    assert server.calls == ["annotate"] * 3
