"""Objects of Kubernetes and records of engines, translated into one frozen snapshot. Pure functions.

`accelerators`, `pods`, `inventory`, `policies`, `orders`, `scheduling`, `quotas`, `karpenter` and `variants`
translate objects, and `gather` combines all of it.

- command lines and performance of engines: `arguments`, `performance`
- objects that are `unplanned`; scale targets: `targets`, `scales`, their autoscalers:
  `scalers`, and whether these act: `acting`, `external_metrics`; targets as they are `running`, their
  `actual_types` and `roles`, and `obstacles`; pods: `replicas`, `lateness`, `waiting` for nodes, `leaving`
  order, `movable` ones, `disruptions`
- devices: `devices`, `resource_claims`, `further_accelerators`; rules of pods: `rule_reading`, `rules`, `neighbours`,
  `domains`
- service classes, priorities and costs: `settings_reading` and its `last_valid` content, `classes`,
  `objectives`, `prices`; among tenants: `grants`
- bindings: `bound`, and their `asks` of the plan
- conditions: `conditions`, `binding_conditions`, `condition_list`
"""
