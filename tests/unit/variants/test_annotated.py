"""Decisions on annotated autoscalers: their records, and their annotation."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import pytest
from support.annotated import RecordServer, hpa, scaled_object
from support.gathering import placed
from support.logs import capture_logs
from support.manifests import variant

from apiserver.cluster.errors import ClusterError, Forbidden, Invalid, NotFound
from apiserver.kinds.decision_record import MOST_BYTES, read_record
from apiserver.kinds.identity import Key
from apiserver.schema.json import Json
from controller.observe.claim import Claimant
from controller.observe.declarations import claimant_of, claims_of_annotated
from controller.variants.annotated import (
    ASK_AGAIN,
    MOST_CHARACTERS,
    DecisionAnnotator,
    DecisionStore,
    annotation_of,
    due_annotations,
    within_limit,
)
from controller.variants.publishing import due

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
        claimed=(),
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


DECIDED: Json = {
    "desiredOptimizedAlloc": {"accelerator": "A100", "numReplicas": 2, "lastRunTime": "2026-01-01T00:00:00Z"},
    "decision": {"reason": "Steady", "message": "stays"},
}


async def write(
    server: RecordServer, known: tuple[Claimant, ...], chosen: tuple[Claimant, ...]
) -> dict[Key, ClusterError]:
    """Write the decisions on chosen ones of the known claimants."""
    records = {namespace: dict(data) for namespace, data in server.data.items()}
    statuses = {item.key: DECIDED for item in chosen}
    return dict(await DecisionStore(server.cluster).publish(known, chosen, statuses, records))


async def test_a_decision_is_stored_with_the_labels_of_its_metrics() -> None:
    """The first one creates the ConfigMap of the namespace, and later ones change their own record only."""
    server = RecordServer()
    known = claimants(hpa("chat", labels={"wva.llmd.ai/controller-instance": "blue"}), hpa("code"))

    assert await write(server, known, known[:1]) == {}
    assert await write(server, known, known[1:]) == {}

    assert server.calls == ["patch", "apply", "patch"]
    record = read_record(server.data["ns"]["chat"])
    assert record == {
        "kind": "HorizontalPodAutoscaler",
        "name": "chat",
        "labels": {
            "variant_name": "chat",
            "namespace": "ns",
            "exported_namespace": "ns",
            "accelerator_type": "A100",
            "model_id": "meta/llama-3.1-8b",
            "controller_instance": "blue",
        },
        "status": DECIDED,
    }
    assert read_record(server.data["ns"]["code"])["name"] == "code"


EDITS = {
    "nothing": (lambda record: record, {}, False),
    "the labels": (lambda record: record | {"labels": {}}, {}, True),
    "the name": (lambda record: record | {"name": "other"}, {}, True),
    "the labels of the object": (lambda record: record, {"wva.llmd.ai/controller-instance": "blue"}, True),
}


@pytest.mark.parametrize(("edit", "labels", "is_due"), EDITS.values(), ids=EDITS)
async def test_a_record_is_written_again_when_anything_but_figures_differs(
    edit: Callable[[Json], Json], labels: dict[str, str], is_due: bool
) -> None:
    """Whoever may write ConfigMaps may edit it, and the labels of an object can change."""
    server = RecordServer()
    await write(server, claimants(hpa("chat")), claimants(hpa("chat")))
    text = json.dumps(edit(read_record(server.data["ns"]["chat"])), separators=(",", ":"))
    value = hpa("chat", labels=labels)
    (item,) = claims_of_annotated([value], (), {"ns": {"chat": text}}, claimed=()).claimants

    assert bool(due([item], {item.key: DECIDED}, most=1)) == is_due


async def test_records_of_deleted_objects_are_removed() -> None:
    """The ConfigMap goes with the last one, and nothing is written without a change."""
    server, known = RecordServer(), claimants(hpa("chat"), hpa("code"))
    await write(server, known, known)
    server.calls.clear()

    await write(server, known, ())
    assert server.calls == []
    await write(server, known[:1], ())
    assert server.data["ns"].keys() == {"chat"}
    await write(server, (), ())
    assert server.data == {}


async def test_a_refused_write_concerns_its_own_namespace_only() -> None:
    """It is reported for each object that should have been written."""
    server = RecordServer(refusal=Forbidden("not allowed"))
    known = claimants(hpa("chat"))

    assert await write(server, known, known) == {("ns", "chat"): server.refusal}


async def test_a_refused_removal_is_logged() -> None:
    """No object is left to report it for."""
    server = RecordServer(data={"ns": {"gone": "{}"}}, refusal=Forbidden("not allowed"))

    with capture_logs() as lines:
        assert await write(server, (), ()) == {}

    assert [(line["uid"], line["error"]) for line in lines] == [("gone", "not allowed")]


def test_records_beyond_the_size_of_a_config_map_are_refused() -> None:
    """The others are written. An older record of a refused one is removed, since it is outdated."""
    large = "x" * (MOST_BYTES // 2)
    stored = {"a": "x", "b": "x", "c": "x"}

    fitting, refused = within_limit(stored, {"a": large, "b": large, "d": "y", "c": None})

    assert fitting == {"a": large, "b": None, "d": "y", "c": None}
    assert list(refused) == ["b"]
    assert isinstance(refused["b"], Invalid)
