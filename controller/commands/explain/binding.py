"""`stowplan explain aspb/NAME`: the decision for a binding, and its reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from rich.console import RenderableType

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Forbidden, NotFound
from apiserver.cluster.resource import AUTOSCALING_POLICIES, AUTOSCALING_POLICY_BINDINGS
from apiserver.kinds.autoscalers import BOUND_METRIC
from apiserver.schema.json import Json, as_object
from controller.commands.explain.evidence import NoSuchObjectError, events_about, get
from controller.commands.explain.variant import (
    age_seconds,
    duration,
    explanation_parts,
    look_at_controller,
    recent_events,
)
from controller.observe.binding_conditions import BindingCondition
from controller.planning.wording import count

_MOST_NAMED: Final = 8
_FOLLOWING: Final = (str(BindingCondition.TARGETS_RESOLVED), str(BindingCondition.DECISION_FOLLOWED))
"""The conditions that say whether anything acts on the decision."""


async def explain_binding(cluster: Cluster, *, namespace: str, name: str, system: str, now: datetime) -> Json:
    """Return the facts about a binding as a JSON document. Raises NoSuchObjectError, and ClusterError.

    `age_seconds` is that of the status, and `system` the namespace of Stowplan.
    """
    try:
        binding = await cluster.get(AUTOSCALING_POLICY_BINDINGS, name, namespace=namespace)
    except NotFound as error:
        raise NoSuchObjectError(await _instead(cluster, namespace, name)) from error
    unread: list[str] = []
    status = as_object(binding.get("status"))
    policy = await get(cluster, AUTOSCALING_POLICIES, _policy_name(binding["spec"]), namespace, unread)
    events = recent_events(await events_about(cluster, AUTOSCALING_POLICY_BINDINGS, binding, unread), now)
    return {
        "namespace": namespace,
        "name": name,
        "is_decided": bool(status.get("decision")),
        "spec": binding["spec"],
        "policy": None if policy is None else policy["spec"],
        "current_replicas": status.get("currentReplicas"),
        "desired_replicas": status.get("desiredReplicas"),
        "decision": status.get("decision") or {},
        "targets": status.get("targets") or [],
        "metrics": status.get("metrics") or [],
        "age_seconds": age_seconds(status.get("lastDecisionTime"), now),
        "conditions": status.get("conditions") or [],
        "events": events,
        "advice": list(_advice(binding, status, unread, system, has_policy=policy is not None)),
    }


def _policy_name(spec: Json) -> str:
    return str(spec["policyRef"]["name"])


def binding_parts(explanation: Json) -> Iterator[RenderableType]:
    """Yield the whole text about what `explain_binding` returned."""
    what = f"by policy {_policy_name(explanation['spec'])}"
    return explanation_parts(explanation, what, _facts(explanation))


def _advice(
    binding: Json, status: Json, unread: Sequence[str], system: str, *, has_policy: bool
) -> Iterator[str]:
    """Yield what to check next, one sentence each."""
    if not status:
        yield f"there is no decision yet: {look_at_controller(system)}"
    elif status.get("observedGeneration", 0) < binding["metadata"].get("generation", 0):
        yield "the spec has changed since the decision, which is based on the previous one"
    if not has_policy and not unread:
        yield f"AutoscalingPolicy {_policy_name(binding['spec'])!r} does not exist"
    wrong = (item for item in status.get("conditions") or [] if item.get("status") == "False")
    # If both have the same cause, they have the same message.
    yield from dict.fromkeys(str(item.get("message")) for item in wrong if item.get("type") in _FOLLOWING)
    yield from (f"some objects could not be read: {text}" for text in unread)


def _facts(explanation: Json) -> Iterator[tuple[str, str]]:
    decision = explanation["decision"]
    parts = [
        f"{explanation[name]} {text}"
        for name, text in (("current_replicas", "now"), ("desired_replicas", "desired"))
        if explanation[name] is not None
    ]
    if "wantedReplicas" in decision:
        parts.append(f"{decision['wantedReplicas']} requested by the metrics")
    yield "replicas", ", ".join(parts) or "unknown"
    if decision.get("limitedBy"):
        yield "limited by", ", ".join(decision["limitedBy"])
    yield "scaled by", _scaled_by(explanation["conditions"])
    if "panicSince" in decision:
        yield "panic", f"since {decision['panicSince']}"
    if explanation["age_seconds"] is not None:
        yield "written", f"{duration(explanation['age_seconds'])} ago"
    for item in explanation["targets"]:
        desired_text = f", {item['replicas']} desired" if "replicas" in item else ""
        yield "target", f"{item['kind']} {item['name']}: {item.get('currentReplicas', 0)} now{desired_text}"
    for item in explanation["metrics"]:
        yield "metric", _metric(item)


def _scaled_by(conditions: Sequence[Json]) -> str:
    known = {item.get("type"): item for item in conditions}
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
