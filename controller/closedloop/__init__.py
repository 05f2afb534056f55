"""Closed-loop simulation in virtual time: a policy scales engines, whose load responds.

- **scenario**: models with their requests, variants, nodes and targets: the complete input of a run.
- **cluster**: nodes and pods; **traffic**: their engines under load; **autoscaler**: the HPA that scales
  them.
- **policy**: the interface of policies; `reconciled` is the real controller; `rivals`, `saturation_v1` and
  `saturation_v2` are the ones it is compared with; `bound` is an AutoscalingPolicy, whose decisions over time
  are in `decided`.
- **lower_bound**: the least cost that is possible, from the least work of requests (`needed_work`) in
  classes (`load_classes`).
- **run**: simulates one scenario with one policy and returns its **outcome**.

Time is virtual and randomness is seeded: equal scenarios have equal outcomes.

- the objects of a scenario: `manifests`; pods: `pods`; metrics: `series`
- the rules of HPAs: `behaviour`; policies by name: `named`
- the result: `scoring`
"""
