"""Interpretation of the evidence: the facts in the order of interest. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec

from apiserver.cluster.heartbeat import Heartbeat
from apiserver.kinds.annotated import reference_of
from apiserver.kinds.llmd.identity import is_planned
from apiserver.schema.json import Json
from controller.commands.explain.evidence import Evidence
from controller.observe.scalers import VariantScalers, autoscalers_by_target
from controller.observe.targets import target_key
from controller.observe.variantautoscaling import claimant_of

OLD_SECONDS: Final = 180.0
"""Age in seconds after which an unconfirmed decision is no longer published, by default."""

_MOST_EVENTS: Final = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Happening:
    """An event, with its age in seconds."""

    age_seconds: float | None
    type: str
    reason: str
    count: int
    note: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """All facts to show about a variant."""

    kind: str = "VariantAutoscaling"
    namespace: str
    name: str
    model_id: str
    spec: Json
    accelerator: str | None = None
    """The type that is counted: that of the nodes, if the spec declares another one."""

    current_replicas: int | None
    ready_replicas: int | None
    granted_replicas: int | None
    decision: Json
    age_seconds: float | None
    """Age of the decision."""

    confirmed_seconds: float | None = None
    """Time since a cycle of the controller last confirmed the decision; None if that may not be read."""

    conditions: Sequence[Json] = ()
    autoscalers: Sequence[Json] = ()
    """HorizontalPodAutoscalers of the scale target, each as an entry of the JSON document."""

    events: Sequence[Happening] = ()
    advice: Sequence[str] = ()
    """What to check next, one sentence each."""

    @property
    def is_decided(self) -> bool:
        """Whether there is a decision to explain."""
        return bool(self.decision)

    def as_json(self) -> Json:
        """Return the account as a JSON document."""
        found: Json = msgspec.to_builtins(self)
        return {"namespace": self.namespace, "name": self.name, "is_decided": self.is_decided, **found}


def account_of(evidence: Evidence, *, now: datetime) -> Account:
    """Return the facts at a time."""
    value, status = evidence.claimant.value, evidence.claimant.status
    desired = status.get("desiredOptimizedAlloc") or {}
    current, ready = _replicas(evidence.target, status)
    return Account(
        kind=value["kind"],
        namespace=value["metadata"]["namespace"],
        name=value["metadata"]["name"],
        model_id=evidence.claimant.labels.get("model_id", ""),
        spec=value["spec"],
        accelerator=(status.get("currentAlloc") or {}).get("accelerator") or value["spec"].get("accelerator"),
        current_replicas=current,
        ready_replicas=ready,
        granted_replicas=desired.get("numReplicas"),
        decision=status.get("decision") or {},
        age_seconds=age_seconds(desired.get("lastRunTime"), now),
        confirmed_seconds=_confirmed_seconds(evidence, now),
        conditions=status.get("conditions") or [],
        autoscalers=[_autoscaler(item) for item in evidence.autoscalers],
        events=happenings(evidence.events, now),
        advice=tuple(_advice(evidence, status, now)),
    )


def _replicas(target: Json | None, status: Json) -> tuple[int | None, int | None]:
    if target is None:
        return (status.get("currentAlloc") or {}).get("numReplicas"), None
    asked = target["spec"].get("replicas")
    return (1 if asked is None else asked), (target.get("status") or {}).get("readyReplicas") or 0


def _confirmed_seconds(evidence: Evidence, now: datetime) -> float | None:
    beat = evidence.heartbeat
    return None if beat is None or _is_left_behind(evidence, beat) else _seconds(now - beat.time)


def _is_left_behind(evidence: Evidence, beat: Heartbeat) -> bool:
    return not beat.confirms("VariantAutoscaling", evidence.claimant.key)


def _seconds(age: timedelta) -> float:
    return max(0.0, age.total_seconds())


def _advice(evidence: Evidence, status: Json, now: datetime) -> Iterator[str]:
    claimant = evidence.claimant
    metadata, target = claimant.value["metadata"], reference_of(claimant.value)
    if not status.get("decision"):
        component = (
            "install the component 'annotated' (docs/annotated.md), or " if claimant.is_annotated else ""
        )
        yield f"there is no decision yet: {component}{look_at_controller(evidence.system)}"
    yield from _advice_on_controller(evidence, now)
    observed = [item.get("observedGeneration", 0) for item in status.get("conditions") or []]
    if observed and max(observed) < metadata.get("generation", 0):
        yield "the spec has changed since the decision, which is based on the previous one"
    is_unread = any(f"{target['kind'].lower()}s" in text for text in evidence.unread)
    is_looked_for = is_planned(target) and not is_unread
    if evidence.target is None and is_looked_for:
        yield f"the scale target {target['kind']} {target['name']!r} does not exist"
    scalers = VariantScalers(
        (*map(claimant_of, evidence.neighbours), claimant),
        autoscalers_by_target(evidence.autoscalers, evidence.scaled_objects),
    )
    key = target_key(metadata["namespace"], target)
    if not scalers.of(key) and not any("horizontal" in text for text in evidence.unread):
        yield (
            f"no HorizontalPodAutoscaler targets {target['kind']} {target['name']!r}: unless another"
            " client reads the metric wva_desired_replicas, nothing scales it"
        )
    yield from (problem.message for problem in scalers.problems(claimant.key, key))
    yield from (f"some objects could not be read: {text}" for text in evidence.unread)


def look_at_controller(system: str) -> str:
    """Return the commands to check the controller in the namespace of Stowplan."""
    return (
        f"check whether the controller runs (kubectl -n {system} get pods), and its log (kubectl -n"
        f" {system} logs deploy/stowplan-controller)"
    )


def _advice_on_controller(evidence: Evidence, now: datetime) -> Iterator[str]:
    beat = evidence.heartbeat
    if beat is None:
        return
    if _seconds(now - beat.time) > OLD_SECONDS:
        yield (
            f"the controller finished its last cycle {duration(_seconds(now - beat.time))} ago:"
            f" {look_at_controller(evidence.system)}"
        )
    elif _is_left_behind(evidence, beat):
        yield (
            "the controller could not write the status in its last cycle: check its log (kubectl -n"
            f" {evidence.system} logs deploy/stowplan-controller)"
        )


def happenings(events: Sequence[Json], now: datetime) -> tuple[Happening, ...]:
    """Return the most recent events, with their ages."""
    found = [
        Happening(
            age_seconds=age_seconds(_last_time(event), now),
            type=event.get("type") or "",
            reason=event.get("reason") or "",
            count=(event.get("series") or {}).get("count") or event.get("deprecatedCount") or 1,
            note=event.get("note") or "",
        )
        for event in events
    ]
    found.sort(key=lambda item: float("inf") if item.age_seconds is None else item.age_seconds)
    return tuple(found[:_MOST_EVENTS])


def _last_time(event: Json) -> str | None:
    series = event.get("series") or {}
    moments = (series.get("lastObservedTime"), event.get("deprecatedLastTimestamp"), event.get("eventTime"))
    return next((moment for moment in moments if moment), None)


def age_seconds(moment: str | None, now: datetime) -> float | None:
    """Return the age of a timestamp in the format of Kubernetes; None for none."""
    return _seconds(now - datetime.fromisoformat(moment)) if moment else None


def _autoscaler(item: Json) -> Json:
    return {
        "name": item["metadata"]["name"],
        "min_replicas": item["spec"].get("minReplicas"),
        "max_replicas": item["spec"].get("maxReplicas"),
        "current_replicas": (item.get("status") or {}).get("currentReplicas"),
        "desired_replicas": (item.get("status") or {}).get("desiredReplicas"),
        "conditions": (item.get("status") or {}).get("conditions") or [],
    }


def duration(seconds: float) -> str:
    """Return a duration in its largest unit: `12 s`, `3 min`, `5 h`, `2 d`."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} s"
