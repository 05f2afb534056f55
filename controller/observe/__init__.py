"""Read the cluster: I/O happens here, and the output is one frozen snapshot.

`scraping`, in `turns`, and `prometheus` fetch engine metrics; `readings` and `engines` turn the responses
into samples. `accelerators`, `pods`, `inventory`, `policies`, `orders`, `scheduling`, `quotas`, `karpenter`
and `variants`
translate Kubernetes objects, `idleness` tracks the last activity of models, and `gather` combines all of it.

- engines: `prometheus_jobs` that may be trusted, `endpoints`, `credentials`, `bounded` bodies, parsing of an
  `exposition`, `origins` of series, `series` and what is `said` by them, `foreign` engines, `causes` of
  failures; performance and command lines:
  `performance`, `arguments`
- objects: `identity`, and those that are `unplanned`; scale targets: `targets`, `scales`, their autoscalers:
  `scalers`, and whether these act: `acting`, `external_metrics`; targets as they are `running`, their
  `actual_types` and `roles`, and `obstacles`; pods: `replicas`, `lateness`, `waiting` for nodes, `leaving`
  order, `movable` ones, `disruptions`
- devices: `devices`, `claims`, `further_accelerators`; rules of pods: `rule_reading`, `rules`, `neighbours`,
  `domains`
- service classes, priorities and costs: `settings_reading` and its `last_valid` content, `classes`,
  `objectives`, `prices`; among tenants: `grants`
- bindings: `bound`, and their `asks` of the plan
- conditions: `conditions`, `binding_conditions`, `condition_list`; cached objects: `projections`
"""
