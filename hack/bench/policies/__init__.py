"""`make bench-policies`: the cost of a cycle of bindings, compared with plain parsing of pods' metrics."""
