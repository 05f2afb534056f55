"""What is planned only to be told leaves no trace in what planning remembers."""

from __future__ import annotations

from decimal import Decimal

from controller.planner import RememberingPlanner
from controller.planning.cluster import Node
from controller.planning.decision import CapacitySource
from controller.planning.settings import Settings
from controller.planning.snapshot import Replica, ReplicaSample, Snapshot, Variant
from controller.solver import Solver

SAMPLE = ReplicaSample(
    age_seconds=1, kv_usage=0.5, waiting=50, running=30, num_gpu_blocks=1000, block_size=16,
    avg_input_tokens=100, avg_output_tokens=100,
)  # fmt: skip
VARIANT = Variant(
    namespace="ns", name="chat", model_id="m", accelerator="A100", accelerators_per_replica=1,
    cost_per_replica=Decimal(10), current_replicas=1,
    replicas=(Replica(name="pod", node="n1", ready=True, sample=SAMPLE),),
)  # fmt: skip
NODE = Node(name="n1", accelerator="A100", accelerators_allocatable=4)
FULL = Snapshot(nodes=(NODE,), variants=(VARIANT,))


async def test_only_what_is_acted_on_is_remembered() -> None:
    """An engine shows its capacity when it is full twice in a row; a look for advice is no second one."""
    async with Solver(deadline_seconds=60.0) as solver:
        planner = RememberingPlanner(solver, Settings())

        await planner.consider(FULL)
        first = await planner.solve(FULL)
        second = await planner.consider(FULL)

    assert first.decisions[0].capacity_source is not CapacitySource.OBSERVED
    assert second.decisions[0].capacity_source is CapacitySource.OBSERVED
