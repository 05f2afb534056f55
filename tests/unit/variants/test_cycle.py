"""One cycle from objects to statuses, events and log lines."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.cycle_stage import NODE, NOW, STEP, Stage
from support.logs import capture_logs
from support.manifests import node
from support.traffic import objective, pool

from apiserver.cluster.errors import Unavailable
from apiserver.cluster.heartbeat import Heartbeat, heartbeat_of
from apiserver.schema.json import Json
from controller.observe.gather import World
from controller.observe.objectives import Objectives
from controller.observe.policies import SettingsProblem
from controller.observe.settings_reading import PolicyReader
from controller.variants.advisory import Scope


def condition(status: Json, type_: str) -> tuple[str, str]:
    """Return reason and message of a condition."""
    (found,) = [item for item in status["conditions"] if item["type"] == type_]
    return found["reason"], found["message"]


async def test_without_advice_the_busy_model_gets_the_accelerators_of_the_idle_one() -> None:
    """One plan is made, both numbers are published, and there is no advice."""
    stage = Stage()

    outcome = await (await stage.watched(Scope())).cycle()

    assert (stage.number("quiet"), stage.number("loud")) == (1, 3)
    assert (stage.asked, outcome.advices) == (["solve"], {})
    assert all(item["type"] != "Advisory" for item in stage.statuses["quiet"]["conditions"])


async def test_an_advisory_variant_gets_a_decision_without_a_number() -> None:
    """The accelerators that only following the advice would free are not given to the busy variant."""
    stage = Stage(annotations={"stowplan.dev/advisory": "true"})

    outcome = await (await stage.watched(Scope())).cycle()

    assert (stage.number("quiet"), stage.number("loud")) == (None, 1)
    assert stage.statuses["quiet"]["decision"]["grantedReplicas"] == 1
    assert stage.statuses["loud"]["decision"]["reason"] == "Shortage"
    assert stage.asked == ["solve", "solve"]
    assert {key: advice.saved_per_hour for key, advice in outcome.advices.items()} == {("ns", "quiet"): 80}


async def test_a_cluster_in_advisory_mode_is_planned_once() -> None:
    """Every status has the decision of a plan that all would follow."""
    stage = Stage()

    outcome = await (await stage.watched(Scope(everywhere=True))).cycle()

    assert (stage.number("quiet"), stage.number("loud")) == (None, None)
    granted = {name: status["decision"]["grantedReplicas"] for name, status in stage.statuses.items()}
    assert granted == {"quiet": 1, "loud": 3}
    assert (stage.asked, len(outcome.advices)) == (["solve"], 2)


async def test_the_priority_of_an_objective_is_used_and_named_in_the_status() -> None:
    """It applies to the variant whose pods its pool selects, and to no other."""
    urgent = objective("urgent", "llama", namespace="ns")
    pools = [pool("llama", {"app": "quiet"}, namespace="ns")]
    stage = Stage(objectives=Objectives([urgent], pools))

    await (await stage.watched(Scope())).cycle()

    assert [stage.statuses[name]["decision"]["priority"] for name in ("quiet", "loud")] == [90, 100]
    assert condition(stage.statuses["quiet"], "ServiceClassResolved") == (
        "ObjectiveFound",
        "no service class applies: priority 90 by InferenceObjective 'urgent' (10) of InferencePool 'llama'",
    )


async def test_deleted_service_classes_are_reported_in_the_log_and_in_the_status() -> None:
    """The log contains it once while it lasts; conditions of models without a class name the cause."""
    stage = Stage()
    reconciler = await stage.watched(Scope())
    stage.policies = PolicyReader(unit_costs="costs", default_classes="classes").read({"costs": {}})

    with capture_logs() as lines:
        for _ in range(2):
            await reconciler.cycle()

    (told,) = [line["problem"] for line in lines if line["event"] == "ignored in planning"]
    assert told.startswith("ConfigMap classes, named by names.serviceClasses, is missing")
    assert condition(stage.statuses["loud"], "ServiceClassResolved") == (
        "NoClass",
        "no service class applies, and ConfigMap 'classes' is missing: priority 100, the lowest",
    )


class Unpriced(Stage):
    """Variants without a cost of their own."""

    def world(self) -> World:
        """Return the content of the caches."""
        seen = super().world()
        for item in seen.autoscalings:
            del item["spec"]["variantCost"]
        return seen


@pytest.mark.parametrize(("key", "is_told"), [("H100", True), ("A100", False)])
async def test_an_invalid_price_concerns_the_type_on_which_pods_run(key: str, *, is_told: bool) -> None:
    """They are declared as A100, whose price applies to none of them."""
    wrong = SettingsProblem(config_map="prices", key=key, text="is no price")
    stage = Unpriced(node=node("n1", accelerators=4, product="NVIDIA-H100-80GB-HBM3"))
    stage.policies = replace(stage.policies, price_list="prices", problems=(wrong,))

    await (await stage.watched(Scope())).cycle()

    reasons = {item["reason"] for item in stage.statuses["loud"]["conditions"]}
    assert "AcceleratorDiffers" in reasons
    assert ("PriceInvalid" in reasons) is is_told


async def test_status_event_and_log_have_the_same_message() -> None:
    """This includes the advice."""
    stage = Stage(annotations={"stowplan.dev/advisory": "true"})

    reconciler = await stage.watched(Scope())
    with capture_logs() as lines:
        outcome = await reconciler.cycle()

    logged = {line["name"]: line["message"] for line in lines if line["event"] == "decided"}
    for decision in outcome.plan.decisions:
        status = stage.statuses[decision.name]
        ready = next(item for item in status["conditions"] if item["type"] == "OptimizationReady")
        said = {status["decision"]["message"], ready["message"], stage.events[decision.name]}
        assert said == {logged[decision.name]} == {decision.message}
    assert "nothing is scaled, following it would save 80.00 per hour" in stage.events["quiet"]


async def test_unchanged_advice_is_reported_once() -> None:
    """A known decision causes no event and no write."""
    stage = Stage(annotations={"stowplan.dev/advisory": "true"})
    reconciler = await stage.watched(Scope())
    await reconciler.cycle()
    stage.events.clear()

    outcome = await reconciler.cycle()

    assert (outcome.written, stage.events) == (0, {})


async def test_a_variant_that_cannot_be_planned_causes_one_event() -> None:
    """This holds even if it was never planned, because the status of a new object is rarely looked at."""
    stage = Stage(gone={"quiet"})
    reconciler = await stage.watched(Scope())
    stage.reasons.clear()

    for _ in range(2):
        await reconciler.cycle()

    assert [reason for name, reason in stage.reasons if name == "quiet"] == ["Unplanned"]
    assert "does not exist" in stage.events["quiet"]


async def test_an_event_is_recorded_even_if_an_old_status_field_cannot_be_cleared() -> None:
    """The next cycle tries to clear the field again, but has no new decision for an event."""
    stage = Stage(annotations={"stowplan.dev/advisory": "true"})
    reconciler = await stage.watched(Scope())
    stage.former = {"numReplicas": 7}

    outcome = await reconciler.cycle()

    (cleared,) = stage.cleared
    assert cleared == {
        "name": "quiet",
        "metadata": {"resourceVersion": "7"},
        "status": {"desiredOptimizedAlloc": {"numReplicas": None}},
    }
    assert set(stage.events) == {"quiet", "loud"}
    assert [error.message for error in outcome.unwritten.values()] == ["no answer"]


async def test_a_status_that_cannot_be_written_leaves_no_node_tainted() -> None:
    """The other statuses are written all the same."""
    closed = NODE | {"spec": {"taints": [{"key": "stowplan.dev/moving", "effect": "NoSchedule"}]}}
    stage = Stage()
    reconciler = await stage.watched(Scope())
    stage.unwritable, stage.node = "quiet", closed

    await reconciler.cycle()

    assert stage.node["spec"]["taints"] == []
    assert set(stage.statuses) == {"loud"}


def told(stage: Stage) -> Heartbeat | None:
    """Return the heartbeat that the Lease would have."""
    return heartbeat_of({"metadata": {"annotations": dict(stage.pulse.annotations())}})


async def test_an_idle_cycle_sends_no_requests_and_still_updates_the_heartbeat() -> None:
    """This holds as long as nothing changes."""
    stage = Stage()
    reconciler = stage.reconciler(Scope())
    await reconciler.cycle()
    stage.calls.clear()

    for _ in range(3):
        await reconciler.cycle()

    assert stage.calls == []
    assert told(stage) == Heartbeat(time=NOW, newest_decision=NOW)


async def test_the_heartbeat_does_not_confirm_a_status_that_cannot_be_written() -> None:
    """The other statuses are confirmed, and the whole plan is reported."""
    stage = Stage(unwritable="quiet")

    outcome = await stage.reconciler(Scope()).cycle()

    assert {item.name for item in outcome.plan.decisions} == {"quiet", "loud"}
    assert [(key, type(error)) for key, error in outcome.unwritten.items()] == [
        (("ns", "quiet"), Unavailable)
    ]
    assert told(stage) == Heartbeat(time=NOW, newest_decision=NOW, unconfirmed=frozenset({("ns", "quiet")}))


async def test_engine_counters_become_demand_and_capacity_in_the_status() -> None:
    """The capacity follows from the step times in the previous status, and its limit is named."""
    stage = Stage()

    await (await stage.watched(Scope())).cycle()

    said = stage.statuses["loud"]["decision"]
    assert said["demand"] == {
        "requestsPerSecond": "20",
        "upperRequestsPerSecond": "20",
        "startSeconds": 120,
        "backlogRequests": 0,
        "avgInputTokens": "100",
        "avgOutputTokens": "100",
    }
    assert (said["signal"], said["capacitySource"]) == ("Fresh", "LastKnown")
    assert said["capacityLimit"] == "ITL 20 ms"
    assert float(said["capacityPerReplica"]) == pytest.approx(8.58, abs=0.005)
    assert said["message"] == (
        "loud goes from 1 to 3 replicas: "
        "20 requests/s now, up to 20 in the 120 s that a replica needs to start, 78 % of 3 x 8.58; "
        "one serves 8.58 within ITL 20 ms (a batch of 64 would allow 22.5), from step times recorded earlier"
    )


async def test_nothing_changes_before_engines_have_answered_twice() -> None:
    """A new leader does not know the load, and scales nothing down."""
    stage = Stage()

    await stage.reconciler(Scope()).cycle()

    assert (stage.number("quiet"), stage.number("loud")) == (3, 1)
    assert stage.statuses["quiet"]["decision"]["signal"] == "Unknown"
    assert stage.statuses["quiet"]["decision"]["message"] == (
        "quiet stays at 3 replicas: the load of quiet is not known before its engines have answered twice"
    )


@pytest.mark.parametrize("is_sampled", [True, False], ids=["with first samples", "without first samples"])
async def test_a_new_leader_with_first_samples_does_not_withdraw_the_metrics(is_sampled: bool) -> None:
    """Every variant was written in the first cycle, and again in the next one."""
    stage = Stage()
    former, new = stage.reconciler(Scope()), stage.reconciler(Scope())
    for _ in range(2):
        await former.cycle()
        stage.time += STEP
    stage.reasons.clear()

    if is_sampled:
        assert await new.sample()
        stage.time += STEP
    outcome = await new.cycle()

    signals = {str(item.signal) for item in outcome.plan.decisions}
    assert (signals, outcome.written) == (({"Fresh"}, 0) if is_sampled else ({"Unknown"}, 2))
    assert bool(stage.reasons) is not is_sampled


async def test_nothing_is_sampled_while_no_engine_responds() -> None:
    """The first cycle need not wait."""
    stage = Stage(failures=dict.fromkeys(("quiet-0", "quiet-1", "quiet-2", "loud-0"), "refused"))

    assert not await stage.reconciler(Scope()).sample()


async def test_only_ready_engines_are_scraped() -> None:
    """An engine that is no longer ready does not count as silent: the others decide."""
    stage = Stage()
    reconciler = await stage.watched(Scope())
    stage.unready = "quiet-2"

    await reconciler.cycle()

    assert stage.samples == {"quiet-0", "quiet-1", "loud-0"}
    assert stage.statuses["quiet"]["decision"]["signal"] == "Fresh"
    assert stage.number("quiet") == 1
