"""Objects of Kubernetes and records of engines, translated into one frozen snapshot. Pure functions.

`accelerators`, `pods`, `inventory`, `policies`, `scheduling`, `quotas` and `karpenter` translate objects, and
`gather` combines all of it.

- what objects ask of planning: the `claim` of a `variantautoscaling` or an `annotated` autoscaler, or those
  of a binding (`binding_claims`), with the user's `overrides`; why one is `unplanned`, and `obstacles`
- what was found about a variant: `observed`
- command lines and performance of engines: `arguments`, `performance`
- scale targets: `targets`, `scales`, their autoscalers: `scalers`, and whether these act:
  `decision_following`, `external_metrics`; `running_targets`, their `actual_types` and `roles`; pods:
  `replicas`, `unready` ones, those `waiting` for nodes, `removal_order`, `movable` ones, `disruptions`
- devices: `devices`, `resource_claims`, `further_accelerators`; rules of pods: `rule_reading`, `rules`,
  `neighbours`, `domains`
- service classes, priorities and costs: `settings_reading` and its `last_valid` content, `classes`,
  `objectives`, `prices`; among tenants: `grants`
- bindings: `binding_targets`; conditions: `conditions`, `binding_conditions`, `condition_list`
"""
