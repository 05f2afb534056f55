"""Planning decides how many replicas of which variant, on which nodes, and says why. It is pure.

No clock, no client, no await: a frozen `snapshot.Snapshot` and `state.PlanningState` go in, a `decision.Plan`
and the next state come out, and the same input gives the same bytes whatever order it was listed in.

demand      `load` is what sizing found out: requests per second of each model, and what one replica of each
            variant serves. `demand` puts the capacity that a model is to have between what it needs and what
            may go.
problem     `formulation` writes all of it down in integers: variants, cover rows with their weights, bins of
            nodes that the same variants may use, limits, nodes that could be added.
placement   `engine` solves the problem by patterns of replicas, exact pricing and a CP-SAT core, with a bound
            over every replica mix at every level; `moves` finds the fewest evictions that bring together what
            is free. Both reach CP-SAT through `cpsat`.
check       `checker` accepts a plan before anybody uses it, and shares no code with the model.
why         `explain` says in one sentence with numbers what was wanted, what was granted and what bound it;
            `relief` what would change that, by planning again with one thing changed.

`plan.plan` is the one entry. It imports OR-Tools (through `cpsat`); the records do not, so that processes
which must stay small can import them.
"""

import os

# The matrices here are small: a second thread spins more than it computes, several times over.
for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")
