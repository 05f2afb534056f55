"""Core Kubernetes types that our kinds embed, declared to the depth that the API server validates.

- metadata: `names`, `labels`; evaluation of label selectors: `selecting`
- containers: `env`, `resources`; scheduling: `affinity`
"""
