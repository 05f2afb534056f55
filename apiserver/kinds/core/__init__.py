"""Core Kubernetes types that our kinds embed, declared to the depth that the API server validates.

- names, labels and label selectors: `names`; evaluation of selectors: `selecting`
- environment and resources: `containers`; scheduling: `affinity`
"""
