"""A plan as text: the replicas of each variant with reasons, the nodes, the cost and the optimality gap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from rich.console import RenderableType
from rich.table import Table

from controller.commands.plan.layout import (
    codes_of,
    colour_of,
    drawing_parts,
    in_order,
    layouts,
    unplaced_variants,
)
from controller.commands.plan.terminal import (
    Tone,
    fitting_heads,
    harmless,
    labelled_line,
    price,
    table,
    wrapping_text,
)
from controller.planning.decision import (
    BoundBy,
    LevelReport,
    Move,
    NodeRequest,
    Plan,
    Reason,
    Relief,
    VariantDecision,
)
from controller.planning.problem import PER_MILLE
from controller.planning.ranges import cost_of
from controller.planning.snapshot import Snapshot, Variant
from controller.planning.wording import count, first_of, percent

Key = tuple[str, str]

_WORDS: Final = frozenset({"", "VARIANT", "MODEL", "ON", "REPLICAS", "WHY"})
_LEAST_WIDTH: Final = {"MODEL": 10, "VARIANT": 20}
"""Minimum widths of wrapped columns before other columns are dropped."""

_DROPPABLE: Final = ("MODEL", "WANTED", "COST/H", "ON", "PRIO")
"""Columns that may be dropped, in this order; other parts of the text contain the same facts."""

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


def tone_of(decision: VariantDecision) -> Tone:
    """Return the tone of a decision."""
    if goes_short(decision):
        return Tone.BAD
    return Tone.ADVICE if decision.reason is Reason.HOLDING else Tone.PLAIN


def goes_short(decision: VariantDecision) -> bool:
    """Tell whether a variant's model gets less than it needs."""
    return decision.unmet_per_mille > 0 or decision.reason is Reason.SHORTAGE


def place(decision: VariantDecision, variant: Variant) -> str:
    """Return the accelerators of one replica, such as `H100 x4`."""
    kind = decision.accelerator or "any"
    return f"{kind} x{variant.accelerators_per_replica}" if variant.accelerators_per_replica else "none"


def _row(decision: VariantDecision, variant: Variant, codes: Mapping[Key, str]) -> Mapping[str, str]:
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
    omitted = "; ".join(
        f"{count(len(names), noun)} {verb}: {first_of(names, _MOST_NAMED)}"
        for names, noun, verb in (
            (shown.omitted, "variant", "omitted"),
            (shown.left_out, "invalid object", "left out"),
        )
        if names
    )
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


def _options(decision: VariantDecision, printed: set[tuple[str, ...]]) -> Iterator[RenderableType]:
    """Yield what would help, without repetitions within a model."""
    for text in map(helps, decision.reliefs):
        news = (decision.namespace, decision.model_id, text)
        if news not in printed:
            printed.add(news)
            yield labelled_line("    would help: ", text, Tone.ADVICE)
