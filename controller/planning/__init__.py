"""Planning decides how many replicas of which variant, on which nodes, and says why. It is pure.

No clock, no client, no await: a frozen `snapshot.Snapshot` and `state.PlanningState` go in, a `decision.Plan`
and the next state come out, and the same input gives the same bytes whatever order it was listed in.

capacity    `saturation` turns engine samples into tokens of KV cache: what is in use or waits, and what one
            replica can hold.
demand      `demand` grades the signal (fresh, held, unknown), sums one demand per model, shared by its
            variants, and puts the required capacity inside the dead band between the scale-up threshold and
            the scale-down boundary.
problem     `problem` writes all of it down in integers: variants, cover rows, bins of equal nodes.
placement   `textbook` solves the problem with CP-SAT, lexicographically, from the plain start of `baseline`;
            `fit` names the nodes.
check       `checker` accepts a solution before anybody uses it, and shares no code with the model.
why         `explain` says in one sentence with numbers what was wanted, what was granted and what bound it.

`plan.plan` is the one entry. It imports OR-Tools (through `textbook`); the records do not, so that processes
which must stay small can import them.
"""
