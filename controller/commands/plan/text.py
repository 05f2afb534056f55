"""A plan as text: the replicas of each variant with reasons, the nodes, the cost and the optimality gap.

Nodes are drawn in letters: one cell per accelerator, grouped by type, equal nodes once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rich.columns import Columns
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from controller.commands.plan.layout import (
    NodeLayout,
    alike,
    by_type,
    codes_of,
    in_order,
    layouts,
    unplaced_variants,
)
from controller.commands.plan.naming import first_of
from controller.commands.plan.table import colour_of, goes_short, price, tone_of, variants_table
from controller.commands.plan.terminal import Tone, labelled_line, wrapping_text
from controller.planning.decision import (
    BoundBy,
    Decision,
    LevelReport,
    Move,
    NodeRequest,
    Plan,
    Relief,
)
from controller.planning.problem import PER_MILLE
from controller.planning.ranges import cost_of
from controller.planning.snapshot import Snapshot
from controller.planning.wording import count, percent

_GAP: Final = 3
_INDENT: Final = 2
_LONGEST_NAME: Final = 32
_LEGEND: Final = (
    "letter: an accelerator of a pod, + of a new one, # of other workloads, . free, ! no new pods"
)


def drawing_parts(nodes: Sequence[NodeLayout], *, columns: int) -> Iterator[RenderableType]:
    """Yield the drawing and its legend."""
    width = max((len(item.code) for layout in nodes for item in layout.holdings), default=1)
    for accelerator, group in by_type(nodes).items():
        yield wrapping_text(_title(accelerator, group), Tone.HEADING)
        yield _group(group, code_width=width, columns=columns)
    yield labelled_line("  ", _LEGEND, Tone.FAINT)


def _title(accelerator: str, group: Sequence[NodeLayout]) -> str:
    total = sum(item.node.accelerators_allocatable for item in group)
    numbers = f"{sum(item.taken for item in group)} taken, {sum(item.others for item in group)} by others"
    free = sum(item.free for item in group)
    kind = accelerator or "no known type"
    return f"{kind}: {count(len(group), 'node')}, {count(total, 'accelerator')}: {numbers}, {free} free"


def _group(group: Sequence[NodeLayout], *, code_width: int, columns: int) -> RenderableType:
    """Return the nodes side by side; the cells of a large node wrap."""
    places = {item.node.name: place for place, item in enumerate(group)}
    entries = [(wrapping_text(_name(same, places)), _cells(same[0], code_width)) for same in alike(group)]
    names = min(_LONGEST_NAME, max(name.cell_len for name, _ in entries))
    in_line = max(1, (columns - _INDENT - names - 1) // (code_width + 1))
    drawn = []
    for name, cells in entries:
        lines = (Text.assemble(*cells[at : at + in_line]) for at in range(0, len(cells), in_line))
        grid = Table.grid(Column(width=names + 1), Column(no_wrap=True))
        grid.add_row(name, Text("\n").join(lines))
        drawn.append(grid)
    return Padding(Columns(drawn, padding=(0, _GAP), equal=True), (0, 0, 0, _INDENT))


def _name(same: Sequence[NodeLayout], places: Mapping[str, int]) -> str:
    """Return the names of equal nodes, such as `4 x node-1, node-3 .. node-5`, shortened by `...`."""
    mark = "" if same[0].node.schedulable else "!"
    if len(same) == 1:
        return f"{mark}{same[0].node.name}"
    number = f"{mark}{len(same)} x "
    names = [_run(run) for run in _runs([item.node.name for item in same], places)]
    for shown in range(len(names), 0, -1):
        text = number + ", ".join([*names[:shown], *(["..."] if shown < len(names) else [])])
        if len(text) <= _LONGEST_NAME:
            return text
    return f"{number}{same[0].node.name}, ..."


def _runs(names: Sequence[str], places: Mapping[str, int]) -> Sequence[Sequence[str]]:
    """Return the names in runs of consecutive nodes."""
    runs: list[list[str]] = []
    for name in names:
        if runs and places[name] == places[runs[-1][-1]] + 1:
            runs[-1].append(name)
        else:
            runs.append([name])
    return runs


def _run(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} .. {names[-1]}"


def _cells(layout: NodeLayout, code_width: int) -> list[tuple[str, str]]:
    """Return the text of each accelerator, all of the same width, with its style."""
    cells: list[tuple[str, str]] = []
    for item in layout.holdings:
        for replicas, mark in ((item.stays, " "), (item.comes, "+")):
            cells += [(item.code + mark, colour_of(item.code))] * (replicas * item.accelerators)
    cells += [("#" * code_width + " ", Tone.FAINT)] * layout.others
    cells += [(".".ljust(code_width + 1), Tone.FAINT)] * layout.free
    return cells


Key = tuple[str, str]

_COST: Final = "cost"
"""Planning's name for the cost level, which covers replicas including starts and stops."""

_MOST_NAMED: Final = 12
"""Maximum number of models or variants named in the conclusion; the table and the warnings have them all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """A plan, its snapshot, and warnings for the user."""

    snapshot: Snapshot
    plan: Plan
    warnings: tuple[str, ...] = ()
    omitted: tuple[str, ...] = ()
    """Namespace and name of each variant that is not planned."""

    left_out: tuple[str, ...] = ()
    """Kind and name of each invalid object that is left out."""

    cost_sources: Mapping[Key, str] = field(default_factory=dict)
    """Where the cost of a replica comes from, by namespace and name; empty for a saved decision."""

    @property
    def short(self) -> tuple[str, ...]:
        """Namespace and model of each that gets less than it needs, or more than there is a place for."""
        without = unplaced_variants(self.snapshot, self.plan)
        models = {
            f"{item.namespace}/{item.model_id}"
            for item in self.plan.decisions
            if goes_short(item) or (item.namespace, item.name) in without
        }
        return tuple(sorted(models))

    @property
    def unknown(self) -> tuple[str, ...]:
        """Namespace and model of each whose demand is unknown, or what its replicas serve."""
        models = {
            f"{item.namespace}/{item.model_id}"
            for item in self.plan.decisions
            if item.load.requests_per_second is None or item.bound_by is BoundBy.CAPACITY_UNKNOWN
        }
        return tuple(sorted(models))

    @property
    def is_enough(self) -> bool:
        """Whether there is a plan that contains every variant and gives every model what it needs."""
        is_whole = not self.omitted and not self.left_out
        return self.plan.solver.is_answered and not self.short and is_whole


def text_parts(shown: Shown, *, columns: int) -> Iterator[RenderableType]:
    """Yield the whole text for a terminal with the given number of columns."""
    codes = codes_of(shown.plan)
    yield variants_table(shown.snapshot, shown.plan, codes, columns=columns)
    yield ""
    printed: set[tuple[str, ...]] = set()
    for decision in in_order(shown.plan):
        code = codes[decision.namespace, decision.name]
        yield labelled_line(wrapping_text(f"{code} ", colour_of(code)), decision.message, tone_of(decision))
        yield from _options(decision, printed)
    if shown.snapshot.nodes:
        yield ""
        yield from drawing_parts(layouts(shown.snapshot, shown.plan), columns=columns)
    yield ""
    for request in shown.plan.requests:
        yield labelled_line("add ", request_text(request, shown.snapshot), Tone.ADVICE)
    for move in shown.plan.moves:
        yield labelled_line("evict ", move_text(move), Tone.ADVICE)
    yield f"cost per hour: {price(shown.plan.cost)}"
    yield from _cost_sources(shown, codes)
    yield wrapping_text(proof(shown.plan))
    for level in levels(shown.plan):
        yield labelled_line("  ", level, Tone.FAINT)
    for warning in shown.warnings:
        yield labelled_line("warning: ", warning, Tone.ADVICE)
    yield wrapping_text(conclusion(shown), Tone.GOOD if shown.is_enough else Tone.BAD)


def _cost_sources(shown: Shown, codes: Mapping[Key, str]) -> Iterator[RenderableType]:
    """Yield where the costs of replicas come from, with the codes of the variants."""
    by_source: dict[str, list[str]] = {}
    for key, source in sorted(shown.cost_sources.items(), key=lambda item: (item[1], item[0])):
        if key in codes:
            by_source.setdefault(source, []).append(codes[key])
    if by_source:
        listed = (f"{source} ({first_of(sorted(names), _MOST_NAMED)})" for source, names in by_source.items())
        yield wrapping_text(f"  of a replica by {', '.join(listed)}", Tone.FAINT)


def conclusion(shown: Shown) -> str:
    """Return the conclusion in one sentence."""
    omitted = f"{count(len(shown.omitted), 'variant')} omitted: {first_of(shown.omitted, _MOST_NAMED)}"
    broken = ""
    if shown.left_out:
        named = first_of(shown.left_out, _MOST_NAMED)
        broken = f"{count(len(shown.left_out), 'invalid object')} left out: {named}"
    omitted = "; ".join(text for text in (omitted if shown.omitted else "", broken) if text)
    after = f"; {omitted}" if omitted else ""
    if shown.short:
        return f"{count(len(shown.short), 'model')} short: {first_of(shown.short, _MOST_NAMED)}{after}"
    if not shown.plan.solver.is_answered:
        return f"no answer: the running replicas stay; {shown.plan.solver.message}{after}"
    if omitted:
        return omitted
    if shown.unknown:
        return (
            f"no model is known to be short; models of unknown demand or capacity: "
            f"{first_of(shown.unknown, _MOST_NAMED)}"
        )
    return "the demand of every model is met"


def proof(plan: Plan) -> str:
    """Return the statement about the plan's optimality."""
    solver = plan.solver
    if solver.message:
        return f"solver: {solver.status}: {solver.message}"
    if not solver.unproven:
        return f"solver: {solver.status}: no plan is better"
    gap = percent(solver.gap)
    return f"solver: {solver.status}: at most {gap} from the best at level {solver.unproven!r}"


def levels(plan: Plan) -> Iterator[str]:
    """Yield the value and bound of each level with a shortfall, a cost or a gap, most important first."""
    for level in plan.solver.levels:
        if level.value or level.gap:
            value, bound = level_text(level)
            better = f"at most {percent(level.improvable)} could be better" if level.gap else "proven"
            yield f"{level.level}: {value}, bound {bound}: {better}"


def level_text(level: LevelReport) -> tuple[str, str]:
    """Return a level's value and bound: costs, of starts too, as money, others in points."""
    if level.level == _COST:
        return f"{price(cost_of(level.value))} with starts and mixing", price(cost_of(level.bound))
    return str(level.value), str(level.bound)


def move_text(move: Move) -> str:
    """Return the text about a move away from a node."""
    what = f"pod {move.namespace}/{move.name}" if move.is_other else f"{move.namespace}/{move.name}"
    whom = ", ".join("/".join(key) for key in move.benefits)
    return f"{move.replicas} x {what} from {move.node}, to make room for {whom}"


def request_text(request: NodeRequest, snapshot: Snapshot) -> str:
    """Return the text about a request for nodes of a pool."""
    nodes = f"{count(request.nodes, 'node')} of pool {request.pool}"
    several = {variant.key for variant in snapshot.variants if variant.pods_per_replica > 1}
    running = ", ".join(
        f"{number} {'pods of' if (namespace, name) in several else 'x'} {namespace}/{name}"
        for namespace, name, number in request.pods
    )
    what = f"{nodes} for {running}" if running else nodes
    terms = [f"{price(request.price_per_hour)} per hour"] if request.price_per_hour else []
    terms += [f"ready {request.lead_seconds:g} s after the request"] if request.lead_seconds else []
    return f"{what} ({', '.join(terms)})" if terms else what


def helps(relief: Relief) -> str:
    """Return the text about a change that would help, with its effect."""
    rest = percent(relief.unmet_per_mille / PER_MILLE) if relief.unmet_per_mille else "nothing"
    return f"{relief.text} (then {rest} is unmet)"


def _options(decision: Decision, printed: set[tuple[str, ...]]) -> Iterator[RenderableType]:
    """Yield what would help, without repetitions within a model."""
    for text in map(helps, decision.reliefs):
        news = (decision.namespace, decision.model_id, text)
        if news not in printed:
            printed.add(news)
            yield labelled_line("    would help: ", text, Tone.ADVICE)
