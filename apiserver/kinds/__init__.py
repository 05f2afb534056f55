"""The API kinds: declarations, one file for each kind and version, and what is derived from them. No I/O.

- all served kinds, grouped by families: `registry`
- complete validation of an object and of its other versions: `judgement`; conversion: `conversion`
- shared types and printer columns: `meta`; namespace and name: `identity`
- settings in ConfigMaps: `settings`, with `settings_names`
- Stowplan's annotations: `annotations`; where requests are visible without replicas: `activity`
- who acts for whom: `authorship`; what writers need: `privileges`
- kinds that may be scaled: `scalable`; `autoscalers`, `metric_labels`, and whether the ones follow the
  others: `following`; `annotated` autoscalers, and each `decision_record` about them
"""
