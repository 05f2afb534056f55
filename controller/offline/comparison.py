"""The same question answered by every strategy, side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from statistics import fmean
from typing import Final

from controller.offline.spans import Spans, Tone, spans, wrapped
from controller.offline.table import price
from controller.planning.decision import Plan
from controller.planning.inputs import PlanningInputs
from controller.planning.settings import Strategy
from controller.planning.wording import count

HEADS: Final = ("STRATEGY", "COST/H", "SHORT", "PENDING", "STOPS", "UNMET BY PRIORITY")
_NUMBERS: Final = frozenset({"COST/H", "SHORT", "PENDING", "STOPS"})
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

    stopped: int
    """Replicas of now that it does not keep."""

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


def comparison_lines(answers: Sequence[Compared], *, columns: int) -> Iterator[Spans]:
    """Yield a head and a line for each strategy; nothing for none."""
    rows = [HEADS, *(comparison_row(answer) for answer in answers)] if answers else []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for index, row in enumerate(rows):
        cells = [
            cell.rjust(width) if name in _NUMBERS else cell.ljust(width)
            for name, cell, width in zip(HEADS, row, widths, strict=True)
        ]
        tone = Tone.PLAIN if index else Tone.HEADING
        yield spans((tone.value, _GAP.join(cells).rstrip()))
    for answer in answers:
        if answer.why_not:
            yield spans((Tone.ADVICE.value, f"{answer.strategy}: what runs stands; {answer.why_not}"))
    for text in explanations(answers):
        for line in wrapped(text, columns, later="    "):
            yield spans((Tone.FAINT.value, line))


def explanations(answers: Sequence[Compared]) -> Iterator[str]:
    """Yield why the first answer costs more than others that serve as much: what they stop serves now."""
    for other in answers[1:]:
        best = answers[0]
        serves = all(theirs <= ours for (_, theirs), (_, ours) in zip(other.unmet, best.unmet, strict=True))
        if not other.why_not and other.cost < best.cost and serves and other.stopped > best.stopped:
            yield (
                f"{other.strategy} costs less and stops {count(other.stopped, 'replica')} at once,"
                f" {best.strategy} {best.stopped}: replicas that serve are kept until those in their place"
                " are ready, and starts and stops have a price"
            )


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
        stopped=sum(max(0, item.current_replicas - item.replicas) for item in plan.decisions),
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


def comparison_row(answer: Compared) -> tuple[str, ...]:
    """Return what stands under each head."""
    unmet = ", ".join(f"{priority}: {share / 10:.3g} %" for priority, share in answer.unmet)
    numbers = (answer.short, answer.pending, answer.stopped)
    return answer.strategy, price(answer.cost), *map(str, numbers), unmet
