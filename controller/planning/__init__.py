"""Decide how many replicas of each variant to run, on which nodes, and explain why, as a pure function.

No client, no await, no clock except the wall limit of the search: the input is a frozen `snapshot.Snapshot`
and a `state.PlanningState`, the output is a `decision.Plan` and the next state. Equal input gives identical
bytes, whatever the order of its records.

demand      `load` holds the result of sizing: the request rate of each model, and the rate that one replica
            of each variant serves. `demand` turns it into the capacity that each model requires, between a
            lower bound that must be met and an upper bound above which replicas may be removed.
problem     `formulation` states the problem in integers: variants, weighted cover rows, bins of nodes that
            the same variants may use, limits, and nodes that could be added.
placement   `engine` solves the problem by column generation over replica patterns with exact pricing, and a
            CP-SAT core, with a lower bound over every replica mix at every level; `moves` finds the fewest
            evictions that defragment free accelerators. Both call CP-SAT through `cpsat`.
check       `checker` verifies a plan before it is used, and shares no code with the model.
why         `explain` says in one sentence with numbers what was wanted, what was granted and what limited it;
            `relief` finds what would change that, by planning again with one thing changed.

`plan.plan` is the only entry point. It imports OR-Tools (through `cpsat`); the records do not, so that
processes with little memory can import them.
"""

import os

# The matrices here are small: a second thread spends more time spinning than computing.
for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")
