"""A plan as one page for a browser, which needs nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from controller.offline.colours import colours
from controller.offline.layout import NodeLayout, codes_of, layouts
from controller.offline.markup import Markup, document, folded, is_long, number, section, table, tag
from controller.offline.page_nodes import nodes_section
from controller.offline.page_variants import variants_section
from controller.offline.style import STYLE
from controller.offline.table import in_order, place, price
from controller.offline.text import Shown, conclusion, measured, moved, proof, requested
from controller.planning.decision import Decision, Plan
from controller.planning.snapshot import Variant
from controller.planning.wording import hundredths, percent, rate_text

Key = tuple[str, str]

_NUMBERS = frozenset(
    {
        "Priority", "Unmet", "Requests/s", "Ahead", "To provide",
        "One replica, per hour", "It serves", "1000 requests", "Value", "No plan is below",
        "Distance", "At most to gain", "Over every mix",
    }
)  # fmt: skip
"""Heads of the columns that are numbers."""

_MOST_WARNINGS = 5
"""Open; more would push the plan itself off the screen."""


def page(shown: Shown) -> str:
    """Return the whole page."""
    codes = codes_of(shown.plan)
    colour = colours(codes)
    nodes = layouts(shown.snapshot, shown.plan)
    return document(
        "Stowplan: placement plan",
        STYLE,
        tag("h1", "Placement plan"),
        tag("p", conclusion(shown), class_=f"verdict {_tone(shown)}"),
        _tiles(shown, nodes),
        *_warnings(shown),
        nodes_section(nodes, colour),
        variants_section(shown, codes, colour),
        *_requests(shown),
        _models(shown),
        _prices(shown),
        _proof(shown.plan),
    )


def _tiles(shown: Shown, nodes: tuple[NodeLayout, ...]) -> Markup:
    plan = shown.plan
    total = sum(item.node.accelerators_allocatable for item in nodes)
    models = {(item.namespace, item.model_id) for item in plan.decisions}
    facts = (
        (price(plan.cost), "cost per hour"),
        (f"{len(models) - len(shown.short)} of {len(models)}", "models get what they need"),
        (str(sum(item.replicas for item in plan.decisions)), f"replicas of {len(plan.decisions)} variants"),
        (f"{sum(item.free for item in nodes)} of {total}", f"accelerators free on {len(nodes)} nodes"),
        (str(plan.solver.status), "says the solver"),
    )
    return tag(
        "div", *(tag("div", tag("b", fact), what, class_="tile") for fact, what in facts), class_="tiles"
    )


def _warnings(shown: Shown) -> Iterator[Markup]:
    if shown.warnings:
        told = tag("ul", *(tag("li", text) for text in shown.warnings), class_="advice")
        yield section("Warnings", folded("All", len(shown.warnings), told, most_open=_MOST_WARNINGS))


def _requests(shown: Shown) -> Iterator[Markup]:
    plan = shown.plan
    if plan.requests:
        listed = (tag("li", requested(request, shown.snapshot)) for request in plan.requests)
        yield section("Nodes to add", tag("ul", *listed))
    if plan.moves:
        yield section("To be evicted", tag("ul", *(tag("li", moved(move)) for move in plan.moves)))


def _models(shown: Shown) -> Markup:
    groups: dict[tuple[int, str, str], list[Decision]] = defaultdict(list)
    for item in in_order(shown.plan):
        groups[item.priority, item.namespace, item.model_id].append(item)
    rows = [_model(group) for group in groups.values()]
    names = ("Model", "Priority", "Requests/s", "Ahead", "To provide", "Unmet", "Who serves it")
    return section("Who got what", _long("All models", names, rows))


def _model(group: list[Decision]) -> Markup:
    one, now = group[0], group[0].load.requests_per_second
    served = [f"{item.replicas} x {item.name}" for item in group if item.replicas]
    return tag(
        "tr",
        tag("td", f"{one.namespace}/{one.model_id}", class_="name"),
        number(str(one.priority)),
        number("unknown" if now is None else rate_text(now)),
        number("unknown" if now is None else rate_text(one.load.upper_requests_per_second)),
        number(rate_text(one.required_requests_per_second)),
        tag("td", percent(one.unmet_per_mille), class_="number bad" if one.unmet_per_mille else "number"),
        tag("td", ", ".join(served) or "nobody", class_="name"),
        class_="row",
    )


def _prices(shown: Shown) -> Markup:
    decided = {(item.namespace, item.name): item for item in shown.plan.decisions}
    ordered = sorted(shown.snapshot.variants, key=lambda v: (v.accelerator, v.key))
    rows = [_price(variant, decided[variant.key]) for variant in ordered]
    names = ("Variant", "On", "One replica, per hour", "It serves", "1000 requests", "Known by")
    return section("Prices", _long("All variants", names, rows))


def _price(variant: Variant, item: Decision) -> Markup:
    serves = item.capacity.requests_per_second if item.capacity else None
    return tag(
        "tr",
        tag("td", "/".join(variant.key), class_="name"),
        tag("td", place(item, variant), class_="short"),
        number(price(variant.cost_per_replica)),
        number("unknown" if serves is None else rate_text(serves)),
        number(f"{float(variant.cost_per_replica) / serves / 3.6:.3g}" if serves else "unknown"),
        tag("td", str(item.capacity_source)),
        class_="row",
    )


def _proof(plan: Plan) -> Markup:
    rows = [
        tag(
            "tr",
            tag("td", level.level, class_="name"),
            *map(number, measured(level)),
            number(hundredths(level.gap)),
            number(hundredths(level.improvable)),
            tag("td", level.scope),
            number("unknown" if level.improvable_of_all is None else hundredths(level.improvable_of_all)),
            class_="row",
        )
        for level in plan.solver.levels
    ]
    names = ("Level", "Value", "No plan is below", "Distance", "At most to gain", "Over", "Over every mix")
    levels = [table(names, rows, numbers=_NUMBERS)] if rows else []
    return section("Proof", tag("p", proof(plan)), *levels)


def _long(title: str, heads: Sequence[str], rows: Sequence[Markup]) -> Markup:
    whole = table(heads, rows, numbers=_NUMBERS)
    return folded(title, len(rows), whole) if is_long(len(rows)) else whole


def _tone(shown: Shown) -> str:
    if not shown.is_enough:
        return "bad"
    return "advice" if shown.unknown else "good"
