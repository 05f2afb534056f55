"""Snapshots of fleets that run: replicas on their nodes, what their engines report, and how that changes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final

import numpy as np

from controller.planning.cluster import Node
from controller.planning.decision import Plan
from controller.planning.settings import Settings
from controller.planning.snapshot import ModelRule, Replica, ReplicaSample, Snapshot, Variant
from hack.bench.placement.families_loads import PLENTY, SCARCE
from hack.bench.placement.fleet import Ask, Mix, Offer, fleet, served
from hack.bench.placement.hardware import COST_OF_A_DOLLAR
from hack.bench.placement.statement import shared_out

FACTORS: Final = {"plan-plenty": PLENTY, "plan-scarce": SCARCE}
"""Of what models would like best, per type of accelerator, by name."""

_NAMESPACE: Final = "fleet"
_BLOCK: Final = 16
_CACHE_SHARE: Final = Settings().kv_cache_threshold
_LOADS: Final = (0.4, 0.95)
"""Demand relative to the capacity that would just do, drawn for each model: some grow, some shrink."""

_SWING: Final = (0.75, 1.25)


def world(name: str, size: int, *, seed: int) -> Snapshot:
    """Return a fleet of so many models, each running on its cheapest variant as far as there is room."""
    rng = np.random.default_rng([*name.encode(), size, seed])
    asks = fleet(rng, size, Mix())
    factors = FACTORS[name]
    rooms = shared_out(asks, [factors[index] for index in rng.permutation(len(factors)).tolist()])
    nodes = [
        Node(name=f"{kind}-{number:05}", accelerator=kind, accelerators_allocatable=room)
        for kind, of_kind in rooms.items()
        for number, room in enumerate(of_kind)
    ]
    hosts = {kind: _Hosts(kind, of_kind) for kind, of_kind in rooms.items()}
    variants: list[Variant] = []
    rules: list[ModelRule] = []
    for model, (ask, load) in enumerate(zip(asks, rng.uniform(*_LOADS, size).tolist(), strict=True)):
        own = _model(ask, f"m{model:05}", hosts, load=load)
        variants += own
        if ask.requirement and not any(variant.replicas for variant in own):
            rules.append(_waiting(own[0], tokens=int(ask.requirement * _BLOCK * _CACHE_SHARE * load)))
    return Snapshot(nodes=tuple(nodes), variants=tuple(variants), models=tuple(rules))


class _Hosts:
    """The nodes of a type, filled one after the other."""

    def __init__(self, kind: str, rooms: Sequence[int]) -> None:
        self._kind, self._rooms, self._first = kind, list(rooms), Counter[int]()

    def take(self, accelerators: int) -> str | None:
        """Return the first node with room, and take it."""
        for node in range(self._first[accelerators], len(self._rooms)):
            if self._rooms[node] >= accelerators:
                self._rooms[node] -= accelerators
                return f"{self._kind}-{node:05}"
            self._first[accelerators] = node + 1
        return None


def _model(ask: Ask, model: str, hosts: Mapping[str, _Hosts], *, load: float) -> list[Variant]:
    """Return the variants of a model; the cheapest has as many replicas as there is room for."""
    _, best = ask.cheapest
    wanted = max(served(best, ask.requirement), int(ask.is_warm))
    taken = [hosts[best.accelerator.name].take(best.size) for _ in range(wanted)]
    at = [node for node in taken if node is not None]
    usage = min(1.0, _CACHE_SHARE * load * ask.requirement / max(1, len(at) * best.amount))
    found = []
    for number, offer in enumerate(ask.offers):
        name = f"{model}-v{number}-{offer.accelerator.name}"
        pods = tuple(_replica(f"{name}-{i}", node, best.amount, usage) for i, node in enumerate(at))
        found.append(_variant(ask, offer, name, model, pods if offer is best else ()))
    return found


def _variant(ask: Ask, offer: Offer, name: str, model: str, pods: tuple[Replica, ...]) -> Variant:
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
        published_capacity_tokens=max(1, int(offer.amount * _BLOCK * _CACHE_SHARE)),
    )


def _replica(name: str, node: str, blocks: int, usage: float) -> Replica:
    report = ReplicaSample(
        age_seconds=5.0, kv_usage=usage, waiting=0, running=1, num_gpu_blocks=blocks, block_size=_BLOCK
    )
    return Replica(name=name, node=node, ready=True, sample=report)


def _waiting(variant: Variant, *, tokens: int) -> ModelRule:
    """Return what is known of the demand of a model of which nothing runs."""
    return ModelRule(namespace=variant.namespace, model_id=variant.model_id, demand_tokens=tokens)


def carried_out(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """Return the snapshot once the plan runs, and all replicas of a model share what it is asked for."""
    nodes_of: dict[tuple[str, str], list[str]] = defaultdict(list)
    for place in plan.placements:
        nodes_of[place.namespace, place.name] += [place.node] * place.pods
    counts = {(made.namespace, made.name): made.replicas for made in plan.decisions}
    asked, held = _asked(snapshot), Counter[str]()
    for variant in snapshot.variants:
        held[variant.model_id] += counts[variant.key] * _blocks(variant) * _BLOCK
    usage = {model: min(1.0, asked[model] / tokens) for model, tokens in held.items() if tokens}
    return replace(
        snapshot,
        variants=tuple(
            _scaled(variant, counts[variant.key], nodes_of[variant.key], usage.get(variant.model_id, 0.0))
            for variant in snapshot.variants
        ),
        models=tuple(rule for rule in snapshot.models if rule.model_id not in usage),
    )


def _asked(snapshot: Snapshot) -> Mapping[str, float]:
    """Return the tokens that each model is asked for."""
    asked = defaultdict[str, float](float)
    for rule in snapshot.models:
        asked[rule.model_id] += rule.demand_tokens or 0
    for variant in snapshot.variants:
        reports = (pod.sample for pod in variant.replicas if pod.sample)
        asked[variant.model_id] += sum(report.kv_usage * report.kv_tokens for report in reports)
    return asked


def _blocks(variant: Variant) -> int:
    """Return how many blocks the cache of one replica has."""
    return max(1, round((variant.published_capacity_tokens or 1) / (_BLOCK * _CACHE_SHARE)))


def _scaled(variant: Variant, count: int, nodes: Sequence[str], usage: float) -> Variant:
    kept = variant.replicas[max(0, len(variant.replicas) - count) :]
    at = [*nodes, *(pod.node for pod in kept if pod.node)]
    pods = tuple(_replica(f"{variant.name}-{i}", node, _blocks(variant), usage) for i, node in enumerate(at))
    return replace(variant, replicas=pods, current_replicas=count, desired_replicas=count)


def changed(snapshot: Snapshot, *, share: float, seed: int) -> Snapshot:
    """Return the snapshot after a share of the models that run report a quarter more or less."""
    rng = np.random.default_rng([len(snapshot.variants), seed])
    models = sorted({variant.model_id for variant in snapshot.variants if variant.replicas})
    some = rng.permutation(len(models))[: max(1, round(len(models) * share))].tolist()
    factors = {models[index]: float(rng.choice(_SWING)) for index in some}
    return replace(
        snapshot,
        variants=tuple(
            _busier(variant, factors[variant.model_id]) if variant.model_id in factors else variant
            for variant in snapshot.variants
        ),
    )


def _busier(variant: Variant, factor: float) -> Variant:
    return replace(
        variant,
        replicas=tuple(
            replace(pod, sample=replace(pod.sample, kv_usage=min(1.0, pod.sample.kv_usage * factor)))
            for pod in variant.replicas
            if pod.sample is not None
        ),
    )
