"""Translation of ModelRoutes for Gateways with the Inference Extension, with notes about its limits. Pure.

- all objects of a route: `translation`; its parts: `pools`, `matching`, `precedence`, `requests`, `traffic`
- what users say: `annotations`; what is installed: `installed`
- next steps and condition: `steps`, `reporting`
"""
