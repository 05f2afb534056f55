"""Builders of variants, loads and nodes for tests of messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from controller.planning.cluster import Node
from controller.planning.decision import BoundBy, Reason, VariantDecision
from controller.planning.inputs import Settings
from controller.planning.load import LimitingTarget, ModelLoad, ReplicaRateLimit
from controller.planning.plan import plan
from controller.planning.snapshot import Snapshot, Variant
from support.planning_builders import capacity, load, node, variant

PER_SECOND = 10**6
"""One request per second in millionths."""

LIMITED = replace(
    capacity(16.1 * PER_SECOND),
    limits=(
        ReplicaRateLimit(target=LimitingTarget.TTFT, text="TTFT 2 s", requests_per_second=16.1),
        ReplicaRateLimit(target=LimitingTarget.ITL, text="ITL 80 ms", requests_per_second=19.2),
        ReplicaRateLimit(target=LimitingTarget.BATCH, text="a batch of 256", requests_per_second=30.0),
    ),
)


def decide(
    nodes: list[Node], *variants: Variant, loads: tuple[ModelLoad, ...] = ()
) -> dict[str, VariantDecision]:
    """Return the decisions of a first plan by name of the variant."""
    snapshot = Snapshot(nodes=tuple(nodes), variants=variants, loads=loads)
    made = plan(snapshot, Settings())
    return {decision.name: decision for decision in made.decisions}


def asked(rate: float, **changes: Any) -> ModelLoad:
    """Return a load of some requests per second, with a dead band around it."""
    return load(rate * PER_SECOND, **changes)


def growing(now: float, upper: float, **changes: Any) -> ModelLoad:
    """Return a load with a forecast for the 140 s that a start takes."""
    return asked(upper, requests_per_second=now, start_seconds=140.0, **changes)


def llama(*hosts: str | None, **changes: Any) -> Variant:
    """Return a variant that takes a whole node and whose capacity has limits by target."""
    given: dict[str, Any] = {"size": 8, "capacity": LIMITED} | changes
    return variant("llama-70b", *hosts, **given)


def small(name: str, *hosts: str | None, **changes: Any) -> Variant:
    """Return a variant of one accelerator that serves 12.8 requests per second."""
    return variant(name, *hosts, **{"serves": 12.8 * PER_SECOND} | changes)


def nodes_of(*free: int) -> list[Node]:
    """Return H100 nodes of eight accelerators, with these numbers free."""
    return [node(f"n{i}", 8, used=8 - room) for i, room in enumerate(free)]


NOBODY_KNOWS: tuple[ModelLoad, ...] = ()
SURGE = (growing(34, 41),)

Case = tuple[list[Node], list[Variant], tuple[ModelLoad, ...], tuple[int, int, Reason, BoundBy], str]
"""Nodes, variants and loads; granted and unconstrained replicas, reason, bound, and the message."""


def check(case: Case, name: str = "") -> None:
    """Assert what a case expects of its last variant, or of the named one."""
    nodes, variants, loads, want, message = case
    decision = decide(nodes, *variants, loads=loads)[name or variants[-1].name]

    assert decision.message == message
    assert (decision.replicas, decision.unconstrained_replicas, decision.reason, decision.bound_by) == want
