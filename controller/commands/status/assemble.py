"""Assembles the state of a fleet from raw objects, and from what planning makes of them. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal, InvalidOperation
from itertools import chain
from typing import Final

from apiserver.cluster.resource import (
    AUTOSCALING_POLICY_BINDINGS,
    MODELS,
    NODES,
    PODS,
    VARIANT_AUTOSCALINGS,
    Resource,
)
from apiserver.kinds.identity import Key, key_of
from apiserver.schema.json import Json, as_object
from controller.commands.plan.gathering import InputsResult
from controller.commands.status.fleet import (
    FINE,
    AcceleratorUse,
    BindingState,
    FleetProblem,
    FleetState,
    ModelState,
    Severity,
    VariantState,
)
from controller.commands.status.reading import LiveObjects
from controller.observe.accelerators import accelerators_of
from controller.observe.binding_targets import bound_targets
from controller.observe.claim import Claimant, OwnerKind
from controller.observe.decision_following import external_metrics_of
from controller.observe.observed import ObservedVariant
from controller.observe.pods import is_present, target_of_pod
from controller.planning.cluster import Node
from controller.planning.load import ModelLoad
from controller.planning.problem import PER_MILLE
from controller.planning.snapshot import LOWEST_PRIORITY, Snapshot
from controller.planning.wording import count, first_of
from controller.variants.publishing import without_numbers
from controller.variants.status import UNPLANNED

SILENT_SECONDS: Final = 180.0
"""Age in seconds of the controller's last cycle from which its decisions are not served any more."""

_MOST_NAMED: Final = 5
_MOST_MONEY: Final = Decimal(10) ** 12
"""A larger amount is no price: users may edit what was published about their objects."""


def fleet_of(live: LiveObjects, gathering: InputsResult, *, now: datetime, namespace: str = "") -> FleetState:
    """Return the state at a time; `gathering` is what planning makes of the same objects.

    `namespace` is that of the models, empty for all.
    """
    seen, snapshot = gathering.seen, gathering.inputs.snapshot
    claimants = seen.claimants if seen else ()
    observed = seen.observed if seen else {}
    replicas = {item.key: (item.ready_replicas, item.current_replicas) for item in snapshot.variants}
    models = _models(claimants, observed, snapshot, replicas if live.may_read(PODS) else {})
    bindings = tuple(
        _binding(item, AUTOSCALING_POLICY_BINDINGS.kind) for item in live.of(AUTOSCALING_POLICY_BINDINGS)
    )
    made = (_binding(item, MODELS.kind) for item in live.of(MODELS))
    problems = [
        *_problems_of_controller(live, now, is_needed=bool(claimants or bindings)),
        *_problems_of_metrics(live),
        *(_problem_of(item) for model in models for item in model.variants),
        *(_problem_of(item) for item in chain(bindings, made)),
        *_problems_of_input(gathering),
        *_problems_of_rights(live),
    ]
    order = [*Severity]
    return FleetState(
        time=now,
        accelerators=_accelerators(live, snapshot, observed),
        models=models,
        bindings=bindings,
        problems=tuple(sorted(_join(filter(None, problems)), key=lambda item: order.index(item.severity))),
        namespace=namespace,
        unread=tuple(_permission(resource) for resource in live.forbidden),
    )


def _held_by_bindings(live: LiveObjects, observed: Mapping[Key, ObservedVariant]) -> Counter[str]:
    """Return the accelerators that pods of bindings' targets hold, by node."""
    planned = {item.target.key for item in observed.values()}
    targets = bound_targets(live.of(AUTOSCALING_POLICY_BINDINGS)).keys() - planned
    held: Counter[str] = Counter()
    for pod in live.of(PODS):
        if is_present(pod) and target_of_pod(pod) in targets:
            held[str(pod["spec"].get("nodeName"))] += accelerators_of(pod["spec"])
    return held


def _accelerators(
    live: LiveObjects, snapshot: Snapshot, observed: Mapping[Key, ObservedVariant]
) -> tuple[AcceleratorUse, ...] | None:
    """Return the use of each type; None if nodes may not be read. Without pods, only totals are known."""
    if not live.may_read(NODES):
        return None
    uses = _uses(snapshot, _held_by_bindings(live, observed))
    if live.may_read(PODS):
        return tuple(uses)
    unknown = dict.fromkeys(("models", "others", "free", "unusable", "pending"))
    return tuple(replace(item, **unknown) for item in uses)  # type: ignore[arg-type] # all may be None


def _uses(snapshot: Snapshot, bound: Counter[str]) -> Iterator[AcceleratorUse]:
    """Yield the use of each type; `bound` of what others hold are models', too."""
    held: Counter[str] = Counter()
    pending: Counter[str] = Counter()
    for variant in snapshot.variants:
        for replica in variant.replicas:
            for name in replica.nodes:
                held[name] += variant.accelerators_per_pod
            waiting = variant.pods_per_replica - len(replica.nodes)
            pending[variant.accelerator] += waiting * variant.accelerators_per_pod
    groups: dict[str, list[Node]] = defaultdict(list)
    for node in snapshot.nodes:
        groups[node.accelerator].append(node)
    for accelerator in sorted({*groups, *(kind for kind, number in pending.items() if number)}):
        nodes = groups[accelerator]
        free = {node.name: _free(node, held[node.name]) for node in nodes}
        usable = sum(free[node.name] for node in nodes if node.schedulable)
        yield AcceleratorUse(
            accelerator=accelerator,
            nodes=len(nodes),
            total=sum(node.accelerators_allocatable for node in nodes),
            models=sum(held[node.name] + bound[node.name] for node in nodes),
            others=sum(node.accelerators_used_by_others - bound[node.name] for node in nodes),
            free=usable,
            unusable=sum(free.values()) - usable,
            pending=pending[accelerator],
        )


def _free(node: Node, held: int) -> int:
    return max(0, node.accelerators_allocatable - node.accelerators_used_by_others - held)


def _models(
    claimants: Iterable[Claimant],
    observed: Mapping[Key, ObservedVariant],
    snapshot: Snapshot,
    replicas: Mapping[Key, tuple[int, int]],
) -> tuple[ModelState, ...]:
    """Return the models; `replicas` are the ready and the requested ones of variants, as far as read."""
    groups: dict[Key, list[Claimant]] = defaultdict(list)
    for item in claimants:
        own = observed.get(item.key)
        model = own.model if own else (item.key[0], str(item.labels.get("model_id") or "unknown"))
        groups[model].append(item)
    loads = {(load.namespace, load.model_id): load for load in snapshot.loads}
    states = [
        _model(model, items, loads.get(model), [_variant(item, replicas) for item in items])
        for model, items in groups.items()
    ]
    return tuple(sorted(states, key=lambda item: (item.priority, item.namespace, item.model_id)))


def _model(
    model: Key, claimants: Sequence[Claimant], load: ModelLoad | None, variants: Sequence[VariantState]
) -> ModelState:
    decisions = [_decision(item) for item in claimants]
    priorities = [number for item in decisions if (number := (item.get("priority")))]
    unmet = [number / PER_MILLE for item in decisions if (number := (item.get("unmetPerMille"))) is not None]
    levels = (level for item in decisions if (level := as_object(item.get("serviceLevel"))))
    return ModelState(
        namespace=model[0],
        model_id=model[1],
        priority=min(priorities, default=LOWEST_PRIORITY),
        requests_per_second=load.requests_per_second if load else None,
        upper_requests_per_second=load.upper_requests_per_second if load else None,
        unmet=max(unmet, default=None),
        relief=next((str(item["relief"]) for item in decisions if item.get("relief")), ""),
        service_level=next(levels, {}),
        variants=tuple(sorted(variants, key=lambda item: item.name)),
    )


def _variant(claimant: Claimant, replicas: Mapping[Key, tuple[int, int]]) -> VariantState:
    decision, status = _decision(claimant), claimant.status
    published = as_object(status.get("currentAlloc")).get("numReplicas")
    ready_replicas, requested = replicas.get(claimant.key, (decision.get("readyReplicas"), published))
    is_ready, reason, message = _readiness(status)
    kind, name = OwnerKind(claimant.value["kind"]), claimant.value["metadata"]["name"]
    each = _money(decision.get("costPerReplica"))
    return VariantState(
        namespace=claimant.key[0],
        name=claimant.key[1],
        kind=str(kind),
        accelerator=str(as_object(status.get("currentAlloc")).get("accelerator") or ""),
        ready=ready_replicas,
        requested=requested,
        granted=decision.get("grantedReplicas"),
        wanted=decision.get("unconstrainedReplicas"),
        cost_per_hour=None if each is None or requested is None else each * requested,
        saved_per_hour=_money(decision.get("savedPerHour")),
        is_ready=is_ready,
        reason=reason,
        message=message,
        decided=str(as_object(status.get("desiredOptimizedAlloc")).get("lastRunTime") or ""),
        command=f"stowplan explain {kind.short_name}/{name} -n {claimant.key[0]}",
    )


def _binding(value: Json, kind: str) -> BindingState:
    status = as_object(value.get("status"))
    is_ready, reason, message = _readiness(status)
    namespace, name = key_of(value)
    is_explained = kind == AUTOSCALING_POLICY_BINDINGS.kind
    verb = f"stowplan explain aspb/{name}" if is_explained else f"kubectl describe {kind.lower()} {name}"
    return BindingState(
        namespace=namespace,
        name=name,
        kind=kind,
        requested=status.get("currentReplicas"),
        granted=status.get("desiredReplicas"),
        wanted=as_object(status.get("decision")).get("wantedReplicas"),
        is_ready=is_ready,
        reason=reason,
        message=message,
        command=f"{verb} -n {namespace}",
    )


def _readiness(status: Json) -> tuple[bool | None, str, str]:
    """Return whether the condition `Ready` holds, with its reason and message."""
    for item in map(as_object, status.get("conditions") or ()):
        if item.get("type") == "Ready":
            return item.get("status") == "True", str(item.get("reason")), str(item.get("message"))
    decision = as_object(status.get("decision"))
    if decision.get("reason") == UNPLANNED:
        return False, UNPLANNED, str(decision.get("message"))
    return None, "NotDecided", "there is no decision yet"


def _problem_of(item: VariantState | BindingState) -> FleetProblem | None:
    if item.is_ready and item.reason in FINE:
        return None
    return FleetProblem(
        severity=Severity.WARNING if item.is_ready else Severity.ERROR,
        subject=f"{item.kind} {item.namespace}/{item.name}",
        reason=item.reason,
        message=item.message,
        command=item.command,
    )


def _join(problems: Iterable[FleetProblem]) -> Iterator[FleetProblem]:
    """Yield each problem once, although several variants of a model may have it."""
    groups: dict[tuple[str, str], list[FleetProblem]] = defaultdict(list)
    for item in problems:
        groups[item.reason, without_numbers(item.message)].append(item)
    for first, *others in groups.values():
        more = f" and {len(others)} more" if others else ""
        yield replace(first, subject=f"{first.subject}{more}")


def _problems_of_controller(live: LiveObjects, now: datetime, *, is_needed: bool) -> Iterator[FleetProblem]:
    beat = live.heartbeat
    if beat is None or not is_needed:
        return
    age = (now - beat.time).total_seconds()
    if age > SILENT_SECONDS:
        yield FleetProblem(
            severity=Severity.CRITICAL,
            subject="the controller",
            reason="NotDeciding",
            message=f"its last cycle ended {age:.0f} s ago: decisions are not served any more",
            command=f"kubectl -n {live.system} logs deploy/stowplan-controller",
        )


def _problems_of_metrics(live: LiveObjects) -> Iterator[FleetProblem]:
    if live.api_services is None:
        return
    if why := external_metrics_of(live.api_services).unavailable:
        yield FleetProblem(
            severity=Severity.CRITICAL,
            subject="the API of external metrics",
            reason="Unavailable",
            message=why,
            command="stowplan doctor",
        )


def _problems_of_input(gathering: InputsResult) -> Iterator[FleetProblem]:
    """Yield the problems with settings, and what planning cannot read; others are in conditions."""
    if gathering.left_out:
        yield FleetProblem(
            severity=Severity.WARNING,
            subject=count(len(gathering.left_out), "object"),
            reason="Unreadable",
            message=f"left out, as planning cannot read them: {first_of(gathering.left_out, _MOST_NAMED)}",
            command="kubectl get -o yaml, and stowplan plan -f FILE",
        )
    for problem in gathering.problems:
        yield FleetProblem(
            severity=Severity.ERROR,
            subject="settings",
            reason="Invalid",
            message=str(problem),
            command="stowplan doctor",
        )


def _problems_of_rights(live: LiveObjects) -> Iterator[FleetProblem]:
    """Yield that models are not known, because the user may not list what asks for decisions."""
    for resource in (VARIANT_AUTOSCALINGS, AUTOSCALING_POLICY_BINDINGS):
        if resource in live.forbidden:
            yield FleetProblem(
                severity=Severity.ERROR,
                subject=f"{resource.kind}s",
                reason="Forbidden",
                message="you may not list them, so their models are not shown",
                command=f"kubectl auth can-i list {_permission(resource)}",
            )


def _permission(resource: Resource) -> str:
    """Return a resource as permissions name it."""
    return resource.full_name if resource.group else resource.plural


def _decision(claimant: Claimant) -> Json:
    return as_object(claimant.status.get("decision"))


def _money(text: object) -> Decimal | None:
    try:
        amount = Decimal(str(text))
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and abs(amount) < _MOST_MONEY else None
