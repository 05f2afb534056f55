"""Objects of Kubernetes and records of engines, translated into one frozen snapshot. Pure functions.

`accelerators`, `pods`, `inventory`, `policies`, `scheduling`, `quotas` and `karpenter` translate objects, and
`gather` combines all of it.

- what objects ask of planning: the `claim` of a `variantautoscaling` or an `annotated` autoscaler, or those
  of a binding (`binding_claims`), with the user's `overrides`; why one is `unplanned`, and `obstacles`
- what was found about a variant: `observed`
- command lines of engines: `engine_arguments`; their performance: `performance`, and by the catalog:
  `expected_performance`
- scale targets: `targets`, `scales`, their autoscalers: `scalers`, and whether these act:
  `decision_following`, `external_metrics`; `running_targets`; pods: their `roles`, `replicas`,
  `removal_order`, `movable` ones
- devices: `devices`, `resource_claims`; rules of pods: `rule_reading`, `rules`
- requests that are visible without replicas: `activity`
- service classes, priorities and costs: `settings_reading`, `policies`, `classes`, `objectives`, `prices`
- bindings: `binding_targets`; conditions: `conditions`, `binding_conditions`
"""
