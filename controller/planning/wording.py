"""Format numbers and names for messages."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from controller.planning.cluster import Node
from controller.planning.demand import serving_rate
from controller.planning.inventory import topology_keys
from controller.planning.load import RATE_UNIT, CapacitySource, ModelLoad
from controller.planning.shortage import OTHERS, Scarcity
from controller.planning.snapshot import Variant

HOLDERS_NAMED = 3
MOST_TOLD = 10
_SOURCES = {
    CapacitySource.PROFILE: ", by its profile",
    CapacitySource.ESTIMATED: ", by an estimate",
    CapacitySource.CATALOG: ", by an estimate from the catalog",
    CapacitySource.LAST_KNOWN: ", from step times recorded earlier",
}


def rate_text(requests_per_second: float) -> str:
    """Return a rate with three significant digits, or as an integer from 100: 0.12, 9.4, 41.2, 1250.

    It has no exponent. The rounding error of a product of two such numbers is about one percent at most.
    """
    if requests_per_second >= 100:  # noqa: PLR2004 (three digits)
        return f"{requests_per_second:.0f}"
    return f"{Decimal(f'{requests_per_second:.3g}'):f}"


def amount_text(amount: float, measure: str) -> str:
    """Return an amount with its measure, such as `requests/s`, in the singular for 1: `1 request/s`."""
    noun, slash, per = measure.partition("/")
    text = rate_text(amount)
    counted = count(1, noun.removesuffix("s")) if text == "1" else f"{text} {noun}"
    return f"{counted}{slash}{per}"


def load_text(load: ModelLoad) -> str:
    """Return `41 requests/s now, up to 52 in the 140 s that a replica needs to start`."""
    now, upper = load.requests_per_second or 0.0, load.upper_requests_per_second
    text = amount_text(now, load.measure)
    if load.start_seconds or rate_text(upper) != rate_text(now):
        text += (
            f" now, up to {rate_text(upper)} in the {load.start_seconds:.0f} s that a replica needs to start"
        )
    if load.backlog_requests >= 1:
        text += f", {load.backlog_requests:.0f} will wait by then"
    return text


def capacity_text(variant: Variant) -> str:
    """Return `one serves 9.4 within TTFT 2 s (ITL 80 ms would allow 11)`; empty if unknown."""
    capacity = variant.capacity
    if capacity is None or not capacity.requests_per_second:
        return ""
    text = f"one serves {rate_text(capacity.requests_per_second)}"
    if capacity.limits:
        first, *others = capacity.limits
        text += f" within {first.text}"
        if others and others[0].requests_per_second < MOST_TOLD * first.requests_per_second:
            text += f" ({others[0].text} would allow {rate_text(others[0].requests_per_second)})"
    return text + _SOURCES.get(capacity.source, "")


def utilization_text(
    variants: Sequence[Variant], replicas: Sequence[int], requests_per_second: float, *, position: int
) -> str:
    """Return `85 % of 3 x 9.4 + 2 x 4 b`: the replicas at a position first, those of others with their name.

    All replicas that serve are listed and counted, whether or not new ones of their variant are counted on.
    It is empty if none serves anything.
    """
    own, others, provided = [], [], 0
    for at, (variant, number) in enumerate(zip(variants, replicas, strict=True)):
        if number and variant.capacity and variant.capacity.rate:
            provided += number * serving_rate(variant)
            text = f"{number} x {rate_text(variant.capacity.requests_per_second)}"
            if at == position:
                own.append(text)
            else:
                others.append(f"{text} {variant.name}")
    if not provided:
        return ""
    per_cent = round(100 * requests_per_second / (provided * RATE_UNIT))
    return f"{per_cent} % of {' + '.join(own + others)}"


def count(number: int, noun: str) -> str:
    """Return a number with its noun, with a plural s unless the number is 1."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def percent(share: float) -> str:
    """Return a share in percent with at most two decimals: 66.1 %. Only nothing is 0 %."""
    return f"{max(0.01, round(100 * share, 2)) if share > 0 else 0:g} %"


def listing(parts: Sequence[str]) -> str:
    """Return `a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def scarcity_clause(
    scarcity: Scarcity,
    variant: Variant,
    *,
    nodes: Sequence[Node],
    variants: Sequence[Variant],
    granted: Sequence[int],
    names_all: bool,
) -> str:
    """Return what prevents one more replica: `no H100 node has 8 free, 6 are held by priority 1 chat`.

    Holders are named with what protects their `granted` replicas. Unless `names_all`, variants of other
    namespaces are described by their priority only.
    """
    kind = variant.accelerator or "accelerator"
    size = variant.accelerators_per_pod
    if not scarcity.nodes:
        return _no_node(variant, nodes)
    if scarcity.largest < size:
        return f"no {kind} node has {size} in all, the largest has {scarcity.largest}"
    if scarcity.free >= size:
        room = f"no {kind} node has {size} free, {scarcity.free} are spread over {len(scarcity.nodes)} nodes"
    else:
        room = f"no {kind} node has {size} free" if size > 1 else f"no {kind} is free"
    named = _named_holders(scarcity, variant, variants, granted, names_all=names_all)
    held = [f"{amount} {'is' if amount == 1 else 'are'} held by {called}" for called, amount in named.items()]
    return ", ".join([room, listing(held)] if held else [room])


def _named_holders(
    scarcity: Scarcity,
    variant: Variant,
    variants: Sequence[Variant],
    granted: Sequence[int],
    *,
    names_all: bool,
) -> dict[str, int]:
    """Return the accelerators of the least important holders by name; one name may stand for several."""
    amounts: dict[str, int] = {}
    last: int | None = None
    for holder, amount in scarcity.holders:
        priority = None if holder == OTHERS else variants[holder].priority
        if len(amounts) == HOLDERS_NAMED and priority != last:
            break  # a name belongs to one priority, and holders are sorted by priority
        called = _holder(holder, variant, variants, granted, names_all=names_all)
        if called in amounts or len(amounts) < HOLDERS_NAMED:
            amounts[called] = amounts.get(called, 0) + amount
            last = priority
    return amounts


def rule_clause(variant: Variant) -> str:
    """Return the placement rules of a variant's pods that leave no room for one more replica."""
    size, pods = variant.accelerators_per_pod, variant.pods_per_replica
    rules = [variant.rules.on_domains.clause] if variant.rules.on_domains else []
    if pods > 1:
        where = f"in one {variant.together_in}" if variant.together_in else "at once"
        rules.append(f"{pods} pods of {size} {where}")
    rules += [rule.clause for rule in variant.rules.on_nodes]
    return f"no nodes have room for one more replica ({', '.join(rules)})"


def _no_node(variant: Variant, nodes: Sequence[Node]) -> str:
    alike = [node for node in nodes if variant.accelerator in ("", node.accelerator)]
    if not alike:
        return f"no node has {variant.accelerator}"
    if not any(node.schedulable for node in alike):
        return f"no {variant.accelerator or 'accelerator'} node is schedulable"
    kind = variant.accelerator or "accelerator"
    for label in sorted(topology_keys(variant)):
        if not any(key == label for node in alike for key, _ in node.labels):
            return f"no {kind} node has the label {label}, over which its pods are placed"
    return f"no {kind} node meets its node selector and tolerations"


def _holder(
    holder: int, variant: Variant, variants: Sequence[Variant], granted: Sequence[int], *, names_all: bool
) -> str:
    if holder == OTHERS:
        return "other workloads"
    other = variants[holder]
    if other is variant:
        return "its own replicas"
    protection = _protection(other, granted[holder])
    if other.namespace == variant.namespace:
        return f"priority {other.priority} {other.name}{protection}"
    if names_all:
        return f"priority {other.priority} {other.namespace}/{other.name}{protection}"
    return f"workloads of priority {other.priority} in other namespaces"


def _protection(variant: Variant, granted: int) -> str:
    """Return why a variant keeps all of its granted replicas, whatever others need; empty if it need not."""
    if variant.is_paused:
        return " (paused)"
    if variant.pinned_replicas is not None:
        return f" (pinned to {variant.pinned_replicas})"
    if 0 < granted <= variant.min_replicas:
        return f" (minReplicas is {variant.min_replicas})"
    return "" if variant.may_be_preempted else " (which may not be preempted)"
