"""Replicas that have waited too long for a node."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from apiserver.schema.json import Json
from controller.observe.replicas import stalled_replicas
from controller.observe.targets import GROUP_INDEX
from controller.planning.cluster import NodePool

NOW = 10_000.0
POOL = NodePool(
    name="h100", accelerator="H100", accelerators_per_node=8, price_per_node=Decimal(0), nodes_addable=1
)


def pod(name: str, minutes: int, *, node: str = "", group: str = "", gate: str = "") -> Json:
    """Return a pod that was created some minutes ago, and has no node unless one is given."""
    began = f"1970-01-01T{(10_000 - 60 * minutes) // 3600:02}:{(10_000 - 60 * minutes) % 3600 // 60:02}:40Z"
    scheduled = {"type": "PodScheduled", "status": "True" if node else "False", "lastTransitionTime": began}
    return {
        "metadata": {"name": name, "labels": {GROUP_INDEX: group} if group else {}},
        "spec": ({"nodeName": node} if node else {})
        | ({"schedulingGates": [{"name": gate}]} if gate else {}),
        "status": {"conditions": [scheduled]},
    }


CASES: dict[str, tuple[list[Json], int]] = {
    "a pod that waits for 14 minutes": ([pod("a", 14)], 0),
    "pods that wait for 16 minutes": ([pod("a", 16), pod("b", 16), pod("c", 1)], 2),
    "a pod with a node": ([pod("a", 16, node="n")], 0),
    "a pod that the scheduler does not consider": ([pod("a", 16, gate="example.com/quota")], 0),
    "a pod that the scheduler has not seen": ([pod("a", 16) | {"status": {}}], 0),
    "a group without any node": ([pod("a", 16, group="0"), pod("b", 16, group="0")], 1),
    "a group of which a pod has a node": ([pod("a", 16, group="0"), pod("b", 16, group="0", node="n")], 0),
}


@pytest.mark.parametrize(("pods", "want"), CASES.values(), ids=CASES.keys())
def test_replicas_without_a_node_are_stalled_after_a_quarter_of_an_hour(pods: list[Json], want: int) -> None:
    """A group that is bound in part needs room in its domain, and not new nodes."""
    assert stalled_replicas(pods, [POOL], "H100", now_seconds=NOW) == want


@pytest.mark.parametrize(
    "pools", [(), (replace(POOL, nodes_addable=0),), (replace(POOL, accelerator="A100"),)], ids=repr
)
def test_nobody_waits_for_nodes_that_cannot_be_added(pools: tuple[NodePool, ...]) -> None:
    """Replicas without a place are then not granted, and node autoscalers need not see their pods."""
    assert stalled_replicas([pod("a", 16)], pools, "H100", now_seconds=NOW) == 0


@pytest.mark.parametrize(("accelerator", "want"), [("H100", 0), ("A100", 1), ("", 0)])
def test_a_longer_lead_time_of_nodes_is_waited_for_three_times(accelerator: str, want: int) -> None:
    """It is declared for pools of one accelerator type."""
    pools = (replace(POOL, lead_seconds=400), replace(POOL, name="a100", accelerator="A100"))

    assert stalled_replicas([pod("a", 18)], pools, accelerator, now_seconds=NOW) == want
