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
from apiserver.cluster.namespaces import INSTALLATION
from apiserver.cluster.resource import AUTOSCALING_POLICIES, AUTOSCALING_POLICY_BINDINGS
from apiserver.kinds.autoscalers import BOUND_METRIC
from apiserver.schema.json import Json
from controller.commands.explain.account import (
    Happening,
    age_seconds,
    duration,
    happenings,
    look_at_controller,
)
from controller.commands.explain.evidence import NoSuchVariantError, events_about, get
from controller.commands.explain.text import fact_parts
from controller.commands.plan.terminal import Tone, labelled_line, wrapping_text
from controller.observe.binding_conditions import BindingCondition
from controller.planning.wording import count

_MOST_NAMED: Final = 8
_FOLLOWING: Final = (str(BindingCondition.TARGETS_RESOLVED), str(BindingCondition.DECISION_FOLLOWED))
"""The conditions that say whether anything acts on the decision."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BindingAccount:
    """All facts to show about a binding."""

    binding: Json
    policy: Json | None = None
    events: Sequence[Happening] = ()
    age_seconds: float | None = None
    """Age of the status."""

    unread: Sequence[str] = ()
    system: str = INSTALLATION
    """Namespace of Stowplan itself."""

    @property
    def status(self) -> Json:
        """The last status."""
        found: Json = self.binding.get("status") or {}
        return found

    @property
    def is_decided(self) -> bool:
        """Whether there is a decision to explain."""
        return bool(self.status.get("decision"))

    def as_json(self) -> Json:
        """Return the account as a JSON document."""
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
            "advice": list(advice_on(self)),
        }


async def binding_account(
    cluster: Cluster, *, namespace: str, name: str, system: str, now: datetime
) -> BindingAccount:
    """Return the facts about a binding. Raises NoSuchVariantError, and ClusterError."""
    try:
        binding = await cluster.get(AUTOSCALING_POLICY_BINDINGS, name, namespace=namespace)
    except NotFound as error:
        raise NoSuchVariantError(await _instead(cluster, namespace, name)) from error
    unread: list[str] = []
    policy = binding["spec"]["policyRef"]["name"]
    return BindingAccount(
        binding=binding,
        policy=await get(cluster, AUTOSCALING_POLICIES, policy, namespace, unread),
        events=happenings(await events_about(cluster, AUTOSCALING_POLICY_BINDINGS, binding, unread), now),
        age_seconds=age_seconds((binding.get("status") or {}).get("lastDecisionTime"), now),
        unread=tuple(unread),
        system=system,
    )


def binding_parts(account: BindingAccount) -> Iterator[RenderableType]:
    """Yield the whole text, starting with the sentence of the decision."""
    metadata, status = account.binding["metadata"], account.status
    title = wrapping_text(f"{metadata['namespace']}/{metadata['name']}", Tone.HEADING)
    yield Text.assemble(
        title, "  ", wrapping_text(f"by policy {account.binding['spec']['policyRef']['name']}")
    )
    yield labelled_line("  ", (status.get("decision") or {}).get("message") or "no decision yet")
    conditions = status.get("conditions") or []
    yield from fact_parts(_facts(account), conditions, account.events, advice_on(account))


def advice_on(account: BindingAccount) -> Iterator[str]:
    """Yield what to check next, one sentence each."""
    metadata, status = account.binding["metadata"], account.status
    if not status:
        yield f"there is no decision yet: {look_at_controller(account.system)}"
    elif status.get("observedGeneration", 0) < metadata.get("generation", 0):
        yield "the spec has changed since the decision, which is based on the previous one"
    if account.policy is None and not account.unread:
        yield f"AutoscalingPolicy {account.binding['spec']['policyRef']['name']!r} does not exist"
    wrong = (item for item in status.get("conditions") or [] if item.get("status") == "False")
    # If both have the same cause, they have the same message.
    yield from dict.fromkeys(str(item.get("message")) for item in wrong if item.get("type") in _FOLLOWING)
    yield from (f"some objects could not be read: {text}" for text in account.unread)


def _facts(account: BindingAccount) -> Iterator[tuple[str, str]]:
    status = account.status
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
    if account.age_seconds is not None:
        yield "written", f"{duration(account.age_seconds)} ago"
    for item in status.get("targets") or []:
        wanted = f", {item['replicas']} desired" if "replicas" in item else ""
        yield "target", f"{item['kind']} {item['name']}: {item.get('currentReplicas', 0)} now{wanted}"
    for item in status.get("metrics") or []:
        yield "metric", _metric(item)


def _scaled_by(status: Json) -> str:
    known = {item.get("type"): item for item in status.get("conditions") or []}
    told = known.get(str(BindingCondition.SCALING_ACTIVE))
    if told is None:
        return f"clients of the external metric {BOUND_METRIC}"
    not_now = "" if told.get("status") == "True" else f", but not now: {told.get('message')}"
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
