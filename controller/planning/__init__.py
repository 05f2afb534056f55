"""Decide how many replicas of each variant to run, on which nodes, and explain why, as a pure function.

No client, no await, no clock except the wall limit of the search: the input is a frozen `snapshot.Snapshot`,
the output is a `decision.Plan`. Equal input gives identical bytes, whatever the order of its records.

From the snapshot to the problem:
  plan            the entry point: prepare, place, search reliefs and moves, explain, check
  preparing       all data that is computed before placement, with a main variant for each model, and the
                  placement within the limits of preemption and disruption budgets
  incomplete      room for the missing pods of replicas that are bound in part
  demand          the capacity that each model requires: a lower bound that must be met, and an upper bound
                  above which replicas may be removed
  formulation     the problem in integers, with weights of shortfalls
  problem         its records: variants, weighted cover rows, bins of nodes, limits, growth; solution and
                  proofs
  inventory       bins: nodes grouped by the variants that may use them; zones and racks; hypothetical nodes
  pod_rules       rules for where pods can be: text, counts, rows and choice of nodes
  limits          quotas, budgets and ceilings as rows
  omission        variants and node pools whose prices are too large to compare, and that are left out

Placement:
  engine          column generation over replica patterns with exact pricing, and a CP-SAT core, with a lower
                  bound over every replica mix at every level (a package)
  pairs           the same share of requests for all roles of a model
  cpsat           the only access to CP-SAT

Explanation:
  explain         one sentence with numbers: what was wanted, what was granted and what limited it
  solved_problem  a solved problem with derived values: limits, vacancies, who holds scarce accelerators
  case            its models and variants, with clauses about them
  wording         numbers in messages
  relief          changes that would reduce a shortage, found by planning again with one thing changed

Evictions that defragment free accelerators:
  defragment      the pods that may be moved, and the moves of each bin, for models that are short
  moves           the fewest evictions that make room

The published plan:
  assemble        a decision from replica counts and a reason; without a solver, running replicas stay
  checker         verification of a plan before it is used; shares no code with the model (a package)

Input and output:
  snapshot        the input, frozen at one moment
  cluster         nodes, nodes that could be added, quotas and budgets
  load            the result of sizing: the load of each model, and the rate that one replica of each variant
                  serves
  decision        the output: a plan with one decision for each variant, and its reasons
  inputs          snapshot, state between cycles and parameters, as JSON, to save and replay a decision
  ranges          range checks for the numbers of records, and units of cost

`plan.plan` is the only entry point. It imports OR-Tools (through `cpsat`); the records do not, so that
processes with little memory can import them.
"""

import os

# The matrices here are small: a second thread spends more time spinning than computing.
for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")
