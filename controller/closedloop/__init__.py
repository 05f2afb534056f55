"""Closed loop in virtual time: a policy scales engines, and their load answers.

- **scenario**: models with their requests, variants, nodes, targets: all that a run depends on.
- **cluster**: nodes and pods; **traffic**: their engines under load; **autoscaler**: what scales them.
- **policy**: who says how many replicas there are to be; `reconciled` is the real controller, `rivals`,
  `saturation_v1`, `saturation_v2` and `clairvoyant` are those that it is compared with.
- **run** plays one scenario with one policy and returns its **outcome**.

Time is virtual and randomness seeded: the same scenario has the same outcome.
"""
