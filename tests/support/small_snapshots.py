"""Random small snapshots that use everything that users and clusters can state."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from controller.planning.cluster import Budget, NodePool, Quota, Taint, Toleration
from controller.planning.load import Signal
from controller.planning.pod_rules import MostPerNode, PodRules, Spread
from controller.planning.snapshot import PlannedModel, Replica, Snapshot
from support.planning_builders import capacity, load, node, variant

if TYPE_CHECKING:
    from random import Random

    from controller.planning.cluster import Node
    from controller.planning.load import Capacity, ModelLoad
    from controller.planning.snapshot import Variant

TYPES = ("H100", "L40S")
MODELS = ("x", "y", "z")
TAINT = Taint(key="gpu")


def small_snapshot(random: Random) -> Snapshot:
    """Return a snapshot of up to six variants of up to three models on up to five nodes."""
    nodes = [_node(random, f"n{index}") for index in range(random.randint(0, 5))]
    variants = tuple(_variant(random, f"v{index}", nodes) for index in range(random.randint(1, 6)))
    return Snapshot(
        nodes=tuple(nodes),
        variants=variants,
        models=tuple(_model(random, model) for model in MODELS if random.random() < 0.3),
        loads=tuple(_load(random, model) for model in MODELS if random.random() < 0.9),
        pools=(_pool(random),) if random.random() < 0.2 else (),
        quotas=(_quota(random),) if random.random() < 0.3 else (),
        budgets=(Budget(name="b", cost_per_hour=Decimal(random.choice((0, 15, 60)))),)
        if random.random() < 0.3
        else (),
    )


def constrained_snapshot(random: Random) -> Snapshot:
    """Return a small snapshot with zones and racks, in which most variants have rules or several pods."""
    world = small_snapshot(random)
    nodes = tuple(replace(item, labels=item.labels | _places(random)) for item in world.nodes)
    names = [item.name for item in nodes]
    return replace(
        world,
        nodes=nodes,
        variants=tuple(_constrained(random, item, names) for item in world.variants),
        pools=tuple(replace(pool, labels=_places(random) | _places(random)) for pool in world.pools),
    )


def _places(random: Random) -> frozenset[tuple[str, str]]:
    zone, rack = random.choice(("a", "b", "c", "")), random.choice(("r1", "r2", ""))
    return frozenset((key, value) for key, value in (("zone", zone), ("rack", rack)) if value)


def _constrained(random: Random, item: Variant, nodes: list[str]) -> Variant:
    kind = random.choice(("plain", "spread", "apart", "together", "pods"))
    if kind == "spread":
        return replace(
            item,
            rules=PodRules(
                spread=Spread(
                    topology_key="zone",
                    max_skew=random.choice((1, 1, 2)),
                    counts_from_zero=random.random() < 0.3,
                )
            ),
        )
    if kind == "apart":
        return replace(item, rules=PodRules(most_per_node=MostPerNode(pods=random.choice((1, 1, 2)))))
    if kind == "plain" or not nodes:
        return item
    return replace(
        item,
        accelerators_per_replica=2 * random.choice((1, 2, 4)),
        pods_per_replica=2,
        together_in="rack" if kind == "together" else "",
        replicas=tuple(
            replace(pod, further_nodes=(random.choice(nodes),) if pod.node else ()) for pod in item.replicas
        ),
    )


def _node(random: Random, name: str) -> Node:
    return node(
        name,
        random.choice((0, 4, 8)),
        accelerator=random.choice(TYPES),
        used=random.choice((0, 0, 2, 5)),
        schedulable=random.random() < 0.9,
        taints=frozenset({TAINT} if random.random() < 0.2 else ()),
        labels=frozenset({("pool", random.choice("ab"))}),
    )


def _variant(random: Random, name: str, nodes: list[Node]) -> Variant:
    pods = [_pod(random, f"{name}-{index}", nodes) for index in range(random.randint(0, 4))]
    minimum = random.choice((0, 0, 0, 1, 3))
    return variant(
        name,
        model_id=random.choice(MODELS),
        size=random.choice((0, 1, 2, 3, 4, 8)),
        cost=random.choice(("0", "1", "9.99", "250")),
        accelerator=random.choice((*TYPES, "")),
        priority=random.choice((1, 50, 100)),
        min_replicas=minimum,
        max_replicas=random.choice((None, None, minimum, 4)),
        may_scale_to_zero=random.random() < 0.5,
        desired_replicas=random.choice((None, 0, 5)),
        capacity=_capacity(random),
        start_seconds=random.choice((0.0, 60.0, 300.0)),
        current_replicas=random.choice((len(pods), len(pods), random.randint(0, 4))),
        replicas=tuple(sorted(pods, key=lambda pod: pod.node is not None)),
        pinned_replicas=random.choice((0, 1, 3)) if random.random() < 0.1 else None,
        is_paused=random.random() < 0.05,
        may_be_preempted=random.random() < 0.9,
        evictable_replicas=random.choice((None, None, None, 1)),
        tolerations=frozenset({Toleration(operator="Exists")} if random.random() < 0.5 else ()),
        node_selector=frozenset({("pool", "a")} if random.random() < 0.2 else ()),
        stalled_replicas=sum(pod.node is None for pod in pods) if random.random() < 0.2 else 0,
    )


def _pod(random: Random, name: str, nodes: list[Node]) -> Replica:
    host = random.choice([None, *(item.name for item in nodes)])
    return Replica(
        name=name,
        node=host,
        ready=host is not None and random.random() < 0.8,
        report_age_seconds=random.choice((None, 1.0, 1.0, 100.0, 400.0)),
    )


def _capacity(random: Random) -> Capacity | None:
    """Return the capacity of a replica, which may be unknown or zero."""
    rate = random.choice((None, 0, 9_000, 9_000, 12_800, 12_800, 25_600, 25_600))
    return None if rate is None else capacity(rate)


def _load(random: Random, model: str) -> ModelLoad:
    """Return a load with any signal, from fresh to unknown."""
    signal = random.choice((*(Signal.FRESH,) * 6, Signal.QUORUM, Signal.HELD, Signal.HELD, Signal.UNKNOWN))
    silent = random.choice((0, 1))
    if signal is Signal.UNKNOWN:
        return load(None, model, silent_replicas=silent)
    found = load(random.choice((0, random.randint(0, 60_000))), model, signal=signal, silent_replicas=silent)
    if random.random() < 0.8:
        return found
    releasable = random.choice((None, found.required_requests_per_second))
    return replace(found, releasable_requests_per_second=releasable)


def _model(random: Random, model: str) -> PlannedModel:
    minimum = random.choice((0, 0, 2))
    return PlannedModel(
        namespace="llm",
        model_id=model,
        min_replicas=minimum,
        max_replicas=random.choice((None, max(2, minimum))),
    )


def _pool(random: Random) -> NodePool:
    return NodePool(
        name="pool",
        accelerator=random.choice(TYPES),
        accelerators_per_node=8,
        price_per_node=Decimal(random.choice((0, 5))),
        nodes_addable=2,
    )


def _quota(random: Random) -> Quota:
    return Quota(
        name="q",
        namespace="llm",
        accelerators=random.choice((0, 4, 12)),
        accelerator=random.choice(("", *TYPES)),
    )
