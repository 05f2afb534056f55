"""Core types of Kubernetes that our kinds embed, typed to the depth that the API server checks."""
