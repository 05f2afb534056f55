"""Rendering of an account as text, starting with the sentence of the decision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from apiserver.kinds.annotated import VARIANT_COST
from apiserver.schema.json import Json
from controller.commands.explain.account import Account, Happening, duration
from controller.commands.plan.table import price
from controller.commands.plan.terminal import Tone, labelled_line, wrapping_text
from controller.planning.decision import Reason
from controller.planning.load import REQUESTS
from controller.planning.problem import PER_MILLE
from controller.planning.wording import amount_text, count, percent, rate_text
from controller.sizing.step_time import ENOUGH_SAMPLES

_LABEL_COLUMNS: Final = 12
_COST_SOURCES: Final = {
    "VariantCost": "spec.variantCost",
    "UnitCost": "the price of its accelerators",
    "Default": "no price is known",
}
_NEEDED: Final = frozenset({"AbleToScale", "ScalingActive"})
"""The conditions of a HorizontalPodAutoscaler that are problems unless they are true."""

_TONES: Final = {Reason.SHORTAGE: Tone.BAD, Reason.HOLDING: Tone.ADVICE, "Unplanned": Tone.BAD}


def account_parts(account: Account) -> Iterator[RenderableType]:
    """Yield the whole text."""
    what = account.model_id + (f" on {account.accelerator}" if account.accelerator else "")
    title = wrapping_text(f"{account.namespace}/{account.name}", Tone.HEADING)
    yield Text.assemble(title, "  ", wrapping_text(what))
    tone = _TONES.get(account.decision.get("reason", ""), Tone.PLAIN)
    yield labelled_line("  ", account.decision.get("message") or "no decision yet", tone)
    yield from fact_parts(_facts(account), account.conditions, account.events, account.advice)


def fact_parts(
    facts: Iterable[tuple[str, str]],
    conditions: Sequence[Json],
    events: Sequence[Happening],
    advice: Iterable[str],
) -> Iterator[RenderableType]:
    """Yield labelled facts, conditions, events and advice."""
    yield ""
    for label, text in facts:
        yield labelled_line(f"  {label:<{_LABEL_COLUMNS}}", text)
    yield from _condition_parts(conditions)
    yield from _event_parts(events)
    yield from (labelled_line("check: ", text, Tone.ADVICE) for text in advice)


def _facts(account: Account) -> Iterator[tuple[str, str]]:
    decision = account.decision
    yield "replicas", _replicas(account)
    if "reason" in decision:
        age = "" if account.age_seconds is None else f", {duration(account.age_seconds)} ago"
        confirmed = account.confirmed_seconds
        age += "" if confirmed is None else f", confirmed {duration(confirmed)} ago"
        yield "decided", f"{decision['reason']}{age}"
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
        yield "cost", _cost(account)
    if "solverStatus" in decision:
        gap = decision.get("gap", "0")
        yield "solver", decision["solverStatus"] + (f", gap {percent(float(gap))}" if gap else "")
    for autoscaler in account.autoscalers:
        yield "autoscaler", _autoscaler(autoscaler)


def _replicas(account: Account) -> str:
    parts = []
    if account.current_replicas is not None:
        ready = "" if account.ready_replicas is None else f" ({account.ready_replicas} ready)"
        parts.append(f"{account.current_replicas} now{ready}")
    granted = account.decision.get("grantedReplicas", account.granted_replicas)
    parts += [f"{granted} granted"] if granted is not None else []
    wanted = account.decision.get("unconstrainedReplicas")
    parts += [f"{wanted} needed with unlimited nodes"] if wanted is not None else []
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


def _cost(account: Account) -> str:
    each = Decimal(account.decision["costPerReplica"])
    source = account.decision.get("costSource")
    is_own = source == "VariantCost" and account.kind != "VariantAutoscaling"
    because = VARIANT_COST if is_own else _COST_SOURCES.get(source or "")
    source = f" ({source}: {because})" if because else ""
    granted = account.decision.get("grantedReplicas")
    whole = "" if granted is None else f", {price(each * granted)} per hour as granted"
    return f"{price(each)} per replica{source}{whole}"


def _autoscaler(item: Json) -> str:
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


def _event_parts(events: Sequence[Happening]) -> Iterator[RenderableType]:
    """Yield all events under a heading; nothing if there are none."""
    if events:
        yield ""
        yield wrapping_text("events", Tone.HEADING)
    for item in events:
        ago = "?" if item.age_seconds is None else f"{duration(item.age_seconds)} ago"
        times = f" x{item.count}" if item.count > 1 else ""
        tone = Tone.ADVICE if item.type == "Warning" else Tone.PLAIN
        yield labelled_line(f"  {ago:<13}", f"{item.reason}{times}: {item.note}", tone)
