"""`make bench-policies`: the cost of a cycle of bindings, compared with plain parsing of pods' metrics.

- objects of the cycles: `world`; compared algorithms: `kthena`, over `trajectories`
"""
