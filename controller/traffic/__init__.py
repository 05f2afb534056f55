"""Status of ModelServers, ModelRoutes and InferenceObjectives: the pods that they lead to. Pure.

`conditions` has the types and reasons, `endpoints` evaluates selectors, and `status` is that of each kind.
"""
