"""Builders of small snapshots with fixed names, times and numbers.

Rates are whole millionths of a request per second, as planning counts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from controller.planning.cluster import Node
from controller.planning.cpsat import Effort
from controller.planning.demand import ModelDemand
from controller.planning.load import RATE_UNIT, Capacity, CapacitySource, ModelLoad, Signal
from controller.planning.snapshot import Replica, Snapshot, Variant

EFFORT = Effort(deterministic_seconds=5.0, wall_seconds=60.0, seed=1)

MOST_USED, LEAST_USED = 0.85, 0.70
"""Utilization above which a load requires more capacity, and below which some may be released."""


def capacity(rate: float, *, source: CapacitySource = CapacitySource.LEARNED) -> Capacity:
    """Return the capacity of one replica."""
    return Capacity(requests_per_second=rate * RATE_UNIT, source=source)


def load(rate: float | None, model_id: str = "llama", **changes: Any) -> ModelLoad:
    """Return a constant load with a dead band around it; a rate of None means an unknown load."""
    if rate is None:
        return ModelLoad(**{"namespace": "llm", "model_id": model_id, "signal": Signal.UNKNOWN} | changes)
    fields: dict[str, Any] = {
        "namespace": "llm",
        "model_id": model_id,
        "signal": Signal.FRESH,
        "signal_age_seconds": 5.0,
        "requests_per_second": rate * RATE_UNIT,
        "upper_requests_per_second": rate * RATE_UNIT,
        "required_requests_per_second": rate * RATE_UNIT / MOST_USED,
        "releasable_requests_per_second": rate * RATE_UNIT / LEAST_USED,
    }
    return ModelLoad(**fields | changes)


def node(name: str, accelerators: int, *, accelerator: str = "H100", used: int = 0, **changes: Any) -> Node:
    """Return a node with accelerators, of which other workloads use some."""
    return Node(
        name=name,
        accelerator=accelerator,
        accelerators_allocatable=accelerators,
        accelerators_used_by_others=used,
        **changes,
    )


def replicas(name: str, *nodes: str | None) -> tuple[Replica, ...]:
    """Return pods in removal order: ready and reporting on a node, pending without one."""
    return tuple(
        Replica(
            name=f"{name}-{i}", node=host, ready=host is not None, report_age_seconds=5.0 if host else None
        )
        for i, host in enumerate(nodes)
    )


def variant(
    name: str,
    *hosts: str | None,
    size: int = 1,
    cost: str = "10",
    serves: float | None = None,
    **changes: Any,
) -> Variant:
    """Return a variant with one replica per host (None: pending); `serves` is the rate of each replica."""
    fields: dict[str, Any] = {
        "namespace": "llm",
        "name": name,
        "model_id": "llama",
        "accelerator": "H100",
        "accelerators_per_replica": size,
        "cost_per_replica": Decimal(cost),
        "current_replicas": len(hosts),
        "replicas": replicas(name, *hosts),
        "capacity": None if serves is None else capacity(serves),
    }
    return Variant(**fields | changes)


def demand(
    *variants: Variant,
    lower: int,
    upper: int | None = None,
    model_id: str = "",
    signal: Signal = Signal.FRESH,
    **changes: Any,
) -> ModelDemand:
    """Return a demand that requires a capacity between lower and upper."""
    fields: dict[str, Any] = {
        "load": load(lower, model_id or variants[0].model_id, signal=signal),
        "priority": 100,
        "may_scale_to_zero": True,
        "variants": variants,
        "lower_rate": lower,
        "upper_rate": lower if upper is None else upper,
        "anticipated_rate": 0,
        "supply_rate": 0,
    }
    return ModelDemand(**fields | changes)


def world(nodes: Sequence[Node], demands: Sequence[ModelDemand]) -> Snapshot:
    """Return a snapshot of nodes and of the variants of demands."""
    return Snapshot(nodes=tuple(nodes), variants=tuple(v for d in demands for v in d.variants))
