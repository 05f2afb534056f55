"""The planning cycle: all variants are planned together, and the statuses of VariantAutoscalings published.

`variantautoscaling` runs the cycle: `watching` collects engine metrics and sizes models, the solver plans,
`status` computes statuses, or only advice where `advisory` selects that, and `publishing` writes them.
`telemetry` has the results of a cycle, and metrics about them.

- the plan: a `solver` in a child process that can be killed (`solver_worker`)
- before the plan: `privileges`, `settings_keeping`, `activity` in front of models without replicas
- writes: `annotated` for objects without a status; `announcing` of changes
- whether decisions are followed: `situations` of autoscalers, `placement_following` of pods
- pods of a plan: `placing` holds new ones for their nodes, `pod_deletion_costs` mark those to remove
"""
