"""Loads, rivals and goals for judging decisions in a closed loop; `make bench-decisions` runs them.

A **row** is a load on a fleet (`rows`, with the fleets of `fleet`). A **point** is the simulation of one
policy on one row with one seed (`points`). Results of **rivals** are kept in `rivals.json` (`rivals`);
`capacity` finds the sizes of constant fleets, and `saturation` has the rules of the llm-d workload variant
autoscaler. `results` joins ours and theirs, and judges them.
"""
