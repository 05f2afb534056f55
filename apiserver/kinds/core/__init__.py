"""Core Kubernetes types that our kinds embed, declared to the depth that the API server validates."""
