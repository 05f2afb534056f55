"""A drawing of the nodes in letters: one cell per accelerator, grouped by type, equal nodes drawn once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.columns import Columns
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from controller.offline.layout import NodeLayout, alike, by_type
from controller.offline.table import colour_of
from controller.offline.terminal import Tone, labelled, styled
from controller.planning.wording import count

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
        yield styled(_title(accelerator, group), Tone.HEADING)
        yield _group(group, code_width=width, columns=columns)
    yield labelled("  ", _LEGEND, Tone.FAINT)


def _title(accelerator: str, group: Sequence[NodeLayout]) -> str:
    total = sum(item.node.accelerators_allocatable for item in group)
    numbers = f"{sum(item.taken for item in group)} taken, {sum(item.others for item in group)} by others"
    free = sum(item.free for item in group)
    kind = accelerator or "no known type"
    return f"{kind}: {count(len(group), 'node')}, {count(total, 'accelerator')}: {numbers}, {free} free"


def _group(group: Sequence[NodeLayout], *, code_width: int, columns: int) -> RenderableType:
    """Return the nodes side by side; the cells of a large node wrap."""
    places = {item.node.name: place for place, item in enumerate(group)}
    entries = [(styled(_name(same, places)), _cells(same[0], code_width)) for same in alike(group)]
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
