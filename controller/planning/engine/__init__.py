"""The placement engine: column generation over replica patterns with exact pricing, and a CP-SAT core.

docs/design/planning-model.md describes the model and the method.

Entry:
  place         solves a problem: search, and choice of nodes
  search        order of levels and effort; at each level column generation, and cores or replica counts
  levels        the lexicographic objective over patterns; the best solution so far

Columns:
  shared        rows that models share: slots, quotas and budgets, and nodes to add
  options       one column of data per variant and number of replicas
  uses          the use of shared rows by options
  patterns      replica mixes of one model

Bounds:
  master        the restricted master: dual prices, and the Lagrangian bound
  pricing       exact pricing of all mixes of a model, by enumeration of those close to the least

Integer programs:
  core          the program over patterns that can be part of a better solution
  counts        the program over replica counts, for small fleets
  demands       new units to place, aggregated by equal needs, and what rules for pods allow
  fit           rows that place them on real nodes

Places:
  assign        nodes for the new pods of given replica counts, and more replicas where room is left
  rooms         free accelerators and placed pods while pods are placed one by one
"""

from controller.planning.engine.place import Engine, alone, check_magnitude, dearest, place

__all__ = ["Engine", "alone", "check_magnitude", "dearest", "place"]
