"""Declarations of the API kinds, one file for each kind and version. Data only, no I/O.

- all served kinds: `registry`, grouped by `families`
- complete validation of an object: `judgement`, and of its other versions: `forms`; conversion: `conversion`
- shared types: `meta`, printer `columns`; namespace and name: `identity`
- settings in ConfigMaps: `settings`, with `settings_names`
- Stowplan's annotations: `annotations`; where requests are visible without replicas: `activity`
- who acts for whom: `authorship`; what writers need: `privileges`
- kinds that may be scaled: `scalable`; `autoscalers`, `metric_labels`, and whether the ones follow the
  others: `following`; `annotated` autoscalers, and each `decision_record` about them
"""
