"""How ModelServers, ModelRoutes and InferenceObjectives stand: which pods they lead to. Pure.

`conditions` has the words, `endpoints` what selectors select; each kind has a file of its own.
"""
