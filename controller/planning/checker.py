"""Accept a plan, or say what is wrong with it: from the snapshot alone, sharing no code with the model.

Only what would do harm is wrong: a plan may be dear, but it must be possible.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from controller.planning.decision import Reason, Signal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controller.planning.cluster import Node, Taint, Toleration
    from controller.planning.decision import Decision, Plan
    from controller.planning.snapshot import Snapshot, Variant


def check(snapshot: Snapshot, plan: Plan) -> tuple[str, ...]:
    """Return everything that is wrong with the plan, in sentences; empty when it may be used."""
    expected = sorted((variant.namespace, variant.name) for variant in snapshot.variants)
    if [(d.namespace, d.name) for d in plan.decisions] != expected:
        return ("the plan does not have one decision for each variant, in order",)
    decisions = {(d.namespace, d.name): d for d in plan.decisions}
    problems = [
        problem
        for variant in snapshot.variants
        for problem in _bounds(variant, decisions[variant.namespace, variant.name])
    ]
    return (*problems, *_kept_warm(snapshot, decisions), *_places(snapshot, plan, decisions))


def _bounds(variant: Variant, decision: Decision) -> Iterator[str]:
    most = variant.max_replicas
    if decision.replicas < 0:
        yield f"{variant.name}: {decision.replicas} replicas are less than none"
    if most is not None and decision.replicas > most:
        yield f"{variant.name}: {decision.replicas} replicas are more than maxReplicas ({most})"
    least = variant.min_replicas
    if decision.replicas < least and decision.reason is not Reason.SHORTAGE:
        yield f"{variant.name}: {decision.replicas} replicas are less than minReplicas ({least})"
    floor = variant.current_replicas if most is None else min(variant.current_replicas, most)
    if decision.signal is not Signal.FRESH and decision.replicas < floor:
        yield f"{variant.name}: scaled down to {decision.replicas} although its signal is {decision.signal}"


def _kept_warm(snapshot: Snapshot, decisions: dict[tuple[str, str], Decision]) -> Iterator[str]:
    replicas: Counter[tuple[str, str]] = Counter()
    must: dict[tuple[str, str], bool] = {}
    excused: set[tuple[str, str]] = set()
    for variant in snapshot.variants:
        model = (variant.namespace, variant.model_id)
        decision = decisions[variant.namespace, variant.name]
        replicas[model] += decision.replicas
        must[model] = must.get(model, False) or not variant.may_scale_to_zero
        if decision.reason is Reason.SHORTAGE:
            excused.add(model)
    for model in sorted(must):
        if must[model] and not replicas[model] and model not in excused:
            yield f"{model[1]}: no replica is left, though it may not scale to zero"


def _places(snapshot: Snapshot, plan: Plan, decisions: dict[tuple[str, str], Decision]) -> Iterator[str]:
    nodes = {node.name: node for node in snapshot.nodes}
    variants = {(variant.namespace, variant.name): variant for variant in snapshot.variants}
    room = {n.name: n.accelerators_allocatable - n.accelerators_used_by_others for n in snapshot.nodes}
    placed: Counter[tuple[str, str]] = Counter()
    for variant in snapshot.variants:
        for host in _hosts(variant, decisions[variant.namespace, variant.name].replicas):
            if host in room:
                room[host] -= variant.accelerators_per_replica
    gaining = set()
    for place in plan.placements:
        variant = variants[place.namespace, place.name]
        if place.node not in nodes or not _may_use(nodes[place.node], variant):
            yield f"{place.name}: may not go to node {place.node}"
            continue
        room[place.node] -= place.replicas * variant.accelerators_per_replica
        placed[place.namespace, place.name] += place.replicas
        gaining.add(place.node)
    # A node that was overcommitted before and gets nothing new is not the plan's doing.
    for name in sorted(gaining):
        if room[name] < 0:
            yield f"node {name}: {-room[name]} accelerators too many"
    yield from _counts(snapshot, decisions, placed)


def _counts(
    snapshot: Snapshot, decisions: dict[tuple[str, str], Decision], placed: Counter[tuple[str, str]]
) -> Iterator[str]:
    """Every replica that is neither bound nor excused has a place."""
    for variant in snapshot.variants:
        key = (variant.namespace, variant.name)
        replicas = decisions[key].replicas
        homeless = replicas - len(_hosts(variant, replicas))
        excused = min(variant.current_replicas, replicas) if decisions[key].signal is not Signal.FRESH else 0
        if variant.accelerators_per_replica == 0:
            continue
        if placed[key] > homeless:
            yield f"{variant.name}: {placed[key]} places for {homeless} replicas"
        elif placed[key] < homeless and replicas > excused:
            yield f"{variant.name}: only {placed[key]} places for {homeless} replicas"


def _hosts(variant: Variant, replicas: int) -> list[str]:
    """Return the nodes of the pods that are left when the first in removal order have gone."""
    leaving_anyway = max(0, len(variant.replicas) - variant.current_replicas)
    unbound = [pod for pod in variant.replicas if pod.node is None]
    bound = [pod.node for pod in variant.replicas if pod.node is not None]
    bound = bound[max(0, leaving_anyway - len(unbound)) :]
    return bound[len(bound) - min(len(bound), replicas) :]


def _may_use(node: Node, variant: Variant) -> bool:
    labels = dict(node.labels)
    return (
        node.schedulable
        and (not variant.accelerator or node.accelerator == variant.accelerator)
        and all(labels.get(key) == value for key, value in variant.node_selector)
        and not [taint for taint in node.taints if not any(_accepts(t, taint) for t in variant.tolerations)]
    )


def _accepts(toleration: Toleration, taint: Taint) -> bool:
    same_key = toleration.key == taint.key or (not toleration.key and toleration.operator == "Exists")
    same_value = toleration.operator == "Exists" or toleration.value == taint.value
    return same_key and same_value and toleration.effect in (taint.effect, "")
