"""The heartbeat of cycles on the Lease."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from support.annotated import hpa

from apiserver.cluster.heartbeat import LAST_CYCLE, MOST_UNCONFIRMED, Heartbeat, heartbeat_of
from apiserver.kinds.decision_record import record_text
from apiserver.kinds.identity import key_of
from apiserver.schema.json import Json
from controller.observe.declarations import claimant_of, claims_of_annotated
from controller.variants.publishing import PublishResult, Pulse

VARIANT, BINDING = "VariantAutoscaling", "AutoscalingPolicyBinding"
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def stored(number: int, *, decided: object = NOW.isoformat(), namespace: str = "ns") -> Json:
    """Return a VariantAutoscaling with the time of its decision."""
    return {
        "metadata": {"namespace": namespace, "name": f"v{number}"},
        "status": {"desiredOptimizedAlloc": {"numReplicas": 1, "lastRunTime": decided}},
    }


def statuses(*autoscalings: Json) -> dict[tuple[str, str], Json]:
    """Return the stored statuses as decisions."""
    return {key_of(item): item["status"] for item in autoscalings}


CROWD = [stored(number) for number in range(MOST_UNCONFIRMED + 1)]
"""More objects of one namespace than the heartbeat has entries."""


def told(pulse: Pulse) -> Heartbeat | None:
    """Return the heartbeat that a reader of the Lease finds."""
    return heartbeat_of({"metadata": {"annotations": dict(pulse.annotations())}})


def test_a_heartbeat_is_read_as_it_was_written() -> None:
    """This includes fractions of a second, and names."""
    beat = Heartbeat(
        time=NOW + timedelta(microseconds=5),
        newest_decision=NOW,
        unconfirmed=frozenset({("ns", "a"), ("other", "b.c")}),
    )

    assert heartbeat_of({"metadata": {"annotations": beat.annotations()}}) == beat


@pytest.mark.parametrize("text", ["", "soon", "12", "0001-01-01T00:00:00+23:59"])
def test_an_annotation_without_a_valid_time_is_no_heartbeat(text: str) -> None:
    """The same holds for a Lease without the annotation."""
    assert heartbeat_of({"metadata": {"annotations": {LAST_CYCLE: text}}}) is None
    assert heartbeat_of({"metadata": {}}) is None


def test_an_object_without_a_decision_is_not_confirmed() -> None:
    """Its number becomes outdated, and the others do not."""
    pulse, known = Pulse(), [stored(0), stored(1)]

    pulse.beat(map(claimant_of, known), statuses(known[0]), PublishResult(), time=NOW)

    assert told(pulse) == Heartbeat(time=NOW, newest_decision=NOW, unconfirmed=frozenset({("ns", "v1")}))


def test_many_unconfirmed_objects_make_only_their_namespace_unconfirmed() -> None:
    """Objects of other namespaces are confirmed, and failed cycles of bindings stay recorded."""
    pulse, other = Pulse(), stored(0, namespace="other")
    pulse.unbound()

    pulse.beat(map(claimant_of, [*CROWD, other]), statuses(other), PublishResult(), time=NOW)

    beat = told(pulse)
    assert beat is not None
    asked = [(VARIANT, ("ns", "v0")), (VARIANT, ("other", "v0")), (BINDING, ("other", "v0"))]
    assert [beat.confirms(kind, key) for kind, key in asked] == [False, True, False]


def test_many_unconfirmed_bindings_make_only_their_namespace_unconfirmed() -> None:
    """Bindings of other namespaces are confirmed."""
    pulse = Pulse()

    pulse.record_bindings(newest=NOW, unconfirmed=frozenset(map(key_of, CROWD)))
    pulse.beat([], {}, PublishResult(), time=NOW)

    beat = told(pulse)
    assert beat is not None
    assert [beat.confirms(BINDING, (namespace, "v0")) for namespace in ("ns", "other")] == [False, True]


def test_unconfirmed_objects_of_the_two_kinds_are_counted_separately() -> None:
    """Neither needs all entries, so objects without an entry are confirmed."""
    pulse = Pulse()
    variants, bindings = (
        [stored(0, namespace=f"{kind}{number}") for number in range(MOST_UNCONFIRMED)] for kind in "vb"
    )

    pulse.record_bindings(newest=NOW, unconfirmed=frozenset(map(key_of, bindings)))
    pulse.beat(map(claimant_of, variants), {}, PublishResult(), time=NOW)

    beat = told(pulse)
    assert beat is not None
    for kind, namespace in ((VARIANT, "v0"), (BINDING, "b0")):
        assert [beat.confirms(kind, (namespace, name)) for name in ("v0", "v1")] == [False, True]


def test_a_cycle_with_unconfirmed_objects_in_too_many_namespaces_does_not_change_the_heartbeat() -> None:
    """The previous heartbeat is kept."""
    known = [stored(0, namespace=f"ns{number}") for number in range(MOST_UNCONFIRMED + 1)]
    pulse = Pulse()
    pulse.beat(map(claimant_of, known), statuses(*known), PublishResult(), time=NOW)

    pulse.beat(map(claimant_of, known), {}, PublishResult(), time=NOW + timedelta(minutes=1))

    assert told(pulse) == Heartbeat(time=NOW, newest_decision=NOW)


@pytest.mark.parametrize("decided", ["soon", 7, None, "9999-12-31T23:59:59-23:59"])
def test_an_invalid_time_of_a_decision_is_ignored(decided: object) -> None:
    """The other objects determine the newest decision."""
    pulse, known = Pulse(), [stored(0, decided=decided), stored(1)]

    pulse.beat(map(claimant_of, known), statuses(*known), PublishResult(), time=NOW)

    assert told(pulse) == Heartbeat(time=NOW, newest_decision=NOW)


def test_an_unwritten_decision_is_confirmed_with_its_stored_time() -> None:
    """Readers must not wait for a time that is not stored yet."""
    pulse, old = Pulse(), stored(0)
    later = (NOW + timedelta(minutes=5)).isoformat()
    new = {("ns", "v0"): {"desiredOptimizedAlloc": {"numReplicas": 1, "lastRunTime": later}}}

    pulse.beat(map(claimant_of, [old]), new, PublishResult(), time=NOW)
    waiting = told(pulse)
    pulse.beat(map(claimant_of, [old]), new, PublishResult(written=frozenset(new)), time=NOW)
    written = told(pulse)

    assert waiting == Heartbeat(time=NOW, newest_decision=NOW)
    assert written == Heartbeat(time=NOW, newest_decision=NOW + timedelta(minutes=5))


FORGED = {
    "a time in the future": {"lastRunTime": (NOW + timedelta(days=3650)).isoformat(), "numReplicas": 1},
    "a time since the newest decision": {"lastRunTime": NOW.isoformat(), "numReplicas": 1},
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
@pytest.mark.parametrize("outcome", ["refused", "gone"])
def test_the_time_in_a_status_that_could_not_be_written_does_not_count(forged: Json, outcome: str) -> None:
    """Its users may have written any. Readers that wait for it would confirm no other decision."""
    pulse, acted = Pulse(), NOW - timedelta(seconds=60)
    victim = {"metadata": {"namespace": "ns", "name": "a"}, "status": _desired(acted, 1)}
    status = {"desiredOptimizedAlloc": forged, "actuation": {"applied": False}, "decision": {"message": ""}}
    attacker = {"metadata": {"namespace": "other", "name": "b"}, "status": status}
    key = key_of(attacker)
    published = (
        PublishResult(unwritten={key: TimeoutError()})
        if outcome == "refused"
        else PublishResult(deleted=frozenset({key}))
    )

    pulse.beat([claimant_of(victim), claimant_of(attacker)], statuses(victim, attacker), published, time=NOW)

    assert told(pulse) == Heartbeat(time=NOW, newest_decision=acted, unconfirmed=frozenset({key}))


def test_a_decision_that_readers_do_not_serve_does_not_count_as_the_newest() -> None:
    """`applied` is false beside a number: readers call it advice."""
    pulse, acted = Pulse(), NOW - timedelta(seconds=60)
    acting = {"metadata": {"namespace": "ns", "name": "a"}, "status": _desired(acted, 1)}
    advice = {"actuation": {"applied": False}, "decision": {"message": ""}}
    advised = {"metadata": {"namespace": "ns", "name": "b"}, "status": _desired(NOW, 1) | advice}

    pulse.beat(map(claimant_of, [acting, advised]), statuses(acting, advised), PublishResult(), time=NOW)

    assert told(pulse) == Heartbeat(time=NOW, newest_decision=acted)


def test_advice_does_not_count_as_the_newest_decision() -> None:
    """Advice has no number, so the metrics API never sees its time, and would trust no more cycles."""
    pulse, acted = Pulse(), NOW - timedelta(seconds=60)
    acting = {"metadata": {"namespace": "ns", "name": "a"}, "status": _desired(acted, 1)}
    advised = {"metadata": {"namespace": "ns", "name": "b"}, "status": _desired(NOW, None)}

    pulse.beat(map(claimant_of, [acting, advised]), statuses(acting, advised), PublishResult(), time=NOW)

    assert told(pulse) == Heartbeat(time=NOW, newest_decision=acted)


def test_a_record_of_an_annotated_autoscaler_does_not_count_as_the_newest_decision() -> None:
    """Its users may edit it so that readers do not serve it, and not every reader has records."""
    pulse, acted = Pulse(), NOW - timedelta(seconds=60)
    acting = {"metadata": {"namespace": "ns", "name": "a"}, "status": _desired(acted, 1)}
    value = hpa("b")
    (recorded,) = claims_of_annotated(
        [value], (), {"ns": {"b": record_text(value, {}, _desired(NOW, 1))}}, claimed=()
    ).claimants
    decisions = statuses(acting) | {recorded.key: recorded.status}

    pulse.beat([claimant_of(acting), recorded], decisions, PublishResult(), time=NOW)

    assert told(pulse) == Heartbeat(time=NOW, newest_decision=acted)


def _desired(decided: datetime, replicas: int | None) -> Json:
    number = {} if replicas is None else {"numReplicas": replicas}
    return {"desiredOptimizedAlloc": {"lastRunTime": decided.isoformat()} | number}
