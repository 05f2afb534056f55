"""Small snapshots in few words. Names, times and numbers are all given; nothing is random."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from controller.planning.cluster import Node
from controller.planning.decision import Signal
from controller.planning.demand import ModelDemand
from controller.planning.lexicographic import Limits
from controller.planning.snapshot import Replica, ReplicaSample, Snapshot, Variant

LIMITS = Limits(deterministic_seconds=5.0, wall_seconds=60.0, seed=1)
BLOCK = 16


def sample(kv_tokens: int = 16_000, *, in_use: float = 0.0, **changes: Any) -> ReplicaSample:
    """Return a fresh report of an engine with this many tokens of KV cache, of which some are in use."""
    fields: dict[str, Any] = {
        "age_seconds": 5.0,
        "kv_usage": in_use / kv_tokens,
        "waiting": 0,
        "running": 1,
        "num_gpu_blocks": kv_tokens // BLOCK,
        "block_size": BLOCK,
    }
    return ReplicaSample(**fields | changes)


def node(name: str, accelerators: int, *, accelerator: str = "H100", used: int = 0, **changes: Any) -> Node:
    """Return a node with accelerators, of which other workloads use some."""
    return Node(
        name=name,
        accelerator=accelerator,
        accelerators_allocatable=accelerators,
        accelerators_used_by_others=used,
        **changes,
    )


def replicas(name: str, *nodes: str | None, report: ReplicaSample | None = None) -> tuple[Replica, ...]:
    """Return pods in removal order; one on a node is ready and reports, one without is pending."""
    return tuple(
        Replica(name=f"{name}-{i}", node=host, ready=host is not None, sample=report if host else None)
        for i, host in enumerate(nodes)
    )


def variant(
    name: str,
    *hosts: str | None,
    size: int = 1,
    cost: str = "10",
    report: ReplicaSample | None = None,
    **changes: Any,
) -> Variant:
    """Return a variant with one replica per host; None stands for a pending one."""
    fields: dict[str, Any] = {
        "namespace": "llm",
        "name": name,
        "model_id": "llama",
        "accelerator": "H100",
        "accelerators_per_replica": size,
        "cost_per_replica": Decimal(cost),
        "current_replicas": len(hosts),
        "replicas": replicas(name, *hosts, report=report),
    }
    return Variant(**fields | changes)


def demand(*variants: Variant, lower: int, upper: int | None = None, **changes: Any) -> ModelDemand:
    """Return a fresh demand that asks for a capacity between lower and upper."""
    fields: dict[str, Any] = {
        "namespace": "llm",
        "model_id": variants[0].model_id,
        "priority": 100,
        "may_scale_to_zero": True,
        "variants": variants,
        "signal": Signal.FRESH,
        "signal_age_seconds": 5.0,
        "silent_replicas": 0,
        "tokens": lower,
        "lower_tokens": lower,
        "upper_tokens": lower if upper is None else upper,
        "anticipated_tokens": 0,
        "supply_tokens": 0,
    }
    return ModelDemand(**fields | changes)


def world(nodes: Sequence[Node], demands: Sequence[ModelDemand]) -> Snapshot:
    """Return the snapshot of nodes and of the variants whose demand is known."""
    return Snapshot(nodes=tuple(nodes), variants=tuple(v for d in demands for v in d.variants))
