"""The state of a fleet as text that fits a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

from rich.console import RenderableType

from controller.commands.plan.table import fitting_heads, price
from controller.commands.plan.terminal import Tone, harmless, labelled_line, table, wrapping_text
from controller.commands.status.fleet import (
    AcceleratorUse,
    BindingState,
    Fleet,
    ModelState,
    Problem,
    Severity,
    VariantState,
)
from controller.planning.wording import count, percent, rate_text

_CENT: Final = Decimal("0.01")
_MOST_ROWS: Final = 200
"""Maximum number of rows of a table; a note counts the others."""

_MOST_PROBLEMS: Final = 20
_TONES: Final = {Severity.CRITICAL: Tone.BAD, Severity.ERROR: Tone.BAD, Severity.WARNING: Tone.ADVICE}
_WORDS: Final = frozenset({"ACCELERATOR", "MODEL", "VARIANT", "ON", "BINDING", "REASON", "TTFT", "ITL"})
_LEAST_WIDTH: Final = {"MODEL": 12, "VARIANT": 16, "BINDING": 16}
_DROPPABLE: Final = ("ITL", "TTFT", "SAVED/H", "VARIANT", "ON", "PRIO", "COST/H", "REQUESTS/S")
"""Columns that may be dropped, in this order; `-o json` has them all."""

Rows = Sequence[tuple[Mapping[str, str], Tone]]


def fleet_parts(fleet: Fleet, *, columns: int) -> Iterator[RenderableType]:
    """Yield the whole text for a terminal with the given number of columns."""
    yield wrapping_text(headline(fleet), _headline_tone(fleet))
    if fleet.accelerators is not None:
        yield ""
        yield from _table([(_accelerator_row(item), Tone.PLAIN) for item in fleet.accelerators], columns)
    if fleet.models:
        yield ""
        rows = [
            (_model_row(model, item, is_first=not place), _tone(item))
            for model in fleet.models
            for place, item in enumerate(model.variants)
        ]
        yield from _table(rows, columns)
    if fleet.bindings:
        yield ""
        yield from _table([(_binding_row(item), _tone(item)) for item in fleet.bindings], columns)
    yield from _shortages(fleet)
    yield from _problem_parts(fleet.problems)
    yield from (labelled_line("not shown: ", text, Tone.ADVICE) for text in fleet.unread)


def headline(fleet: Fleet) -> str:
    """Return the state in one sentence."""
    if not (fleet.models or fleet.bindings):
        return "no model is planned here: there is no VariantAutoscaling, annotated autoscaler or binding"
    parts = [count(len(fleet.models), "model")] if fleet.models else []
    parts += [f"{len(fleet.short)} short"] if fleet.short else []
    parts += [count(len(fleet.problems), "problem")] if fleet.problems else ["no problem"]
    parts += [f"{_money(fleet.cost_per_hour)} per hour"] if fleet.models else []
    if (saved := fleet.saved_per_hour) is not None:
        word = "save" if saved >= 0 else "cost"
        parts.append(f"following the advice would {word} {_money(abs(saved))} per hour")
    return ", ".join(parts)


def _headline_tone(fleet: Fleet) -> Tone:
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


def _accelerator_row(use: AcceleratorUse) -> Mapping[str, str]:
    return {
        "ACCELERATOR": use.accelerator or "unknown",
        "NODES": str(use.nodes),
        "TOTAL": str(use.total),
        "MODELS": str(use.models),
        "OTHERS": str(use.others),
        "FREE": str(use.free),
        "CORDONED": str(use.unusable),
        "PENDING": str(use.pending),
    }


def _model_row(model: ModelState, item: VariantState, *, is_first: bool) -> Mapping[str, str]:
    """Return one row per variant; what concerns the model is only in its first one."""
    rate, level = model.requests_per_second, model.service_level
    unmet = "?" if model.unmet is None else percent(model.unmet) if model.unmet else "-"
    of_model = {
        "MODEL": harmless(f"{model.namespace}/{model.model_id}"),
        "PRIO": str(model.priority),
        "REQUESTS/S": "-" if rate is None else rate_text(rate),
        "TTFT": within_text(level, "ttft"),
        "ITL": within_text(level, "itl"),
        "UNMET": unmet,
    }
    return {
        **(of_model if is_first else dict.fromkeys(of_model, "")),
        "VARIANT": harmless(item.name),
        "ON": harmless(item.accelerator or "-"),
        "READY": _number(item.ready),
        "GRANTED": _number(item.granted),
        "WANTED": _number(item.wanted),
        "COST/H": "-" if item.cost_per_hour is None else _money(item.cost_per_hour),
        "SAVED/H": "-" if item.saved_per_hour is None else _money(item.saved_per_hour),
        "REASON": harmless(item.reason),
    }


def within_text(level: Mapping[str, object], target: str) -> str:
    """Return how many requests of the last hour were within a target: `98.5 % in 2 s`."""
    limit, missed = level.get(f"{target}Target"), level.get(f"{target}Missed")
    try:
        return f"{percent(1 - float(str(missed)))} in {_seconds(float(str(limit)))}"
    except ValueError:
        return "-"


def _seconds(seconds: float) -> str:
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


def _shortages(fleet: Fleet) -> Iterator[RenderableType]:
    if not fleet.short:
        return
    yield ""
    for model in fleet.short:
        unmet = f"{percent(model.unmet or 0.0)} of what it needs is missing"
        yield labelled_line("short: ", f"{model.namespace}/{model.model_id}: {unmet}", Tone.BAD)
    if best := fleet.helps_most:
        yield labelled_line(
            "helps most: ", f"{best.relief} (for {best.namespace}/{best.model_id})", Tone.ADVICE
        )


def _problem_parts(problems: Sequence[Problem]) -> Iterator[RenderableType]:
    if not problems:
        return
    yield ""
    for problem in problems[:_MOST_PROBLEMS]:
        text = f"{problem.subject}: {problem.reason}: {problem.message}"
        yield labelled_line(f"{problem.severity}: ", text, _TONES[problem.severity])
        yield labelled_line("  ", problem.command, Tone.FAINT)
    if len(problems) > _MOST_PROBLEMS:
        yield wrapping_text(f"{len(problems) - _MOST_PROBLEMS} more: stowplan explain -A", Tone.FAINT)


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _money(amount: Decimal) -> str:
    return price(amount.quantize(_CENT))
