"""The API group inference.networking.x-k8s.io of the Gateway API Inference Extension: InferenceObjective.

- fields: `inferenceobjective`; names, columns, warnings and references: `objectives`
"""
