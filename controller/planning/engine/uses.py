"""The use of shared rows by options: units of item types, of staying and of new replicas.

An option of n replicas of a variant uses slots for its new units, in the cheapest of all bins that they may
use, and for its bound replicas that stay, in the bins where they are. A rule on domains requires a least
number of the new units in some domains: these use slots there, and only the rest may choose. So slots are
counted at least as often in every placement of the option, and bounds that follow from them are valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from controller.planning.engine.demands import bins_by_domain, domains_of, most_on_nodes
from controller.planning.engine.shared import (
    NO_BIN,
    NO_TYPE,
    Floats,
    Integers,
    ItemType,
    Nodes,
    item_type,
    pod_type,
)
from controller.planning.problem import NO_DOMAIN, PlacementProblem, bins_of

Use = tuple[Integers, int | Integers, Integers]
"""Options (n,), the row that they use, or the row of each (n,), and how much of it (n,)."""


class Types:
    """The item types of a problem, and those of each variant's replicas."""

    def __init__(self, problem: PlacementProblem, nodes: Nodes) -> None:
        self._problem = problem
        self._bins = bins_of(problem)
        bins_of_domains = bins_by_domain(problem)
        self._before = {
            v: domains_of(problem, problem.variants[v], rule, reachable)
            for v, reachable in bins_of_domains.items()
            if (rule := problem.variants[v].spread)
        }
        self._nodes = nodes
        new = [
            item_type(terms, bins) if terms.accelerators else None
            for terms, bins in zip(problem.variants, self._bins, strict=True)
        ]
        self._in_domain = {
            v: {d: item_type(problem.variants[v], bins) for d, bins in domains.items()}
            for v, domains in bins_of_domains.items()
        }
        self._staying = {
            v: self._holdings(v) for v, terms in enumerate(problem.variants) if terms.bound_replicas
        }
        kinds = {kind for kind in new if kind}
        kinds |= {kind for own in self._in_domain.values() for kind in own.values()}
        kinds |= {kind for own in self._staying.values() for replica in own for kind in replica}
        self.all = sorted(kinds)
        """All item types, of new and of bound replicas."""
        self._index = {kind: number for number, kind in enumerate(self.all)}
        self.new = np.array([self._index[kind] if kind else NO_TYPE for kind in new], dtype=np.int64)
        """(variants,): the index of the type of new units; NO_TYPE without accelerators."""

    def _holdings(self, v: int) -> list[list[ItemType]]:
        """Return what each bound replica that may leave holds while it stays, in removal order."""
        terms = self._problem.variants[v]
        holdings: list[list[ItemType]] = []
        bins, blocks = self._nodes.bin, self._nodes.block
        for places in terms.bound_replicas[: max(0, len(terms.bound_replicas) - terms.lower)]:
            homes = {(int(bins[node]), int(blocks[node])) for node in places}
            is_gang = terms.together is not None and len(places) == terms.pods and len(homes) == 1
            if not terms.accelerators:
                holdings.append([])
            elif is_gang and (home := next(iter(homes)))[0] != NO_BIN and home[1] != NO_DOMAIN:
                holdings.append([item_type(terms, (home[0],))])
            else:
                holdings.append(
                    [pod_type(terms.accelerators, int(bins[n])) for n in places if bins[n] != NO_BIN]
                )
        return holdings

    def most_new_replicas(self, v: int, most_units: Integers, free: Sequence[int]) -> int:
        """Return the maximum number of new replicas of a variant that could ever have places."""
        terms = self._problem.variants[v]
        units = int(most_units[self.new[v]])
        if terms.together is not None:
            return units
        pods = min(units, most_on_nodes(self._problem, terms, self._bins[v], free))
        if terms.spread is not None:
            most = terms.spread.most_new_pods(self._before[v])
            pods = pods if most is None else min(pods, most)
        return pods // terms.pods

    def uses(
        self, first: Integers, sizes: Integers, lower: Integers, variant: Integers, count: Integers
    ) -> Iterator[Use]:
        """Yield the units of types that options use, for new replicas and for bound ones that stay.

        `first`, `sizes` and `lower` (variants,) are the first option of each variant, their number, and the
        fewest replicas; `variant` and `count` (options,) are those of each option.
        """
        terms = self._problem.variants
        bound = np.array([*(len(t.bound_replicas) for t in terms), 0], dtype=np.int64)[variant]
        units = np.array([*(t.pods if t.together is None else 1 for t in terms), 0], dtype=np.int64)[variant]
        more = np.maximum(count - bound, 0) * units
        type_ = np.append(self.new, NO_TYPE)[variant]
        # The least number of pods per domain is not counted in gangs.
        by_domain = np.isin(variant, [v for v in self._before if terms[v].together is None])
        plain = np.flatnonzero((more > 0) & (type_ != NO_TYPE) & ~by_domain)
        yield plain, type_[plain], more[plain]
        for v, before in self._before.items():
            own = first[v] + np.flatnonzero(more[first[v] : first[v] + sizes[v]])
            rule = terms[v].spread
            if terms[v].together is not None or rule is None or not len(own):
                continue
            # The least number of each domain is used in that domain, and the rest in all of its bins.
            rest = more[own].copy()
            fewest = rule.least_new_pods(before, more[own].tolist())
            for domain, amounts in fewest.items():
                used = np.array(amounts, dtype=np.int64)
                yield own, self._index[self._in_domain[v][domain]], used
                rest -= used
            yield own, int(self.new[v]), rest
        for v, replicas in self._staying.items():
            own = np.arange(first[v], first[v] + sizes[v])
            # If n stay, the first `bound` - n have left.
            leaving = np.clip(len(terms[v].bound_replicas) - lower[v] - np.arange(sizes[v]), 0, len(replicas))
            for kind in sorted({kind for replica in replicas for kind in replica}):
                held = np.array([replica.count(kind) for replica in replicas], dtype=np.int64)
                held_before = np.concatenate([[0], np.cumsum(held)])  # what the first j hold
                yield own, self._index[kind], int(held.sum()) - held_before[leaving]


def join(uses: Iterable[Use]) -> tuple[Integers, Integers, Floats]:
    """Return all uses as (options, rows, amounts), sorted by option; amounts of 0 are dropped."""
    parts = [(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))]
    for options, row, amounts in uses:
        used = amounts > 0
        rows = np.broadcast_to(np.asarray(row, dtype=np.int64), options.shape)
        parts.append((options[used], rows[used], amounts[used].astype(np.float64)))
    option, row_, amount = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(option, kind="stable")
    return option[order], row_[order], amount[order]
