"""Messages about those who hold what a variant lacks, about quotas, and the numbers in messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.explain_builders import PER_SECOND, asked, decide, nodes_of, small
from support.planning_builders import capacity, load, node, variant

from controller.planning.cluster import Quota
from controller.planning.decision import ReliefKind, VariantDecision
from controller.planning.demand import provided_rate
from controller.planning.inputs import Settings
from controller.planning.plan import plan
from controller.planning.snapshot import Snapshot, Variant
from controller.planning.wording import amount_text, percent, rate_text, utilization_text


def holder(name: str, *hosts: str | None, priority: int, **changes: Any) -> Variant:
    """Return a variant of a model of its own, without load."""
    given = {"capacity": capacity(12.8 * PER_SECOND), "may_scale_to_zero": True} | changes
    return small(name, *hosts, model_id=name, priority=priority, **given)


def short(*others: Variant, free: int, **changes: Any) -> VariantDecision:
    """Return the decision on variant `want` of priority 5, which needs two replicas on one node."""
    loads = (asked(20, model_id="want"), *(asked(0, model_id=other.model_id) for other in others))
    want = small("want", "n0", model_id="want", priority=5, **changes)
    return decide(nodes_of(free), want, *others, loads=loads)["want"]


PROTECTED: dict[str, tuple[dict[str, Any], str]] = {
    "a minimum": ({"min_replicas": 1}, "priority 9 x (minReplicas is 1)"),
    "a pin": ({"pinned_replicas": 1}, "priority 9 x (pinned to 1)"),
    "a pause": ({"is_paused": True}, "priority 9 x (paused)"),
    "the last replica of its model": ({"may_scale_to_zero": False}, "priority 9 x"),
}


@pytest.mark.parametrize(("changes", "want"), PROTECTED.values(), ids=PROTECTED.keys())
def test_a_holder_is_named_with_what_protects_it(changes: dict[str, Any], want: str) -> None:
    """Otherwise, a lower priority would have given way."""
    found = short(holder("x", "n0", priority=9, **changes), free=2)

    assert f"no H100 is free, 1 is held by {want}, 1 is held by its own replicas" in found.message


def test_the_lowest_priorities_are_named_first() -> None:
    """They could be asked to give way; of several with one priority, the one with the most accelerators."""
    others = [
        holder("high", "n0", priority=1, min_replicas=1),
        holder("low", "n0", priority=9, min_replicas=1),
        holder("more", "n0", "n0", priority=9, min_replicas=2),
        holder("lowest", "n0", priority=20, min_replicas=1),
    ]

    message = short(*others, free=6).message

    names = [message.index(f" {name} (minReplicas") for name in ("lowest", "more", "low")]
    assert names == sorted(names)
    assert "high" not in message, "three names are enough"


def test_a_lower_minimum_of_the_least_important_holder_is_a_relief() -> None:
    """It is tried by a new plan."""
    found = short(holder("x", "n0", "n0", priority=9, min_replicas=2), free=3)

    (relief,) = [item for item in found.reliefs if item.kind is ReliefKind.MIN_REPLICAS]
    assert (relief.text, relief.unmet_per_mille) == ("minReplicas of x lowered to 1", 0)
    assert "minReplicas of x lowered to 1" in found.message


NO_RELIEF = {
    "a higher priority": holder("x", "n0", priority=1, min_replicas=1),
    "the same priority": holder("x", "n0", priority=5, min_replicas=1),
    "no minimum": holder("x", "n0", priority=9, pinned_replicas=1),
}


@pytest.mark.parametrize("other", NO_RELIEF.values(), ids=NO_RELIEF.keys())
def test_no_other_minimum_is_a_relief(other: Variant) -> None:
    """Only a lower priority would give way."""
    kinds = {item.kind for item in short(other, free=2).reliefs}

    assert ReliefKind.MIN_REPLICAS not in kinds


@pytest.mark.parametrize("names_all", [True, False])
def test_a_minimum_in_another_namespace_is_named_only_if_names_are_shown(*, names_all: bool) -> None:
    """Readers of one namespace must not learn names in another."""
    other = holder("x", "n0", priority=9, min_replicas=1, namespace="team-b")
    want = small("want", "n0", model_id="want", priority=5)
    loads = (asked(20, model_id="want"), asked(0, model_id="x", namespace="team-b"))
    snapshot = Snapshot(nodes=tuple(nodes_of(2)), variants=(want, other), loads=loads)

    made = plan(snapshot, Settings(names_all=names_all))

    (message,) = [item.message for item in made.decisions if item.name == "want"]
    assert ("minReplicas of team-b/x lowered to 0" in message) == names_all
    assert ("team-b" in message) == names_all


KNOWN = 10_000

QUOTED = {
    "others hold a part": (
        Quota(name="q", namespace="llm", accelerators=1, used_by_others=2),
        "quota llm/q allows 3 accelerators, of which other workloads hold 2; quota llm/q raised to 4",
    ),
    "others hold all of it": (
        Quota(name="q", namespace="llm", accelerators=0, used_by_others=1),
        "quota llm/q allows 1 accelerator, of which other workloads hold 1; quota llm/q raised to 3",
    ),
    "others hold more than it": (
        Quota(name="q", namespace="llm", accelerators=-2, used_by_others=3),
        "quota llm/q allows 1 accelerator, of which other workloads hold 1; quota llm/q raised to 5",
    ),
    "nobody else holds any": (
        Quota(name="q", namespace="llm", accelerators=1),
        "quota llm/q allows 1 accelerator; quota llm/q raised to 2 accelerators would help",
    ),
}


@pytest.mark.parametrize(("quota", "want"), QUOTED.values(), ids=QUOTED.keys())
def test_a_quota_is_quoted_as_its_hard_limit(quota: Quota, want: str) -> None:
    """Users find this number in the ResourceQuota."""
    snapshot = Snapshot(
        nodes=(node("n1", 8),),
        variants=(variant("a", "n1", serves=KNOWN),),
        loads=(load(5 * KNOWN),),
        quotas=(quota,),
    )

    made = plan(snapshot, Settings())

    assert f": {want}" in made.decisions[0].message


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (0.0, "0"),
        (0.00004, "0.00004"),
        (0.1234, "0.123"),
        (1.0, "1"),
        (9.444, "9.44"),
        (9.996, "10"),
        (12.8, "12.8"),
        (41.24, "41.2"),
        (99.96, "100"),
        (1250.4, "1250"),
        (1e9, "1000000000"),
    ],
)
def test_a_rate_has_three_significant_digits_or_all_before_the_point(rate: float, text: str) -> None:
    """It never has an exponent."""
    assert rate_text(rate) == text


@pytest.mark.parametrize(
    ("amount", "measure", "text"),
    [
        (1.0, "requests/s", "1 request/s"),
        (1.004, "requests/s", "1 request/s"),
        (1.01, "requests/s", "1.01 requests/s"),
        (0.0, "requests/s", "0 requests/s"),
        (1.0, "replicas", "1 replica"),
        (9.0, "replicas", "9 replicas"),
    ],
)
def test_an_amount_that_reads_as_one_has_a_singular(amount: float, measure: str, text: str) -> None:
    """The unit stays in the singular in any case."""
    assert amount_text(amount, measure) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"),
        (1e-9, "0.01 %"),
        (0.0125, "1.25 %"),
        (0.661, "66.1 %"),
        (0.999, "99.9 %"),
        (1.0, "100 %"),
    ],
)
def test_a_percentage_has_two_decimals_and_is_zero_only_for_nothing(share: float, text: str) -> None:
    """Decimals that are zero are dropped."""
    assert percent(share) == text


VARIANTS = (variant("other", serves=10_000_000), variant("own", serves=500_000), variant("unknown"))
"""Variants whose replicas serve 10, 0.5, and an unknown number of requests per second."""


def test_own_replicas_come_first_and_those_of_other_variants_are_named() -> None:
    """The replicas of the variant that the message is about have no name."""
    found = [utilization_text(VARIANTS, (2, 4, 7), 11, position=position) for position in range(3)]

    assert found == [
        "50 % of 2 x 10 + 4 x 0.5 own",
        "50 % of 4 x 0.5 + 2 x 10 other",
        "50 % of 2 x 10 other + 4 x 0.5 own",
    ]


def test_variants_without_replicas_or_known_capacity_are_not_listed() -> None:
    """They provide no known capacity."""
    assert utilization_text(VARIANTS, (0, 4, 7), 0.5, position=1) == "25 % of 4 x 0.5"
    assert provided_rate(VARIANTS, (0, 4, 7)) == 2_000_000


def test_replicas_count_that_serve_although_new_ones_are_not_counted_on() -> None:
    """They are listed, so the percentage is of their capacity, too."""
    slow = variant("slow", serves=1_000_000)
    assert slow.capacity is not None
    slow = replace(slow, capacity=replace(slow.capacity, is_usable=False))

    assert utilization_text((VARIANTS[0], slow), (1, 10), 10, position=0) == "50 % of 1 x 10 + 10 x 1 slow"
    assert utilization_text((slow,), (4,), 1, position=0) == "25 % of 4 x 1"


def test_there_is_no_utilization_without_known_capacity() -> None:
    """All replicas are of the variant with unknown capacity."""
    assert utilization_text(VARIANTS, (0, 0, 7), 0.5, position=1) == ""
