"""The statuses that are written in a cycle, and their number."""

from __future__ import annotations

import pytest
from support.logs import capture_logs

from apiserver.cluster.errors import Forbidden
from apiserver.kinds.identity import Key
from apiserver.schema.json import Json
from controller.observe.declarations import claimant_of
from controller.variants.publishing import Urgency, due, left_over, log_unwritten, news

FOUND = {"type": "TargetResolved", "status": "True", "reason": "TargetFound", "message": "it is there"}
SILENT = {
    "type": "MetricsAvailable",
    "status": "True",
    "reason": "MetricsAvailable",
    "message": "1 of 1 report, 30 s old",
}
STATUS: Json = {
    "currentAlloc": {"numReplicas": 1},
    "desiredOptimizedAlloc": {"numReplicas": 1, "lastRunTime": "2026-01-01T13:00:00Z"},
    "actuation": {"applied": True},
    "decision": {
        "reason": "Steady",
        "message": "chat stays at 1 replica: minReplicas is 1, no requests come",
        "boundBy": "MinReplicas",
        "signal": "Fresh",
        "grantedReplicas": 1,
        "costPerReplica": "40",
        "demand": {"requestsPerSecond": "0"},
    },
    "conditions": [FOUND, SILENT],
}
LEARNED = {"decodeParms": {"alpha": "13", "beta": "0.1"}, "prefillParms": {"delta": "0.1"}, "samples": 20}
DIFFERS = {
    "type": "PerformanceAsDeclared",
    "status": "False",
    "reason": "PerformanceDiffers",
    "message": "41",
}


def with_decision(**changes: object) -> Json:
    """Return the status with a changed decision."""
    return STATUS | {"decision": STATUS["decision"] | changes}


LEVEL = {"promised": "0.95", "attained": "0.96", "ttftMissed": "0.04", "itlMissed": "0", "requests": 500}

NEWS = {
    "nothing": (STATUS, None),
    "figures": (with_decision(demand={"requestsPerSecond": "7"}), None),
    "a message": (with_decision(message="chat stays at 1 replica: 7 requests/s now"), None),
    "the time of the decision": (
        STATUS | {"desiredOptimizedAlloc": {"numReplicas": 1, "lastRunTime": "2026-01-01T14:00:00Z"}},
        None,
    ),
    "another number of replicas": (
        STATUS | {"desiredOptimizedAlloc": STATUS["desiredOptimizedAlloc"] | {"numReplicas": 2}},
        Urgency.URGENT,
    ),
    "a new replica": (STATUS | {"currentAlloc": {"numReplicas": 2}}, Urgency.URGENT),
    "a shortage": (with_decision(reason="Shortage"), Urgency.URGENT),
    "a worse signal of the load": (with_decision(signal="Held"), Urgency.URGENT),
    "a changed condition": (STATUS | {"conditions": [FOUND | {"status": "False"}, SILENT]}, Urgency.URGENT),
    "the time of a clock that was set back": (
        STATUS | {"desiredOptimizedAlloc": {"numReplicas": 1, "lastRunTime": "2026-01-01T12:00:00Z"}},
        Urgency.URGENT,
    ),
    "another priority": (with_decision(priority=5), Urgency.ORDINARY),
    "the limit of the number": (with_decision(boundBy="Demand"), Urgency.ORDINARY),
    "the reason of a condition that holds": (
        STATUS | {"conditions": [FOUND | {"reason": "TargetNotScaled"}, SILENT]},
        Urgency.ORDINARY,
    ),
    "another cause of the same reason": (
        STATUS | {"conditions": [FOUND | {"message": "it is there; nothing scales it"}, SILENT]},
        Urgency.ORDINARY,
    ),
    "another reason why an engine is silent": (
        STATUS | {"conditions": [FOUND, SILENT | {"message": "0 of 1 report; p: no answer"}]},
        Urgency.ORDINARY,
    ),
    "the age of a report": (
        STATUS | {"conditions": [FOUND, SILENT | {"message": "1 of 1 report, 7 s old"}]},
        None,
    ),
    "a profile that slightly exceeds its tolerance": (
        STATUS | {"conditions": [*STATUS["conditions"], DIFFERS]},
        Urgency.ORDINARY,
    ),
    "step times to save": (with_decision(performance=LEARNED), Urgency.ORDINARY),
    "the first attained share": (with_decision(serviceLevel=LEVEL), Urgency.ORDINARY),
}


@pytest.mark.parametrize(("new", "want"), NEWS.values(), ids=NEWS.keys())
def test_how_soon_a_changed_status_is_written(new: Json, want: Urgency | None) -> None:
    """Values that others act on are written at once, explanations in turn, and figures alone never."""
    assert news(STATUS, new) is want


CHANGES = {
    "an attained share that differs by little of what may miss": (
        {"serviceLevel": LEVEL | {"attained": "0.965"}},
        None,
    ),
    "an attained share that differs by much of what may miss": (
        {"serviceLevel": LEVEL | {"attained": "0.94"}},
        Urgency.ORDINARY,
    ),
    "another promise": ({"serviceLevel": LEVEL | {"promised": "0.9"}}, Urgency.ORDINARY),
    "no more targets": ({"serviceLevel": None}, Urgency.ORDINARY),
    "almost the same utilization": ({"performance": LEARNED | {"utilization": "0.62"}}, None),
    "another utilization": ({"performance": LEARNED | {"utilization": "0.5"}}, Urgency.ORDINARY),
}


@pytest.mark.parametrize("name", CHANGES)
def test_small_changes_of_what_engines_attained_cause_no_write(name: str) -> None:
    """The shares change a little in every cycle."""
    changes, want = CHANGES[name]
    old = with_decision(serviceLevel=LEVEL, performance=LEARNED | {"utilization": "0.6"})

    assert news(old, old | {"decision": old["decision"] | changes}) is want


EDITED = {
    "a time that is missing": (STATUS | {"desiredOptimizedAlloc": {"numReplicas": 1}}, Urgency.URGENT),
    "a time that is no time": (
        STATUS | {"desiredOptimizedAlloc": {"numReplicas": 1, "lastRunTime": "soon"}},
        Urgency.URGENT,
    ),
    "a time in the future": (
        STATUS | {"desiredOptimizedAlloc": {"numReplicas": 1, "lastRunTime": "2030-01-01T13:00:00Z"}},
        Urgency.URGENT,
    ),
    "a condition of another controller": (
        STATUS | {"conditions": [FOUND, {"type": "Healthy", "status": "True", "reason": "Healthy"}, SILENT]},
        None,
    ),
}


@pytest.mark.parametrize(("old", "want"), EDITED.values(), ids=EDITED.keys())
def test_how_soon_an_edited_status_is_written_again(old: Json, want: Urgency | None) -> None:
    """At once if the metrics API could not serve it, and never for what our writes keep."""
    assert news(old, STATUS) is want


def stored(number: int, status: Json, *, minute: int = 0) -> Json:
    """Return an object whose status was written at a given minute."""
    desired = status["desiredOptimizedAlloc"] | {"lastRunTime": f"2026-01-01T12:{minute:02}:00Z"}
    return {
        "metadata": {"namespace": "ns", "name": f"v{number}"},
        "status": status | {"desiredOptimizedAlloc": desired},
    }


def names_due(known: list[Json], statuses: dict[Key, Json], *, most: int) -> list[str]:
    """Return the names of the objects whose status is written now."""
    return [item.key[1] for item in due([*map(claimant_of, known)], statuses, most=most)]


ORDINARY, URGENT = with_decision(boundBy="Demand"), with_decision(grantedReplicas=2)


def test_statuses_that_are_not_urgent_are_written_oldest_first_up_to_the_limit() -> None:
    """The status with the earliest time of writing comes first."""
    known = [stored(number, STATUS, minute=59 - number) for number in range(10)]
    statuses = {("ns", f"v{number}"): ORDINARY for number in range(10)}

    assert names_due(known, statuses, most=3) == ["v9", "v8", "v7"]


def test_urgent_statuses_are_written_regardless_of_the_limit() -> None:
    """The others get what is left of the limit."""
    known = [stored(number, STATUS) for number in range(6)]
    statuses = {("ns", f"v{number}"): URGENT if number < 4 else ORDINARY for number in range(6)}

    assert names_due(known, statuses, most=3) == ["v0", "v1", "v2", "v3"]
    assert names_due(known, statuses, most=5) == ["v0", "v1", "v2", "v3", "v4"]


def test_every_changed_status_is_written_eventually() -> None:
    """This holds even if all of them change in each cycle."""
    known = [stored(number, STATUS) for number in range(7)]
    seen: set[str] = set()
    for minute in range(1, 4):
        statuses = {("ns", f"v{number}"): with_decision(boundBy=f"reason {minute}") for number in range(7)}
        for name in names_due(known, statuses, most=3):
            number = int(name.removeprefix("v"))
            known[number] = stored(number, statuses["ns", name], minute=minute)
            seen.add(name)

    assert len(seen) == 7


def test_a_status_without_a_decision_is_not_written() -> None:
    """It stays unchanged."""
    assert names_due([stored(0, STATUS)], {}, most=5) == []


UNPLANNED: Json = {"actuation": {"applied": False}, "decision": {"reason": "Unplanned", "message": "why"}}
LEGACY: Json = {
    "currentAlloc": {"accelerator": "A100", "numReplicas": 5, "itlAverage": "12"},
    "desiredOptimizedAlloc": {"accelerator": "A100", "numReplicas": 5},
}
LEFT_OVER = {
    "no foreign fields": (STATUS, STATUS, {}),
    "a number that our status does not have": (
        STATUS,
        STATUS | {"desiredOptimizedAlloc": {"lastRunTime": "2026-01-01T12:00:00Z"}},
        {"desiredOptimizedAlloc": {"numReplicas": None}},
    ),
    "a number if our status has no allocation": (
        LEGACY | UNPLANNED,
        UNPLANNED,
        {"desiredOptimizedAlloc": {"numReplicas": None}},
    ),
    "figures of an earlier release": (
        STATUS | {"currentAlloc": {"numReplicas": 1, "itlAverage": "12", "load": {"arrivalRate": "3"}}},
        STATUS,
        {"currentAlloc": {"itlAverage": None, "load": None}},
    ),
    "a member that we do not write": (STATUS | {"theirs": {"a": 1}}, STATUS, {}),
}


@pytest.mark.parametrize(("stored_status", "ours", "want"), LEFT_OVER.values(), ids=LEFT_OVER.keys())
def test_fields_of_an_earlier_controller_are_removed(stored_status: Json, ours: Json, want: Json) -> None:
    """Only members that a single controller may write are concerned."""
    assert left_over(stored_status, ours) == want


def test_remaining_fields_of_an_earlier_controller_cause_one_write() -> None:
    """Its accelerator is needed for conversion and causes no write; its number does."""
    kept = LEGACY | {"desiredOptimizedAlloc": {"accelerator": "A100"}} | UNPLANNED

    assert news(LEGACY | UNPLANNED, UNPLANNED) is Urgency.URGENT
    assert news(kept, UNPLANNED) is None
    assert left_over(kept, UNPLANNED) == {}


def test_the_log_names_an_object_whose_status_is_refused() -> None:
    """The message of a webhook names only the webhook."""
    denied = Forbidden('admission webhook "policy.example.com" denied the request')

    with capture_logs() as lines:
        log_unwritten("VariantAutoscaling", {})
        log_unwritten("VariantAutoscaling", {("ns", "chat"): denied, ("ns", "code"): denied})

    assert [(line["event"], line["first"], line["number"], line["error"]) for line in lines] == [
        ("statuses not written", "ns/chat", 2, denied.message)
    ]
