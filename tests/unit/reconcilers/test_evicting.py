"""What a round of evictions does to a cluster, and what it leaves behind where it is hindered."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from structlog.testing import capture_logs
from support.decisions import decision
from support.eviction_stage import BUDGET, FOREIGN, NOON, OURS, PLAN, RULES, Stage, pod

from apiserver.cluster.errors import ClusterError, Conflict, Forbidden, NotFound, Throttled
from apiserver.schema.json import Json
from controller.reconcilers.eviction_record import ANNOTATION


async def test_a_round_closes_the_node_evicts_waits_and_opens_it_again() -> None:
    """At the second plan; what others wrote to the node stays."""
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


async def test_the_sentence_says_that_somebody_is_being_moved() -> None:
    """For as long as the round lasts, and only about those whom it is for."""
    stage = Stage()
    evictor = stage.evictor()
    told = replace(PLAN, decisions=(decision("large"), decision("small")))

    def said() -> list[str]:
        return [item.message for item in evictor.worded(told).decisions]

    await stage.act(evictor)
    assert said() == ["large goes short", "small goes short"]
    await stage.act(evictor)
    assert said() == ["large goes short; 2 replicas of others being moved for it", "small goes short"]
    stage.pods = [pod("c", "n2"), pod("d", "n3")]
    await stage.act(evictor)
    assert said() == ["large goes short", "small goes short"]


HINDERED: dict[str, tuple[str, ClusterError, list[str], dict[str, int]]] = {
    "a budget that allows one of two evicts none": (
        "try b",
        BUDGET,
        ["try a"],
        {"refused": 1},
    ),
    "a missing permission on nodes evicts none": (
        "patch n1",
        Forbidden("nodes are forbidden"),
        ["try a", "try b"],
        {"failed": 1},
    ),
    "a missing permission on evictions evicts none": ("try a", Forbidden("no"), [], {"failed": 1}),
    "a pod that is gone ends it": ("try a", NotFound("gone"), [], {"gone": 1}),
    "a pod that was replaced ends it": ("try a", Conflict("uid"), [], {"gone": 1}),
    "a server that has too much to do evicts none": (
        "try b",
        Throttled("too many requests"),
        ["try a"],
        {"busy": 1},
    ),
    "a node that others write all the time evicts none": (
        "patch n1",
        Conflict("modified"),
        ["try a", "try b"],
        {"failed": 1},
    ),
    "a budget that is used up on the way stops there": (
        "evict b",
        BUDGET,
        ["try a", "try b", "patch n1", "evict a"],
        {"evicted": 1, "refused": 1},
    ),
}


@pytest.mark.parametrize("sentence", HINDERED)
async def test_what_hinders_a_round(sentence: str) -> None:
    """It is not tried again before the next round is due."""
    call, error, calls, outcomes = HINDERED[sentence]
    stage = Stage({call: error})
    evictor = stage.evictor()
    await stage.act(evictor)

    assert await stage.act(evictor) == outcomes
    assert stage.calls == calls
    for _ in range(4):
        assert await stage.act(evictor) == {}


async def test_a_hindrance_is_told_once() -> None:
    """And tried anew each round."""
    stage = Stage({"try a": BUDGET})
    evictor = stage.evictor()
    with capture_logs() as lines:
        tries = [await stage.act(evictor) for _ in range(20)]

    assert tries.count({"refused": 1}) == 4
    assert [line["why"] for line in lines] == ["the budget allows none"]


async def test_a_node_that_others_write_all_the_time_is_named() -> None:
    """It is no pod that is gone."""
    stage = Stage({"patch n1": Conflict("modified")})
    evictor = stage.evictor()
    with capture_logs() as lines:
        await stage.act(evictor)
        await stage.act(evictor)

    assert [line["why"] for line in lines] == ["node n1 is changed continuously by other clients: modified"]


async def test_nodes_that_stay_closed_are_told_once_each() -> None:
    """Not in turns, as if the other were news."""
    refusals: dict[str, ClusterError] = {f"patch {name}": Forbidden("no") for name in ("n1", "n2")}
    stage = Stage(refusals, taints=[OURS], nodes=("n1", "n2"))
    evictor = stage.evictor(replace(RULES, enabled=False))
    with capture_logs() as lines:
        for _ in range(3):
            await stage.act(evictor)

    assert [line["node"] for line in lines] == ["n1", "n2"]


@pytest.mark.parametrize("name", ["small", "large"])
async def test_nobody_is_moved_by_advice(name: str) -> None:
    """Neither an advised variant nor for one."""
    stage = Stage()
    evictor = stage.evictor()

    for _ in range(3):
        assert await stage.act(evictor, advised=(name,)) == {}
    assert stage.calls == []


async def test_a_node_that_somebody_before_us_closed_is_opened() -> None:
    """Even where evictions have been switched off since."""
    stage = Stage(taints=[OURS, FOREIGN])

    await stage.act(stage.evictor(replace(RULES, enabled=False)))

    assert (stage.taints, stage.calls) == ([FOREIGN], ["patch n1"])


HOURLY = replace(RULES, interval_seconds=1.0, per_hour=4)


async def test_the_limit_of_an_hour_outlives_the_process() -> None:
    """Who leads next counts on; an hour after the first of them more may go."""
    stage = Stage()

    assert await stage.moved(stage.evictor(HOURLY), tries=3) == 2
    assert await stage.moved(stage.evictor(HOURLY), tries=9) == 2
    assert await stage.moved(stage.evictor(HOURLY), tries=9) == 0
    stage.time = NOON + timedelta(hours=1, seconds=15)
    assert await stage.moved(stage.evictor(HOURLY), tries=9) == 2


async def test_the_pause_between_rounds_outlives_the_process() -> None:
    """It is counted from the last eviction: whether the round has ended by now nobody knows."""
    stage = Stage()
    rules = replace(HOURLY, interval_seconds=300.0)

    assert await stage.moved(stage.evictor(rules), tries=2) == 2
    assert await stage.moved(stage.evictor(rules), tries=25) == 0
    assert await stage.moved(stage.evictor(rules), tries=9) == 2


async def test_what_is_evicted_is_on_record_before() -> None:
    """Who dies in between has counted too much, and nobody is evicted whom no record names."""
    counted, uncounted = Stage({"evict a": Forbidden("no")}), Stage({"record": Forbidden("no leases")})

    hindered, refused = counted.evictor(), uncounted.evictor()
    assert [await counted.act(hindered) for _ in range(2)] == [{}, {"failed": 1}]
    assert counted.lease["metadata"]["annotations"] == {ANNOTATION: "2026-01-01T12:00:20Z x2"}
    assert [await uncounted.act(refused) for _ in range(2)] == [{}, {"failed": 1}]
    assert uncounted.calls == ["try a", "try b"]


@pytest.mark.parametrize("text", ["yesterday x2", "2026-01-01T12:00:00Z", "2026-01-01T12:00:00Z xx"])
async def test_a_record_that_is_none_stands_for_a_full_hour(text: str) -> None:
    """Somebody has changed it: nobody is evicted on a guess."""
    stage = Stage()
    stage.lease["metadata"]["annotations"] = {ANNOTATION: text}
    evictor = stage.evictor()

    assert await stage.moved(evictor, tries=300) == 0
    assert await stage.moved(evictor, tries=70) > 0


async def test_without_the_record_nobody_is_evicted_and_it_is_asked_for_again() -> None:
    """Told once."""
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
async def test_a_round_counts_what_its_own_evictions_take_of_a_budget(
    allowed: int, outcome: dict[str, int]
) -> None:
    """Each alone would pass under a budget of one; our copy, a moment old, says two."""
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


async def test_budgets_of_others_and_budgets_that_are_gone_hinder_nobody() -> None:
    """Only what the pods are under counts."""
    stage = Stage({"look few": NotFound("gone")}, budgets=[_budget()])
    strangers = Stage(budgets=[_budget()])
    for item in stage.pods:
        item["metadata"]["labels"] = {"app": "small"}

    assert await stage.moved(stage.evictor(), tries=2) == 2
    assert await strangers.moved(strangers.evictor(), tries=2) == 2


async def test_events_name_nobody_of_other_namespaces() -> None:
    """Who is moved for strangers is told so, and no more."""
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
