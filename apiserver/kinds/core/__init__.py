"""Core Kubernetes types that our kinds embed, declared to the depth that the API server validates.

- metadata: `names`, `labels`, `references`; evaluation of label selectors: `selecting`
- containers: `env`, `envsource`, `resources`
- scheduling: `affinity`, with `nodeaffinity`
"""
