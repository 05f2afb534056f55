"""`stowplan migrate`: manifests between Stowplan's shapes and those of later releases of other projects.

- the verb: `run`; all objects of the input together: `migration`; objects and notes: `objects`
- VariantAutoscalings and annotated autoscalers: `variants`
- AutoscalingPolicies: `policies`; Models, ModelRoutes, ModelServers and InferenceObjectives: `models`
"""
