"""Translation of ModelRoutes for Gateways with the Inference Extension, with notes about its limits. Pure.

- all objects of a route: `translation`; its `parts`, with `matching`
- what users say: `annotations`; what is installed: `installed`
- next steps and condition: `reporting`
"""
