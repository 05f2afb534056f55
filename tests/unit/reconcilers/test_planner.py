"""Hypothetical plans do not change the state of the planner."""

from __future__ import annotations

from decimal import Decimal

from controller.planner import RememberingPlanner
from controller.planning.cluster import Node
from controller.planning.decision import BoundBy
from controller.planning.load import Capacity, CapacitySource, ModelLoad
from controller.planning.settings import Settings
from controller.planning.snapshot import Replica, Snapshot, Variant
from controller.solver import Solver

SETTINGS = Settings(flap_reversals=2)
NODE = Node(name="n1", accelerator="A100", accelerators_allocatable=8)


def world(replicas: int, requests_per_second: float, moment_seconds: float) -> Snapshot:
    """Return a model with a load and some replicas, each of which serves 10 requests per second."""
    load = ModelLoad(
        namespace="ns",
        model_id="m",
        requests_per_second=requests_per_second,
        upper_requests_per_second=requests_per_second,
        required_requests_per_second=requests_per_second,
        releasable_requests_per_second=requests_per_second,
    )
    chat = Variant(
        namespace="ns",
        name="chat",
        model_id="m",
        accelerator="A100",
        accelerators_per_replica=1,
        cost_per_replica=Decimal(10),
        current_replicas=replicas,
        replicas=tuple(Replica(name=f"chat-{i}", node="n1", ready=True) for i in range(replicas)),
        capacity=Capacity(requests_per_second=10.0, source=CapacitySource.LEARNED),
    )
    return Snapshot(nodes=(NODE,), variants=(chat,), loads=(load,), taken_seconds=moment_seconds)


async def test_only_plans_that_are_applied_change_the_state() -> None:
    """A variant may reverse twice per hour; reversals in hypothetical plans, for advice, do not count."""
    async with Solver(deadline_seconds=60.0) as solver:
        advised, acted = RememberingPlanner(solver, SETTINGS), RememberingPlanner(solver, SETTINGS)
        await advised.solve(world(1, 50.0, 1e6))
        await acted.solve(world(1, 50.0, 1e6))
        for step in range(1, 5):
            look = world(5, 5.0, 1e6 + step) if step % 2 else world(1, 50.0, 1e6 + step)
            await advised.consider(look)
            await acted.solve(look)

        after_advice = await advised.solve(world(5, 5.0, 1e6 + 60))
        after_acting = await acted.solve(world(5, 5.0, 1e6 + 60))

    assert [(item.replicas, item.bound_by) for item in after_advice.decisions] == [(1, BoundBy.DEMAND)]
    assert [(item.replicas, item.bound_by) for item in after_acting.decisions] == [(5, BoundBy.FLAPPING)]
