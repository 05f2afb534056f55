"""The printed tables: quality and CPU cost of every engine, and comparisons with ours."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from hack.bench.compared import OURS
from hack.bench.goals import Goal, short_number
from hack.bench.placement.comparison import comparisons, cost_over_bound_percent, cost_ratio, disproved
from hack.bench.placement.goals import cpu_seconds, is_best, small
from hack.bench.placement.result import EngineResult
from hack.bench.table import Columns, Row, align, group_by, mean_of, table_lines
from hack.fleets.score import Unmet

Group = Sequence[EngineResult]

_NONE: Final = "-"


def _groups(results: Sequence[EngineResult]) -> list[list[EngineResult]]:
    """Return the results with an answer by family, size and engine, in order of appearance."""
    answered = [one for one in results if one.levels]
    return group_by(answered, lambda one: (one.instance.family, one.instance.size, one.engine))


def _answers(group: Group) -> str:
    """Return the number of different answers of how many repeats, for the seed with the most."""
    worst = max(group, key=lambda one: len(set(one.plans)))
    return f"{len(set(worst.plans))} of {len(worst.plans)}" if len(worst.plans) > 1 else _NONE


def _below_minimum(one: EngineResult) -> float:
    """Return the number of missing minimum replicas; a minimum is one replica of a model."""
    return sum(value for name, value in one.levels.items() if name.startswith("minimum")) / 1000


def _unmet(percent: Callable[[Unmet], float]) -> Callable[[Group], str]:
    """Return a cell with the mean unmet demand of each priority, the most important first."""

    def cell(group: Group) -> str:
        of_priority = group_by((one for each in group for one in each.unmet), lambda unmet: unmet.priority)
        of_priority.sort(key=lambda unmet: unmet[0].priority)
        return "/".join(f"{statistics.mean(map(percent, each)):.3g}" for each in of_priority) or _NONE

    return cell


def _of_used(count: Callable[[EngineResult], int]) -> Callable[[Group], str]:
    """Return a cell with a count of accelerators, as a percentage of those in use."""
    return lambda group: short_number(
        100 * sum(map(count, group)) / (sum(one.used_accelerators for one in group) or 1)
    )


def answers_table(results: Sequence[EngineResult]) -> list[str]:
    """Return the lines of the table of answers, one per engine, with means over the seeds; no sequences."""
    own = {one.instance: one for one in results if one.engine == OURS}

    def over_bound(one: EngineResult) -> float | None:
        return cost_over_bound_percent(one, [proof for proof in results if proof.instance == one.instance])

    columns: Columns[Group] = (
        ("engine", lambda group: group[0].engine),
        ("CPU s", mean_of(lambda one: statistics.median(one.cpu_seconds))),
        ("wall s", mean_of(lambda one: statistics.median(one.wall_seconds))),
        ("MB", lambda group: short_number(max(one.peak_mb for one in group))),
        ("below minimum", mean_of(_below_minimum)),
        ("unmet by value %", _unmet(lambda unmet: unmet.by_value_percent)),
        ("by model %", _unmet(lambda unmet: unmet.by_model_percent)),
        ("gap %", mean_of(lambda one: one.worst_gap_percent, exact=True)),
        ("cost over bound %", mean_of(over_bound, exact=True)),
        ("cost to ours", mean_of(lambda one: cost_ratio(one, own.get(one.instance)), exact=True)),
        ("pending", mean_of(lambda one: one.pending_accelerators)),
        ("answers", _answers),
        ("possible", lambda group: "no" if any(one.wrong for one in group) else "yes"),
    )
    rows: list[Row] = [("family", "models", *(head for head, _ in columns))]
    last: tuple[str, str] | None = None
    for group in _groups([one for one in results if one.steps == 1]):
        title = group[0].instance.family, str(group[0].instance.size)
        rows.append((*(("", "") if title == last else title), *(cell(group) for _, cell in columns)))
        last = title
    return align(rows)


def duels_table(results: Sequence[EngineResult]) -> list[str]:
    """Return the lines of the table of lexicographic comparisons of ours with every other engine."""
    head = (f"{OURS} against", "models", "wins", "ties", "losses", "worst loss %", "at")
    rows: list[Row] = [head]
    items = list(comparisons(results))
    for engine, size in sorted({(one.other.engine, one.other.instance.size) for one in items}):
        here = [one for one in items if (one.other.engine, one.other.instance.size) == (engine, size)]
        count = Counter(one.standing.value for one in here)
        lost = [one for one in here if one.standing == "loss"]
        worst = max(lost, key=lambda one: one.difference_percent, default=None)
        place = f"{worst.level}, {worst.other.instance.name}" if worst else _NONE
        loss = short_number(worst.difference_percent) if worst else _NONE
        rows.append((engine, str(size), *(str(count[v]) for v in ("win", "tie", "loss")), loss, place))
    return align(rows)


_SEQUENCES: Final[Columns[Group]] = (
    ("sequences", lambda group: group[0].instance.family),
    ("models", lambda group: str(group[0].instance.size)),
    ("engine", lambda group: group[0].engine),
    ("steps", lambda group: str(group[0].steps)),
    (
        "CPU ms a step",
        lambda group: short_number(1000 * statistics.median(s for one in group for s in one.cpu_seconds[1:])),
    ),
    ("cost a step", mean_of(lambda one: one.levels["cost"] / one.steps / 1e6)),
    ("unmet by value %", _unmet(lambda unmet: unmet.by_value_percent)),
    ("started %", _of_used(lambda one: one.started_accelerators)),
    ("stopped %", _of_used(lambda one: one.stopped_accelerators)),
    ("accelerators started a step", mean_of(lambda one: one.started_accelerators / (one.steps - 1))),
    ("reversals a step", mean_of(lambda one: one.reversals / (one.steps - 1))),
)


def sequences_table(results: Sequence[EngineResult]) -> list[str]:
    """Return the lines of the table of sequences: the cost of each step, and the replicas that it changes."""
    return table_lines(_SEQUENCES, _groups([one for one in results if one.steps > 1]))


def small_table(results: Sequence[EngineResult], *, slowness: float) -> list[str]:
    """Return the lines of the table of our small fleets, with times at the pace of the goals' machine."""

    def cpu_times(group: Group) -> list[float]:
        return [cpu_seconds(one) / slowness for one in group]

    def gap(group: Group) -> str:
        gaps = [one.worst_gap_percent for one in group if one.worst_gap_percent is not None]
        return f"{max(gaps):.4f}" if gaps else "-"

    columns: Columns[Group] = (
        ("small fleets, ours", lambda group: group[0].instance.family),
        ("models", lambda group: str(group[0].instance.size)),
        ("fleets", lambda group: str(len(group))),
        ("CPU s at the goals' pace", lambda group: f"{statistics.mean(cpu_times(group)):.3f}"),
        ("slowest", lambda group: f"{max(cpu_times(group)):.3f}"),
        ("gap %", gap),
        ("proven optimal", lambda group: f"{sum(map(is_best, group))} of {len(group)}"),
    )
    groups = group_by(small(results), lambda one: (one.instance.family, one.instance.size))
    return table_lines(columns, groups)


def goals_table(reached: Sequence[Goal]) -> list[str]:
    """Return the lines of the table of goals: measured values, and by how much each is met or missed."""
    rows: list[Row] = [("goal", "measured", "wanted at most", "outcome")]
    rows += ((goal.name, goal.measured, f"{goal.most:.4g} {goal.unit}", _distance(goal)) for goal in reached)
    return align(rows)


def _distance(goal: Goal) -> str:
    """Return whether a goal is met, and the distance and ratio of the value to its maximum."""
    times = f", {short_number(goal.value / goal.most)} times" if goal.most else ""
    if goal.is_met or goal.is_upper_bound:
        return f"{goal.outcome}{times}"
    return f"missed by {short_number(goal.value - goal.most)} {goal.unit}{times}"


def failures(results: Sequence[EngineResult]) -> list[str]:
    """Return a line for each instance without an answer or with a wrong one, and for each disproved bound."""
    lines = [
        f"no answer: {one.engine} on {one.instance.name}: {one.failure}" for one in results if one.failure
    ]
    lines += [f"wrong: {one.engine} on {one.instance.name}: {one.wrong[0]}" for one in results if one.wrong]
    return [*lines, *(f"disproved: {text}" for text in disproved(results))]
