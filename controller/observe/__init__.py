"""Objects of Kubernetes and records of engines, translated into one frozen snapshot. Pure functions.

`accelerators`, `pods`, `inventory`, `policies`, `scheduling` and `quotas` translate objects, and
`gather` combines all of it.

- what objects ask of planning: a `claim` with the user's orders, by `declarations` of variants or for the
  targets of a binding (`binding_claims`)
- what was found about a variant: `observed`
- performance of engines: `performance`, and by their command lines and the catalog: `expected_performance`
- scale targets: `targets`, `scales`, `running_targets`; their autoscalers: `scalers`, and whether these act:
  `decision_following`; pods: `replicas`, `removal_order`, `movable` ones, and their `rules`
- accelerators by other names: `devices`
- requests that are visible without replicas: `activity`
- service classes, priorities and costs: `settings_reading`, `policies`, `classes`, `objectives`, `prices`
- bindings: `binding_targets`; conditions: `conditions`, `binding_conditions`
"""
