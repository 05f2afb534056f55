"""The cycle of AutoscalingPolicyBindings.

`autoscalingpolicybinding` observes the targets, decides by `policies`, and publishes.

- state between cycles: `memory`; `status`; the exchange with the plan of variants: `joint`
- for targets scaled by the controller itself, `scaling` writes scales; `scale_reader` reads them
- metrics: `telemetry`
"""
