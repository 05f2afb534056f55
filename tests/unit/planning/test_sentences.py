"""Numbers in the messages of decisions, parsed and compared with what was decided."""

from __future__ import annotations

import re
from random import Random

import pytest
from support.campaign import often
from support.small_snapshots import small_snapshot

from controller.planning.decision import Plan, VariantDecision
from controller.planning.inputs import Settings
from controller.planning.plan import plan
from controller.planning.snapshot import Snapshot, Variant
from controller.planning.wording import rate_text

CHANGE = re.compile(
    r"^(?P<name>\S+) (?:goes from (?P<before>\d+) to (?P<after>\d+)|stays at (?P<same>\d+)) replicas?: "
)
NOW = re.compile(r"(?P<now>[\d.]+) requests/s(?: now, up to (?P<upper>[\d.]+) in the (?P<seconds>\d+) s)?")
SHARE = re.compile(
    r"(?P<percent>\d+) % of (?P<parts>\d+ x [\d.]+(?: \S+?)?(?: \+ \d+ x [\d.]+ \S+?)*)(?=[;,]|$)"
)
ONE = re.compile(r"one serves (?P<rate>[\d.]+)")
SETTINGS = Settings(deterministic_seconds=0.2, wall_seconds=60.0, relief_solves=1)


def decided(seed: int) -> tuple[Snapshot, Plan]:
    """Return a small snapshot and its plan."""
    snapshot = small_snapshot(Random(seed))
    return snapshot, plan(snapshot, SETTINGS)


def check_change(decision: VariantDecision, variant: Variant) -> bool:
    """Check the numbers of replicas before and after; return whether the message has them."""
    found = CHANGE.match(decision.message)
    if found is None:
        return False
    after = found["after"] or found["same"]
    assert (found["name"], int(after)) == (variant.name, decision.replicas), decision.message
    assert int(found["before"] or after) == variant.current_replicas, decision.message
    return True


def check_load(decision: VariantDecision) -> bool:
    """Check the current and the forecast load; return whether the message has them."""
    found = NOW.search(decision.message)
    if found is None or "lacks" in decision.message:
        return False
    load = decision.load
    assert found["now"] == rate_text(load.requests_per_second or 0.0), decision.message
    if found["upper"]:
        assert found["upper"] == rate_text(load.upper_requests_per_second), decision.message
        assert int(found["seconds"]) == round(load.start_seconds), decision.message
    return True


def check_share(decision: VariantDecision) -> bool:
    """Check the utilization by the figures in the message, up to rounding; return whether it has one."""
    found = SHARE.search(decision.message)
    if found is None:
        return False
    parts = [part.split() for part in found["parts"].split(" + ")]
    served = sum(int(part[0]) * float(part[2]) for part in parts)
    assert 100 * decision.load.upper_requests_per_second / served == pytest.approx(
        int(found["percent"]), abs=1.0
    ), decision.message
    return True


def check_capacity(decision: VariantDecision) -> bool:
    """Check the capacity of one replica; return whether the message has it."""
    found = ONE.search(decision.message)
    if found is None:
        return False
    assert decision.capacity is not None
    assert found["rate"] == rate_text(decision.capacity.requests_per_second), decision.message
    return True


def test_numbers_in_messages_equal_those_of_the_decision() -> None:
    """Random snapshots use all that users and clusters can state; each kind of number occurs often."""
    seen = [0, 0, 0, 0]
    for seed in range(often(40)):
        snapshot, made = decided(seed)
        variants = {variant.key: variant for variant in snapshot.variants}
        for decision in made.decisions:
            variant = variants[decision.namespace, decision.name]
            checked = (
                check_change(decision, variant),
                check_load(decision),
                check_share(decision),
                check_capacity(decision),
            )
            seen = [count + found for count, found in zip(seen, checked, strict=True)]

    assert min(seen) > 10
