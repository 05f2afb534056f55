"""The state of a fleet as text that fits a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

from rich.console import RenderableType

from controller.commands.plan.terminal import (
    Tone,
    fitting_heads,
    harmless,
    labelled_line,
    price,
    table,
    wrapping_text,
)
from controller.commands.status.fleet import (
    FINE,
    AcceleratorUse,
    BindingState,
    FleetProblem,
    FleetState,
    ModelState,
    Severity,
    VariantState,
    total,
)
from controller.planning.wording import count, percent, rate_text

_CENT: Final = Decimal("0.01")
_MOST_ROWS: Final = 200
"""Maximum number of rows of a table; a note counts the others."""

_MOST_PROBLEMS: Final = 20
_TONES: Final = {Severity.CRITICAL: Tone.BAD, Severity.ERROR: Tone.BAD, Severity.WARNING: Tone.ADVICE}
_WORDS: Final = frozenset({"ACCELERATOR", "MODEL", "ON", "BINDING", "REASON"})
_LEAST_WIDTH: Final = {"MODEL": 22, "BINDING": 16, "ON": 6}
_DROPPABLE: Final = ("SAVED/H", "ON", "ITL", "TTFT", "WANTED", "PRIO", "REQ/S", "COST/H")
"""Columns that may be dropped, in this order; `-o json` has them all."""

USE_HEADS: Final = ("ACCELERATOR", "NODES", "TOTAL", "MODELS", "OTHERS", "FREE", "CORDONED", "PENDING")
_MOST_SHORT: Final = 10
_RANKS: Final = {False: 0, None: 1, True: 2}
"""States of the condition `Ready`, the worst first."""

Rows = Sequence[tuple[Mapping[str, str], Tone]]


def fleet_parts(fleet: FleetState, *, columns: int) -> Iterator[RenderableType]:
    """Yield the whole text for a terminal with the given number of columns."""
    yield wrapping_text(headline(fleet), _headline_tone(fleet))
    if fleet.accelerators is not None:
        yield ""
        rows = [dict(zip(USE_HEADS, use_cells(item), strict=True)) for item in fleet.accelerators]
        yield from _table([(row, Tone.PLAIN) for row in rows], columns)
    if fleet.models:
        yield ""
        yield from _table([(model_row(item), _tone(worst(item))) for item in fleet.models], columns)
    if fleet.bindings:
        yield ""
        yield from _table([(_binding_row(item), _tone(item)) for item in fleet.bindings], columns)
    yield from _shortages(fleet)
    if fleet.problems:
        yield ""
    yield from problem_parts(fleet.problems[:_MOST_PROBLEMS])
    if len(fleet.problems) > _MOST_PROBLEMS:
        yield wrapping_text(f"{len(fleet.problems) - _MOST_PROBLEMS} more: stowplan explain -A", Tone.FAINT)
    yield from unread_parts(fleet)


def headline(fleet: FleetState) -> str:
    """Return the state in one sentence."""
    place = f" in namespace {fleet.namespace!r}" if fleet.namespace else ""
    if not (fleet.models or fleet.bindings):
        if any(item.reason == "Forbidden" for item in fleet.problems):
            return f"it is not known what is planned{place}: you may not list it"
        missing = "there is no VariantAutoscaling, annotated autoscaler or binding"
        return f"no model is planned{place or ' here'}: {missing}"
    parts = [count(len(fleet.models), "model")] if fleet.models else []
    parts += [f"{len(fleet.short)} short"] if fleet.short else []
    unknown = sum(item.unmet is None for item in fleet.models)
    parts += [f"{unknown} not known"] if unknown else []
    parts += [count(len(fleet.problems), "problem")] if fleet.problems else ["no problem"]
    parts += [] if fleet.cost_per_hour is None else [f"{money(fleet.cost_per_hour)} per hour"]
    if (saved := fleet.saved_per_hour) is not None:
        parts.append(f"following the advice would {saving_text(saved)} per hour")
    return ", ".join(parts)


def saving_text(saved: Decimal) -> str:
    """Return what following advice would save or cost: `save 12`."""
    return f"{'save' if saved >= 0 else 'cost'} {money(abs(saved))}"


def _headline_tone(fleet: FleetState) -> Tone:
    worst = fleet.problems[0].severity if fleet.problems else None
    return Tone.GOOD if worst is None else _TONES[worst]


def _table(rows: Rows, columns: int) -> Iterator[RenderableType]:
    shown = rows[:_MOST_ROWS]
    heads = fitting_heads([row for row, _ in shown], columns, droppable=_DROPPABLE, least_width=_LEAST_WIDTH)
    made = table(heads, words=_WORDS, wrapped=_LEAST_WIDTH)
    for row, tone in shown:
        made.add_row(*(wrapping_text(row[head]) for head in heads), style=tone)
    yield made
    if len(rows) > len(shown):
        yield wrapping_text(f"{len(rows) - len(shown)} more: use -n, or -o json", Tone.FAINT)


def use_cells(use: AcceleratorUse) -> Sequence[str]:
    """Return the cells of a type of accelerators, in the order of USE_HEADS."""
    numbers = (use.models, use.others, use.free, use.unusable, use.pending)
    shown = ("?" if number is None else str(number) for number in numbers)
    return (harmless(use.accelerator or "unknown"), str(use.nodes), str(use.total), *shown)


def model_row(model: ModelState) -> Mapping[str, str]:
    """Return the cells of a model by the heads of their columns."""
    rate, level, saved = model.requests_per_second, model.service_level, model.saved_per_hour
    used = sorted({item.accelerator for item in model.variants if item.requested or item.granted})
    return {
        "MODEL": harmless(f"{model.namespace}/{model.model_id}"),
        "PRIO": str(model.priority),
        "REQ/S": "-" if rate is None else rate_text(rate),
        "TTFT": within_text(level, "ttft"),
        "ITL": within_text(level, "itl"),
        "READY": _number(total(item.ready for item in model.variants)),
        "GRANTED": _number(total(item.granted for item in model.variants)),
        "WANTED": _number(total(item.wanted for item in model.variants)),
        "ON": harmless(", ".join(filter(None, used)) or "-"),
        "UNMET": "?" if model.unmet is None else percent(model.unmet) if model.unmet else "-",
        "COST/H": "?" if model.cost_per_hour is None else money(model.cost_per_hour),
        "SAVED/H": "-" if saved is None else money(saved),
        "REASON": harmless(worst(model).reason),
    }


def worst(model: ModelState) -> VariantState:
    """Return the variant with the worst state, or of several the first."""
    return min(model.variants, key=lambda item: (_RANKS[item.is_ready], item.reason in FINE))


def within_text(level: Mapping[str, object], target: str) -> str:
    """Return how many requests of the last hour were within a target: `98.5 % in 2 s`."""
    limit, missed = level.get(f"{target}Target"), level.get(f"{target}Missed")
    try:
        return f"{percent(round(1 - float(str(missed)), 3))} in {seconds_text(float(str(limit)))}"
    except ValueError:
        return "-"


def seconds_text(seconds: float) -> str:
    """Return a latency: `2 s`, `80 ms`."""
    return f"{seconds:g} s" if seconds >= 1 else f"{1000 * seconds:g} ms"


def _binding_row(item: BindingState) -> Mapping[str, str]:
    return {
        "BINDING": harmless(f"{item.namespace}/{item.name}"),
        "REPLICAS": _number(item.requested),
        "GRANTED": _number(item.granted),
        "WANTED": _number(item.wanted),
        "REASON": harmless(item.reason),
    }


def _tone(item: VariantState | BindingState) -> Tone:
    if item.is_ready:
        return Tone.BAD if item.reason == "Shortage" else Tone.PLAIN
    return Tone.ADVICE if item.is_ready is None else Tone.BAD


def _shortages(fleet: FleetState) -> Iterator[RenderableType]:
    if not fleet.short:
        return
    yield ""
    for model in fleet.short[:_MOST_SHORT]:
        unmet = f"{percent(model.unmet or 0.0)} of what it needs is missing"
        yield labelled_line("short: ", f"{model.namespace}/{model.model_id}: {unmet}", Tone.BAD)
    if len(fleet.short) > _MOST_SHORT:
        yield wrapping_text(f"{len(fleet.short) - _MOST_SHORT} more models are short", Tone.BAD)
    if best := fleet.helps_most:
        text = f"{best.relief} (for {best.namespace}/{best.model_id}, by priority)"
        yield labelled_line("would help most: ", text, Tone.ADVICE)


def problem_parts(problems: Sequence[FleetProblem]) -> Iterator[RenderableType]:
    """Yield problems, each with the command that shows more."""
    for problem in problems:
        text = f"{problem.subject}: {problem.reason}: {problem.message}"
        yield labelled_line(f"{problem.severity}: ", text, _TONES[problem.severity])
        yield labelled_line("  ", problem.command, Tone.FAINT)


def unread_parts(fleet: FleetState) -> Iterator[RenderableType]:
    """Yield what may not be listed, and the command that grants it."""
    if fleet.unread:
        text = f"you may not list {', '.join(fleet.unread)}: what depends on it is missing or a question mark"
        yield labelled_line("not shown: ", text, Tone.ADVICE)
        command = f"kubectl create clusterrole NAME --verb=list --resource={','.join(fleet.unread)}"
        yield labelled_line("  ", command, Tone.FAINT)


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def money(amount: Decimal) -> str:
    """Return an amount with at most two decimals."""
    return price(amount.quantize(_CENT))
