"""Advisory decisions: their scope, their messages, and plans that do not count on them."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from apiserver.schema.json import Json
from controller.observe.claim import orders_of
from controller.observe.conditions import ConditionReason
from controller.planning.cluster import Node
from controller.planning.inputs import Settings
from controller.planning.load import Capacity, CapacitySource, ModelLoad
from controller.planning.plan import plan
from controller.planning.snapshot import Replica, Snapshot, Variant
from controller.variants.advisory import Scope, acted_on, advice, join_plans, why_advisory

QUIET = ("ns", "quiet")


def variant(name: str, *, replicas: int) -> Variant:
    """Return a variant whose replicas serve 10 requests per second each, on the only node."""
    pods = tuple(Replica(name=f"{name}-{number}", node="n1", ready=True) for number in range(replicas))
    return Variant(
        namespace="ns", name=name, model_id=name, accelerator="A100", accelerators_per_replica=1,
        cost_per_replica=Decimal("12.50"), current_replicas=replicas, replicas=pods,
        capacity=Capacity(requests_per_second=10.0, source=CapacitySource.LEARNED),
    )  # fmt: skip


def load(model: str, required: float) -> ModelLoad:
    """Return a load that requires the given number of requests per second."""
    return ModelLoad(
        namespace="ns", model_id=model, requests_per_second=required, upper_requests_per_second=required,
        required_requests_per_second=required, releasable_requests_per_second=required,
    )  # fmt: skip


SNAPSHOT = Snapshot(
    nodes=(Node(name="n1", accelerator="A100", accelerators_allocatable=4),),
    variants=(variant("quiet", replicas=3), variant("loud", replicas=1)),
    loads=(load("quiet", 0.0), load("loud", 16.0)),
)


def annotated(text: str) -> Json:
    """Return an object in namespace `ns` with a value of the advisory annotation."""
    return {"metadata": {"namespace": "ns", "annotations": {"stowplan.dev/advisory": text}}}


@pytest.mark.parametrize(
    ("scope", "text", "want"),
    [
        pytest.param(Scope(), "false", None, id="not advisory"),
        pytest.param(Scope(), "yes", None, id="invalid annotation value"),
        pytest.param(Scope(), "true", "ObjectAdvisory", id="the object"),
        pytest.param(Scope(namespaces=frozenset({"ns"})), "false", "NamespaceAdvisory", id="the namespace"),
        pytest.param(Scope(namespaces=frozenset({"other"})), "false", None, id="another namespace"),
        pytest.param(Scope(everywhere=True), "false", "ClusterAdvisory", id="the cluster"),
    ],
)
def test_the_widest_scope_that_makes_an_object_advisory_is_the_reason(
    scope: Scope, text: str, want: str | None
) -> None:
    """An object cannot opt out of a setting of its namespace."""
    found = why_advisory("ns", orders_of(annotated(text)), scope)

    assert (found and found[0]) == want


def replicas_of(snapshot: Snapshot) -> dict[str, int]:
    """Return the granted replicas of a plan by variant."""
    made = plan(snapshot, Settings())
    return {decision.name: decision.replicas for decision in made.decisions}


def test_accelerators_that_only_advice_would_free_are_not_given_to_others() -> None:
    """Nothing scales the advisory variant down, so the busy one must not get its accelerators."""
    assert replicas_of(SNAPSHOT) == {"quiet": 1, "loud": 2}
    assert replicas_of(acted_on(SNAPSHOT, {QUIET})) == {"quiet": 3, "loud": 1}


def test_advisory_decisions_are_joined_with_the_plan_that_is_applied() -> None:
    """The joined plan has both, and the message of the advisory decision names the saving."""
    acting = plan(acted_on(SNAPSHOT, {QUIET}), Settings())
    advising = plan(SNAPSHOT, Settings())
    both = join_plans(acting, advising, {QUIET})
    decision = next(item for item in both.decisions if item.name == "quiet")

    found = advice(
        SNAPSHOT.variants[0], decision, (ConditionReason.OBJECT_ADVISORY, "stowplan.dev/advisory is true")
    )
    told = {item.name: item for item in both.with_messages({QUIET: found.message}).decisions}

    assert {name: item.replicas for name, item in told.items()} == {"quiet": 1, "loud": 1}
    assert found.saved_per_hour == Decimal("25.00")
    assert told["quiet"].message == (
        f"{decision.message}; stowplan.dev/advisory is true: nothing is scaled, "
        "following it would save 25.00 per hour"
    )
    assert told["loud"].message == next(i.message for i in acting.decisions if i.name == "loud")


@pytest.mark.parametrize(
    ("replicas", "want"), [(2, "would save 12.50"), (3, "would cost the same"), (4, "would cost 12.50")]
)
def test_the_message_names_the_saving_or_the_cost_of_following_the_advice(replicas: int, want: str) -> None:
    """The decision can cost more or less than the running replicas, or the same."""
    made = plan(SNAPSHOT, Settings())
    base = next(item for item in made.decisions if item.name == "quiet")

    found = advice(
        SNAPSHOT.variants[0], replace(base, replicas=replicas), (ConditionReason.CLUSTER_ADVISORY, "why")
    )

    assert want in found.message
