"""Status of ModelServers, ModelRoutes and InferenceObjectives: the pods that they lead to. Pure.

`endpoints` evaluates selectors, and has the types and reasons of conditions; `status` is that of each kind.
"""
