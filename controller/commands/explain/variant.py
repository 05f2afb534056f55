"""The explanation of one variant: facts in the order of interest, what to check next, and the text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from apiserver.cluster.heartbeat import Heartbeat
from apiserver.kinds.annotated import VARIANT_COST, reference_of
from apiserver.kinds.llmd.identity import is_planned
from apiserver.schema.json import Json, as_object
from controller.commands.explain.evidence import VariantEvidence
from controller.commands.plan.terminal import Tone, labelled_line, price, wrapping_text
from controller.commands.status.assemble import SILENT_SECONDS
from controller.observe.declarations import claimant_of
from controller.observe.scalers import VariantScalers, autoscalers_by_target
from controller.observe.targets import target_key
from controller.planning.decision import Reason
from controller.planning.load import REQUESTS
from controller.planning.problem import PER_MILLE
from controller.planning.wording import amount_text, count, percent, rate_text
from controller.sizing.step_time import ENOUGH_SAMPLES

_MOST_EVENTS: Final = 10
_LABEL_COLUMNS: Final = 12
_COST_SOURCES: Final = {
    "VariantCost": "spec.variantCost",
    "UnitCost": "the price of its accelerators",
    "Default": "no price is known",
}
_NEEDED: Final = frozenset({"AbleToScale", "ScalingActive"})
"""The conditions of a HorizontalPodAutoscaler that are problems unless they are true."""

_TONES: Final = {Reason.SHORTAGE: Tone.BAD, Reason.HOLDING: Tone.ADVICE, "Unplanned": Tone.BAD}


def explain_variant(evidence: VariantEvidence, *, now: datetime) -> Json:
    """Return the facts at a time as a JSON document, whose order is that of the output.

    `accelerator` is the type that is counted: that of the nodes, if the spec declares another one.
    `confirmed_seconds` is the time since a cycle of the controller last confirmed the decision; None if that
    may not be read. Each of `advice` is a sentence about what to check next.
    """
    value, status = evidence.claimant.value, evidence.claimant.status
    desired = status.get("desiredOptimizedAlloc") or {}
    decision = status.get("decision") or {}
    counted = as_object(status.get("currentAlloc")).get("accelerator")
    current, ready = _replicas(evidence.target, status)
    return {
        "namespace": value["metadata"]["namespace"],
        "name": value["metadata"]["name"],
        "is_decided": bool(decision),
        "kind": value["kind"],
        "model_id": evidence.claimant.labels.get("model_id", ""),
        "spec": value["spec"],
        "accelerator": counted or value["spec"].get("accelerator"),
        "current_replicas": current,
        "ready_replicas": ready,
        "granted_replicas": desired.get("numReplicas"),
        "decision": decision,
        "age_seconds": age_seconds(desired.get("lastRunTime"), now),
        "confirmed_seconds": _confirmed_seconds(evidence, now),
        "conditions": status.get("conditions") or [],
        "autoscalers": [_autoscaler(item) for item in evidence.autoscalers],
        "events": recent_events(evidence.events, now),
        "advice": list(_advice(evidence, status, now)),
    }


def _replicas(target: Json | None, status: Json) -> tuple[int | None, int | None]:
    if target is None:
        return (status.get("currentAlloc") or {}).get("numReplicas"), None
    requested = target["spec"].get("replicas")
    return (1 if requested is None else requested), (target.get("status") or {}).get("readyReplicas") or 0


def _confirmed_seconds(evidence: VariantEvidence, now: datetime) -> float | None:
    beat = evidence.heartbeat
    return None if beat is None or _is_unconfirmed(evidence, beat) else _seconds(now - beat.time)


def _is_unconfirmed(evidence: VariantEvidence, beat: Heartbeat) -> bool:
    return not beat.confirms("VariantAutoscaling", evidence.claimant.key)


def _seconds(age: timedelta) -> float:
    return max(0.0, age.total_seconds())


def _advice(evidence: VariantEvidence, status: Json, now: datetime) -> Iterator[str]:
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


def _advice_on_controller(evidence: VariantEvidence, now: datetime) -> Iterator[str]:
    beat = evidence.heartbeat
    if beat is None:
        return
    if _seconds(now - beat.time) > SILENT_SECONDS:
        yield (
            f"the controller finished its last cycle {duration(_seconds(now - beat.time))} ago:"
            f" {look_at_controller(evidence.system)}"
        )
    elif _is_unconfirmed(evidence, beat):
        yield (
            "the controller could not write the status in its last cycle: check its log (kubectl -n"
            f" {evidence.system} logs deploy/stowplan-controller)"
        )


def recent_events(events: Sequence[Json], now: datetime) -> list[Json]:
    """Return the most recent events as they are shown, with their ages in seconds."""
    summaries: list[Json] = [
        {
            "age_seconds": age_seconds(last_time(event), now),
            "type": event.get("type") or "",
            "reason": event.get("reason") or "",
            "count": (event.get("series") or {}).get("count") or event.get("deprecatedCount") or 1,
            "note": event.get("note") or "",
        }
        for event in events
    ]
    summaries.sort(key=lambda item: float("inf") if item["age_seconds"] is None else item["age_seconds"])
    return summaries[:_MOST_EVENTS]


def last_time(event: Json) -> str | None:
    """Return when an event was last observed, in the format of Kubernetes; None without such a time."""
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


def variant_parts(explanation: Json) -> Iterator[RenderableType]:
    """Yield the whole text about what `explain_variant` returned."""
    accelerator = explanation["accelerator"]
    what = explanation["model_id"] + (f" on {accelerator}" if accelerator else "")
    tone = _TONES.get(explanation["decision"].get("reason", ""), Tone.PLAIN)
    yield from explanation_parts(explanation, what, _facts(explanation), tone)


def explanation_parts(
    explanation: Json, what: str, facts: Iterable[tuple[str, str]], tone: Tone = Tone.PLAIN
) -> Iterator[RenderableType]:
    """Yield the name, `what` it is, its decision, labelled facts, conditions, events and advice."""
    title = wrapping_text(f"{explanation['namespace']}/{explanation['name']}", Tone.HEADING)
    yield Text.assemble(title, "  ", wrapping_text(what))
    yield labelled_line("  ", explanation["decision"].get("message") or "no decision yet", tone)
    yield ""
    for label, text in facts:
        yield labelled_line(f"  {label:<{_LABEL_COLUMNS}}", text)
    yield from _condition_parts(explanation["conditions"])
    yield from _event_parts(explanation["events"])
    yield from (labelled_line("check: ", text, Tone.ADVICE) for text in explanation["advice"])


def _facts(explanation: Json) -> Iterator[tuple[str, str]]:
    decision = explanation["decision"]
    yield "replicas", _replicas_text(explanation)
    if "reason" in decision:
        age, confirmed = explanation["age_seconds"], explanation["confirmed_seconds"]
        text = "" if age is None else f", {duration(age)} ago"
        text += "" if confirmed is None else f", confirmed {duration(confirmed)} ago"
        yield "decided", f"{decision['reason']}{text}"
    if "boundBy" in decision:
        yield "bound by", decision["boundBy"]
    if "requiredRequestsPerSecond" in decision:
        yield "demand", _demand(decision)
    if "capacitySource" in decision:
        yield "capacity", _capacity(decision)
    if "serviceLevel" in decision:
        yield "attained", _service_level(decision["serviceLevel"])
    if "priority" in decision:
        yield "priority", f"{decision['priority']} (1 is served first)"
    if "costPerReplica" in decision:
        yield "cost", _cost(decision, explanation["kind"])
    if "solverStatus" in decision:
        gap = decision.get("gap", "0")
        yield "solver", decision["solverStatus"] + (f", gap {percent(float(gap))}" if gap else "")
    for autoscaler in explanation["autoscalers"]:
        yield "autoscaler", _autoscaler_text(autoscaler)


def _replicas_text(explanation: Json) -> str:
    decision, current = explanation["decision"], explanation["current_replicas"]
    ready = explanation["ready_replicas"]
    parts = []
    if current is not None:
        parts.append(f"{current} now" + ("" if ready is None else f" ({ready} ready)"))
    granted = decision.get("grantedReplicas", explanation["granted_replicas"])
    parts += [f"{granted} granted"] if granted is not None else []
    unconstrained = decision.get("unconstrainedReplicas")
    parts += [f"{unconstrained} needed with unlimited nodes"] if unconstrained is not None else []
    return ", ".join(parts) or "unknown"


def _demand(decision: Json) -> str:
    demand = decision.get("demand")
    known = "unknown"
    if demand is not None:
        now, upper = float(demand["requestsPerSecond"]), float(demand["upperRequestsPerSecond"])
        known = f"{amount_text(now, REQUESTS)} for the model, up to {rate_text(upper)}"
        known += f" within {demand['startSeconds']} s"
        prompt, answer = demand.get("avgInputTokens"), demand.get("avgOutputTokens")
        if prompt and answer:
            known += f", with {float(prompt):.0f} prompt and {float(answer):.0f} answer tokens each"
    unmet = decision.get("unmetPerMille", 0)
    short = f", {percent(unmet / PER_MILLE)} of that unmet" if unmet else ""
    signal = f" (signal {decision['signal']})" if "signal" in decision else ""
    needed = rate_text(float(decision["requiredRequestsPerSecond"]))
    return f"{known}{signal}; {needed} to provide{short}"


def _capacity(decision: Json) -> str:
    serves = decision.get("capacityPerReplica")
    known = "unknown" if serves is None else f"{amount_text(float(serves), REQUESTS)} per replica"
    limit = f" within {decision['capacityLimit']}" if "capacityLimit" in decision else ""
    samples = (decision.get("performance") or {}).get("samples", ENOUGH_SAMPLES)
    few = ", from few samples" if samples < ENOUGH_SAMPLES else ""
    return f"{known}{limit} ({decision['capacitySource']}{few})"


def _service_level(level: Json) -> str:
    attained, promised, ttft, itl = (
        percent(float(level[name])) for name in ("attained", "promised", "ttftMissed", "itlMissed")
    )
    requests = count(level["requests"], "request")
    return (
        f"{attained} of the model's {requests} within the last hour, {promised} promised"
        f" ({ttft} missed the TTFT, {itl} the ITL)"
    )


def _cost(decision: Json, kind: str) -> str:
    each = Decimal(decision["costPerReplica"])
    source = decision.get("costSource")
    is_own = source == "VariantCost" and kind != "VariantAutoscaling"
    because = VARIANT_COST if is_own else _COST_SOURCES.get(source or "")
    source = f" ({source}: {because})" if because else ""
    granted = decision.get("grantedReplicas")
    whole = "" if granted is None else f", {price(each * granted)} per hour as granted"
    return f"{price(each)} per replica{source}{whole}"


def _autoscaler_text(item: Json) -> str:
    low = 1 if item["min_replicas"] is None else item["min_replicas"]
    text = f"HorizontalPodAutoscaler {item['name']}, from {low} to {item['max_replicas']}"
    if item["current_replicas"] is not None and item["desired_replicas"] is not None:
        text += f": {item['current_replicas']} now, {item['desired_replicas']} desired"
    wrong = [c for c in item["conditions"] if c["type"] in _NEEDED and c["status"] != "True"]
    for condition in wrong:
        text += f"; {condition['type']} {condition['status']}: {condition.get('message', '')}"
    return text


def _condition_parts(conditions: Sequence[Json]) -> Iterator[RenderableType]:
    """Yield all conditions under a heading; nothing if there are none."""
    if conditions:
        yield ""
        yield wrapping_text("conditions", Tone.HEADING)
    for item in conditions:
        tone = Tone.PLAIN if item["status"] == "True" else Tone.ADVICE
        text = f"{item.get('reason', '')}: {item.get('message', '')}"
        yield labelled_line(f"  {item['type']:<22}{item['status']:<9}", text, tone)


def _event_parts(events: Sequence[Json]) -> Iterator[RenderableType]:
    """Yield all events under a heading; nothing if there are none."""
    if events:
        yield ""
        yield wrapping_text("events", Tone.HEADING)
    for item in events:
        ago = "?" if item["age_seconds"] is None else f"{duration(item['age_seconds'])} ago"
        times = f" x{item['count']}" if item["count"] > 1 else ""
        tone = Tone.ADVICE if item["type"] == "Warning" else Tone.PLAIN
        yield labelled_line(f"  {ago:<13}", f"{item['reason']}{times}: {item['note']}", tone)
