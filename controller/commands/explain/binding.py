"""`stowplan explain aspb/NAME`: the decision for a binding, and its reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec
from rich.console import RenderableType
from rich.text import Text

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Forbidden, NotFound
from apiserver.cluster.resource import AUTOSCALING_POLICIES, AUTOSCALING_POLICY_BINDINGS
from apiserver.kinds.autoscalers import BOUND_METRIC
from apiserver.kinds.settings_names import INSTALLATION
from apiserver.schema.json import Json
from controller.commands.explain.evidence import NoSuchObjectError, events_about, get
from controller.commands.explain.variant import (
    EventSummary,
    age_seconds,
    duration,
    fact_parts,
    look_at_controller,
    recent_events,
)
from controller.commands.plan.terminal import Tone, labelled_line, wrapping_text
from controller.observe.binding_conditions import BindingCondition
from controller.planning.wording import count

_MOST_NAMED: Final = 8
_FOLLOWING: Final = (str(BindingCondition.TARGETS_RESOLVED), str(BindingCondition.DECISION_FOLLOWED))
"""The conditions that say whether anything acts on the decision."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BindingExplanation:
    """All facts to show about a binding."""

    binding: Json
    policy: Json | None = None
    events: Sequence[EventSummary] = ()
    age_seconds: float | None = None
    """Age of the status."""

    unread: Sequence[str] = ()
    system: str = INSTALLATION
    """Namespace of Stowplan itself."""

    @property
    def status(self) -> Json:
        """The last status."""
        status: Json = self.binding.get("status") or {}
        return status

    @property
    def is_decided(self) -> bool:
        """Whether there is a decision to explain."""
        return bool(self.status.get("decision"))

    def as_json(self) -> Json:
        """Return the explanation as a JSON document."""
        metadata, status = self.binding["metadata"], self.status
        return {
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "is_decided": self.is_decided,
            "spec": self.binding["spec"],
            "policy": None if self.policy is None else self.policy["spec"],
            "current_replicas": status.get("currentReplicas"),
            "desired_replicas": status.get("desiredReplicas"),
            "decision": status.get("decision") or {},
            "targets": status.get("targets") or [],
            "metrics": status.get("metrics") or [],
            "age_seconds": self.age_seconds,
            "conditions": status.get("conditions") or [],
            "events": msgspec.to_builtins(self.events),
            "advice": list(_advice(self)),
        }


async def explain_binding(
    cluster: Cluster, *, namespace: str, name: str, system: str, now: datetime
) -> BindingExplanation:
    """Return the facts about a binding. Raises NoSuchObjectError, and ClusterError."""
    try:
        binding = await cluster.get(AUTOSCALING_POLICY_BINDINGS, name, namespace=namespace)
    except NotFound as error:
        raise NoSuchObjectError(await _instead(cluster, namespace, name)) from error
    unread: list[str] = []
    policy = binding["spec"]["policyRef"]["name"]
    return BindingExplanation(
        binding=binding,
        policy=await get(cluster, AUTOSCALING_POLICIES, policy, namespace, unread),
        events=recent_events(await events_about(cluster, AUTOSCALING_POLICY_BINDINGS, binding, unread), now),
        age_seconds=age_seconds((binding.get("status") or {}).get("lastDecisionTime"), now),
        unread=tuple(unread),
        system=system,
    )


def binding_parts(explanation: BindingExplanation) -> Iterator[RenderableType]:
    """Yield the whole text, starting with the sentence of the decision."""
    metadata, status = explanation.binding["metadata"], explanation.status
    title = wrapping_text(f"{metadata['namespace']}/{metadata['name']}", Tone.HEADING)
    yield Text.assemble(
        title, "  ", wrapping_text(f"by policy {explanation.binding['spec']['policyRef']['name']}")
    )
    yield labelled_line("  ", (status.get("decision") or {}).get("message") or "no decision yet")
    conditions = status.get("conditions") or []
    yield from fact_parts(_facts(explanation), conditions, explanation.events, _advice(explanation))


def _advice(explanation: BindingExplanation) -> Iterator[str]:
    """Yield what to check next, one sentence each."""
    metadata, status = explanation.binding["metadata"], explanation.status
    if not status:
        yield f"there is no decision yet: {look_at_controller(explanation.system)}"
    elif status.get("observedGeneration", 0) < metadata.get("generation", 0):
        yield "the spec has changed since the decision, which is based on the previous one"
    if explanation.policy is None and not explanation.unread:
        yield f"AutoscalingPolicy {explanation.binding['spec']['policyRef']['name']!r} does not exist"
    wrong = (item for item in status.get("conditions") or [] if item.get("status") == "False")
    # If both have the same cause, they have the same message.
    yield from dict.fromkeys(str(item.get("message")) for item in wrong if item.get("type") in _FOLLOWING)
    yield from (f"some objects could not be read: {text}" for text in explanation.unread)


def _facts(explanation: BindingExplanation) -> Iterator[tuple[str, str]]:
    status = explanation.status
    decision = status.get("decision") or {}
    parts = [
        f"{status[name]} {text}"
        for name, text in (("currentReplicas", "now"), ("desiredReplicas", "desired"))
        if status.get(name) is not None
    ]
    if "wantedReplicas" in decision:
        parts.append(f"{decision['wantedReplicas']} requested by the metrics")
    yield "replicas", ", ".join(parts) or "unknown"
    if decision.get("limitedBy"):
        yield "limited by", ", ".join(decision["limitedBy"])
    yield "scaled by", _scaled_by(status)
    if "panicSince" in decision:
        yield "panic", f"since {decision['panicSince']}"
    if explanation.age_seconds is not None:
        yield "written", f"{duration(explanation.age_seconds)} ago"
    for item in status.get("targets") or []:
        wanted = f", {item['replicas']} desired" if "replicas" in item else ""
        yield "target", f"{item['kind']} {item['name']}: {item.get('currentReplicas', 0)} now{wanted}"
    for item in status.get("metrics") or []:
        yield "metric", _metric(item)


def _scaled_by(status: Json) -> str:
    known = {item.get("type"): item for item in status.get("conditions") or []}
    active = known.get(str(BindingCondition.SCALING_ACTIVE))
    if active is None:
        return f"clients of the external metric {BOUND_METRIC}"
    not_now = "" if active.get("status") == "True" else f", but not now: {active.get('message')}"
    return f"the controller itself{not_now}"


def _metric(item: Json) -> str:
    value = f"is {item['value']}" if "value" in item else "is not known"
    asks = f", asks for {item['replicas']}" if "replicas" in item else ""
    age = f", {item['ageSeconds']} s old" if item.get("ageSeconds") else ""
    silent = f", {count(item['silentPods'], 'pod')} silent" if item.get("silentPods") else ""
    return (
        f"{item['name']} {value} of {item['targetValue']} per replica{asks} ({item['signal']}{age}{silent})"
    )


async def _instead(cluster: Cluster, namespace: str, name: str) -> str:
    what = f"no AutoscalingPolicyBinding {name!r} in namespace {namespace!r}"
    try:
        listed = await cluster.list(AUTOSCALING_POLICY_BINDINGS, namespace=namespace, metadata_only=True)
    except (NotFound, Forbidden):
        return f"{what}; kubectl get aspb -A lists them"
    here = sorted(item["metadata"]["name"] for item in listed["items"])
    more = ", ..." if len(here) > _MOST_NAMED else ""
    return f"{what}; bindings in this namespace: {', '.join(here[:_MOST_NAMED]) or 'none'}{more}"
