"""Generated fleets of models, the same by name, size and seed, and what judges answers about them.

Benchmarks measure with them, and tests of planning demand laws of them. `catalogue` has problems by family,
`worlds` snapshots of fleets that run. `verify` tells whether an answer can be carried out and `score` what
it is worth; neither knows how answers are found. `rivals` are the rules by which other autoscalers place.

A new family is one function in a file of `families_*` and one line in `catalogue`.
"""
