"""A plan as a self-contained HTML page.

Each variant has a colour, with distinct neighbours and enough contrast for white letters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from colorsys import hls_to_rgb
from dataclasses import dataclass
from typing import Final

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from controller.commands.plan.layout import NodeLayout, by_type, codes_of, in_order, layouts
from controller.commands.plan.terminal import harmless, price
from controller.commands.plan.text import (
    Shown,
    conclusion,
    goes_short,
    helps,
    level_text,
    move_text,
    place,
    proof,
    request_text,
    tone_of,
)
from controller.planning.decision import VariantDecision
from controller.planning.wording import count, percent, rate_text

_GOLDEN_DEGREES: Final = 137.508
_SATURATION: Final = 0.52
_CONTRASTS: Final = (4.7, 5.5, 6.4)
"""Contrast ratios with white, in turn. WCAG requires 4.5; above 7, blocks would merge with a dark page."""

_WHITE: Final = 1.05
_SHARES: Final = (0.2126, 0.7152, 0.0722)
_STRAIGHT_BELOW: Final = 0.04045
"""Threshold below which the sRGB curve is linear."""


def colours(codes: Mapping[tuple[str, str], str]) -> Mapping[str, str]:
    """Return a colour for each code."""
    return {code: _colour(position) for position, code in enumerate(codes.values())}


def contrast_with_white(hue_degrees: float, saturation: float, lightness: float) -> float:
    """Return the WCAG contrast ratio between a colour and white."""
    channels = hls_to_rgb(hue_degrees / 360, lightness, saturation)
    luminance = sum(share * _linear(channel) for share, channel in zip(_SHARES, channels, strict=True))
    return _WHITE / (luminance + 0.05)


def _colour(position: int) -> str:
    hue, contrast = round(position * _GOLDEN_DEGREES % 360), _CONTRASTS[position % len(_CONTRASTS)]
    lightness = next(
        percent
        for percent in range(60, 0, -1)
        if contrast_with_white(hue, _SATURATION, percent / 100) >= contrast
    )
    return f"hsl({hue} {_SATURATION:.0%} {lightness}%)"


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= _STRAIGHT_BELOW else ((channel + 0.055) / 1.055) ** 2.4


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """A rectangle in the picture of a node, measured in accelerators."""

    start: int
    cells: int
    look: str = ""
    code: str = ""
    """Code of the variant; empty if the block is no pod of a variant."""


def page(shown: Shown) -> str:
    """Return the whole page."""
    plan, codes, decided = shown.plan, codes_of(shown.plan), in_order(shown.plan)
    nodes = layouts(shown.snapshot, plan)
    by_key = {(item.namespace, item.name): item for item in decided}
    variants = sorted(shown.snapshot.variants, key=lambda variant: (variant.accelerator, variant.key))
    models: dict[tuple[int, str, str], list[VariantDecision]] = defaultdict(list)
    for item in decided:
        models[item.priority, item.namespace, item.model_id].append(item)
    levels = [
        (level.level, *level_text(level), percent(level.gap), percent(level.improvable))
        for level in plan.solver.levels
    ]
    functions = (
        blocks, pointed_at, place, price, tone_of, percent, helps, request_text, move_text, rate_text,
    )  # fmt: skip
    return render(
        "controller.commands.plan",
        "plan.html",
        **{function.__name__: function for function in functions},
        title="Stowplan: placement plan",
        shown=shown,
        plan=plan,
        verdict="bad" if not shown.is_enough else "advice" if shown.unknown else "good",
        conclusion=conclusion(shown),
        tiles=_tiles(shown, nodes),
        nodes=by_type(nodes),
        codes=codes,
        colours=colours(codes),
        variants={variant.key: variant for variant in variants},
        decided=decided,
        groups=_groups(decided),
        tones={tone_of(item) for item in decided},
        models=[*models.values()],
        priced=[(variant, by_key[variant.key]) for variant in variants],
        proof=proof(plan),
        levels=levels,
    )


def blocks(item: NodeLayout, *, is_named: bool) -> Iterator[Block]:
    """Yield the variants' pods on a node, then others' and free accelerators; one cell each if named."""
    start = 0
    for holding in item.holdings:
        for number in range(holding.stays + holding.comes):
            look = "new" if number >= holding.stays else ""
            yield Block(start=start, cells=holding.accelerators, look=look, code=holding.code)
            start += holding.accelerators
    for cells, look in ((item.others, "others"), (item.free, "free")):
        width = 1 if is_named else max(1, cells)
        for cell in range(0, cells, width):
            yield Block(start=start + cell, cells=width, look=look)
        start += cells


def pointed_at(item: NodeLayout) -> str:
    """Return the tooltip of a node, in lines."""
    lines = [item.node.name]
    for holding in item.holdings:
        new = f", {holding.comes} of them new" if holding.comes else ""
        lines.append(f"{holding.code} {'/'.join(holding.variant)}: {holding.stays + holding.comes}{new}")
    lines += [f"other workloads: {item.others}"] if item.others else []
    lines.append(f"free: {item.free} of {item.node.accelerators_allocatable}")
    return "\n".join(lines + ([] if item.node.schedulable else ["takes no new pods"]))


def _tiles(shown: Shown, nodes: Sequence[NodeLayout]) -> Sequence[tuple[str, str]]:
    plan = shown.plan
    total = sum(item.node.accelerators_allocatable for item in nodes)
    models = {f"{item.namespace}/{item.model_id}" for item in plan.decisions}
    met = models - {*shown.short, *shown.unknown}
    variants, free_on = count(len(plan.decisions), "variant"), count(len(nodes), "node")
    return (
        (price(plan.cost), "cost per hour"),
        (f"{len(met)} of {len(models)}", "models whose demand is met"),
        (str(sum(item.replicas for item in plan.decisions)), f"replicas of {variants}"),
        (f"{sum(item.free for item in nodes)} of {total}", f"accelerators free on {free_on}"),
        (str(plan.solver.status), "solver status"),
    )


def _groups(decided: Sequence[VariantDecision]) -> Mapping[str, Sequence[VariantDecision]]:
    """Return the decisions in groups of interest, the most urgent first."""
    groups: dict[str, list[VariantDecision]] = {
        title: [] for title in ("Models that are short", "Change", "Unchanged", "Variants without replicas")
    }
    short, changing, staying, idle = groups.values()
    for item in decided:
        if goes_short(item):
            short.append(item)
        elif item.replicas != item.current_replicas:
            changing.append(item)
        else:
            (staying if item.replicas else idle).append(item)
    return groups


def render(package: str, template: str, **values: object) -> str:
    """Return a page from a package's template, which can include those of plans and of charts."""
    shared = ("controller.commands.plan", "controller.commands.simulate")
    loader = ChoiceLoader([PackageLoader(name) for name in (package, *shared)])
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(values)


def _harmless(value: object) -> object:
    """Return markup unchanged, and other values as text without control characters."""
    return value if hasattr(value, "__html__") else "\n".join(map(harmless, str(value).split("\n")))
