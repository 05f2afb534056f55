"""The kinds of Kthena, in the API groups registry.volcano.sh and networking.volcano.sh.

Those of its releases in networking.serving.volcano.sh are declared as well.

- API groups: `groups`
- Model: `model`, with `modelbackend`; names, columns, defaults and warnings: `models`
- ModelRoute and ModelServer: `modelroute`, with `modelmatch`, and `modelserver`; those of the releases:
  `serving`; names, columns and warnings: `routing`
- AutoscalingPolicy: `autoscalingpolicy`, with its defaults and warnings
- AutoscalingPolicyBinding: `autoscalingpolicybinding`; its references and their capacities:
  `autoscalingpolicybinding_targets`
- names, columns and warnings of the last two: `autoscaling`
"""
