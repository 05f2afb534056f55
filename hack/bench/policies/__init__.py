"""`make bench-policies`: the cost of a cycle of bindings, compared with plain parsing of pods' metrics.

- a run: `measuring`, over the objects of `world`
- compared algorithms: `kthena`, checked by `observed`, over `trajectories` and, on a control plane, `live`
"""
