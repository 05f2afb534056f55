"""Records of decisions on annotated autoscalers: what is written, removed and refused."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from support.annotated import RecordServer, hpa
from support.logs import capture_logs

from apiserver.cluster.errors import ClusterError, Forbidden, Invalid
from apiserver.kinds.decision_record import MOST_BYTES, read_record
from apiserver.kinds.identity import Key
from apiserver.schema.json import Json
from controller.observe.claim import Claimant
from controller.observe.declarations import claims_of_annotated
from controller.variants.annotated import DecisionStore, within_limit
from controller.variants.publishing import due

DECIDED: Json = {
    "desiredOptimizedAlloc": {
        "accelerator": "A100",
        "numReplicas": 2,
        "lastRunTime": "2026-01-01T00:00:00Z",
    },
    "decision": {"reason": "Steady", "message": "stays"},
}


def claimants(*values: Json) -> tuple[Claimant, ...]:
    """Return autoscalers as objects that are told of decisions."""
    return claims_of_annotated(values, (), {}, taken=()).claimants


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
    (item,) = claims_of_annotated([value], (), {"ns": {"chat": text}}, taken=()).claimants

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
