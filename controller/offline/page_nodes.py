"""The nodes as pictures: a block for each replica, names for a few nodes, small ones for many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controller.offline.layout import Holding, NodeLayout, by_type
from controller.offline.markup import Markup, section, tag

_MOST_NAMED: Final = 80
"""More nodes than these of one type are drawn small, and named only under the pointer."""

_GOLDEN_DEGREES: Final = 137.508


@dataclass(frozen=True, slots=True)
class _Scale:
    cell: int
    height: int
    is_named: bool


_LARGE: Final = _Scale(18, 20, is_named=True)
_SMALL: Final = _Scale(5, 9, is_named=False)


def colours(codes: Mapping[tuple[str, str], str]) -> Mapping[str, str]:
    """Return a colour for each code, neighbours far apart, dark enough for white letters."""
    return {
        code: f"hsl({position * _GOLDEN_DEGREES % 360:.0f} 52% {38 + position % 3 * 5}%)"
        for position, code in enumerate(codes.values())
    }


def nodes_section(nodes: Sequence[NodeLayout], colour: Mapping[str, str]) -> Markup:
    """Return the map of all nodes by type."""
    if not nodes:
        return section("Nodes", tag("p", "No node was read.", class_="faint"))
    groups = [part for name, group in by_type(nodes).items() for part in _group(name, group, colour)]
    legend = tag(
        "p",
        tag("span", _swatch("var(--free)"), "free"),
        tag("span", _swatch("var(--others)"), "other workloads"),
        tag("span", "dashed outline: a replica that is to start"),
        tag("span", "pale: takes no new pods"),
        class_="legend",
    )
    return section("Nodes", *groups, legend)


def _group(name: str, group: Sequence[NodeLayout], colour: Mapping[str, str]) -> tuple[Markup, Markup]:
    scale = _LARGE if len(group) <= _MOST_NAMED else _SMALL
    total = sum(item.node.accelerators_allocatable for item in group)
    free = sum(item.free for item in group)
    title = f"{name or 'No known type'}: {len(group)} nodes, {free} of {total} accelerators free"
    drawn = tag(
        "div",
        *(_node(item, scale, colour) for item in group),
        class_="nodes" if scale.is_named else "nodes small",
    )
    return tag("h3", title), drawn


def _node(item: NodeLayout, scale: _Scale, colour: Mapping[str, str]) -> Markup:
    blocks: list[Markup] = []
    start = 0
    for holding in item.holdings:
        for number in range(holding.stays + holding.comes):
            is_new = number >= holding.stays
            blocks += _replica(holding, start, scale, fill=colour[holding.code], is_new=is_new)
            start += holding.accelerators
    for count, kind in ((item.others, "others"), (item.free, "free")):
        width = 1 if scale.is_named else max(1, count)
        blocks += [_cell(start + cell, width, scale, class_=kind) for cell in range(0, count, width)]
        start += count
    picture = tag(
        "svg",
        tag("title", _told(item)),
        *blocks,
        width=max(1, start) * scale.cell + 2,
        height=scale.height + 2,
        role="img",
    )
    label = (item.node.name,) if scale.is_named else ()
    return tag("div", picture, *label, class_="node" if item.node.schedulable else "node off")


def _replica(holding: Holding, start: int, scale: _Scale, *, fill: str, is_new: bool) -> list[Markup]:
    size = holding.accelerators
    blocks = [_cell(start, size, scale, fill=fill, class_="new" if is_new else "")]
    if scale.is_named:
        middle = start * scale.cell + 1 + size * scale.cell / 2
        blocks.append(tag("text", holding.code, x=f"{middle:g}", y=15))
    return blocks


def _cell(start: int, size: int, scale: _Scale, **attributes: str) -> Markup:
    return tag(
        "rect",
        x=start * scale.cell + 2,
        y=2,
        width=size * scale.cell - 2,
        height=scale.height - 2,
        rx=2,
        **attributes,
    )


def _told(item: NodeLayout) -> str:
    lines = [item.node.name]
    for holding in item.holdings:
        new = f", {holding.comes} of them to start" if holding.comes else ""
        lines.append(f"{holding.code} {'/'.join(holding.variant)}: {holding.stays + holding.comes}{new}")
    lines += [f"other workloads: {item.others}"] if item.others else []
    lines.append(f"free: {item.free} of {item.node.accelerators_allocatable}")
    return "\n".join(lines + ([] if item.node.schedulable else ["takes no new pods"]))


def _swatch(colour: str) -> Markup:
    return tag("span", class_="swatch", style=f"background:{colour}")
