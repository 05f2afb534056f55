"""Placement by pattern columns, prices and a core.

cohorts, mixes, pool   models in arrays, replica mixes worth considering, and what each comes to.
resources, asked       what models share, and what their columns take of it.
phase, prices, pricing one level of the lexicographic order, prices that bound it, columns they call for.
room, greedy           an answer at once, at the prices.
core, fitting, program what is left for CP-SAT: few columns, and rows that fit replicas to nodes exactly.
incumbent, cores       the best answer so far, and growing cores that make it better.
certificate            a bound over all mixes, by branch and bound.
search, selection      level by level to an answer with proofs.
earlier, running       where a search begins that differs little from the last one.
effort, nearness       how much may be searched, and how near to a bound is near enough.
naming, hosts          which node each new replica goes to.

`place` is the entry, `place_again` that for a problem that differs little from a solved one; `ColumnModel`
also says what each model would have alone.
"""

from controller.planning.columns.place import ColumnModel, place, place_again

__all__ = ["ColumnModel", "place", "place_again"]
