"""The planning cycle: all variants are planned together, and the statuses of VariantAutoscalings published.

`variantautoscaling` runs the cycle: `watching` collects engine metrics and sizes models, the solver plans,
`status` computes statuses, or only advice where `advisory` selects that, and `publishing` writes them.
Metrics and logs are about its `cycle_result`.

- before the plan: `privileges`, `settings_keeping`, `silence` of engines, `activity` in front of models
  without replicas
- writes: `write_urgency` decides how soon; `decision_store` and `decision_annotation` are for objects without
  a status; `announcing` of changes; `heartbeat`, `clock`
- whether decisions are followed: `decision_following` by autoscalers, `placement_following` by pods, and
  `placement_divergence` from the plan's nodes
- pods of a plan: `placing` holds new ones for their nodes, `pod_deletion_costs` mark those to remove
"""
