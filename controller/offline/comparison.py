"""The same question answered by every strategy, side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from statistics import fmean
from typing import Final

from controller.offline.spans import Spans, Tone, spans
from controller.offline.table import price
from controller.planning.decision import Plan
from controller.planning.inputs import PlanningInputs
from controller.planning.settings import Strategy

_HEADS: Final = ("STRATEGY", "COST/H", "SHORT", "PENDING", "UNMET BY PRIORITY")
_GAP: Final = "  "


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """What one strategy makes of it."""

    strategy: str
    cost: Decimal
    short: int
    """Models that go short."""

    pending: int
    """Replicas that its own numbers ask for and that limits or nodes don't allow: they would stay pending."""

    unmet: tuple[tuple[int, float], ...]
    """(priority, mean share of required capacity that its models lack, in per mille)."""

    why_not: str = ""
    """Why it has no answer, and what runs stands; empty where it has one."""


def compared(inputs: PlanningInputs, best: Plan) -> tuple[Compared, ...]:
    """Return every strategy's answer, beginning with the one that is shown."""
    shown = best.solver.strategy
    others = [strategy for strategy in Strategy if strategy != shown]
    return (
        _compared(inputs, best, shown),
        *(_compared(inputs, _plan(inputs, strategy), strategy) for strategy in others),
    )


def comparison_lines(answers: Sequence[Compared]) -> Iterator[Spans]:
    """Yield a head and a line for each strategy; nothing for none."""
    rows = [_HEADS, *(_row(answer) for answer in answers)] if answers else []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for index, row in enumerate(rows):
        cells = [
            cell.rjust(width) if name in {"COST/H", "SHORT", "PENDING"} else cell.ljust(width)
            for name, cell, width in zip(_HEADS, row, widths, strict=True)
        ]
        tone = Tone.PLAIN if index else Tone.HEADING
        yield spans((tone.value, _GAP.join(cells).rstrip()))
    for answer in answers:
        if answer.why_not:
            yield spans((Tone.ADVICE.value, f"{answer.strategy}: what runs stands; {answer.why_not}"))


def _plan(inputs: PlanningInputs, strategy: Strategy) -> Plan:
    from controller.planning.plan import plan  # noqa: PLC0415 (the solver takes a second to load: not for --help)

    return plan(inputs.snapshot, inputs.state, replace(inputs.settings, strategy=strategy))[0]


def _compared(inputs: PlanningInputs, plan: Plan, strategy: str) -> Compared:
    missing = {(item.namespace, item.model_id): item.unmet_per_mille for item in plan.decisions}
    by_priority: dict[int, list[int]] = defaultdict(list)
    for priority, model in sorted({(i.priority, (i.namespace, i.model_id)) for i in plan.decisions}):
        by_priority[priority].append(missing[model])
    return Compared(
        strategy=strategy,
        cost=plan.cost,
        short=sum(unmet > 0 for unmet in missing.values()),
        pending=_pending(inputs, plan, strategy),
        unmet=tuple((priority, fmean(shares)) for priority, shares in by_priority.items()),
        why_not="" if plan.solver.is_answered else plan.solver.message,
    )


def _pending(inputs: PlanningInputs, plan: Plan, strategy: str) -> int:
    """Return the replicas asked for in vain; the solver asks for none."""
    from controller.planning.ruled import asked  # noqa: PLC0415 (not for --help)

    if strategy not in {item for item in Strategy if item is not Strategy.OPTIMAL}:
        return 0
    wanted = asked(inputs.snapshot, inputs.state, inputs.settings, Strategy(strategy))
    return sum(max(0, wanted[item.namespace, item.name] - item.replicas) for item in plan.decisions)


def _row(answer: Compared) -> tuple[str, ...]:
    unmet = ", ".join(f"{priority}: {share / 10:.3g} %" for priority, share in answer.unmet)
    return answer.strategy, price(answer.cost), str(answer.short), str(answer.pending), unmet
