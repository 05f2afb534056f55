"""Status of ModelServers, ModelRoutes and InferenceObjectives: the pods that they lead to. Pure.

`conditions` has the types and reasons, `endpoints` evaluates selectors; each kind has its own module:
`modelserver`, `modelroute` and `inferenceobjective`.
"""
