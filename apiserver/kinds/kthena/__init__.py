"""The kinds of Kthena, in the API groups registry.volcano.sh and networking.volcano.sh.

- API groups: `groups`
- Model: `model`, with `modelbackend` and `modelworker`; defaults: `modelfill`; lengths of names:
  `modelnames`; names and columns: `models`; warnings: `modeladvice`, `modelconfigadvice`
- ModelRoute and ModelServer: `modelroute`, with `modelmatch`, and `modelserver`; names and columns:
  `routing`; warnings: `modelroute_advice`, `modelmatch_advice`, `modelserver_advice`
- AutoscalingPolicy: `autoscalingpolicy`; defaults: `autoscalingpolicy_behavior`; warnings:
  `autoscalingpolicy_advice`
- AutoscalingPolicyBinding: `autoscalingpolicybinding`, `autoscalingpolicybinding_targets` and
  `autoscalingpolicybinding_status`; annotations: `autoscalingpolicybinding_activity`,
  `autoscalingpolicybinding_capacity`; warnings: `autoscalingpolicybinding_advice`
- names and columns of the last two: `autoscaling`
- texts: `hostport`, `regularexpressions`
"""
