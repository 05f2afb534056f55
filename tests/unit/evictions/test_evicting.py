"""Rounds of evictions: calls to the cluster, and the state after an error."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from support.decisions import decision
from support.eviction_stage import BUDGET, FOREIGN, NOON, OURS, PLAN, RULES, Stage, pod
from support.logs import capture_logs

from apiserver.cluster.errors import ClusterError, Conflict, Forbidden, NotFound, Throttled
from apiserver.schema.json import Json
from controller.evictions.rounds import ANNOTATION


async def test_a_round_taints_the_node_evicts_waits_and_removes_the_taint() -> None:
    """It begins at the second plan with the moves, and taints of others stay on the node."""
    stage = Stage()
    evictor = stage.evictor()

    assert await stage.act(evictor) == {}
    assert await stage.act(evictor) == {"evicted": 2}
    assert stage.calls == ["try a", "try b", "patch n1", "evict a", "evict b"]
    assert stage.taints == [FOREIGN, OURS]
    assert stage.events == [("small", "Moved"), ("large", "RoomMade")] * 2

    await stage.act(evictor)
    assert stage.taints == [FOREIGN, OURS]
    stage.pods = [pod("c", "n2"), pod("d", "n3")]
    await stage.act(evictor)
    assert stage.taints == [FOREIGN]


async def test_messages_of_decisions_mention_replicas_that_are_being_moved() -> None:
    """They do so until the round ends, and only for variants that benefit."""
    stage = Stage()
    evictor = stage.evictor()
    told = replace(PLAN, decisions=(decision("large"), decision("small")))

    def said() -> list[str]:
        return [item.message for item in evictor.with_messages(told).decisions]

    await stage.act(evictor)
    assert said() == ["large goes short", "small goes short"]
    await stage.act(evictor)
    assert said() == ["large goes short; 2 replicas of others being moved for it", "small goes short"]
    stage.pods = [pod("c", "n2"), pod("d", "n3")]
    await stage.act(evictor)
    assert said() == ["large goes short", "small goes short"]


HINDERED: dict[str, tuple[str, ClusterError, list[str], dict[str, int]]] = {
    "nothing is evicted if a budget allows one of two evictions": (
        "try b",
        BUDGET,
        ["try a"],
        {"refused": 1},
    ),
    "nothing is evicted without permission to patch nodes": (
        "patch n1",
        Forbidden("nodes are forbidden"),
        ["try a", "try b"],
        {"failed": 1},
    ),
    "nothing is evicted without permission to evict": ("try a", Forbidden("no"), [], {"failed": 1}),
    "a deleted pod ends the round": ("try a", NotFound("gone"), [], {"gone": 1}),
    "a replaced pod ends the round": ("try a", Conflict("uid"), [], {"gone": 1}),
    "nothing is evicted if the API server is overloaded": (
        "try b",
        Throttled("too many requests"),
        ["try a"],
        {"busy": 1},
    ),
    "nothing is evicted if other clients keep changing the node": (
        "patch n1",
        Conflict("modified"),
        ["try a", "try b"],
        {"failed": 1},
    ),
    "evictions stop when a budget is used up": (
        "evict b",
        BUDGET,
        ["try a", "try b", "patch n1", "evict a"],
        {"evicted": 1, "refused": 1},
    ),
}


@pytest.mark.parametrize("sentence", HINDERED)
async def test_an_error_ends_a_round(sentence: str) -> None:
    """There is no retry before the next round is due."""
    call, error, calls, outcomes = HINDERED[sentence]
    stage = Stage({call: error})
    evictor = stage.evictor()
    await stage.act(evictor)

    assert await stage.act(evictor) == outcomes
    assert stage.calls == calls
    for _ in range(4):
        assert await stage.act(evictor) == {}


async def test_a_repeated_error_is_logged_once() -> None:
    """Each round still retries."""
    stage = Stage({"try a": BUDGET})
    evictor = stage.evictor()
    with capture_logs() as lines:
        tries = [await stage.act(evictor) for _ in range(20)]

    assert tries.count({"refused": 1}) == 4
    assert [line["why"] for line in lines] == ["the budget allows none"]


async def test_a_node_that_other_clients_keep_changing_is_named() -> None:
    """This conflict is not mistaken for a deleted pod."""
    stage = Stage({"patch n1": Conflict("modified")})
    evictor = stage.evictor()
    with capture_logs() as lines:
        await stage.act(evictor)
        await stage.act(evictor)

    assert [line["why"] for line in lines] == ["node n1 is changed continuously by other clients: modified"]


async def test_a_failure_to_remove_the_taint_is_logged_once_per_node() -> None:
    """Failures for two nodes do not count as changes of one message."""
    refusals: dict[str, ClusterError] = {f"patch {name}": Forbidden("no") for name in ("n1", "n2")}
    stage = Stage(refusals, taints=[OURS], nodes=("n1", "n2"))
    evictor = stage.evictor(replace(RULES, enabled=False))
    with capture_logs() as lines:
        for _ in range(3):
            await stage.act(evictor)

    assert [line["node"] for line in lines] == ["n1", "n2"]


@pytest.mark.parametrize("name", ["small", "large"])
async def test_advisory_decisions_cause_no_evictions(name: str) -> None:
    """Neither replicas of an advisory variant are moved, nor others for one."""
    stage = Stage()
    evictor = stage.evictor()

    for _ in range(3):
        assert await stage.act(evictor, advised=(name,)) == {}
    assert stage.calls == []


async def test_a_taint_that_an_earlier_process_left_is_removed() -> None:
    """This is done even if evictions have been disabled since."""
    stage = Stage(taints=[OURS, FOREIGN])

    await stage.act(stage.evictor(replace(RULES, enabled=False)))

    assert (stage.taints, stage.calls) == ([FOREIGN], ["patch n1"])


HOURLY = replace(RULES, interval_seconds=1.0, per_hour=4)


async def test_the_limit_per_hour_holds_across_processes() -> None:
    """The next leader continues to count; more evictions are possible an hour after the first one."""
    stage = Stage()

    assert await stage.moved(stage.evictor(HOURLY), tries=3) == 2
    assert await stage.moved(stage.evictor(HOURLY), tries=9) == 2
    assert await stage.moved(stage.evictor(HOURLY), tries=9) == 0
    stage.time = NOON + timedelta(hours=1, seconds=15)
    assert await stage.moved(stage.evictor(HOURLY), tries=9) == 2


async def test_the_interval_between_rounds_holds_across_processes() -> None:
    """It begins at the last eviction, because a new leader does not know when the round ended."""
    stage = Stage()
    rules = replace(HOURLY, interval_seconds=300.0)

    assert await stage.moved(stage.evictor(rules), tries=2) == 2
    assert await stage.moved(stage.evictor(rules), tries=25) == 0
    assert await stage.moved(stage.evictor(rules), tries=9) == 2


async def test_evictions_are_recorded_before_they_happen() -> None:
    """A crash in between counts too many evictions, and no eviction happens without a record."""
    counted, uncounted = Stage({"evict a": Forbidden("no")}), Stage({"record": Forbidden("no leases")})

    hindered, refused = counted.evictor(), uncounted.evictor()
    assert [await counted.act(hindered) for _ in range(2)] == [{}, {"failed": 1}]
    assert counted.lease["metadata"]["annotations"] == {ANNOTATION: "2026-01-01T12:00:20Z x2"}
    assert [await uncounted.act(refused) for _ in range(2)] == [{}, {"failed": 1}]
    assert uncounted.calls == ["try a", "try b"]


@pytest.mark.parametrize("text", ["yesterday x2", "2026-01-01T12:00:00Z", "2026-01-01T12:00:00Z xx"])
async def test_an_invalid_record_prevents_evictions_for_an_hour(text: str) -> None:
    """It was changed by another client, so the real number of evictions is unknown."""
    stage = Stage()
    stage.lease["metadata"]["annotations"] = {ANNOTATION: text}
    evictor = stage.evictor()

    assert await stage.moved(evictor, tries=300) == 0
    assert await stage.moved(evictor, tries=70) > 0


async def test_nothing_is_evicted_while_the_record_cannot_be_read() -> None:
    """The error is logged once, and reading is retried."""
    stage = Stage({"read system/lease": Forbidden("leases are forbidden")})
    evictor = stage.evictor()
    with capture_logs() as lines:
        assert await stage.moved(evictor, tries=5) == 0
    stage.refusals.clear()

    assert [line["why"] for line in lines] == ["leases are forbidden"]
    assert await stage.moved(evictor, tries=1) == 2


def _budget() -> Json:
    spec = {"selector": {"matchLabels": {"app": "small"}}}
    return {"metadata": {"namespace": "ns", "name": "few"}, "spec": spec, "status": {"disruptionsAllowed": 2}}


@pytest.mark.parametrize(("allowed", "outcome"), [(1, {"refused": 1}), (2, {"evicted": 2})])
async def test_a_round_counts_its_own_evictions_against_a_budget(
    allowed: int, outcome: dict[str, int]
) -> None:
    """A budget of one allows each eviction alone; the cached budget, which is outdated, allows two."""
    stage = Stage(budgets=[_budget()], allowed_now=allowed)
    for item in stage.pods:
        item["metadata"]["labels"] = {"app": "small"}
    evictor = stage.evictor()
    await stage.act(evictor)

    with capture_logs() as lines:
        assert await stage.act(evictor) == outcome
    assert stage.calls[2:] == ([] if allowed == 1 else ["patch n1", "evict a", "evict b"])
    told = [line["why"] for line in lines if "why" in line]
    assert told == ["the disruption budget ns/few allows 1 of 2 evictions"][: 2 - allowed]


async def test_deleted_budgets_and_budgets_of_other_pods_prevent_no_evictions() -> None:
    """Only budgets that select the pods count."""
    stage = Stage({"look few": NotFound("gone")}, budgets=[_budget()])
    strangers = Stage(budgets=[_budget()])
    for item in stage.pods:
        item["metadata"]["labels"] = {"app": "small"}

    assert await stage.moved(stage.evictor(), tries=2) == 2
    assert await strangers.moved(strangers.evictor(), tries=2) == 2


async def test_events_name_no_objects_of_other_namespaces() -> None:
    """If such workloads benefit, the event says so without names."""
    stage = Stage()
    evictor = stage.evictor()
    strangers = replace(
        PLAN, moves=(replace(PLAN.moves[0], benefits=(("ns", "large"), ("other", "secret"))),)
    )

    await stage.act(evictor, strangers)
    await stage.act(evictor, strangers)

    assert stage.notes["small"] == (
        "pod b was evicted from node n1 to make room for large, workloads of other namespaces"
    )
    assert stage.notes["large"] == "pod b was evicted from node n1 to make room"
