"""Evaluate AutoscalingPolicies: from metrics, a history and the time to replicas and the reasons.

Pure functions: no clock, no I/O. `policy.py` and `binding.py` read the objects; `observation.py` holds the
observed values, `history.py` the state between decisions. `recommending.py` computes the replicas that
metrics ask for, `correcting.py` limits one step, `deciding.py` combines both, and `splitting.py` distributes
the result over different targets. `exposed.py`, `histograms.py` and `measuring.py` turn exposed metrics into
numbers.
"""
