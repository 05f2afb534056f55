"""Generated fleets of models, reproducible by name, size and seed, and the evaluation of placements for them.

Benchmarks measure with them, and tests of planning check invariants on them. `catalogue` has problems by
family, `worlds` snapshots of running fleets. `verify` tells whether a solution is feasible and `score` its
quality; neither knows how solutions are found. `rivals` are the heuristics of other autoscalers.

A new family is one function in a file of `families_*` and one line in `catalogue`.

- families: `families_loads`, `families_rules`, `families_traps`
- random fleets: `fleet`; problems: `statement`
"""
