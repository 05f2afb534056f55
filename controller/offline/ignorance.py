"""What the files don't say although planning could use it, and how to say it."""

from __future__ import annotations

from collections.abc import Iterator

from controller.planning.decision import Plan
from controller.planning.snapshot import Snapshot


def ignorance(snapshot: Snapshot, plan: Plan) -> tuple[str, ...]:
    """Return a sentence for each thing that is not known."""
    return (*_nodes(snapshot), *_demands(plan), *_capacities(plan))


def _nodes(snapshot: Snapshot) -> Iterator[str]:
    asks = any(variant.accelerators_per_replica for variant in snapshot.variants)
    if asks and not snapshot.nodes:
        yield (
            "no node with accelerators was read: add an export of them"
            " (kubectl get nodes -o yaml), or say --add-node H100x8:4"
        )


def _demands(plan: Plan) -> Iterator[str]:
    unknown = {(item.namespace, item.model_id) for item in plan.decisions if item.demand_tokens is None}
    for namespace, model in sorted(unknown):
        name = f"{namespace}/{model}"
        yield f"the demand of {name} is unknown, so what runs stands: say --demand {name}=TOKENS"


def _capacities(plan: Plan) -> Iterator[str]:
    for item in plan.decisions:
        if item.capacity_per_replica_tokens is None and item.demand_tokens:
            name = f"{item.namespace}/{item.name}"
            yield f"what a replica of {name} holds is unknown: say --capacity {name}=TOKENS"
