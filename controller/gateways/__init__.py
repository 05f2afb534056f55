"""Translation of ModelRoutes for Gateways with the Inference Extension, with notes about its limits. Pure.

- all objects of a route: `translation`; its `parts`, with `matching`
- annotations and what is installed: `inputs`
- next steps and condition: `reporting`
"""
