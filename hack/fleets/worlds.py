"""Snapshots of running fleets: replicas on nodes, their loads, and changes of these."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final

import numpy as np

from controller.planning.cluster import Node
from controller.planning.decision import Plan
from controller.planning.load import Capacity, CapacitySource, ModelLoad
from controller.planning.snapshot import Replica, Snapshot, Variant
from hack.fleets.families_loads import PLENTY, SCARCE
from hack.fleets.fleet import COST_OF_A_DOLLAR, FleetModel, Mix, VariantOffer, fleet, replicas_for
from hack.fleets.statement import drawn_out

FACTORS: Final = {"plan-plenty": PLENTY, "plan-scarce": SCARCE}
"""Ratios of nodes to preferred demand per accelerator type, by name."""

_NAMESPACE: Final = "fleet"
_AMOUNTS_PER_REQUEST: Final = 1000
"""The unit of an offer's throughput is one thousandth of a request per second."""

_MOST_USED: Final = 0.85
"""Share of the capacity above which more is wanted."""

_LEAST_USED: Final = 0.70
"""Share of the capacity below which some may be removed."""

_LOADS: Final = (0.4, 0.95)
"""Range of each model's load relative to the sufficient capacity: some models grow, some shrink."""

_SWING: Final = (0.75, 1.25)
_REPORT_AGE_SECONDS: Final = 5.0
_START_SECONDS: Final = 120.0


def world(name: str, size: int, *, seed: int) -> Snapshot:
    """Return a fleet of `size` models, each running on its cheapest variant as far as there is room."""
    rng = np.random.default_rng([*name.encode(), size, seed])
    asks = fleet(rng, size, Mix())
    rooms = drawn_out(rng, asks, FACTORS[name])
    nodes = [
        Node(name=f"{kind}-{number:05}", accelerator=kind, accelerators_allocatable=room)
        for kind, of_kind in rooms.items()
        for number, room in enumerate(of_kind)
    ]
    hosts = {kind: _Hosts(kind, of_kind) for kind, of_kind in rooms.items()}
    variants: list[Variant] = []
    loads: list[ModelLoad] = []
    for model, (ask, load) in enumerate(zip(asks, rng.uniform(*_LOADS, size).tolist(), strict=True)):
        own = _model(ask, f"m{model:05}", hosts)
        variants += own
        loads.append(_load(own[0].model_id, ask.requirement / _AMOUNTS_PER_REQUEST * load))
    return Snapshot(nodes=tuple(nodes), variants=tuple(variants), loads=tuple(loads))


class _Hosts:
    """The nodes of one type, filled one after the other."""

    def __init__(self, kind: str, rooms: Sequence[int]) -> None:
        self._kind, self._rooms, self._first = kind, list(rooms), Counter[int]()

    def take(self, accelerators: int) -> str | None:
        """Allocate accelerators on the first node with room, and return it."""
        for node in range(self._first[accelerators], len(self._rooms)):
            if self._rooms[node] >= accelerators:
                self._rooms[node] -= accelerators
                return f"{self._kind}-{node:05}"
            self._first[accelerators] = node + 1
        return None


def _model(ask: FleetModel, model: str, hosts: Mapping[str, _Hosts]) -> list[Variant]:
    """Return the variants of a model; the cheapest has as many replicas as there is room for."""
    _, best = ask.cheapest
    replicas = max(replicas_for(best, ask.requirement), int(ask.is_warm))
    nodes_of_replicas = [hosts[best.accelerator.name].take(best.size) for _ in range(replicas)]
    at = [node for node in nodes_of_replicas if node is not None]
    variants = []
    for number, offer in enumerate(ask.offers):
        name = f"{model}-v{number}-{offer.accelerator.name}"
        pods = tuple(_replica(f"{name}-{i}", node) for i, node in enumerate(at))
        variants.append(_variant(ask, offer, name, model, pods if offer is best else ()))
    return variants


def _variant(
    ask: FleetModel, offer: VariantOffer, name: str, model: str, pods: tuple[Replica, ...]
) -> Variant:
    return Variant(
        namespace=_NAMESPACE,
        name=name,
        model_id=model,
        accelerator=offer.accelerator.name,
        accelerators_per_replica=offer.size,
        cost_per_replica=Decimal(offer.cost) / COST_OF_A_DOLLAR,
        current_replicas=len(pods),
        replicas=pods,
        may_scale_to_zero=not ask.is_warm,
        priority=1 + ask.priority,
        capacity=Capacity(
            requests_per_second=offer.amount / _AMOUNTS_PER_REQUEST, source=CapacitySource.LEARNED
        ),
        start_seconds=_START_SECONDS,
    )


def _replica(name: str, node: str) -> Replica:
    return Replica(name=name, node=node, ready=True, report_age_seconds=_REPORT_AGE_SECONDS)


def _load(model: str, requests_per_second: float) -> ModelLoad:
    """Return a constant load, with its dead band."""
    return ModelLoad(
        namespace=_NAMESPACE,
        model_id=model,
        signal_age_seconds=_REPORT_AGE_SECONDS,
        requests_per_second=requests_per_second,
        upper_requests_per_second=requests_per_second,
        required_requests_per_second=requests_per_second / _MOST_USED,
        releasable_requests_per_second=requests_per_second / _LEAST_USED,
    )


def carried_out(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """Return the snapshot after the plan is carried out."""
    nodes_of: dict[tuple[str, str], list[str]] = defaultdict(list)
    for place in plan.placements:
        nodes_of[place.namespace, place.name] += [place.node] * place.pods
    counts = {(made.namespace, made.name): made.replicas for made in plan.decisions}
    return replace(
        snapshot,
        variants=tuple(
            _with_replicas(variant, counts[variant.key], nodes_of[variant.key])
            for variant in snapshot.variants
        ),
    )


def _with_replicas(variant: Variant, count: int, nodes: Sequence[str]) -> Variant:
    kept = variant.replicas[max(0, len(variant.replicas) - count) :]
    at = [*nodes, *(pod.node for pod in kept if pod.node)]
    pods = tuple(_replica(f"{variant.name}-{i}", node) for i, node in enumerate(at))
    return replace(variant, replicas=pods, current_replicas=count, desired_replicas=count)


def change_loads(snapshot: Snapshot, *, share: float, seed: int) -> Snapshot:
    """Return the snapshot after a share of the running models gets a quarter more or less load."""
    rng = np.random.default_rng([len(snapshot.variants), seed])
    models = sorted({variant.model_id for variant in snapshot.variants if variant.replicas})
    some = rng.permutation(len(models))[: max(1, round(len(models) * share))].tolist()
    factors = {models[index]: float(rng.choice(_SWING)) for index in some}
    return replace(
        snapshot,
        loads=tuple(
            _load(load.model_id, (load.requests_per_second or 0.0) * factors[load.model_id])
            if load.model_id in factors
            else load
            for load in snapshot.loads
        ),
    )
