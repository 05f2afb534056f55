"""Expansion of Models into workloads, Services, routes, policies and autoscalers. Pure functions."""
