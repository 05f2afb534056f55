"""From replica counts to names of nodes: which new replica goes where, on nodes yet to come as well."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.fitting import fit_replicas
from controller.planning.columns.hosts import Hosts
from controller.planning.columns.program import Program
from controller.planning.columns.resources import NO_CLASS, slots_of
from controller.planning.problem import freed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.arrays import Integers
    from controller.planning.columns.fitting import Fitting
    from controller.planning.columns.resources import Resources
    from controller.planning.lexicographic import Limits
    from controller.planning.problem import PlacementProblem

    Named = tuple[tuple[int, int, int], ...]

FORCED = 10.0
"""Deterministic seconds that finding places may take: counts that have them are worth it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """Where new replicas go."""

    placements: Named
    """(variant, node, replicas), sorted."""

    grown: Named
    """(variant, growth, replicas), sorted: those on nodes that are yet to be added."""


def name_nodes(
    problem: PlacementProblem, resources: Resources, replicas: Sequence[int], added: Integers, limits: Limits
) -> Places | None:
    """Return a node for every new replica; None if there is no way, or none was found within the limits."""
    after = _after(problem, resources, replicas, added)
    new = [
        max(0, count - len(terms.bound)) if terms.accelerators else 0
        for count, terms in zip(replicas, problem.variants, strict=True)
    ]
    named = _fill(after, new)
    if named is None:
        named = _by_program(after, new, limits)
    return _split(named, problem, added) if named is not None else None


def _after(
    problem: PlacementProblem, resources: Resources, replicas: Sequence[int], added: Integers
) -> Resources:
    """Return the resources once replicas have gone and nodes were added, which stand behind the others."""
    more = np.repeat(np.arange(len(added)), added)
    free = np.concatenate(
        [np.array(freed(problem, tuple(replicas)), dtype=np.int64), resources.growth_size[more]]
    )
    node_bin = np.concatenate([resources.node_bin, resources.growth_bin[more]])
    none = np.zeros(0, dtype=np.int64)
    return replace(
        resources,
        free=free,
        node_bin=node_bin,
        slots=slots_of(free, node_bin, resources.row_bin, resources.row_size),
        growth_bin=none,
        growth_size=none,
        growth_limit=none,
        growth_slots=none.reshape(0, len(resources.row_bin)),
    )


def _hosts(after: Resources) -> Hosts:
    bins = {bin_: np.flatnonzero(after.node_bin == bin_).tolist() for bin_ in range(after.allowed.shape[1])}
    return Hosts(after.free.tolist(), bins)


def _fill(after: Resources, new: Sequence[int]) -> Counter[tuple[int, int]] | None:
    """Place the largest first, then those with the fewest bins; None proves nothing where bins overlap."""
    hosts = _hosts(after)
    named: Counter[tuple[int, int]] = Counter()
    choice = [np.flatnonzero(row).tolist() for row in after.allowed]
    asking = [v for v, count in enumerate(new) if count]
    for v in sorted(
        asking, key=lambda v: (-after.sizes[after.class_of[v]], len(choice[after.class_of[v]]), v)
    ):
        group = after.class_of[v]
        for _ in range(new[v]):
            node = hosts.take(choice[group], int(after.sizes[group]))
            if node is None:
                return None
            named[v, node] += 1
    return named


def _by_program(after: Resources, new: Sequence[int], limits: Limits) -> Counter[tuple[int, int]] | None:
    """Divide each class among its bins, and pack nodes by patterns, by a small integer program."""
    program = Program()
    one = program.constant()
    counts = np.zeros(len(after.sizes) + 1, dtype=np.int64)
    np.add.at(counts, after.class_of, new)
    asked = [[(one, int(count))] for count in counts[:-1]]
    fitting = fit_replicas(program, after, asked=asked, leaving={}, growth=())
    result = program.solve(replace(limits, deterministic_seconds=FORCED))
    return _read(after, new, fitting, result.values) if result.values else None


def _read(
    after: Resources, new: Sequence[int], fitting: Fitting, values: Sequence[int]
) -> Counter[tuple[int, int]]:
    """Name the nodes: by the patterns where there are any, else the largest first."""
    hosts = _hosts(after)
    waiting = _waiting(after, new, fitting, values)
    named: Counter[tuple[int, int]] = Counter()
    for (bin_, free, pattern), variable in fitting.patterns.items():
        for _ in range(values[variable]):
            lying = [queue.pop() for size in pattern if (queue := waiting.get((bin_, size)))]
            if lying:
                node = hosts.take_of_kind(bin_, free, free)
                named.update((v, node) for v in lying)
    for (bin_, size), queue in sorted(waiting.items(), key=lambda item: -item[0][1]):
        for v in reversed(queue):
            place = hosts.take((bin_,), size)
            if place is None:
                raise RuntimeError(f"no node of bin {bin_} has room for {size}, although the rows said so")
            named[v, place] += 1
    return named


def _waiting(
    after: Resources, new: Sequence[int], fitting: Fitting, values: Sequence[int]
) -> dict[tuple[int, int], list[int]]:
    """Return the variants whose replicas go to each bin, by size: one entry for each replica."""
    left = {key: sum(values[v] * weight for v, weight in terms) for key, terms in fitting.flows.items()}
    waiting: dict[tuple[int, int], list[int]] = defaultdict(list)
    for v, count in enumerate(new):
        group = int(after.class_of[v])
        missing = count if group != NO_CLASS else 0
        for bin_ in np.flatnonzero(after.allowed[group]).tolist() if missing else ():
            here = min(missing, left[group, bin_])
            waiting[bin_, int(after.sizes[group])] += [v] * here
            left[group, bin_] -= here
            missing -= here
    return waiting


def _split(named: Counter[tuple[int, int]], problem: PlacementProblem, added: Integers) -> Places:
    """Tell places on nodes from those on nodes to be added."""
    nodes = len(problem.free)
    growth = np.repeat(np.arange(len(added)), added).tolist()
    grown: Counter[tuple[int, int]] = Counter()
    for (v, node), count in named.items():
        if node >= nodes:
            grown[v, growth[node - nodes]] += count
    return Places(
        placements=tuple(sorted((v, node, count) for (v, node), count in named.items() if node < nodes)),
        grown=tuple(sorted((v, g, count) for (v, g), count in grown.items())),
    )
