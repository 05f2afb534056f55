"""Numbers, lists, loads and capacities in words; `explain` and `case` make the sentences."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from controller.planning.demand import serving_rate
from controller.planning.load import RATE_UNIT, CapacitySource, ModelLoad
from controller.planning.snapshot import Variant

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


def first_of(names: Sequence[str], most: int) -> str:
    """Return the names as a list; if there are more than `most`, the first of them and how many follow."""
    more = len(names) - most
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:most])} and {more} more"
