"""Expansion of Models into workloads, Services, routes, policies and autoscalers. Pure functions.

- all objects of a Model: `expansion`, from its `parts`; what runs them: `workloads`, `commands`, `weights`
- adapters loaded at run time: `adapters`, `adapter_loader`, `loading`
- requests and replicas: `routing`, `scaling`
- next steps and status: `standing` and `reporting`
"""
