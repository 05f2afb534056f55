"""The nodes as pictures: a block for each pod, names for a few nodes, small ones for many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controller.offline.layout import Holding, NodeLayout, by_type
from controller.offline.markup import Markup, section, tag
from controller.planning.wording import count

_MOST_NAMED: Final = 80
"""More nodes than these of one type are drawn small, and named only under the pointer."""


@dataclass(frozen=True, slots=True)
class _Scale:
    cell: int
    height: int
    is_named: bool


_LARGE: Final = _Scale(18, 20, is_named=True)
_SMALL: Final = _Scale(5, 9, is_named=False)


def nodes_section(nodes: Sequence[NodeLayout], colour: Mapping[str, str]) -> Markup:
    """Return the map of all nodes by type."""
    if not nodes:
        return section("Nodes", tag("p", "No node was read.", class_="faint"))
    groups = [part for name, group in by_type(nodes).items() for part in _group(name, group, colour)]
    return section("Nodes", *groups, tag("p", *_legend(nodes), class_="legend"))


def _legend(nodes: Sequence[NodeLayout]) -> Iterator[Markup]:
    """Yield what the picture's signs mean, of those that it has."""
    holdings = [holding for item in nodes for holding in item.holdings]
    if holdings:
        yield tag(
            "span",
            "coloured: a pod of the variant with this code below, as wide as what it takes",
        )
    if any(holding.comes for holding in holdings):
        yield tag("span", "dashed outline: a pod that is to start")
    yield tag("span", _swatch("var(--free)"), "a free accelerator")
    if any(item.others for item in nodes):
        yield tag("span", _swatch("var(--others)"), "held by other workloads")
    if not all(item.node.schedulable for item in nodes):
        yield tag("span", "pale: the node takes no new pods")


def _group(name: str, group: Sequence[NodeLayout], colour: Mapping[str, str]) -> tuple[Markup, Markup]:
    scale = _LARGE if len(group) <= _MOST_NAMED else _SMALL
    total = sum(item.node.accelerators_allocatable for item in group)
    free = sum(item.free for item in group)
    title = f"{name or 'No known type'}: {count(len(group), 'node')}, {free} of {total} accelerators free"
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
    for cells, kind in ((item.others, "others"), (item.free, "free")):
        width = 1 if scale.is_named else max(1, cells)
        blocks += [_cell(start + cell, width, scale, class_=kind) for cell in range(0, cells, width)]
        start += cells
    width, height = max(1, start) * scale.cell + 2, scale.height + 2
    told = tag("title", _told(item))
    picture = tag(
        "svg", told, *blocks, width=width, height=height, viewBox=f"0 0 {width} {height}", role="img"
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
