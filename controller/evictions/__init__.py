"""Moves of running replicas by evictions, which is opt-in.

`evicting` executes a plan's moves in `rounds`, which are recorded on the Lease for the next leader.
"""
