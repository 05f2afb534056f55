"""Expansion of Models into workloads, Services, routes, policies and autoscalers. Pure functions.

- all objects of a Model: `expansion`, from its `parts`; what runs them: `workloads`, `weights`
- adapters loaded at run time: `adapters`, `adapter_loader`
- requests and replicas: `routing`, `scaling`
- next steps and status: `steps` and `reporting`
"""
