"""What an AutoscalingPolicy asks for: metrics, a history and a moment in, replicas and their why out.

Pure: no clock, no I/O. `policy.py` and `binding.py` read the objects, `observation.py` says what was seen,
`history.py` what is remembered. `recommending.py` asks how many replicas the metrics want, `correcting.py`
how far one step may go, `deciding.py` does both, and `splitting.py` shares the result among unlike targets.
`exposed.py`, `histograms.py` and `measuring.py` make numbers of what pods expose.
"""
