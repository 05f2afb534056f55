"""What a person reads: how good and how dear every engine is, and who beats whom."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from hack.bench.goals import Goal, shown
from hack.bench.placement.comparison import comparisons, cost_over_bound_percent, cost_ratio, disproved
from hack.bench.placement.outcome import Outcome
from hack.bench.table import Row, aligned
from hack.fleets.score import Unmet

_NONE: Final = "-"


def answers_table(outcomes: Sequence[Outcome], *, ours: str) -> list[str]:
    """Return the lines of the table of answers: means over the seeds, a line for each engine."""
    head = (
        "family",
        "models",
        "engine",
        "CPU s",
        "wall s",
        "MB",
        "below minimum",
        "unmet by value %",
        "by model %",
        "gap %",
        "cost over bound %",
        "cost to ours",
        "pending",
        "answers",
        "possible",
    )
    rows: list[Row] = [head]
    last: tuple[str, int] | None = None
    for (family, size, engine), group in _grouped(outcomes):
        title = ("", "") if (family, size) == last else (family, str(size))
        last = (family, size)
        rows.append((*title, engine, *_answer(group, outcomes, ours=ours)))
    return aligned(rows)


def duels_table(outcomes: Sequence[Outcome], *, ours: str) -> list[str]:
    """Return the lines of the table of ours against every other engine, in lexicographic order."""
    head = (f"{ours} against", "models", "wins", "ties", "losses", "worst loss %", "at")
    rows: list[Row] = [head]
    found = list(comparisons(outcomes, ours=ours))
    for engine, size in sorted({(one.other.engine, one.other.instance.size) for one in found}):
        here = [one for one in found if (one.other.engine, one.other.instance.size) == (engine, size)]
        count = Counter(one.verdict.value for one in here)
        lost = [one for one in here if one.verdict == "loss"]
        worst = max(lost, key=lambda one: one.difference_percent, default=None)
        place = f"{worst.level}, {worst.other.instance.name}" if worst else _NONE
        loss = shown(worst.difference_percent) if worst else _NONE
        rows.append((engine, str(size), *(str(count[v]) for v in ("win", "tie", "loss")), loss, place))
    return aligned(rows)


def sequences_table(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the lines of the table of sequences: what each step costs, and how much it moves."""
    head = (
        "sequences",
        "models",
        "engine",
        "steps",
        "CPU ms a step",
        "cost a step",
        "unmet by value %",
        "started %",
        "stopped %",
        "accelerators started a step",
        "reversals a step",
    )
    rows: list[Row] = [head]
    for (family, size, engine), group in _grouped([one for one in outcomes if one.steps > 1]):
        used = sum(one.used_accelerators for one in group) or 1
        started, stopped = (
            shown(100 * sum(counts) / used)
            for counts in (
                [one.started_accelerators for one in group],
                [one.stopped_accelerators for one in group],
            )
        )
        spent = statistics.median(s for one in group for s in one.cpu_seconds[1:])
        cost = _mean(group, lambda one: one.levels["cost"] / one.steps / 1e6)
        rows.append(
            (
                family,
                str(size),
                engine,
                str(group[0].steps),
                shown(spent * 1000),
                cost,
                _unmet(group, _by_value),
                started,
                stopped,
                _mean(group, lambda one: one.started_accelerators / (one.steps - 1)),
                _mean(group, lambda one: one.reversals / (one.steps - 1)),
            )
        )
    return aligned(rows)


def goals_table(found: Sequence[Goal]) -> list[str]:
    """Return the lines of the table of goals: what was measured, and by how much it is met or missed."""
    rows: list[Row] = [("goal", "measured", "wanted at most", "outcome")]
    rows += ((goal.name, goal.measured, f"{goal.most:.4g} {goal.unit}", _distance(goal)) for goal in found)
    return aligned(rows)


def _distance(goal: Goal) -> str:
    """Return whether a goal is met, and its distance from what was wanted."""
    times = f", {shown(goal.value / goal.most)} times" if goal.most else ""
    if goal.is_met or goal.is_upper_bound:
        return f"{goal.outcome}{times}"
    return f"missed by {shown(goal.value - goal.most)} {goal.unit}{times}"


def failures(outcomes: Sequence[Outcome]) -> list[str]:
    """Return a line for each instance without an answer, with a wrong one, or with a bound that is none."""
    lines = [
        f"no answer: {one.engine} on {one.instance.name}: {one.failure}" for one in outcomes if one.failure
    ]
    lines += [f"wrong: {one.engine} on {one.instance.name}: {one.wrong[0]}" for one in outcomes if one.wrong]
    return [*lines, *(f"disproved: {text}" for text in disproved(outcomes))]


def _answer(group: Sequence[Outcome], outcomes: Sequence[Outcome], *, ours: str) -> Row:
    own = {one.instance: one for one in outcomes if one.engine == ours}
    proofs = {one.instance: [p for p in outcomes if p.instance == one.instance] for one in group}
    return (
        shown(statistics.mean(statistics.median(one.cpu_seconds) for one in group)),
        shown(statistics.mean(statistics.median(one.wall_seconds) for one in group)),
        shown(max(one.peak_mb for one in group)),
        _mean(group, _below_minimum),
        _unmet(group, _by_value),
        _unmet(group, lambda unmet: unmet.by_model_percent),
        _mean(group, lambda one: one.worst_gap_percent, exact=True),
        _mean(group, lambda one: cost_over_bound_percent(one, proofs[one.instance]), exact=True),
        _mean(group, lambda one: cost_ratio(one, own.get(one.instance)), exact=True),
        _mean(group, lambda one: one.pending_accelerators),
        _answers(group),
        "no" if any(one.wrong for one in group) else "yes",
    )


def _answers(group: Sequence[Outcome]) -> str:
    """Return how many different answers came of how many tries; more of seeds are told by the worst."""
    worst = max(group, key=lambda one: len(set(one.plans)))
    return f"{len(set(worst.plans))} of {len(worst.plans)}" if len(worst.plans) > 1 else _NONE


def _grouped(outcomes: Sequence[Outcome]) -> Iterator[tuple[tuple[str, int, str], list[Outcome]]]:
    """Yield what has an answer by family, size and engine, in the order of appearance."""
    groups: dict[tuple[str, int, str], list[Outcome]] = {}
    for one in outcomes:
        if one.levels:
            groups.setdefault((one.instance.family, one.instance.size, one.engine), []).append(one)
    yield from groups.items()


def _below_minimum(one: Outcome) -> float:
    """Return how many replicas are missing that a model is to keep whatever is asked of it."""
    return sum(value for name, value in one.levels.items() if name.startswith("minimum")) / 1000


def _by_value(unmet: Unmet) -> float:
    return unmet.by_value_percent


def _unmet(group: Sequence[Outcome], percent: Callable[[Unmet], float]) -> str:
    """Return the unmet demand of each priority, the most important first."""
    of_priority: dict[int, list[float]] = {}
    for unmet in (unmet for one in group for unmet in one.unmet):
        of_priority.setdefault(unmet.priority, []).append(percent(unmet))
    return "/".join(f"{statistics.mean(values):.3g}" for _, values in sorted(of_priority.items())) or _NONE


def _mean(group: Sequence[Outcome], value: Callable[[Outcome], float | None], *, exact: bool = False) -> str:
    known = [found for found in map(value, group) if found is not None]
    if not known:
        return _NONE
    return f"{statistics.mean(known):.4f}" if exact else shown(statistics.mean(known))
