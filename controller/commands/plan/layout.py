"""The pods on each node after the plan, by accelerators, and their drawing in letters.

A drawing has one cell per accelerator, grouped by type, with equal nodes once.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Final

from rich.columns import Columns
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from controller.commands.plan.terminal import Tone, labelled_line, wrapping_text
from controller.planning.cluster import Node
from controller.planning.decision import Plan, VariantDecision
from controller.planning.demand import staying_replicas
from controller.planning.snapshot import Snapshot, Variant
from controller.planning.wording import count

Key = tuple[str, str]

_LETTERS: Final = ascii_uppercase + ascii_lowercase
_PALETTE: Final = (
    "cyan", "magenta", "blue", "green", "yellow",
    "bright_cyan", "bright_magenta", "bright_blue", "bright_green", "bright_yellow",
)  # fmt: skip
_GAP: Final = 3
_INDENT: Final = 2
_LONGEST_NAME: Final = 32
_LEGEND: Final = (
    "letter: an accelerator of a pod, + of a new one, # of other workloads, . free, ! no new pods"
)


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class NodeShare:
    """Pods of one variant on one node."""

    code: str
    """The variant's code in drawings."""

    variant: Key
    accelerators: int
    """Accelerators per pod."""

    stays: int
    """Pods that are there now and stay."""

    comes: int
    """Pods that are not there yet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeLayout:
    """One node after the plan."""

    node: Node
    holdings: tuple[NodeShare, ...]

    @property
    def used_by_variants(self) -> int:
        """Accelerators that the variants use."""
        return sum(item.accelerators * (item.stays + item.comes) for item in self.holdings)

    @property
    def others(self) -> int:
        """Accelerators that other workloads use."""
        return self.node.accelerators_used_by_others

    @property
    def free(self) -> int:
        """Unused accelerators."""
        return max(0, self.node.accelerators_allocatable - self.others - self.used_by_variants)

    @property
    def look(self) -> tuple[object, ...]:
        """Key that is equal for nodes that look the same in a drawing."""
        return (self.node.schedulable, self.node.accelerators_allocatable, self.others, self.holdings)


def in_order(plan: Plan) -> tuple[VariantDecision, ...]:
    """Return the decisions in the order in which they are served."""
    return tuple(sorted(plan.decisions, key=lambda item: (item.priority, item.namespace, item.name)))


def codes_of(plan: Plan) -> Mapping[Key, str]:
    """Return a short code for each variant, in the order in which they are served."""
    return codes_for([(item.namespace, item.name) for item in in_order(plan)])


def codes_for(keys: Sequence[Key]) -> Mapping[Key, str]:
    """Return a short code for each of some variants, in their order."""
    length = 1
    while len(_LETTERS) ** length < len(keys):
        length += 1
    return dict(zip(keys, map("".join, product(_LETTERS, repeat=length)), strict=False))


def colour_of(code: str) -> str:
    """Return the colour of a variant's code in a terminal."""
    return _PALETTE[sum(ord(letter) * 53**at for at, letter in enumerate(reversed(code))) % len(_PALETTE)]


def running_layouts(snapshot: Snapshot, codes: Mapping[Key, str]) -> tuple[NodeLayout, ...]:
    """Return every node as its pods run now, by type and name."""
    stays: dict[str, Counter[Key]] = defaultdict(Counter)
    for variant in snapshot.variants:
        for replica in variant.replicas:
            for name in replica.nodes:
                stays[name][variant.key] += 1
    return _layouts(snapshot, codes, stays, {})


def layouts(snapshot: Snapshot, plan: Plan) -> tuple[NodeLayout, ...]:
    """Return every node after the plan, by type and name."""
    granted = {(item.namespace, item.name): item.replicas for item in plan.decisions}
    comes: dict[str, Counter[Key]] = defaultdict(Counter)
    for item in plan.placements:
        comes[item.node][item.namespace, item.name] += item.pods
    stays: dict[str, Counter[Key]] = defaultdict(Counter)
    for variant in snapshot.variants:
        for nodes in _kept_places(variant, granted.get(variant.key, 0)):
            for name in nodes:
                stays[name][variant.key] += 1
    return _layouts(snapshot, codes_of(plan), stays, comes)


def _layouts(
    snapshot: Snapshot,
    codes: Mapping[Key, str],
    stays: Mapping[str, Counter[Key]],
    comes: Mapping[str, Counter[Key]],
) -> tuple[NodeLayout, ...]:
    """Return every node with the pods that stay and come there, given by node and variant."""
    sizes = {variant.key: variant.accelerators_per_pod for variant in snapshot.variants}
    none: Counter[Key] = Counter()

    def holdings(name: str) -> Iterator[NodeShare]:
        old, new = stays.get(name, none), comes.get(name, none)
        for key in {*old, *new}:
            if sizes[key] and key in codes:
                yield NodeShare(
                    code=codes[key], variant=key, accelerators=sizes[key], stays=old[key], comes=new[key]
                )

    return tuple(
        NodeLayout(node=node, holdings=tuple(sorted(holdings(node.name))))
        for node in sorted(snapshot.nodes, key=lambda node: (node.accelerator, _natural(node.name)))
    )


def unplaced_variants(snapshot: Snapshot, plan: Plan) -> frozenset[Key]:
    """Return the variants with more granted replicas than the plan has places for."""
    placed: Counter[Key] = Counter()
    for item in plan.placements:
        placed[item.namespace, item.name] += item.pods
    for request in plan.requests:
        for namespace, name, pods in request.pods:
            placed[namespace, name] += pods
    granted = {(item.namespace, item.name): item.replicas for item in plan.decisions}
    return frozenset(
        variant.key
        for variant in snapshot.variants
        if variant.accelerators_per_replica
        and _new_pods(variant, granted.get(variant.key, 0)) > placed[variant.key]
    )


def _new_pods(variant: Variant, granted: int) -> int:
    return (granted - len(_kept_places(variant, granted))) * variant.pods_per_replica


def by_type(nodes: Sequence[NodeLayout]) -> Mapping[str, tuple[NodeLayout, ...]]:
    """Return the nodes by accelerator type."""
    groups: dict[str, list[NodeLayout]] = defaultdict(list)
    for item in nodes:
        groups[item.node.accelerator].append(item)
    return {accelerator: tuple(group) for accelerator, group in sorted(groups.items())}


def alike(nodes: Sequence[NodeLayout]) -> tuple[tuple[NodeLayout, ...], ...]:
    """Return the nodes in groups that look the same, in the order of their first node."""
    groups: dict[tuple[object, ...], list[NodeLayout]] = defaultdict(list)
    for item in nodes:
        groups[item.look].append(item)
    return tuple(tuple(group) for group in groups.values())


def _kept_places(variant: Variant, granted: int) -> list[tuple[str, ...]]:
    """Return the nodes of each replica that stays; the first in removal order do not."""
    bound = [replica.nodes for replica in staying_replicas(variant) if replica.nodes]
    return bound[max(0, len(bound) - granted) :]


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key for which node-2 comes before node-10."""
    parts = re.findall(r"[0-9]+|[^0-9]", f"{name}\0")
    return [(int(part), "") if part[0] in digits else (-1, part) for part in parts]


def drawing_parts(nodes: Sequence[NodeLayout], *, columns: int) -> Iterator[RenderableType]:
    """Yield the drawing and its legend."""
    width = max((len(item.code) for layout in nodes for item in layout.holdings), default=1)
    for accelerator, group in by_type(nodes).items():
        yield wrapping_text(_title(accelerator, group), Tone.HEADING)
        yield _group(group, code_width=width, columns=columns)
    yield labelled_line("  ", _LEGEND, Tone.FAINT)


def _title(accelerator: str, group: Sequence[NodeLayout]) -> str:
    total = sum(item.node.accelerators_allocatable for item in group)
    used, others = sum(item.used_by_variants for item in group), sum(item.others for item in group)
    free = sum(item.free for item in group)
    kind = accelerator or "no known type"
    return (
        f"{kind}: {count(len(group), 'node')}, {count(total, 'accelerator')}:"
        f" {used} taken, {others} by others, {free} free"
    )


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
    runs = _runs([item.node.name for item in same], places)
    names = [run[0] if len(run) == 1 else f"{run[0]} .. {run[-1]}" for run in runs]
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


def _cells(layout: NodeLayout, code_width: int) -> list[tuple[str, str]]:
    """Return the text of each accelerator, all of the same width, with its style."""
    cells: list[tuple[str, str]] = []
    for item in layout.holdings:
        for replicas, mark in ((item.stays, " "), (item.comes, "+")):
            cells += [(item.code + mark, colour_of(item.code))] * (replicas * item.accelerators)
    cells += [("#" * code_width + " ", Tone.FAINT)] * layout.others
    cells += [(".".ljust(code_width + 1), Tone.FAINT)] * layout.free
    return cells
