"""Replicas that wait in vain for nodes to be added: others serve meanwhile, and they continue to wait."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from support.planning_builders import load, node, variant

from controller.planning.checker import check
from controller.planning.cluster import NodePool
from controller.planning.inputs import Settings
from controller.planning.plan import plan
from controller.planning.snapshot import Snapshot

if TYPE_CHECKING:
    from controller.planning.decision import Plan
    from controller.planning.load import ModelLoad
    from controller.planning.snapshot import Variant

SETTINGS = Settings(deterministic_seconds=2.0, wall_seconds=60.0)

POOL = NodePool(
    name="h100", accelerator="H100", accelerators_per_node=8, price_per_node=Decimal(0), nodes_addable=9
)
WAITING = variant("big", None, "n1", size=8, serves=1, cost="10", stalled_replicas=1)
OTHER = variant("other", size=8, serves=1, cost="20", accelerator="A100")
OTHER_WAITING = variant("other", None, size=8, serves=1, cost="20", accelerator="L40S", stalled_replicas=1)


def snapshot(*variants: Variant, rate: float = 1.6) -> Snapshot:
    """Return one model on a full node and a free one of another type; more of the first can be added."""
    nodes = (node("n1", 8), node("a1", 8, accelerator="A100"))
    return Snapshot(nodes=nodes, variants=variants, loads=(load(rate),), pools=(POOL,))


def planned(world: Snapshot) -> tuple[Plan, list[int]]:
    """Return the plan for a snapshot, and its replicas."""
    made = plan(world, SETTINGS)
    assert made.solver.is_answered, made.solver.message
    return made, [item.replicas for item in made.decisions]


@pytest.mark.parametrize(
    ("variants", "rate", "want"),
    [
        pytest.param((replace(WAITING, stalled_replicas=0), OTHER), 1.6, [2, 0], id="not for long yet"),
        pytest.param((WAITING, OTHER), 1.6, [2, 1], id="another type serves, and they wait"),
        pytest.param((WAITING,), 1.6, [2], id="without another type they wait"),
        pytest.param((WAITING, OTHER_WAITING), 1.6, [2, 1], id="both wait while both lack nodes"),
        pytest.param((WAITING,), 9, [2], id="more of them would wait in vain as well"),
        pytest.param((WAITING,), 0.7, [1], id="they are not needed any more"),
        pytest.param((replace(WAITING, max_replicas=1), OTHER), 1.6, [1, 1], id="their maximum is lower"),
        pytest.param((replace(WAITING, pinned_replicas=1), OTHER), 1.6, [1, 1], id="they are pinned"),
    ],
)
def test_other_variants_serve_while_nodes_do_not_come(
    variants: tuple[Variant, ...], rate: float, want: list[int]
) -> None:
    """Pods that wait are what makes a node autoscaler try again, so they stay as long as they are wanted."""
    made, found = planned(snapshot(*variants, rate=rate))

    assert found == want
    assert bool(made.requests) is not any(item.stalled_replicas for item in variants)


def test_the_message_says_that_no_node_was_added() -> None:
    """It also gives the missing share."""
    made, _ = planned(snapshot(WAITING))

    assert made.decisions[0].message.endswith("; 1 replica without a place: no node was added")
    assert made.decisions[0].unmet_per_mille > 0


def test_replicas_that_wait_in_vain_are_replaced_once() -> None:
    """Without a limit on what may be released, existing capacity counts as required, and they are none."""
    endless: ModelLoad = replace(load(1.6), releasable_requests_per_second=None)
    running = replace(OTHER, current_replicas=1)
    world = replace(snapshot(WAITING, running), loads=(endless,))
    wide = replace(world, nodes=(*world.nodes, node("a2", 8, accelerator="A100")))

    assert planned(wide)[1][1] == 1


def test_the_checker_refuses_nodes_to_come_for_replicas_that_wait_in_vain() -> None:
    """It has the rule from the snapshot alone."""
    made, _ = planned(snapshot(replace(WAITING, stalled_replicas=0)))

    assert check(snapshot(WAITING), made)[0] == "big: may not go to the nodes to be added to h100"
