"""The variants as a table that fits the terminal: it drops columns first, and then wraps names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from rich.cells import cell_len
from rich.table import Table

from controller.commands.plan.layout import in_order
from controller.commands.plan.terminal import Tone, harmless, table, wrapping_text
from controller.planning.decision import Decision, Plan, Reason
from controller.planning.problem import PER_MILLE
from controller.planning.snapshot import Snapshot, Variant
from controller.planning.wording import percent

Key = tuple[str, str]

_WORDS: Final = frozenset({"", "VARIANT", "MODEL", "ON", "REPLICAS", "WHY"})
_LEAST_WIDTH: Final = {"MODEL": 10, "VARIANT": 20}
"""Minimum widths of wrapped columns before other columns are dropped."""

_DROPPABLE: Final = ("MODEL", "WANTED", "COST/H", "ON", "PRIO")
"""Columns that may be dropped, in this order; other parts of the text contain the same facts."""

_GAP: Final = 2
_PALETTE: Final = (
    "cyan", "magenta", "blue", "green", "yellow",
    "bright_cyan", "bright_magenta", "bright_blue", "bright_green", "bright_yellow",
)  # fmt: skip


def variants_table(snapshot: Snapshot, plan: Plan, codes: Mapping[Key, str], *, columns: int) -> Table:
    """Return a table with a row for each variant, in the order in which they are served."""
    variants = {variant.key: variant for variant in snapshot.variants}
    decided = in_order(plan)
    rows = [_row(item, variants[item.namespace, item.name], codes) for item in decided]
    heads = fitting_heads(rows, columns, droppable=_DROPPABLE, least_width=_LEAST_WIDTH)
    made = table(heads, words=_WORDS, wrapped=_LEAST_WIDTH)
    for item, row in zip(decided, rows, strict=True):
        code, *cells = (row[head] for head in heads)
        made.add_row(wrapping_text(code, colour_of(code)), *cells, style=tone_of(item))
    return made


def colour_of(code: str) -> str:
    """Return the colour of a variant's code."""
    return _PALETTE[sum(ord(letter) * 53**at for at, letter in enumerate(reversed(code))) % len(_PALETTE)]


def tone_of(decision: Decision) -> Tone:
    """Return the tone of a decision."""
    if goes_short(decision):
        return Tone.BAD
    return Tone.ADVICE if decision.reason is Reason.HOLDING else Tone.PLAIN


def goes_short(decision: Decision) -> bool:
    """Tell whether a variant's model gets less than it needs."""
    return decision.unmet_per_mille > 0 or decision.reason is Reason.SHORTAGE


def price(amount: Decimal) -> str:
    """Return an amount of money without trailing zeros."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def place(decision: Decision, variant: Variant) -> str:
    """Return the accelerators of one replica, such as `H100 x4`."""
    kind = decision.accelerator or "any"
    return f"{kind} x{variant.accelerators_per_replica}" if variant.accelerators_per_replica else "none"


def _row(decision: Decision, variant: Variant, codes: Mapping[Key, str]) -> Mapping[str, str]:
    return {
        "": codes[variant.key],
        "VARIANT": harmless("/".join(variant.key)),
        "MODEL": harmless(decision.model_id),
        "PRIO": str(decision.priority),
        "ON": harmless(place(decision, variant)),
        "REPLICAS": f"{decision.current_replicas} -> {decision.replicas}",
        "WANTED": str(decision.unconstrained_replicas),
        "UNMET": percent(decision.unmet_per_mille / PER_MILLE) if decision.unmet_per_mille else "-",
        "COST/H": price(variant.cost_per_replica * decision.replicas),
        "WHY": f"{decision.reason}: {decision.bound_by}",
    }


def fitting_heads(
    rows: Sequence[Mapping[str, str]],
    columns: int,
    *,
    droppable: Sequence[str],
    least_width: Mapping[str, int],
) -> Sequence[str]:
    """Return the heads of the columns that fit; none without rows.

    `droppable` ones are left out, in this order; `least_width` is that of columns that may wrap.
    """
    if not rows:
        return ()
    widths = {
        head: min(max(cell_len(row[head]) for row in [*rows, {head: head}]), least_width.get(head, columns))
        for head in rows[0]
    }
    for head in droppable:
        if sum(widths.values()) + _GAP * (len(widths) - 1) > columns:
            widths.pop(head, None)
    return [*widths]
