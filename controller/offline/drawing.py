"""The nodes in letters: a cell for each accelerator, nodes of one type together, equal ones drawn once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from controller.offline.layout import NodeLayout, alike, by_type
from controller.offline.spans import Span, Spans, Tone, colour_of, cut, padded, spans, width_of, wrapped

_GAP: Final = "   "
_INDENT: Final = "  "
_LONGEST_NAME: Final = 32
_LEGEND: Final = (
    "letter: an accelerator of a pod, + of a new one, # of other workloads, . free, ! no new pods"
)

Cell = tuple[str, str, str]
"""Colour, code and mark."""


def drawing_lines(nodes: Sequence[NodeLayout], *, columns: int) -> Iterator[Spans]:
    """Yield the drawing, and what its signs mean."""
    width = max((len(item.code) for layout in nodes for item in layout.holdings), default=1)
    for accelerator, group in by_type(nodes).items():
        for line in wrapped(_title(accelerator, group), columns, later="    "):
            yield spans((Tone.HEADING.value, line))
        yield from _group(group, code_width=width, columns=columns)
    for line in wrapped(_LEGEND, columns, first="  ", later="  "):
        yield spans((Tone.FAINT.value, line))


def _title(accelerator: str, group: Sequence[NodeLayout]) -> str:
    total = sum(item.node.accelerators_allocatable for item in group)
    numbers = f"{sum(item.taken for item in group)} taken, {sum(item.others for item in group)} by others"
    nodes = f"{len(group)} node{'' if len(group) == 1 else 's'}"
    free = sum(item.free for item in group)
    kind = accelerator or "no known type"
    return f"{kind}: {nodes}, {total} accelerators: {numbers}, {free} free"


def _group(group: Sequence[NodeLayout], *, code_width: int, columns: int) -> Iterator[Spans]:
    places = {item.node.name: place for place, item in enumerate(group)}
    entries = [(_name(same, places), _cells(same[0], code_width)) for same in alike(group)]
    name_width = min(_LONGEST_NAME, max(width_of(name) for name, _ in entries))
    cell_width = code_width + 1
    most_cells = max(
        1, min(max(len(cells) for _, cells in entries), (columns - name_width - 4) // cell_width)
    )
    entry_width = name_width + 1 + most_cells * cell_width
    side_by_side = max(1, (columns - len(_INDENT) + len(_GAP)) // (entry_width + len(_GAP)))
    for first in range(0, len(entries), side_by_side):
        yield from _row(entries[first : first + side_by_side], name_width, most_cells, cell_width)


def _row(
    entries: Sequence[tuple[str, Sequence[Cell]]], name_width: int, most_cells: int, cell_width: int
) -> Iterator[Spans]:
    """Yield some nodes side by side; the cells of a large one go on in the next line."""
    height = max(1, *(-(-len(cells) // most_cells) for _, cells in entries))
    for down in range(height):
        line: list[Span] = [("", _INDENT)]
        for name, cells in entries:
            here = cells[down * most_cells : (down + 1) * most_cells]
            shown = cut(name, name_width) if down == 0 else ""
            line.append(("", padded(shown, name_width) + " "))
            line += [(colour, (code + mark).ljust(cell_width)) for colour, code, mark in here]
            line.append(("", " " * ((most_cells - len(here)) * cell_width) + _GAP))
        yield tuple(line)


def _name(same: Sequence[NodeLayout], places: Mapping[str, int]) -> str:
    """Return the names of equal nodes: `4 x node-1, node-3 .. node-5`; `...` where they are too long."""
    mark = "" if same[0].node.schedulable else "!"
    if len(same) == 1:
        return f"{mark}{same[0].node.name}"
    count = f"{mark}{len(same)} x "
    names = [_run(run) for run in _runs([item.node.name for item in same], places)]
    for shown in range(len(names), 0, -1):
        text = count + ", ".join([*names[:shown], *(["..."] if shown < len(names) else [])])
        if len(text) <= _LONGEST_NAME:
            return text
    return f"{count}{same[0].node.name}, ..."


def _runs(names: Sequence[str], places: Mapping[str, int]) -> Sequence[Sequence[str]]:
    """Return the names in runs of nodes between which there is no other."""
    runs: list[list[str]] = []
    for name in names:
        if runs and places[name] == places[runs[-1][-1]] + 1:
            runs[-1].append(name)
        else:
            runs.append([name])
    return runs


def _run(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} .. {names[-1]}"


def _cells(layout: NodeLayout, code_width: int) -> list[Cell]:
    cells: list[Cell] = []
    for item in layout.holdings:
        colour = colour_of(item.code)
        for replicas, mark in ((item.stays, " "), (item.comes, "+")):
            cells += [(colour, item.code, mark)] * (replicas * item.accelerators)
    cells += [(Tone.FAINT.value, "#" * code_width, " ")] * layout.others
    cells += [(Tone.FAINT.value, ".", " ")] * layout.free
    return cells
