"""The variants as a table that fits: too little room costs the ends of names first, then whole columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

from controller.offline.spans import Spans, Tone, colour_of, cut_front, harmless, padded, spans, width_of
from controller.planning.decision import Decision, Plan, Reason
from controller.planning.snapshot import Snapshot, Variant
from controller.planning.wording import percent

Key = tuple[str, str]

_GAP: Final = "  "
_HEADS: Final = ("", "VARIANT", "MODEL", "PRIO", "ON", "REPLICAS", "WANTED", "UNMET", "COST/H", "WHY")
_RIGHT: Final = frozenset({"PRIO", "WANTED", "UNMET", "COST/H"})
_CUTTABLE: Final = {"MODEL": 10, "VARIANT": 20}
"""Columns that may be cut, in this order, and to which width before others are left out."""

_SHORTEST: Final = 4

_DROPPABLE: Final = ("MODEL", "WANTED", "COST/H", "ON", "PRIO")
"""Columns that may be left out, in this order: what else there is says it, too."""


def table_lines(snapshot: Snapshot, plan: Plan, codes: Mapping[Key, str], *, columns: int) -> Iterator[Spans]:
    """Yield a head, and a line for each variant in the order in which they are served."""
    variants = {variant.key: variant for variant in snapshot.variants}
    decided = in_order(plan)
    rows = [_row(item, variants[item.namespace, item.name], codes) for item in decided]
    widths = _widths([_HEADS, *rows], columns)
    yield spans((Tone.HEADING.value, _joined(_HEADS, widths)))
    for item, row in zip(decided, rows, strict=True):
        code, rest = row[0], _joined(row, widths)[widths[""] :]
        yield spans((colour_of(code), padded(code, widths[""])), (tone_of(item).value, rest))


def in_order(plan: Plan) -> tuple[Decision, ...]:
    """Return the decisions in the order in which they are served."""
    return tuple(sorted(plan.decisions, key=lambda item: (item.priority, item.namespace, item.name)))


def tone_of(decision: Decision) -> Tone:
    """Return how a decision is meant."""
    if goes_short(decision):
        return Tone.BAD
    return Tone.ADVICE if decision.reason is Reason.HOLDING else Tone.PLAIN


def goes_short(decision: Decision) -> bool:
    """Tell whether a variant's model gets less than it needs."""
    return decision.unmet_per_mille > 0 or decision.reason is Reason.SHORTAGE


def price(amount: Decimal) -> str:
    """Return an amount of money without digits that say nothing."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def place(decision: Decision, variant: Variant) -> str:
    """Return what one replica needs: `H100 x4`."""
    kind = decision.accelerator or "any"
    return f"{kind} x{variant.accelerators_per_replica}" if variant.accelerators_per_replica else "none"


def _row(decision: Decision, variant: Variant, codes: Mapping[Key, str]) -> tuple[str, ...]:
    return (
        codes[variant.key],
        harmless("/".join(variant.key)),
        harmless(decision.model_id),
        str(decision.priority),
        harmless(place(decision, variant)),
        f"{decision.current_replicas} -> {decision.replicas}",
        str(decision.unconstrained_replicas),
        percent(decision.unmet_per_mille) if decision.unmet_per_mille else "-",
        price(variant.cost_per_replica * decision.replicas),
        f"{decision.reason}: {decision.bound_by}",
    )


def _widths(rows: Sequence[Sequence[str]], columns: int) -> Mapping[str, int]:
    """Return how wide each column is that there is room for."""
    columns_of = zip(_HEADS, zip(*rows, strict=True), strict=True)
    widths = {head: max(map(width_of, cells)) for head, cells in columns_of}
    shortest = widths | {head: min(widths[head], least) for head, least in _CUTTABLE.items()}
    for head in _DROPPABLE:
        if _excess(shortest, columns) > 0:
            del widths[head], shortest[head]
    for head in _CUTTABLE:
        if head in widths:
            widths[head] -= max(0, min(_excess(widths, columns), widths[head] - _SHORTEST))
    return widths


def _excess(widths: Mapping[str, int], columns: int) -> int:
    return sum(widths.values()) + len(_GAP) * (len(widths) - 1) - columns


def _joined(row: Sequence[str], widths: Mapping[str, int]) -> str:
    cells = dict(zip(_HEADS, row, strict=True))
    cells["VARIANT"] = cut_front(cells["VARIANT"], widths["VARIANT"])
    return _GAP.join(
        padded(cells[head], width, to_the_right=head in _RIGHT) for head, width in widths.items()
    )
