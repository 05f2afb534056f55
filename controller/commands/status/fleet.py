"""The state of a fleet as records: accelerators, models, shortages and problems. Pure.

Models and variants are shown by their published decisions, so that all views of one moment agree. Nodes are
counted from pods, by the rules of planning.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from itertools import chain
from typing import Final

import msgspec

from apiserver.cluster.resource import (
    AUTOSCALING_POLICY_BINDINGS,
    MODELS,
)
from apiserver.kinds.identity import key_of
from apiserver.schema.json import Json, as_object
from controller.commands.plan.gathering import Gathering
from controller.commands.status.reading import LiveObjects
from controller.observe.claim import Claimant, OwnerKind
from controller.observe.external_metrics import external_metrics_of
from controller.observe.observed import Observed
from controller.planning.cluster import Node
from controller.planning.decision import Reason
from controller.planning.load import ModelLoad
from controller.planning.problem import PER_MILLE
from controller.planning.snapshot import LOWEST_PRIORITY, Snapshot
from controller.variants.status import UNPLANNED

Key = tuple[str, str]

SILENT_SECONDS: Final = 180.0
"""Age in seconds of the controller's last cycle from which its decisions are not served any more."""

_FINE: Final = frozenset({*Reason} - {Reason.SHORTAGE} | {"NoProblem", "ModelAvailable", "ScaledToZero"})
"""Reasons of the condition `Ready` that are no problem."""


class Severity(StrEnum):
    """How bad a problem is."""

    CRITICAL = "critical"
    """Nothing is decided, or no decision has an effect."""

    ERROR = "error"
    """One object is not decided on, or its decision has no effect."""

    WARNING = "warning"
    """Something does not have the intended effect, or is short."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Something that is wrong, and the command that shows more."""

    severity: Severity
    subject: str
    """What it is about, such as `VariantAutoscaling chat/llama`."""

    reason: str
    message: str
    command: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceleratorUse:
    """The accelerators of one type, in numbers of accelerators."""

    accelerator: str
    nodes: int = 0
    total: int = 0
    models: int = 0
    """Held by pods of variants."""

    others: int = 0
    """Held by other pods."""

    free: int = 0
    unusable: int = 0
    """Free on nodes that take no new pods."""

    pending: int = 0
    """Requested by pods of variants that are on no node."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantState:
    """One variant."""

    namespace: str
    name: str
    kind: str
    accelerator: str
    ready: int | None
    requested: int | None
    """Replicas that its scale target requests."""

    granted: int | None
    wanted: int | None
    cost_per_hour: Decimal | None
    """Cost of the requested replicas."""

    saved_per_hour: Decimal | None
    """What following the decision would save; None if it is not advice."""

    is_ready: bool | None
    """Whether its condition `Ready` is true; None if it has none yet."""

    reason: str
    message: str
    decided: str
    """Time of the decision; empty for none."""

    command: str
    """The command that explains it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelState:
    """One model of a namespace, with its variants."""

    namespace: str
    model_id: str
    priority: int
    requests_per_second: float | None
    upper_requests_per_second: float | None
    unmet: float | None
    """Missing share of the required capacity; None if it is unknown."""

    relief: str
    """The change that would help most; empty if nothing is known."""

    service_level: Json
    """Targets, promised and attained shares as published; empty without targets or requests."""

    variants: tuple[VariantState, ...]

    @property
    def cost_per_hour(self) -> Decimal:
        """Cost of the requested replicas of all variants."""
        return sum((item.cost_per_hour or Decimal(0) for item in self.variants), start=Decimal(0))

    @property
    def saved_per_hour(self) -> Decimal | None:
        """What following the advice would save; None if nothing is advice."""
        saved = [item.saved_per_hour for item in self.variants if item.saved_per_hour is not None]
        return sum(saved, start=Decimal(0)) if saved else None


@dataclass(frozen=True, kw_only=True, slots=True)
class BindingState:
    """One AutoscalingPolicyBinding, or one Model, which has no replicas of its own."""

    namespace: str
    name: str
    kind: str
    requested: int | None
    granted: int | None
    wanted: int | None
    is_ready: bool | None
    reason: str
    message: str
    command: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Fleet:
    """The state of all that may be read."""

    time: datetime
    accelerators: tuple[AcceleratorUse, ...] | None
    """By type; None if nodes may not be read."""

    models: tuple[ModelState, ...]
    """By priority: 1 is served first."""

    bindings: tuple[BindingState, ...]
    problems: tuple[Problem, ...]
    """The worst first."""

    unread: tuple[str, ...] = ()
    """What may not be read, and what is missing therefore."""

    @property
    def short(self) -> tuple[ModelState, ...]:
        """The models that get less than they need, by priority."""
        return tuple(item for item in self.models if item.unmet)

    @property
    def helps_most(self) -> ModelState | None:
        """The first short model whose shortage a known change would reduce."""
        return next((item for item in self.short if item.relief), None)

    @property
    def cost_per_hour(self) -> Decimal:
        """Cost of the requested replicas of all models."""
        return sum((item.cost_per_hour for item in self.models), start=Decimal(0))

    @property
    def saved_per_hour(self) -> Decimal | None:
        """What following all advice would save; None if nothing is advice."""
        saved = [item.saved_per_hour for item in self.models if item.saved_per_hour is not None]
        return sum(saved, start=Decimal(0)) if saved else None

    def as_json(self) -> Json:
        """Return the state as a JSON document."""
        whole: Json = msgspec.to_builtins(self)
        for model, document in zip(self.models, whole["models"], strict=True):
            saved = model.saved_per_hour
            document["cost_per_hour"] = str(model.cost_per_hour)
            document["saved_per_hour"] = None if saved is None else str(saved)
        saved = self.saved_per_hour
        return whole | {
            "cost_per_hour": str(self.cost_per_hour),
            "saved_per_hour": None if saved is None else str(saved),
            "short": [f"{item.namespace}/{item.model_id}" for item in self.short],
            "helps_most": self.helps_most.relief if self.helps_most else None,
        }


def fleet_of(live: LiveObjects, gathering: Gathering, *, has_nodes: bool, now: datetime) -> Fleet:
    """Return the state at a time; `gathering` is what planning makes of the same objects."""
    seen, snapshot = gathering.seen, gathering.inputs.snapshot
    claimants = seen.claimants if seen else ()
    observed = seen.observed if seen else {}
    models = _models(claimants, observed, snapshot)
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
    ]
    order = [*Severity]
    return Fleet(
        time=now,
        accelerators=tuple(_accelerators(snapshot)) if has_nodes else None,
        models=models,
        bindings=bindings,
        problems=tuple(sorted(filter(None, problems), key=lambda item: order.index(item.severity))),
        unread=tuple(live.unread),
    )


def _accelerators(snapshot: Snapshot) -> Iterator[AcceleratorUse]:
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
            models=sum(held[node.name] for node in nodes),
            others=sum(node.accelerators_used_by_others for node in nodes),
            free=usable,
            unusable=sum(free.values()) - usable,
            pending=pending[accelerator],
        )


def _free(node: Node, held: int) -> int:
    return max(0, node.accelerators_allocatable - node.accelerators_used_by_others - held)


def _models(
    claimants: Iterable[Claimant], observed: Mapping[Key, Observed], snapshot: Snapshot
) -> tuple[ModelState, ...]:
    groups: dict[Key, list[Claimant]] = defaultdict(list)
    for item in claimants:
        own = observed.get(item.key)
        model = own.model if own else (item.key[0], str(item.labels.get("model_id") or "unknown"))
        groups[model].append(item)
    loads = {(load.namespace, load.model_id): load for load in snapshot.loads}
    replicas = {item.key: (item.ready_replicas, item.current_replicas) for item in snapshot.variants}
    states = [
        _model(model, items, loads.get(model), [_variant(item, replicas) for item in items])
        for model, items in groups.items()
    ]
    return tuple(sorted(states, key=lambda item: (item.priority, item.namespace, item.model_id)))


def _model(
    model: Key, claimants: Sequence[Claimant], load: ModelLoad | None, variants: Sequence[VariantState]
) -> ModelState:
    decisions = [_decision(item) for item in claimants]
    priorities = [number for item in decisions if (number := _count(item.get("priority")))]
    unmet = [
        number / PER_MILLE for item in decisions if (number := _count(item.get("unmetPerMille"))) is not None
    ]
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
    ready_replicas, requested = replicas.get(claimant.key, (None, None))
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
        granted=_count(decision.get("grantedReplicas")),
        wanted=_count(decision.get("unconstrainedReplicas")),
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
        requested=_count(status.get("currentReplicas")),
        granted=_count(status.get("desiredReplicas")),
        wanted=_count(as_object(status.get("decision")).get("wantedReplicas")),
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


def _problem_of(item: VariantState | BindingState) -> Problem | None:
    if item.is_ready and item.reason in _FINE:
        return None
    return Problem(
        severity=Severity.WARNING if item.is_ready else Severity.ERROR,
        subject=f"{item.kind} {item.namespace}/{item.name}",
        reason=item.reason,
        message=item.message,
        command=item.command,
    )


def _problems_of_controller(live: LiveObjects, now: datetime, *, is_needed: bool) -> Iterator[Problem]:
    beat = live.heartbeat
    if beat is None or not is_needed:
        return
    age = (now - beat.time).total_seconds()
    if age > SILENT_SECONDS:
        yield Problem(
            severity=Severity.CRITICAL,
            subject="the controller",
            reason="NotDeciding",
            message=f"its last cycle ended {age:.0f} s ago: decisions are not served any more",
            command=f"kubectl -n {live.system} logs deploy/stowplan-controller",
        )


def _problems_of_metrics(live: LiveObjects) -> Iterator[Problem]:
    if live.api_services is None:
        return
    if why := external_metrics_of(live.api_services).unavailable:
        yield Problem(
            severity=Severity.CRITICAL,
            subject="the API of external metrics",
            reason="Unavailable",
            message=why,
            command="stowplan doctor",
        )


def _problems_of_input(gathering: Gathering) -> Iterator[Problem]:
    """Yield the problems with settings; those of variants are in their conditions."""
    for problem in gathering.problems:
        yield Problem(
            severity=Severity.ERROR,
            subject="settings",
            reason="Invalid",
            message=str(problem),
            command="stowplan doctor",
        )


def _decision(claimant: Claimant) -> Json:
    return as_object(claimant.status.get("decision"))


def _money(text: object) -> Decimal | None:
    try:
        amount = Decimal(str(text))
    except InvalidOperation:
        return None
    return amount if amount.is_finite() else None


def _count(value: object) -> int | None:
    """Return a number of something; None for anything else, as records can be edited."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
