"""Moves of running replicas by evictions, which is opt-in.

`evicting` executes a plan's moves in `rounds`, `closing` keeps new pods off nodes meanwhile, and `record`
remembers a round on the Lease for the next leader.
"""
