"""Messages about quotas of which workloads that are not planned use a part."""

from __future__ import annotations

import pytest
from support.planning_builders import load, node, variant

from controller.planning.cluster import Quota
from controller.planning.inputs import Settings
from controller.planning.plan import plan
from controller.planning.snapshot import Snapshot

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
